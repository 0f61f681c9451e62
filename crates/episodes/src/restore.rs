//! The start of the episode keeper, from the rows that an earlier daemon left.
//!
//! Sites are offered first, then episodes are restored in order of arrival, and the daemon adds the slots that belong to
//! no episode afterwards. Episodes that were being prepared become void, and those that wait or are active go on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handle::EpisodeHandle;
use crate::keeper::{EpisodeKeeper, EpisodeNotes};
use crate::pending::PendingChanges;
use crate::published::{Published, PublishedEpisode};
use crate::random::RandomBytes;
use crate::slots::Slots;
use crate::work::SlotWork;
use arenad_model::episode::EpisodeStatus;
use arenad_model::episode::ending::VoidReason;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::life::EpisodeLife;
use arenad_model::episode::registry::{EndCause, EndedEpisode, EpisodeLimits, EpisodeRegistry, RegisteredEpisode};
use arenad_model::episode::request::SiteCapacity;
use arenad_model::error::describe;
use arenad_model::ids::SiteId;
use arenad_model::instance::InstanceId;
use arenad_seams::ordered_watch as watch;
use arenad_seams::wall_clock::WallClock;
use arenad_store::{DaemonStore, EpisodePart, Retention, StoreError, StoredEpisode, StoredEpisodeLife};
use arenad_telemetry::supervised::supervised;

/// The number of requests that may wait for the keeper. It handles hundreds of them in one transaction.
const INBOX: usize = 1024;
/// The number of announcements of preparations that may wait for the keeper. More of them wait in their tasks.
const ANNOUNCEMENTS: usize = 64;
/// The number of ended episodes that are kept whatever their age, because a clock that jumps ahead makes all of them
/// look old.
const KEPT_ENDED: u32 = 100;

/// Everything that the episode keeper needs.
pub struct EpisodeKeeperParts {
    /// The store of the daemon.
    pub store: DaemonStore,
    /// The time of day.
    pub clock: WallClock,
    /// The source of ids and tokens.
    pub random: RandomBytes,
    /// The slots of all sites.
    pub slots: Arc<dyn Slots>,
    /// The limits of the registry.
    pub limits: EpisodeLimits,
    /// The time after which an attempt to recycle a slot has failed.
    pub recycle_limit: Duration,
    /// The sites of the environments that should be up. Further sites are offered later.
    pub sites: Vec<(SiteId, SiteCapacity)>,
    /// Tracks the keeper's task.
    pub tasks: TaskTracker,
    /// Ends the keeper. Episodes go on with the next daemon.
    pub shutdown: CancellationToken,
}

/// Restores the episodes of an earlier daemon and starts the keeper. Returns when the episodes can be read.
///
/// Errors: the store could not be read.
pub async fn start(parts: EpisodeKeeperParts) -> Result<EpisodeHandle, StoreError> {
    let EpisodeKeeperParts { store, clock, random, slots, limits, recycle_limit, sites, tasks, shutdown } = parts;
    let most = u32::try_from(limits.remembered).unwrap_or(u32::MAX);
    let retention = Retention { most, least: most.min(KEPT_ENDED), age: limits.remember_for };
    store.forget_episodes(retention).await?;
    let (ended, live) = (store.ended_episodes().await?, store.live_episodes().await?);
    let newest = watch::Sender::new(store.newest_episode_event().await?);
    let (inbox, messages) = mpsc::channel(INBOX);
    let mut keeper = EpisodeKeeper {
        registry: EpisodeRegistry::new(limits),
        notes: BTreeMap::new(),
        ended: VecDeque::new(),
        prepared: Vec::new(),
        pending: PendingChanges::default(),
        outage: None,
        withdrawals: Vec::new(),
        holds: 0,
        events: 0,
        work: SlotWork::new(slots.clone(), recycle_limit),
        published: Published::new(),
        newest,
        store: store.clone(),
        clock,
        random,
        slots,
        inbox: messages,
        closings: mpsc::unbounded_channel(),
        changing: mpsc::channel(ANNOUNCEMENTS),
        shutdown,
    };
    for (site, capacity) in sites {
        keeper.registry.offer_site(site, capacity);
    }
    for stored in ended {
        keeper.remember(stored);
    }
    for stored in live {
        keeper.restore(stored);
    }
    keeper.go_on();
    let handle = EpisodeHandle { inbox, published: keeper.published.clone(), newest: keeper.newest.subscribe(), store };
    tasks.spawn(async move {
        if let Err(panicked) = supervised(keeper.run()).await {
            tracing::error!(error = describe(&panicked), "episodes are not handed out until the daemon restarts");
        }
    });
    Ok(handle)
}

impl EpisodeKeeper {
    fn take_notes(&mut self, stored: &StoredEpisode) {
        let ended_at = match &stored.life {
            StoredEpisodeLife::Live(_) => None,
            StoredEpisodeLife::Ended { at, .. } => Some(*at),
        };
        let note = EpisodeNotes {
            asked_at: stored.asked_at,
            granted_at: stored.granted_at,
            ended_at,
            status: stored.life.status(),
            slots: stored.slots.clone(),
        };
        self.notes.insert(stored.id.clone(), note);
    }

    fn registered(&self, stored: StoredEpisode) -> (EpisodeId, RegisteredEpisode) {
        let now = self.now();
        let life = match stored.life {
            StoredEpisodeLife::Live(life) => EpisodeLife::restored(life, now),
            StoredEpisodeLife::Ended { ending, .. } => EpisodeLife::over(ending, stored.request.terms, now),
        };
        let slots: Vec<InstanceId> = stored.slots.into_iter().map(|slot| slot.instance).collect();
        let StoredEpisode { id, request, tokens, .. } = stored;
        // The time of the grant was measured by the earlier daemon.
        (id, RegisteredEpisode { request, tokens, life, slots, granted_at: None })
    }

    /// Remembers an episode that had ended.
    fn remember(&mut self, stored: StoredEpisode) {
        self.take_notes(&stored);
        let (id, episode) = self.registered(stored);
        self.ended.push_back(id.clone());
        self.registry.remember(id, episode);
    }

    /// Takes up an episode that had not ended.
    fn restore(&mut self, stored: StoredEpisode) {
        self.take_notes(&stored);
        let (id, episode) = self.registered(stored);
        match self.registry.restore(id.clone(), episode.clone()) {
            Ok(None) => self.touch_if_changed(&id),
            Ok(Some(ended)) => self.note_ended([ended]),
            // The index of leases excludes this, unless someone else has changed the rows.
            Err(refusal) => {
                tracing::error!(episode.id = %id, error = describe(&refusal), "episode {id} was not restored");
                self.reject(id, episode, describe(&refusal));
            }
        }
    }

    /// Ends an episode whose slots belong to another one.
    fn reject(&mut self, id: EpisodeId, mut episode: RegisteredEpisode, detail: String) {
        let Some(slot) = std::mem::take(&mut episode.slots).into_iter().next() else { return };
        if let Some(note) = self.notes.get_mut(&id) {
            note.slots.clear();
        }
        // An episode whose time is over is void as well, because the rows do not tell what has happened to its slots.
        let reason = VoidReason::InstanceFailed { slot, detail };
        let ending = arenad_model::episode::ending::EpisodeEnding::Void(reason);
        episode.life = EpisodeLife::over(ending.clone(), episode.request.terms, self.now());
        self.registry.remember(id.clone(), episode);
        self.note_ended([EndedEpisode { id, ending, recycle: Vec::new() }]);
    }

    fn touch_if_changed(&mut self, id: &EpisodeId) {
        let status = self.registry.get(id).map(|episode| episode.life.state().status());
        if self.notes.get(id).map(|note| note.status) != status {
            self.touch(id, EpisodePart::Life);
        }
    }

    /// Opens the routes to the episodes that go on, and publishes all episodes that the restart did not change.
    fn go_on(&mut self) {
        let live: Vec<(EpisodeId, EpisodeStatus)> =
            self.registry.live().map(|(id, episode)| (id.clone(), episode.life.state().status())).collect();
        for (id, status) in live {
            if !matches!(status, EpisodeStatus::Active | EpisodeStatus::Frozen) {
                continue;
            }
            match self.switch(&id) {
                Ok(()) if status == EpisodeStatus::Frozen => self.freeze(&id),
                Ok(()) => {}
                // Refused if its time is over, which ends it as well.
                Err(reason) => drop(self.end(&id, EndCause::Failed(reason))),
            }
        }
        let is_changed = |id: &EpisodeId| self.pending.written.iter().any(|(changed, _)| changed == id);
        let unchanged = self.notes.keys().filter(|id| !is_changed(id));
        let published: Vec<(EpisodeId, Option<PublishedEpisode>)> =
            unchanged.filter_map(|id| Some((id.clone(), Some(self.published_of(id)?)))).collect();
        self.published.publish(published);
    }
}
