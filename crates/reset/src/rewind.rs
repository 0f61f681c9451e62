//! Rewind: the containers keep running. The writers of the site's stores are stopped, the touched entries of the trees
//! under the mounts are exchanged for clones of the snapshot's (all entries, if the touched ones are not known), and
//! the writers are started again.
//!
//! On a file system that clones files, the exchange takes a time that does not depend on the size of the files. A
//! rewind restores only the declared stores, so everything else that the containers can write to is compared with its
//! state before the first client (`covered.rs`), and afterwards the digest of every store is compared with the
//! snapshot's. If any of this fails, the caller recreates the containers, which restores everything.

use std::sync::OnceLock;

use tokio::sync::SetOnce;

use arenad_digest::{Folders, Rested};
use arenad_launch::{self as launch, Incarnation, InspectedContainers, StateSource};
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::store::Writers;
use arenad_probes::ProbeFailure;
use arenad_seams::fault::{self, Point};
use arenad_storage::Fresh;

use super::writers::WriterControl;
use super::{ResetError, Stages, covered};
use arenad_engine::Engine;
use arenad_probes::Prober;

/// The inputs of a rewind.
pub struct Rewind<'a> {
    /// The engine that runs the containers.
    pub engine: &'a dyn Engine,
    /// Runs the probes that tell whether the site is ready.
    pub prober: &'a Prober,
    /// Identifies the instance whose trees are exchanged.
    pub id: &'a InstanceId,
    /// The definition of the site, which declares the stores.
    pub site: &'a Site,
    /// The steps that stop and start the processes that write to the stores.
    pub writers: &'a Writers,
    /// The snapshot that the stores are restored from.
    pub source: StateSource<'a>,
    /// Set to the stores that equal the snapshot while the writers are at rest, for the later comparison; `None` if
    /// nothing is compared.
    pub rested: Option<&'a OnceLock<Rested>>,
    /// Receives the duration of each stage.
    pub stages: &'a Stages,
    /// Called with a description of each stage as it begins.
    pub stage: &'a (dyn Fn(&str) + Send + Sync),
    /// Called with each probe failure while the site is not ready yet.
    pub waiting: &'a (dyn Fn(&ProbeFailure) + Send + Sync),
}

impl Rewind<'_> {
    /// Brings running containers back to the snapshot by clones of its trees: the clones that `spare` yields, clones of
    /// the touched entries, or new clones of everything.
    ///
    /// `beside` runs from the moment at which the clones are in place, while the writers start and the site becomes
    /// ready; `started` is set once the writers have started. The caller keeps clients away during the call. After an
    /// error the state of the containers is unknown, and they must not serve again.
    pub async fn run<T>(
        &self,
        incarnation: &Incarnation,
        spare: impl Future<Output = Option<Vec<Fresh>>>,
        beside: impl Future<Output = T>,
        started: &SetOnce<()>,
    ) -> Result<T, ResetError> {
        let Self { prober, id, site, source, stages, .. } = self;
        (self.stage)("stopping what writes");
        let inside = InspectedContainers::of(self.engine, site, incarnation).await?;
        let writers = WriterControl { engine: self.engine, writers: self.writers, incarnation, inside: &inside };
        let stop = stages.time("stop", writers.stop());
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
            // This is the only place that sets it.
            let _ = rested.set(stages.time("rested", self.look_at_rest(incarnation)).await);
        }
        let rise = async {
            (self.stage)("starting what writes");
            stages.time("start", writers.start()).await?;
            // The result may be ignored: if it was set before, its value is the same.
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

    /// Compares the trees under the mounts with the snapshot's while the writers are at rest, which saves reading them
    /// through the servers later. Returns nothing if the state root copies instead of cloning.
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
}
