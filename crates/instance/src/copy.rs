//! Copies of the state of the serving generation, from which the forks of an episode start.
//!
//! ```text
//!   hold ──► the writers rest ──► clones of the trees ──► the writers start ──┐
//!        └─► the containers stop ──► images and trees ──► they start again ───┴─► digest of the copy ──► open
//! ```
//! The first way suffices if everything that the site has written is in its declared stores; it is the beginning of a
//! rewind. The second way is that of a snapshot by name, and is taken if the first one is not possible. In both, the
//! generation and the state of the instance stay as they are, so the episode goes on.

use tokio_util::sync::CancellationToken;

use super::context::InstanceContext;
use super::failure::OperationFailure;
use super::operations::{Instance, unless};
use super::service::tell;
use crate::proof::ProofCandidate;
use arenad_baseline::snapshot::{self, SnapshotCopy, SnapshotPurpose};
use arenad_digest::StoreConnections;
use arenad_launch::Incarnation;
use arenad_model::coverage;
use arenad_model::error::describe;
use arenad_model::request_queue::CopyOrder;
use arenad_model::snapshot::Snapshot;
use arenad_model::store::Writers;
use arenad_reset::{self as reset, ResetError, WriterPause};
use arenad_seams::fault::{self, Point};

/// The generation that is copied.
struct CopySource {
    incarnation: Incarnation,
    /// The snapshot that it was made from or brought back to.
    snapshot: Snapshot,
    copy: SnapshotCopy,
}

impl Instance {
    /// Stores the state of the serving generation as a copy for forks. The generation goes on, whatever the result.
    ///
    /// Cancellation: a way that has begun comes to its end, because the site must not stay without its writers.
    pub(super) async fn copy(
        &mut self,
        order: &CopyOrder,
        cancel: &CancellationToken,
    ) -> Result<Snapshot, OperationFailure> {
        let other = || OperationFailure::OtherGeneration(order.generation);
        let serving = self.service.serving().filter(|serving| serving.incarnation.generation == order.generation);
        let serving = serving.ok_or_else(other)?;
        let snapshot = serving.snapshot.clone();
        let copy =
            SnapshotCopy { id: order.copy.clone(), episode: order.episode.clone(), clock_start: snapshot.created_at };
        let source = CopySource { incarnation: serving.incarnation.clone(), snapshot, copy };
        unless(cancel, self.check_depth()).await??;
        self.service.pause("is held while its state is copied");
        fault::reach(Point::CopyHeld).await;
        let copied = match self.copy_at_rest(&source).await? {
            Ok(copied) => copied,
            Err(hindrance) => {
                tracing::info!(instance.id = %self.context.id, "{} is stopped to be copied: {hindrance}", self.context.id);
                self.copy_stopped(&source).await?
            }
        };
        // The servers were started again, so the digest from before does not describe them.
        self.service.prove(None);
        let taken = unless(cancel, self.take_digest(&copied)).await?;
        if let Err(failure) = taken {
            self.remove_copy(&copied).await;
            return Err(failure);
        }
        self.service.report().send_modify(|report| report.waiting_for = None);
        self.service.resume();
        Ok(copied)
    }

    /// Copies the stores while their writers rest. `Ok(Err(..))`: the stores are not the whole state of the site.
    async fn copy_at_rest(&self, source: &CopySource) -> Result<Result<Snapshot, String>, OperationFailure> {
        let InstanceContext { shared, id, site } = self.context.as_ref();
        let writers = match self.resting_writers(source) {
            Ok(writers) => writers,
            Err(hindrance) => return Ok(Err(hindrance)),
        };
        let CopySource { incarnation, snapshot, copy } = source;
        let report = self.service.report();
        tell(report, "copying the state of the episode");
        let pause = WriterPause {
            engine: shared.engine.as_ref(),
            prober: &shared.prober,
            site,
            writers,
            incarnation,
            waiting: &|failure| report.send_modify(|report| report.waiting_for = Some(failure.to_string())),
        };
        let work = snapshot::copy_at_rest(&shared.baselines, id, site, incarnation, snapshot, copy.clone());
        match pause.run(work).await {
            Ok(copied) => Ok(Ok(self.with_sessions(source, copied.map_err(OperationFailure::Copy)?).await?)),
            Err(ResetError::Uncovered(gaps)) => Ok(Err(coverage::told(&gaps))),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns how the writers are brought to rest, or the reason why that does not suffice.
    fn resting_writers(&self, source: &CopySource) -> Result<&Writers, String> {
        let InstanceContext { shared, site, .. } = self.context.as_ref();
        let writers = site.rewinds().ok_or("its definition does not say how its writers are stopped")?;
        if snapshot::state(&shared.baselines, &source.snapshot).is_none() {
            return Err("its stores are not in the state root".to_owned());
        }
        if self.service.was_entered() {
            return Err("an operator has run commands in its containers".to_owned());
        }
        let hindrance = reset::hindrance(site, &source.snapshot.volumes, Some(&source.incarnation));
        hindrance.map_or(Ok(writers), Err)
    }

    /// Stops the containers cleanly, stores their images and trees, and starts them again.
    async fn copy_stopped(&mut self, source: &CopySource) -> Result<Snapshot, OperationFailure> {
        let context = self.context.clone();
        let InstanceContext { shared, id, site } = context.as_ref();
        let CopySource { incarnation, copy, .. } = source;
        let mut incarnation = incarnation.clone();
        // The site boots again afterwards, so it needs a turn.
        let turn = self.service.turn(&shared.turns.boots).await;
        let report = self.service.report().clone();
        self.watch.end();
        tell(&report, "stopping cleanly");
        let stored = async {
            snapshot::stop_cleanly(&shared.baselines, site, &incarnation).await?;
            tell(&report, "copying the state of the episode");
            let purpose = SnapshotPurpose::Copy(copy.clone());
            snapshot::store(&shared.baselines, id, site, &incarnation, purpose).await
        };
        let stored = stored.await.map_err(OperationFailure::Copy);
        // Whether or not the copy was stored, the episode continues.
        let restarted = self.restart(&mut incarnation).await;
        self.service.readdress(incarnation);
        self.begin_watch();
        drop(turn);
        match (stored, restarted) {
            (Ok(copied), Ok(())) => self.with_sessions(source, copied).await,
            (Ok(copied), Err(cause)) => {
                self.remove_copy(&copied).await;
                Err(cause)
            }
            (Err(failure), Ok(())) => Err(failure),
            (Err(failure), Err(cause)) => {
                Err(OperationFailure::NotRestarted { taking: Box::new(failure), cause: Box::new(cause) })
            }
        }
    }

    /// Gives a copy the sessions of the snapshot that the episode started from.
    async fn with_sessions(&self, source: &CopySource, copied: Snapshot) -> Result<Snapshot, OperationFailure> {
        let store = &self.context.shared.store;
        match store.inherit_sessions(&source.snapshot.id, &copied.id).await {
            Ok(()) => Ok(copied),
            Err(error) => {
                self.remove_copy(&copied).await;
                Err(error.into())
            }
        }
    }

    /// Takes the digest of the generation, which equals the copy, as that of the copy. The forks are compared with it.
    async fn take_digest(&self, copied: &Snapshot) -> Result<(), OperationFailure> {
        let InstanceContext { shared, id, site } = self.context.as_ref();
        let Some(serving) = self.service.serving() else { return Err(OperationFailure::Superseded) };
        let candidate = ProofCandidate { shared, id, site, snapshot: copied, incarnation: &serving.incarnation };
        candidate.prove_or_learn(&StoreConnections::passing()).await?;
        fault::reach(Point::CopyTaken).await;
        Ok(())
    }

    /// Removes a copy that no fork can use. If that fails, the daemon's search for unused copies removes it later.
    async fn remove_copy(&self, copied: &Snapshot) {
        if let Err(error) = snapshot::remove(&self.context.shared.baselines, copied).await {
            tracing::warn!(instance.id = %self.context.id, error = describe(&error), "copy {} remains", copied.id);
        }
    }
}
