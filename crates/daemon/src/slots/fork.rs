//! Copies of the state of running episodes, for their forks.
//!
//! ```text
//!   a moment without requests ──► all slots hold ──► each driver copies its slot ──► all slots serve again
//!                                                                                      └─► requests for the children
//! ```
//! All slots are copied before one of them serves again, so the copies of several sites fit together. A copy is pinned
//! from before it exists until the requests that start from it are recorded. After that, it is kept as long as a live
//! episode starts from it or an instance was brought to it, and then it is removed, also by a later daemon.
//!
//! The record of the parent is copied in the same moment, as the beginning of those of the children
//! (`records/beginning`). It is pinned and removed in the same way.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::DaemonSlots;
use super::slot_use::SlotUse;
use crate::records::{ForkedEpisode, RecordBeginning};
use arenad_baseline::{BaselineError, snapshot};
use arenad_episodes::EpisodeView;
use arenad_instance::{AskError, InstanceHandle, OperationOutcome, RouteSuspension, Ticket};
use arenad_model::episode::ids::{EpisodeId, RecordBeginningId};
use arenad_model::error::describe;
use arenad_model::ids::SiteId;
use arenad_model::instance::InstanceId;
use arenad_model::request_queue::{CopyOrder, InstanceRequest, Purpose, Want};
use arenad_model::site::RecordedRequests;
use arenad_model::snapshot::SnapshotId;
use arenad_seams::fault::{self, Point};
use arenad_store::StoreError;

/// The longest wait for a moment in which no request of the parent is under way. Requests that are, are cut then.
const IDLE_WITHIN: Duration = Duration::from_secs(5);
/// The pause between two looks at the requests of the parent.
const IDLE_LOOK: Duration = Duration::from_millis(5);
/// The longest time between two searches for copies that nothing needs.
const SEARCH_EVERY: Duration = Duration::from_secs(60);

/// The reason why the state of an episode was not copied. The episode goes on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForkError {
    /// The episode does not have the slot any more. It has ended, or is about to.
    #[error("{0} no longer serves the generation that the episode got")]
    Lost(InstanceId),
    /// The driver refused the request.
    #[error(transparent)]
    Refused(#[from] AskError),
    /// The driver could not copy its slot.
    #[error("copy {slot}: {reason}")]
    Failed {
        /// The slot of the site that was not copied.
        slot: InstanceId,
        /// The failure with its causes.
        reason: String,
        /// The next step for a person.
        hint: String,
    },
    /// The daemon is stopping, or the site is being taken down.
    #[error("copy {0}: it was interrupted")]
    Interrupted(InstanceId),
}

/// The reason why the beginnings of records that nothing needs were not removed.
#[derive(Debug, thiserror::Error)]
enum BeginningError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files could not be listed or removed.
    #[error("remove the beginnings of records")]
    File(#[from] std::io::Error),
}

#[derive(Debug, Default)]
struct PinnedCopies {
    pinned: BTreeSet<SnapshotId>,
    /// The copies that were released since the current search began. The search may have read the store before.
    released: BTreeSet<SnapshotId>,
}

/// The copies that requests are being made for, and the signal to search for copies that nothing needs.
#[derive(Debug, Default)]
pub(super) struct ForkCopies {
    pins: Mutex<PinnedCopies>,
    search: Notify,
    /// Held by the search that is under way, because each search forgets what was released before it.
    turn: tokio::sync::Mutex<()>,
}

impl ForkCopies {
    fn pins(&self) -> MutexGuard<'_, PinnedCopies> {
        // Every change is one insertion or removal, so a panic leaves valid sets.
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the copies searched for that nothing needs, because an episode has ended or a slot has been recycled.
    pub(super) fn search(&self) {
        self.search.notify_one();
    }

    fn begin_search(&self) {
        self.pins().released.clear();
    }

    /// Whether a copy that no row needs may be removed.
    fn is_free(&self, copy: &SnapshotId) -> bool {
        let pins = self.pins();
        !pins.pinned.contains(copy) && !pins.released.contains(copy)
    }
}

/// The copies of one episode's sites and of its record, which stay while the value exists.
#[derive(Debug)]
pub(crate) struct EpisodeCopy {
    sites: Vec<(SiteId, SnapshotId)>,
    beginning: Option<RecordBeginning>,
    copies: Arc<ForkCopies>,
}

impl EpisodeCopy {
    fn of(sites: impl Iterator<Item = SiteId>, copies: Arc<ForkCopies>) -> Self {
        let sites = sites.map(|site| (site, SnapshotId::from_random(rand::random()))).collect();
        let copy = Self { sites, beginning: None, copies };
        copy.copies.pins().pinned.extend(copy.sites.iter().map(|(_, copy)| copy.clone()));
        copy
    }

    /// Returns the copy of a site; `None` for a site that all episodes share.
    pub(crate) fn of_site(&self, site: &SiteId) -> Option<&SnapshotId> {
        self.sites.iter().find(|(copied, _)| copied == site).map(|(_, copy)| copy)
    }

    /// Returns the beginning of the records of the children, if they are to be recorded.
    pub(crate) fn beginning(&self) -> Option<&RecordBeginningId> {
        self.beginning.as_ref().map(RecordBeginning::id)
    }
}

impl Drop for EpisodeCopy {
    fn drop(&mut self) {
        // Before the search, which passes over what is pinned.
        drop(self.beginning.take());
        let mut pins = self.copies.pins();
        for (_, copy) in &self.sites {
            pins.pinned.remove(copy);
            pins.released.insert(copy.clone());
        }
        drop(pins);
        self.copies.search();
    }
}

/// A slot that is to be copied.
struct ForkedSlot {
    instance: InstanceHandle,
    generation: u64,
}

impl DaemonSlots {
    /// Copies the state of all slots of an episode, whose requests are held meanwhile, and its record unless the children
    /// are not recorded.
    ///
    /// Cancellation: the drivers complete the copies that have begun, and the copies are removed.
    pub(crate) async fn copy_episode(
        &self,
        view: &EpisodeView,
        records: RecordedRequests,
    ) -> Result<EpisodeCopy, ForkError> {
        let parents = self.forked_slots(view)?;
        let sites = parents.iter().map(|parent| parent.instance.id.site_id());
        let mut copy = EpisodeCopy::of(sites, self.copies.clone());
        wait_until_idle(&parents).await;
        let suspended: Vec<RouteSuspension> = parents.iter().map(|parent| parent.instance.suspend()).collect();
        let work = parents.iter().zip(&copy.sites).map(|(parent, (_, id))| copied(parent, &view.id, id));
        // All are awaited, so that no slot serves again before the last one has been copied.
        let outcomes = join_all(work).await;
        outcomes.into_iter().collect::<Result<(), ForkError>>()?;
        // Before a slot serves again, and after requests that the hold has cut have come to their ends.
        if records != RecordedRequests::Nothing {
            copy.beginning = Some(self.records.fork(forked_episode(view)).await);
        }
        drop(suspended);
        if let Some(beginning) = &copy.beginning {
            self.records.sync(beginning).await;
        }
        fault::reach(Point::ForkCopied).await;
        Ok(copy)
    }

    fn forked_slots(&self, view: &EpisodeView) -> Result<Vec<ForkedSlot>, ForkError> {
        let table = self.read();
        let slots = view.slots.iter().map(|slot| {
            let lost = || ForkError::Lost(slot.instance.clone());
            let entry = table.get(&slot.instance).ok_or_else(lost)?;
            match (&entry.slot_use, &entry.instance) {
                (SlotUse::Leased { episode, generation, .. }, Some(instance))
                    if *episode == view.id && slot.generation == Some(*generation) =>
                {
                    Ok(ForkedSlot { instance: instance.clone(), generation: *generation })
                }
                _ => Err(lost()),
            }
        });
        slots.collect()
    }
}

fn forked_episode(view: &EpisodeView) -> ForkedEpisode<'_> {
    ForkedEpisode {
        id: &view.id,
        environment: view.request.sites.first().map_or("", |want| want.site.environment.as_str()),
        records: view.request.record,
        since: view.granted_at.unwrap_or(view.asked_at),
    }
}

/// Waits for a moment in which no request is under way, because the hold would cut it.
async fn wait_until_idle(parents: &[ForkedSlot]) {
    let deadline = Instant::now() + IDLE_WITHIN;
    let is_busy = |parent: &ForkedSlot| parent.instance.route().stats().in_flight > 0;
    while parents.iter().any(is_busy) && Instant::now() < deadline {
        tokio::time::sleep(IDLE_LOOK).await;
    }
}

async fn copied(parent: &ForkedSlot, episode: &EpisodeId, copy: &SnapshotId) -> Result<(), ForkError> {
    let slot = &parent.instance.id;
    let order = CopyOrder { copy: copy.clone(), episode: episode.clone(), generation: parent.generation };
    let request = InstanceRequest { want: Want::Copy(order), purpose: Purpose::Episode };
    let ticket: Ticket = parent.instance.ask_for(request).await?;
    match ticket.wait().await {
        OperationOutcome::Done { .. } => Ok(()),
        OperationOutcome::Failed(failure) => {
            Err(ForkError::Failed { slot: slot.clone(), reason: failure.reason, hint: failure.hint })
        }
        OperationOutcome::Superseded | OperationOutcome::Stopped => Err(ForkError::Interrupted(slot.clone())),
    }
}

/// Removes the copies that nothing needs, until the daemon stops.
pub(crate) async fn remove_copies(slots: Arc<DaemonSlots>) {
    let shutdown = slots.shared.shutdown.clone();
    let remove = async {
        loop {
            slots.remove_unused_copies().await;
            // A timeout is another reason to search.
            let _ = tokio::time::timeout(SEARCH_EVERY, slots.copies.search.notified()).await;
        }
    };
    let _: Option<()> = shutdown.run_until_cancelled(remove).await;
}

impl DaemonSlots {
    /// Removes the copies that nothing needs. Those that cannot be removed are found again by a later search.
    pub(crate) async fn remove_unused_copies(&self) {
        let _turn = self.copies.turn.lock().await;
        if let Err(error) = self.search_copies().await {
            tracing::warn!(error = describe(&error), "copies for forks remain");
        }
        if let Err(error) = self.search_beginnings().await {
            tracing::warn!(error = describe(&error), "copies of records for forks remain");
        }
    }

    async fn search_beginnings(&self) -> Result<(), BeginningError> {
        // Before the store is read: the requests for one that is not pinned any more are recorded.
        let mut unneeded = self.records.beginnings().await?;
        if unneeded.is_empty() {
            return Ok(());
        }
        for needed in self.shared.store.live_record_beginnings().await? {
            unneeded.remove(&needed);
        }
        Ok(self.records.remove_beginnings(unneeded).await?)
    }

    async fn search_copies(&self) -> Result<(), BaselineError> {
        self.copies.begin_search();
        for unused in self.shared.store.unused_copies().await? {
            if !self.copies.is_free(&unused.id) {
                continue;
            }
            match snapshot::remove(&self.shared.baselines, &unused).await {
                Ok(()) => self.shared.references.forget(&unused.id),
                // A slot was brought to it since the search began.
                Err(BaselineError::Store(StoreError::InUse { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> SiteId {
        format!("mini/{name}/1").parse::<InstanceId>().expect("a name").site_id()
    }

    #[test]
    fn a_copy_is_free_only_for_a_search_that_began_after_its_release() {
        let copies = Arc::new(ForkCopies::default());
        let copy = EpisodeCopy::of([site("shop"), site("forum")].into_iter(), copies.clone());
        let (shop, forum) = (copy.of_site(&site("shop")).cloned(), copy.of_site(&site("forum")).cloned());
        let (shop, forum) = (shop.expect("copied"), forum.expect("copied"));
        assert_ne!(shop, forum);
        assert_eq!(copy.of_site(&site("map")), None);
        copies.begin_search();
        assert!(!copies.is_free(&shop), "no request is recorded yet");
        drop(copy);
        assert!(!copies.is_free(&shop), "the search may have read the store before the request was recorded");
        copies.begin_search();
        assert!(copies.is_free(&shop) && copies.is_free(&forum));
    }
}
