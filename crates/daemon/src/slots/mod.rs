//! The slots of the sites: what the episodes need of the instances, and what the instances report to the episodes.
//!
//! ```text
//!   episodes ──► prepare, switch, cut, recycle ──► DaemonSlots ──► instance drivers (reset)
//!      ▲                                              └──────────► gates (who reaches the instance)
//!      └── slot_failed ◄── watch ◄── reports of the drivers
//! ```
//! Each slot has one use at a time (`slot_use`), which determines who reaches its instance. While an episode has a slot,
//! its gate lets exactly one generation through, and requests of other clients to the driver are refused.
//!
//! Slot 1 also serves people at the public port. Its content is theirs until an episode gets the slot, which brings it
//! to the starting point of the episode, and again from the end of its recycling. A file marks the slots that an episode
//! has changed (`mark`), so that a new daemon neither offers their content to people nor takes it for theirs.
//!
//! | File | Job |
//! |---|---|
//! | `mod` | the table of slots, and the implementation of `Slots` |
//! | `slot_use` | the use of a slot, and who reaches its instance meanwhile |
//! | `bring` | brings an instance to a snapshot, or finds that it already equals it |
//! | `fork` | copies of the state of running episodes, and their removal |
//! | `mark` | the files that mark slots which are to be recycled |
//! | `watch` | the failures of slots, from the reports of the drivers |
//! | `scale` | the number of slots of each site, which follows the requests |
//! | `start` | the start of the episode keeper |

mod bring;
mod fork;
mod mark;
mod scale;
mod slot_use;
mod start;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::time::Instant;

use self::bring::{BringOrder, find_snapshot, has_settled, serves};
use self::fork::ForkCopies;
use self::mark::RecycleMark;
use crate::proxy::{ProxyAccess, ended, frozen};
use crate::records::{EpisodeRecords, RecordedSite, recorded_site};
use arenad_episodes::{ChangePermit, LeasedSlot, PreparedSlot, SlotPreparation, Slots};
use arenad_instance::shared::SharedParts;
use arenad_instance::{InstanceHandle, RouteAccess};
use arenad_model::episode::ending::{EpisodeEnding, VoidReason};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::lease::RecycleOrder;
use arenad_model::episode::request::{EpisodeRequest, StartPoint};
use arenad_model::episode::slots::{ObservedSlot, SlotActivity};
use arenad_model::error::describe;
use arenad_model::ids::SiteId;
use arenad_model::instance::{InstanceId, InstanceState};
use arenad_seams::ordered_watch as watched;

pub(crate) use fork::{EpisodeCopy, ForkError, remove_copies};
pub(crate) use scale::keep_numbers;
pub(crate) use slot_use::{SlotUse, is_public};
pub(crate) use start::capacity;
pub use start::{DEFAULT_EPISODE_LIMIT, DEFAULT_TTL_LIMIT, EpisodeSettings, start_episodes, waiting_of_owner};
pub(crate) use watch::watch;

/// One slot. It exists before its instance if an episode has it since before a restart of the daemon.
#[derive(Default)]
struct SlotEntry {
    instance: Option<InstanceHandle>,
    slot_use: SlotUse,
    /// The time since when the slot has its use.
    since: Duration,
    /// Held by the request to the driver that is under way. A cancelled call leaves its request behind.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A slot that has an instance, for people.
pub(crate) struct SlotView {
    /// The instance of the slot.
    pub instance: InstanceHandle,
    /// The use of the slot.
    pub slot_use: SlotUse,
}

/// The slots of all sites.
pub struct DaemonSlots {
    shared: Arc<SharedParts>,
    table: RwLock<BTreeMap<InstanceId, SlotEntry>>,
    /// The access of the clients of episodes, through the episode proxy.
    access: Arc<ProxyAccess>,
    /// The records of episodes.
    records: Arc<EpisodeRecords>,
    /// The number of instances that have been entered into the table so far.
    entered: watched::Sender<u64>,
    /// The copies of running episodes, for their forks.
    copies: Arc<ForkCopies>,
    origin: Instant,
}

impl DaemonSlots {
    fn new(shared: Arc<SharedParts>) -> Self {
        let (entered, origin) = (watched::Sender::new(0), Instant::now());
        let (clock, tasks, shutdown) = (shared.clock.clone(), shared.tasks.clone(), shared.shutdown.clone());
        let folder = shared.state_dir.records();
        let records = Arc::new(EpisodeRecords::new(folder, shared.record_retention, clock, tasks, shutdown));
        let access = Arc::new(ProxyAccess::new(records.clone()));
        Self { shared, table: RwLock::default(), access, records, entered, copies: Arc::default(), origin }
    }

    // Every change of the table is one assignment or one insertion, so a panic leaves a valid table.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<InstanceId, SlotEntry>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<InstanceId, SlotEntry>> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, slot: &InstanceId) -> RecycleMark {
        RecycleMark::of(&self.shared.state_dir.episodes(), slot)
    }

    /// Returns the access of the clients of episodes through the episode proxy.
    pub(crate) fn proxy_access(&self) -> &Arc<ProxyAccess> {
        &self.access
    }

    /// Returns the records of episodes.
    pub(crate) fn records(&self) -> &Arc<EpisodeRecords> {
        &self.records
    }

    /// Lets those reach an instance whom the use of its slot allows to, and records them if they belong to an episode that
    /// is recorded.
    fn open_to(&self, slot: &InstanceId, slot_use: &SlotUse, instance: &InstanceHandle) {
        let recording = match slot_use {
            SlotUse::Leased { episode, generation, .. } => {
                self.records.recorder(episode).map(|recorder| (*generation, recorder))
            }
            SlotUse::Idle | SlotUse::Preparing(_) | SlotUse::Recycling => None,
        };
        let route = instance.route();
        // No request is recorded for another episode, because a recording is of one generation. None is missing, because
        // the recording is there before the gate opens, and until it has been closed.
        match recording {
            Some(recording) => {
                route.record_for(Some(recording));
                instance.set_access(slot_use.access(slot));
            }
            None => {
                instance.set_access(slot_use.access(slot));
                route.record_for(None);
            }
        }
    }

    /// Returns the sites of an episode as they are recorded.
    fn recorded_sites(&self, request: &EpisodeRequest, slots: &[LeasedSlot]) -> Vec<RecordedSite> {
        let sites = request.sites.iter().filter_map(|want| {
            let leased = slots.iter().find(|leased| leased.instance.site_id() == want.site);
            let shared = || InstanceId::serving(&want.site.environment, &want.site.site);
            let instance = self.instance(&leased.map_or_else(shared, |leased| leased.instance.clone()))?;
            Some(recorded_site(&instance.site, leased.map(|leased| (leased.instance.to_string(), leased.generation))))
        });
        sites.collect()
    }

    /// Returns who may reach an instance that is about to be made.
    pub(crate) fn access(&self, slot: &InstanceId) -> RouteAccess {
        let is_marked = self.mark(slot).exists();
        let mut table = self.write();
        let entry = table.entry(slot.clone()).or_default();
        // A further slot is given to no episode before it has been made.
        if entry.slot_use == SlotUse::Idle && (is_marked || !slot_use::is_public(slot)) {
            entry.slot_use = SlotUse::Recycling;
        }
        entry.slot_use.access(slot)
    }

    /// Adds the instance of a slot, which was made with the result of [`Self::access`].
    pub(crate) fn enter(&self, instance: InstanceHandle) {
        let slot = instance.id.clone();
        let mut table = self.write();
        let entry = table.entry(slot.clone()).or_default();
        // The use may have changed since the instance was made.
        self.open_to(&slot, &entry.slot_use, &instance);
        entry.instance = Some(instance);
        drop(table);
        self.entered.send_modify(|number| *number += 1);
    }

    /// Removes a slot whose instance has been removed, and which has been withdrawn from the episodes.
    pub(crate) fn leave(&self, slot: &InstanceId) {
        self.write().remove(slot);
        self.mark(slot).clear();
    }

    /// Gives a slot back to people that has been withdrawn from the episodes, and whose instance is down or has failed.
    pub(crate) fn give_to_people(&self, slot: &InstanceId) {
        self.set_use(slot, SlotUse::Idle);
        self.mark(slot).clear();
    }

    /// Returns the instance of a slot, if it exists.
    pub(crate) fn instance(&self, slot: &InstanceId) -> Option<InstanceHandle> {
        self.read().get(slot)?.instance.clone()
    }

    /// Returns the instances of all slots, in the order of their names.
    pub(crate) fn instances(&self) -> Vec<InstanceHandle> {
        self.read().values().filter_map(|entry| entry.instance.clone()).collect()
    }

    /// Whether a site has slots besides the one that people use.
    pub(crate) fn has_further(&self, site: &SiteId) -> bool {
        self.read().iter().any(|(slot, entry)| {
            entry.instance.is_some()
                && !is_public(slot)
                && slot.site == site.site
                && slot.environment == site.environment
        })
    }

    /// Returns the slots of a site that have instances, by number.
    pub(crate) fn of_site(&self, site: &SiteId) -> Vec<SlotView> {
        let table = self.read();
        let of_site = table.iter().filter(|(slot, _)| slot.site_id() == *site);
        let views = of_site.filter_map(|(_, entry)| {
            Some(SlotView { instance: entry.instance.clone()?, slot_use: entry.slot_use.clone() })
        });
        views.collect()
    }

    /// Returns the time since the daemon started, by which [`Self::observed`] measures.
    pub(crate) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Returns the slots of a site, for the plan of their number.
    pub(crate) fn observed(&self, site: &SiteId) -> Vec<ObservedSlot> {
        let table = self.read();
        let of_site = table.iter().filter(|(slot, _)| slot.site_id() == *site);
        let observed = of_site.filter_map(|(slot, entry)| {
            let state = entry.instance.as_ref()?.with_report(|report| report.state.clone());
            let activity = match (&entry.slot_use, state) {
                (SlotUse::Preparing(_) | SlotUse::Leased { .. }, _) => SlotActivity::Busy,
                (_, InstanceState::Down | InstanceState::Preparing | InstanceState::Starting) => SlotActivity::Making,
                (SlotUse::Recycling, _) => SlotActivity::Recycling,
                (SlotUse::Idle, _) => SlotActivity::Free { since: entry.since },
            };
            Some(ObservedSlot { number: slot.number, activity })
        });
        observed.collect()
    }

    /// Returns the episode that has a slot, with its generation.
    fn lease(&self, slot: &InstanceId) -> Option<(EpisodeId, u64)> {
        match &self.read().get(slot)?.slot_use {
            SlotUse::Leased { episode, generation, .. } => Some((episode.clone(), *generation)),
            SlotUse::Idle | SlotUse::Preparing(_) | SlotUse::Recycling => None,
        }
    }

    /// Whether a slot exists that no episode uses, and that is not being recycled.
    pub fn is_idle(&self, slot: &InstanceId) -> bool {
        self.read().get(slot).is_some_and(|entry| entry.slot_use == SlotUse::Idle)
    }

    /// Returns the instance of a slot once it exists.
    async fn instance_of(&self, slot: &InstanceId) -> InstanceHandle {
        let mut entered = self.entered.subscribe();
        loop {
            // The number is marked as seen before the table is read, so an instance that is entered in between is noticed.
            entered.borrow_and_update();
            if let Some(instance) = self.instance(slot) {
                return instance;
            }
            // The sender lives as long as the table.
            let _ = entered.changed().await;
        }
    }

    /// Holds a slot for an episode that it is being prepared for, unless the episode has ended.
    fn hold_for(&self, slot: &InstanceId, episode: EpisodeId, permit: &ChangePermit) -> Result<(), VoidReason> {
        let mut table = self.write();
        // `cut` follows the end of the episode, and waits for the table. If it has been called, nothing would take the slot
        // from the episode any more.
        if permit.is_withdrawn() {
            return Err(VoidReason::InstanceFailed { slot: slot.clone(), detail: "the episode has ended".to_owned() });
        }
        self.set_use_in(&mut table, slot, SlotUse::Preparing(episode));
        Ok(())
    }

    fn set_use(&self, slot: &InstanceId, slot_use: SlotUse) {
        self.set_use_in(&mut self.write(), slot, slot_use);
    }

    fn set_use_in(&self, table: &mut BTreeMap<InstanceId, SlotEntry>, slot: &InstanceId, slot_use: SlotUse) {
        let entry = table.entry(slot.clone()).or_default();
        (entry.slot_use, entry.since) = (slot_use, self.now());
        if let Some(instance) = &entry.instance {
            self.open_to(slot, &entry.slot_use, instance);
        }
    }

    /// Closes the slots of an episode to all clients, or opens them again. It concerns those at the public port: the fence
    /// refuses the others.
    fn set_frozen(&self, episode: &EpisodeId, is_now: bool) {
        for (slot, entry) in self.write().iter_mut() {
            if let SlotUse::Leased { episode: holder, is_frozen, .. } = &mut entry.slot_use
                && holder == episode
            {
                *is_frozen = is_now;
                if let Some(instance) = &entry.instance {
                    instance.set_access(entry.slot_use.access(slot));
                }
            }
        }
    }

    /// Brings an instance to a starting point. Unless `is_forced`, one that is there and that no client has reached stays as
    /// it is. Returns its generation.
    ///
    /// Cancellation: the request to the driver comes to its end, and the next call for the slot waits for that.
    async fn bring(&self, instance: InstanceHandle, start: &StartPoint, is_forced: bool) -> Result<u64, VoidReason> {
        has_settled(&instance).await?;
        let to = match start {
            StartPoint::Baseline => None,
            StartPoint::Fork { copy, .. } => Some(copy.clone()),
            StartPoint::Snapshot(name) => Some(find_snapshot(&self.shared, &instance.id, name).await?),
        };
        let turn = self.read().get(&instance.id).map(|entry| entry.turn.clone()).unwrap_or_default();
        let slot = instance.id.clone();
        let order = BringOrder { shared: self.shared.clone(), instance, to, is_forced };
        let work = self.shared.tasks.spawn(async move {
            let _turn = turn.lock_owned().await;
            order.execute().await
        });
        work.await.unwrap_or_else(|error| Err(VoidReason::InstanceFailed { slot, detail: error.to_string() }))
    }
}

/// Checks that a slot can be given to an episode: it was prepared for the episode and is unchanged since, or the episode
/// has it since before a restart.
fn check_switch(entry: Option<&SlotEntry>, episode: &EpisodeId, leased: &LeasedSlot) -> Result<(), String> {
    let Some(entry) = entry else { return Ok(()) };
    match (&entry.slot_use, &entry.instance) {
        (SlotUse::Preparing(prepared), Some(instance)) if prepared == episode => {
            let (is_ready, generation) =
                instance.with_report(|report| (report.state == InstanceState::Ready, report.generation));
            match () {
                () if generation != leased.generation => Err("it was reset after its preparation".to_owned()),
                () if !is_ready => Err("it failed after its preparation".to_owned()),
                () if !instance.is_untouched(generation) => Err("it was reached after its preparation".to_owned()),
                () => Ok(()),
            }
        }
        (SlotUse::Idle, None) => Ok(()),
        _ => Err("it was not prepared for the episode".to_owned()),
    }
}

#[async_trait::async_trait]
impl Slots for DaemonSlots {
    async fn prepare(&self, preparation: SlotPreparation) -> Result<PreparedSlot, VoidReason> {
        let SlotPreparation { slot, start, episode, permit } = preparation;
        let failed = |detail: String| VoidReason::InstanceFailed { slot: slot.clone(), detail };
        permit.begin().await.map_err(|refusal| failed(describe(&refusal)))?;
        self.mark(&slot).set().map_err(|error| failed(format!("its use cannot be noted: {error}")))?;
        self.hold_for(&slot, episode, &permit)?;
        let instance = self.instance_of(&slot).await;
        let generation = self.bring(instance, &start, false).await?;
        Ok(PreparedSlot { generation })
    }

    fn switch(&self, episode: &EpisodeId, request: &EpisodeRequest, slots: &[LeasedSlot]) -> Result<(), VoidReason> {
        let environment = request.sites.first().map_or("", |want| want.site.environment.as_str());
        let sites = self.recorded_sites(request, slots);
        let mut table = self.write();
        for leased in slots {
            check_switch(table.get(&leased.instance), episode, leased)
                .map_err(|detail| VoidReason::InstanceFailed { slot: leased.instance.clone(), detail })?;
        }
        self.records.begin(episode, environment, request.record, request.beginning.as_ref(), sites);
        for LeasedSlot { instance: slot, generation } in slots {
            let entry = table.entry(slot.clone()).or_default();
            entry.slot_use = SlotUse::Leased { episode: episode.clone(), generation: *generation, is_frozen: false };
            if let Some(instance) = &entry.instance {
                self.open_to(slot, &entry.slot_use, instance);
            }
        }
        Ok(())
    }

    fn freeze(&self, episode: &EpisodeId) {
        // First, so that a request under way through the proxy is answered by it.
        self.access.revoke(episode, frozen());
        self.set_frozen(episode, true);
    }

    fn unfreeze(&self, episode: &EpisodeId) {
        // The access of the proxy's clients is made anew by their next requests.
        self.set_frozen(episode, false);
    }

    fn cut(&self, episode: &EpisodeId, ending: &EpisodeEnding, slots: &[InstanceId]) {
        // First, so that a request under way is answered with the reason instead of a closed connection.
        self.access.revoke(episode, ended(ending));
        self.copies.search();
        for slot in slots {
            let mut table = self.write();
            let Some(entry) = table.get_mut(slot).filter(|entry| entry.slot_use.holder() == Some(episode)) else {
                continue;
            };
            entry.slot_use = SlotUse::Recycling;
            if let Some(instance) = &entry.instance {
                self.open_to(slot, &entry.slot_use, instance);
            }
        }
        self.records.end(episode);
    }

    async fn recycle(&self, order: &RecycleOrder) -> Result<(), VoidReason> {
        let slot = &order.slot;
        let mark = self.mark(slot);
        let is_of_people = slot_use::is_public(slot) && order.after.is_none() && !mark.exists();
        if is_of_people {
            // A preparation resets it, so it only has to exist.
            return serves(&self.instance_of(slot).await).await;
        }
        self.set_use(slot, SlotUse::Recycling);
        // The route does not see changes that the site made by itself, such as those of scheduled jobs.
        let is_forced = order.after.is_some() || mark.exists();
        self.bring(self.instance_of(slot).await, &StartPoint::Baseline, is_forced).await?;
        mark.clear();
        self.set_use(slot, SlotUse::Idle);
        self.copies.search();
        Ok(())
    }
}
