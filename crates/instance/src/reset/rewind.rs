//! Rewind: the serving containers are brought back in place.

use std::sync::OnceLock;

use tokio::sync::SetOnce;

use super::{Proven, ResetParameters};
use crate::failure::OperationFailure;
use crate::operations::Instance;
use crate::pool::MOST_RENEWALS;
use crate::proof::{ProofCandidate, Rewound};
use crate::service::{ServingIncarnation, tell};
use arenad_baseline::snapshot;
use arenad_digest::{StoreConnections, Taken};
use arenad_launch::{Incarnation, StateSource};
use arenad_model::error::describe;
use arenad_model::reset::ResetWay;
use arenad_model::snapshot::Snapshot;
use arenad_model::store::Writers;
use arenad_model::verify::ComparisonExtent;
use arenad_reset::{self as reset, Rewind};
use arenad_seams::fault::{self, Point};

/// The parameters of one rewind.
struct How<'a> {
    target: &'a Snapshot,
    /// The extent of the comparison after the rewind.
    extent: ComparisonExtent,
    writers: &'a Writers,
    source: StateSource<'a>,
    /// The digest that was taken before the containers served; `None` if every file is to be read again.
    before: Option<&'a Taken>,
}

impl Instance {
    /// Rewinds the serving containers. `Err(None)`: a rewind is not possible, and the containers are untouched.
    /// `Err(Some(..))`: it was tried, and the state of the containers is unknown.
    pub(super) async fn rewind(
        &mut self,
        plan: &mut ResetParameters<'_>,
        target: &Snapshot,
        extent: ComparisonExtent,
    ) -> Result<Result<Proven, Option<OperationFailure>>, OperationFailure> {
        let context = self.context.clone();
        // The definition does not ask for rewinds, so this is not a fallback with a reason.
        let Some(writers) = context.site.rewinds() else { return Ok(Err(None)) };
        // Many slots that are free at the same moment would otherwise take so long together that each one's time runs out.
        let _turn = plan.stages.time("wait", self.service.turn(&context.shared.turns.rewinds)).await;
        if let Some(hindrance) = self.hindrance(target).await {
            plan.fall_back(format!("no rewind: {hindrance}"));
            return Ok(Err(None));
        }
        let Some(source) = snapshot::state(&context.shared.baselines, target) else { return Ok(Err(None)) };
        let (generation, used) = self.begin_generation(Some(plan), target, ResetWay::Rewind).await?;
        fault::reach(Point::RewindRecorded).await;
        let Some(ServingIncarnation { incarnation, renewals, proven, snapshot, .. }) = used else {
            return Ok(Err(None));
        };
        let incarnation = Incarnation { generation, ..incarnation };
        // The digest describes the files of the snapshot that they were proven to equal.
        let is_same = snapshot.id == target.id;
        let before = proven.as_ref().filter(|_| is_same && !context.site.reset.verify.is_full);
        let how = How { target, extent, writers, source, before };
        let rewound = self.put_back(plan, how, &incarnation).await;
        Ok(rewound.map_err(Some).map(|proof| {
            let (snapshot, renewals) = (target.clone(), renewals + 1);
            let extent = if proof.is_some() { extent } else { ComparisonExtent::Nothing };
            Proven { incarnation, snapshot, proof, extent, renewals, is_standby: false }
        }))
    }

    /// Returns the reason why the serving containers cannot be brought back in place, if there is one.
    async fn hindrance(&self, target: &Snapshot) -> Option<String> {
        let context = &self.context;
        let Some(serving) = self.service.serving() else { return Some("nothing of it runs".to_owned()) };
        if snapshot::state(&context.shared.baselines, target).is_none() {
            let is_missing = context.shared.storage.is_none();
            return Some(if is_missing { "there is no state root" } else { "its snapshot lies in images" }.to_owned());
        }
        if !serving.snapshot.has_containers_of(target) {
            return Some("it serves another snapshot".to_owned());
        }
        if self.service.was_entered() {
            return Some("an operator has run commands in its containers".to_owned());
        }
        if serving.renewals >= MOST_RENEWALS {
            return Some(format!("its containers have been brought back {} times", serving.renewals));
        }
        if let Some(uncovered) = reset::hindrance(&context.site, &target.volumes, Some(&serving.incarnation)) {
            return Some(uncovered);
        }
        let running = context.shared.prober.still_running(&context.site, &serving.incarnation).await;
        running.err().map(|failure| describe(&failure))
    }

    async fn put_back(
        &mut self,
        plan: &ResetParameters<'_>,
        how: How<'_>,
        incarnation: &Incarnation,
    ) -> Result<Option<Taken>, OperationFailure> {
        let How { target, extent, writers, source, before } = how;
        let context = self.context.clone();
        let spare = self.spare.take();
        let spare = async { spare?.take(&target.id).await };
        let (report, stages) = (self.service.report(), &plan.stages);
        let rested = OnceLock::new();
        let rewind = Rewind {
            rested: (extent != ComparisonExtent::Nothing).then_some(&rested),
            engine: context.shared.engine.as_ref(),
            prober: &context.shared.prober,
            id: &context.id,
            site: &context.site,
            writers,
            source,
            stages,
            stage: &|text| tell(report, text),
            waiting: &|failure| report.send_modify(|report| report.waiting_for = Some(failure.to_string())),
        };
        let (shared, id, site) = (&context.shared, &context.id, &context.site);
        let candidate = ProofCandidate { shared, id, site, snapshot: target, incarnation };
        let started = SetOnce::new();
        let proof = match extent {
            ComparisonExtent::Nothing => rewind.run(incarnation, spare, std::future::ready(None), &started).await?,
            ComparisonExtent::Everything | ComparisonExtent::Moved => {
                let lines = StoreConnections::kept();
                let rewound = before.map(|before| Rewound { before, rested: &rested });
                let early = {
                    let proof = candidate.prove_rising(&lines, rewound, Some(&started));
                    rewind.run(incarnation, spare, proof, &started).await?
                };
                let proven = stages.time("verify", candidate.prove_since(early, &lines, rewound)).await;
                lines.close().await;
                proven?
            }
        };
        fault::reach(Point::RewindVerified).await;
        self.forget_writes();
        Ok(proof)
    }
}
