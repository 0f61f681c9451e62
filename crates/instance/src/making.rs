//! The background work on one standby: making, bringing back and removing it. These functions run in tasks and do not
//! access the pool.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

use super::pool::PoolTaskOutcome;
use super::standby_error::StandbyError;
use crate::proof::{ProofCandidate, Rewound, StandbyProof};
use crate::shared::SharedParts;
use arenad_baseline::{snapshot, steps};
use arenad_digest::Taken;
use arenad_engine::CpuWeight;
use arenad_engine::labels::{self, Ownership};
use arenad_launch::{Blueprint, GenerationSelector, Incarnation, Remains, RemoveError};
use arenad_model::configure::HttpStep;
use arenad_model::coverage;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceId;
use arenad_model::probe::ProbeKind;
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;
use arenad_reset::{self as reset, ResetContext, ResetError, Rewind, Stages};
use arenad_seams::fault::{self, Point};

/// Boots a standby, compares it with its snapshot and warms it; removes the leftovers of a failed attempt.
pub(super) async fn make(
    shared: Arc<SharedParts>,
    id: InstanceId,
    site: Arc<Site>,
    snapshot: Snapshot,
    generation: u64,
    stop: CancellationToken,
) -> Result<(Incarnation, Option<StandbyProof>), StandbyError> {
    let turn = stop.run_until_cancelled(shared.turns.standbys.turn(&|_| {})).await;
    let _turn = turn.ok_or(StandbyError::GivenUp)?;
    let context = ResetContext {
        engine: shared.engine.as_ref(),
        storage: shared.storage.as_ref(),
        prober: &shared.prober,
        blueprint: blueprint(&shared, &id, &site, &snapshot, generation, CpuWeight::Background),
        old: &[],
        stages: &Stages::default(),
        stage: &|_| {},
        waiting: &|_| {},
    };
    let made = async {
        let mut incarnation = reset::make(&context).await?;
        let candidate =
            ProofCandidate { shared: &shared, id: &id, site: &site, snapshot: &snapshot, incarnation: &incarnation };
        // The comparison comes before warming, because the writes of warming are not part of the snapshot.
        let mut proof = StandbyProof::begin_or_learn(&candidate).await?;
        warm(&shared, &site, &incarnation, |_, _| false).await?;
        if let Some(proof) = &mut proof {
            proof.renew(&candidate).await?;
        }
        reset::note_pristine(shared.engine.as_ref(), &site, &mut incarnation).await;
        fault::reach(Point::StandbyProven).await;
        Ok((incarnation, proof))
    };
    match made.await {
        Ok(made) => Ok(made),
        Err(error) => {
            clear_away(&shared, &id, generation).await;
            Err(error)
        }
    }
}

/// The result of a renewal.
enum Renewed {
    /// The containers equal the snapshot and are ready to stand by.
    Proven { proof: Option<StandbyProof>, rewinds: u32 },
    /// The containers hold something that a rewind does not restore.
    Uncovered(String),
}

/// Containers that have served.
pub(super) struct Used {
    pub(super) incarnation: Incarnation,
    /// The digest that was taken before they served.
    pub(super) before: Option<Taken>,
    /// Whether no client can have reached them since the digest was taken.
    pub(super) is_untouched: bool,
}

/// Brings containers that have served back to the snapshot in place. Containers that no client has reached and that
/// still equal the snapshot are kept unchanged. If the renewal fails, they are removed.
pub(super) async fn renew(
    shared: Arc<SharedParts>,
    id: InstanceId,
    site: Arc<Site>,
    snapshot: Snapshot,
    used: Used,
    stop: CancellationToken,
) -> Result<PoolTaskOutcome, StandbyError> {
    let Used { incarnation, before, is_untouched } = used;
    let turn = stop.run_until_cancelled(shared.turns.standbys.turn(&|_| {})).await;
    let _turn = turn.ok_or(StandbyError::GivenUp)?;
    let made = incarnation.made;
    let renewed = async {
        for handle in incarnation.containers.values() {
            shared.engine.weigh(handle, CpuWeight::Background).await?;
        }
        let candidate =
            ProofCandidate { shared: &shared, id: &id, site: &site, snapshot: &snapshot, incarnation: &incarnation };
        let (Some(source), Some(writers)) = (snapshot::state(&shared.baselines, &snapshot), site.rewinds()) else {
            return Err(StandbyError::NoState);
        };
        if let Some(reason) = reset::hindrance(&site, &snapshot.volumes, Some(&incarnation)) {
            return Ok(Renewed::Uncovered(reason));
        }
        if is_untouched && reset::check_covered(shared.engine.as_ref(), &site, &incarnation).await.is_ok() {
            let proven = match before.clone() {
                Some(taken) => StandbyProof::resume(&candidate, taken).await.map(Some),
                None => StandbyProof::begin(&candidate).await,
            };
            if let Ok(Some(proof)) = proven {
                return Ok(Renewed::Proven { proof: Some(proof), rewinds: 0 });
            }
        }
        let rested = OnceLock::new();
        let rewind = Rewind {
            rested: Some(&rested),
            engine: shared.engine.as_ref(),
            prober: &shared.prober,
            id: &id,
            site: &site,
            writers,
            source,
            stages: &Stages::default(),
            stage: &|_| {},
            waiting: &|_| {},
        };
        match rewind.run(&incarnation, std::future::ready(None), std::future::ready(()), &SetOnce::new()).await {
            Ok(()) => {}
            Err(ResetError::Uncovered(gaps)) => return Ok(Renewed::Uncovered(coverage::told(&gaps))),
            Err(error) => return Err(error.into()),
        }
        // The probes have just made these requests, so their caches are filled.
        warm(&shared, &site, &incarnation, is_probed).await?;
        let before = before.as_ref().filter(|_| !site.reset.verify.is_full);
        let rewound = before.map(|before| Rewound { before, rested: &rested });
        let proof = StandbyProof::begin_rewound(&candidate, rewound).await?;
        Ok(Renewed::Proven { proof, rewinds: 1 })
    };
    match renewed.await {
        Ok(Renewed::Proven { proof, rewinds }) => Ok(PoolTaskOutcome::ready(incarnation, proof, rewinds)),
        // This does not count as a failure, so the next standby is made without a pause.
        Ok(Renewed::Uncovered(reason)) => {
            let message = format!("the used containers of {id} are removed instead of rewound: {reason}");
            shared.events.note(EventKind::StandbyDiscarded, Some(&id), &message).await;
            remove(&shared, &id, made).await?;
            Ok(PoolTaskOutcome::Removed)
        }
        Err(error) => {
            clear_away(&shared, &id, made).await;
            Err(error)
        }
    }
}

/// Fills the caches of a standby by the requests that warmed the baseline, except those that `is_warm` reports as made
/// already.
async fn warm(
    shared: &SharedParts,
    site: &Site,
    incarnation: &Incarnation,
    is_warm: fn(&Site, &HttpStep) -> bool,
) -> Result<(), StandbyError> {
    for step in &site.baseline.warm {
        if is_warm(site, step) {
            continue;
        }
        steps::http(&shared.prober, incarnation, step).await?;
    }
    Ok(())
}

/// Whether a readiness probe makes the same request.
fn is_probed(site: &Site, step: &HttpStep) -> bool {
    site.readiness.probes.iter().any(|probe| match &probe.kind {
        ProbeKind::Http(probe) => {
            (&probe.service, probe.port, &probe.method, &probe.path, &probe.headers)
                == (&step.service, step.port, &step.method, &step.path, &step.headers)
                && step.body.is_none()
        }
        _ => false,
    })
}

/// Removes the leftovers of a failed attempt, or logs that they remain.
pub(super) async fn clear_away(shared: &SharedParts, id: &InstanceId, made: u64) {
    if let Err(error) = remove(shared, id, made).await {
        tracing::warn!(instance.id = %id, error = describe(&error), "leftovers of a standby remain");
    }
}

/// Removes the containers that were made for a generation, their network, their volumes and their trees.
pub(super) async fn remove(shared: &SharedParts, id: &InstanceId, made: u64) -> Result<(), RemoveError> {
    let remains = Remains {
        installation: &shared.installation,
        instance: id,
        role: labels::ROLE_INSTANCE,
        which: GenerationSelector::Only(made),
    };
    shared.remove(remains).await
}

/// Returns the parameters from which the containers of a generation are created.
pub(super) fn blueprint<'a>(
    shared: &'a SharedParts,
    id: &'a InstanceId,
    site: &'a Site,
    from: &Snapshot,
    generation: u64,
    weight: CpuWeight,
) -> Blueprint<'a> {
    Blueprint {
        id,
        site,
        ownership: Ownership::of(&shared.installation, id, generation, labels::ROLE_INSTANCE, &from.id),
        images: from.images.clone(),
        volumes: snapshot::saved_volumes(&shared.baselines, from),
        state: snapshot::state(&shared.baselines, from),
        clock: site.clock.as_ref().and_then(|clock| clock.setting(Some(from.created_at), Timestamp::now())),
        block: shared.block,
        weight,
    }
}
