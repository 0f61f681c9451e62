//! Adoption: this daemon takes over the serving generation and the standbys that an earlier daemon left running.
//!
//! The serving generation continues to serve if its row and its containers agree and its probes pass. The gateway's
//! counts of requests ended with the earlier daemon. If a client had reached the generation, the client may have
//! written to it, so only a reset or a full comparison makes it trusted again. If no client had (`pristine.rs`), its
//! state is unchanged since before its first client, and only the earlier daemon's digest is missing. Each standby is
//! compared in full before it counts, within the limit on standby boots; until then it counts as being made.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::failure::OperationFailure;
use super::making::clear_away;
use super::operations::Instance;
use super::pool::PoolTaskOutcome;
use super::reset::RecordedGeneration;
use super::standby_error::StandbyError;
use crate::proof::{ProofCandidate, StandbyProof};
use crate::shared::SharedParts;
use arenad_engine::{ContainerState, EngineError};
use arenad_launch::{self as launch, Incarnation};
use arenad_model::instance::{InstanceId, InstanceState, InstanceStatus};
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;
use arenad_reset::{self as reset, ResetError};

/// How long an existing generation may take to pass its probes before it is replaced.
const ADOPTION_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

impl Instance {
    /// Adopts the serving generation that an earlier daemon left, if there is one that passes its probes. Builds and
    /// removes nothing. After an error the next attempt can still adopt it.
    pub(super) async fn take_up_serving(&mut self) -> Result<bool, OperationFailure> {
        let Some(found) = self.found.clone() else { return Ok(false) };
        // A reset that a crash interrupted may have left the old generation unchanged, but the reset must still be
        // completed.
        let is_whole = found.state != InstanceStatus::Resetting;
        let (Some(serving), Some(id), true) = (found.serving, &found.snapshot, is_whole) else { return Ok(false) };
        let context = self.context.clone();
        let Some(snapshot) = context.shared.store.snapshot(id).await? else { return Ok(false) };
        self.service.tell("taking up the containers that run");
        let (engine, installation) = (context.shared.engine.as_ref(), &context.shared.installation);
        let running = launch::find(engine, &context.site, installation, &context.id, serving.made).await;
        let Some(mut incarnation) = running.map_err(ResetError::Launch)? else { return Ok(false) };
        incarnation.generation = serving.generation;
        let (probes, prober) = (&context.site.readiness.probes, &context.shared.prober);
        let deadline = Instant::now() + ADOPTION_PATIENCE;
        while let Err(failure) = prober.round(probes, &context.site, &incarnation, None).await {
            self.service.report().send_modify(|report| report.waiting_for = Some(failure.to_string()));
            if Instant::now() >= deadline || prober.still_running(&context.site, &incarnation).await.is_err() {
                return Ok(false);
            }
            tokio::time::sleep(context.site.readiness.interval).await;
        }
        self.baseline = self.left_baseline(&snapshot).await?;
        self.service.start().await?;
        self.take_up_standbys().await?;
        self.recall_writes(incarnation.generation).await;
        let was_reached = !self.service.pristine().has(incarnation.generation);
        if !was_reached {
            // No client has reached it yet.
            reset::note_pristine(engine, &context.site, &mut incarnation).await;
        }
        let since = context.shared.clock.now();
        context.shared.store.save_state(&context.id, &InstanceState::Ready, since).await?;
        self.switch(RecordedGeneration::adopted(incarnation, snapshot, since, was_reached))?;
        self.found = None;
        Ok(true)
    }

    /// Returns the snapshot that an earlier daemon's generation was made from, if the snapshot can be used although the
    /// containers cannot; nothing has to be built then.
    pub(super) async fn left_snapshot(&mut self) -> Result<Option<Snapshot>, OperationFailure> {
        let Some(id) = self.found.as_ref().and_then(|found| found.snapshot.clone()) else { return Ok(None) };
        let Some(left) = self.find_usable(&id).await? else { return Ok(None) };
        self.baseline = self.left_baseline(&left).await?;
        Ok(Some(left))
    }

    async fn left_baseline(&self, serving: &Snapshot) -> Result<Option<Snapshot>, OperationFailure> {
        let noted = match self.found.as_ref().and_then(|found| found.baseline.clone()) {
            Some(id) => self.context.shared.store.snapshot(&id).await?,
            None => None,
        };
        Ok(noted.or_else(|| serving.is_baseline().then(|| serving.clone())))
    }

    /// Adopts the standbys of the site that the store knows, unless another slot has done so. Standbys of another snapshot
    /// than the current one are removed.
    pub(super) async fn take_up_standbys(&mut self) -> Result<(), OperationFailure> {
        let Some(wanted) = self.baseline.clone() else { return Ok(()) };
        self.pool.note_baseline(self.context.id.number, Some(&wanted));
        if self.pool.is_taken_up() {
            return Ok(());
        }
        let context = &self.context;
        let standbys = context.shared.store.standbys(&context.id).await?;
        self.pool.take_up(&context.shared.tasks, &wanted.id, standbys, |made, stop| {
            let (shared, id, site) = (context.shared.clone(), context.id.clone(), context.site.clone());
            let work = take_up(shared, id, site, wanted.clone(), made, stop);
            async move { work.await.map(|(incarnation, proof)| PoolTaskOutcome::ready(incarnation, proof, 0)) }
        });
        Ok(())
    }
}

/// Finds a standby's containers, resumes and compares them; removes them after an error.
async fn take_up(
    shared: Arc<SharedParts>,
    id: InstanceId,
    site: Arc<Site>,
    snapshot: Snapshot,
    made: u64,
    stop: CancellationToken,
) -> Result<(Incarnation, Option<StandbyProof>), StandbyError> {
    let turn = stop.run_until_cancelled(shared.turns.standbys.turn(&|_| {})).await;
    let _turn = turn.ok_or(StandbyError::GivenUp)?;
    let taken_up = async {
        let engine = shared.engine.as_ref();
        let found = launch::find_containers(engine, &site, &shared.installation, &id, made).await?;
        let mut incarnation = found.ok_or(StandbyError::Gone)?;
        go_on(&shared, &incarnation).await?;
        launch::find_addresses(engine, &site, &mut incarnation).await?;
        let deadline = Instant::now() + ADOPTION_PATIENCE;
        while let Err(failure) = shared.prober.round(&site.readiness.probes, &site, &incarnation, None).await {
            if Instant::now() >= deadline {
                return Err(StandbyError::Probe(failure));
            }
            tokio::time::sleep(site.readiness.interval).await;
        }
        let candidate =
            ProofCandidate { shared: &shared, id: &id, site: &site, snapshot: &snapshot, incarnation: &incarnation };
        let proof = StandbyProof::begin(&candidate).await?;
        // No client has reached a standby.
        reset::note_pristine(engine, &site, &mut incarnation).await;
        Ok((incarnation, proof))
    };
    match taken_up.await {
        Ok(taken_up) => Ok(taken_up),
        Err(error) => {
            clear_away(&shared, &id, made).await;
            Err(error)
        }
    }
}

/// Resumes the containers that are paused.
async fn go_on(shared: &SharedParts, incarnation: &Incarnation) -> Result<(), EngineError> {
    for handle in incarnation.containers.values() {
        if shared.engine.inspect(handle).await?.state == ContainerState::Paused {
            shared.engine.thaw(handle).await?;
        }
    }
    Ok(())
}
