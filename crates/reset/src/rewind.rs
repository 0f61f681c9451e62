//! Rewind: the containers run on; what writes to the site's stores is stopped, what was touched in the trees under its mounts
//! is exchanged for clones of the snapshot's (everything, where that is not known), and it is started again.
//!
//! What it takes does not depend on how much the files hold. It brings back what the definition declares as stores and
//! nothing else, so everything else that the containers can write to is held against what it was before the first client
//! (`covered.rs`), and the digest of every store is compared afterwards. Recreate, which brings back everything, is what is
//! done when anything here fails.

use std::sync::OnceLock;

use tokio::sync::SetOnce;

use arenad_digest::{Folders, Rested};
use arenad_launch::{self as launch, Incarnation, Inside, StateSource};
use arenad_model::instance::InstanceId;
use arenad_model::site::{ExecStep, Site};
use arenad_model::store::Writers;
use arenad_probes::ProbeFailure;
use arenad_seams::fault::{self, Point};
use arenad_storage::Fresh;

use super::{ResetError, Stages, control, covered};
use arenad_engine::Engine;
use arenad_probes::Prober;

/// What a rewind works with.
pub struct Rewind<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// Looks whether the site is ready.
    pub prober: &'a Prober,
    /// The instance.
    pub id: &'a InstanceId,
    /// Its definition.
    pub site: &'a Site,
    /// Who writes to its stores.
    pub writers: &'a Writers,
    /// The snapshot to go back to.
    pub source: StateSource<'a>,
    /// Is told which stores were the snapshot's when their servers were started, for the comparison; none, where there is none.
    pub rested: Option<&'a OnceLock<Rested>>,
    /// Where the time goes.
    pub stages: &'a Stages,
    /// Is told what is being done.
    pub stage: &'a (dyn Fn(&str) + Send + Sync),
    /// Is told why the site is not ready yet.
    pub waiting: &'a (dyn Fn(&ProbeFailure) + Send + Sync),
}

impl Rewind<'_> {
    /// The name in answers, logs and metrics.
    pub const NAME: &'static str = "rewind";

    /// Brings running containers back to the snapshot, by clones of its trees: those that `spare` yields, or of what was
    /// touched, or new ones. What
    /// `beside` does goes on from when these are in place, while the writers start and the site becomes ready; `started` is
    /// set in between. No client may reach them meanwhile. After an error nobody knows what state they are in, and they must
    /// not serve again.
    pub async fn run<T>(
        &self,
        incarnation: &Incarnation,
        spare: impl Future<Output = Option<Vec<Fresh>>>,
        beside: impl Future<Output = T>,
        started: &SetOnce<()>,
    ) -> Result<T, ResetError> {
        let Self { prober, id, site, source, stages, .. } = self;
        (self.stage)("stopping what writes");
        let inside = Inside::of(self.engine, site, incarnation).await?;
        let stop = stages.time("stop", self.tell("stop", &self.writers.stop, incarnation, &inside));
        let clones = async {
            match spare.await {
                Some(spare) => Ok(Some(spare)),
                None if launch::knows_touched(source, site, id, incarnation.made)? => Ok(None),
                None => launch::fresh(source, site).await.map(Some),
            }
        };
        let (stopped, fresh) = tokio::join!(stop, stages.time("clone", clones));
        stopped?;
        let fresh = fresh.map_err(ResetError::State)?;
        stages.time("at rest", covered::check_at_rest(incarnation, &inside)).await?;
        fault::reach(Point::RewindStopped).await;
        (self.stage)("putting the snapshot's state back");
        let exchange = launch::exchange(source, site, id, incarnation.made, fresh);
        stages.time("exchange", exchange).await.map_err(ResetError::State)?;
        if let Some(rested) = self.rested {
            // Set once, here.
            let _ = rested.set(stages.time("rested", self.look_at_rest(incarnation)).await);
        }
        let rise = async {
            (self.stage)("starting what writes");
            stages.time("start", self.tell("start", &self.writers.start, incarnation, &inside)).await?;
            // Set once, here; whoever else did it is as right.
            let _ = started.set(());
            fault::reach(Point::RewindStarted).await;
            (self.stage)("waiting for the site");
            match stages.time("ready", prober.wait_ready(site, incarnation, self.waiting)).await {
                Ok(()) => {
                    fault::reach(Point::RewindProbed).await;
                    stages.time("outside", covered::check_same(self.engine, site, incarnation, &inside)).await
                }
                Err(cause) => Err(ResetError::NotReady { cause, log: prober.log_tail(incarnation, 15).await }),
            }
        };
        let beside = async { Ok(stages.time("compare", beside).await) };
        let ((), done) = tokio::try_join!(rise, beside)?;
        Ok(done)
    }

    /// Compares what lies under the mounts with the snapshot's, as far as that saves reading it through the servers.
    async fn look_at_rest(&self, incarnation: &Incarnation) -> Rested {
        let Self { source, site, id, .. } = self;
        let root = source.storage.root();
        if !root.clones() {
            return Rested::default();
        }
        let (mut live, mut snapshot) = (Folders::new(), Folders::new());
        for mount in launch::state_mounts(site) {
            let (Ok(of_live), Ok(of_snapshot)) =
                (mount.of_instance(id, incarnation.made), mount.of_snapshot(&source.snapshot))
            else {
                return Rested::default();
            };
            let place = (mount.service, mount.path);
            live.insert(place.clone(), root.folder(&of_live));
            snapshot.insert(place, root.folder(&of_snapshot));
        }
        Rested::look(site, &live, &snapshot).await
    }

    /// Has the writers brought to rest or back to work: through their socket, or by commands where that fails.
    async fn tell(
        &self,
        word: &str,
        steps: &[ExecStep],
        incarnation: &Incarnation,
        inside: &Inside,
    ) -> Result<(), ResetError> {
        if let Some(control) = &self.writers.control {
            let within = steps.iter().map(|step| step.timeout).sum();
            match control::tell(inside, control, word, within).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let error = arenad_model::error::describe(&error);
                    tracing::debug!(error, "commands instead of the writers' socket {}", control.socket);
                }
            }
        }
        for step in steps {
            launch::run(self.engine, incarnation, step).await.map_err(ResetError::Writers)?;
        }
        Ok(())
    }
}
