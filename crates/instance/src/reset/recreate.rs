//! Recreate: new containers from the snapshot replace the old ones.

use super::{Proven, ResetParameters};
use crate::failure::OperationFailure;
use crate::making::blueprint;
use crate::operations::Instance;
use crate::proof::ProofCandidate;
use crate::service::tell;
use arenad_digest::StoreConnections;
use arenad_engine::CpuWeight;
use arenad_model::reset::ResetWay;
use arenad_model::snapshot::Snapshot;
use arenad_model::verify::ComparisonExtent;
use arenad_probes::ProbeFailure;
use arenad_reset::{self as reset, ResetContext, Stages, note_pristine};
use arenad_seams::fault::{self, Point};

impl Instance {
    /// Makes a new generation of containers and compares it with the snapshot. The old generation leaves service first;
    /// its containers are removed while the new ones start.
    pub(crate) async fn recreate(
        &mut self,
        plan: Option<&ResetParameters<'_>>,
        target: &Snapshot,
        extent: ComparisonExtent,
    ) -> Result<Proven, OperationFailure> {
        let context = self.context.clone();
        let own = Stages::default();
        let stages = plan.map_or(&own, |plan| &plan.stages);
        let turn = stages.time("wait", self.service.turn(&context.shared.turns.boots)).await;
        let (generation, _) = self.begin_generation(plan, target, ResetWay::Recreate).await?;
        fault::reach(Point::RecreateRecorded).await;
        let report = self.service.report();
        report.send_modify(|report| report.snapshot = Some(target.id.clone()));
        let stage = |text: &str| tell(report, text);
        let waiting = |failure: &ProbeFailure| {
            report.send_modify(|report| report.waiting_for = Some(failure.to_string()));
        };
        let mut old = self.pool.held_by(context.id.number);
        old.retain(|made| *made != generation);
        let work = ResetContext {
            engine: context.shared.engine.as_ref(),
            storage: context.shared.storage.as_ref(),
            prober: &context.shared.prober,
            blueprint: blueprint(&context.shared, &context.id, &context.site, target, generation, CpuWeight::Serving),
            old: &old,
            stages,
            stage: &stage,
            waiting: &waiting,
        };
        let mut incarnation = reset::recreate(&work).await?;
        let engine = context.shared.engine.as_ref();
        stages.time("outside", note_pristine(engine, &context.site, &mut incarnation)).await;
        let (shared, id, site) = (&context.shared, &context.id, &context.site);
        let candidate = ProofCandidate { shared, id, site, snapshot: target, incarnation: &incarnation };
        let proof = match extent {
            ComparisonExtent::Nothing => None,
            ComparisonExtent::Everything | ComparisonExtent::Moved => {
                stages.time("verify", candidate.prove_or_learn(&StoreConnections::passing())).await?
            }
        };
        fault::reach(Point::RecreateVerified).await;
        drop(turn);
        self.forget_writes();
        let extent = if proof.is_some() { extent } else { ComparisonExtent::Nothing };
        Ok(Proven { incarnation, snapshot: target.clone(), proof, extent, renewals: 0, is_standby: false })
    }
}
