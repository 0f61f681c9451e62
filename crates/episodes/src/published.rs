//! The published episodes: what readers and the fence see. They never differ from what the store has recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use arenad_model::episode::ending::EpisodeEnding;
use arenad_model::episode::fence::{self, FenceDecision, TokenHash};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::registry::RegisteredEpisode;
use arenad_model::episode::request::EpisodeRequest;
use arenad_model::episode::{EpisodeState, EpisodeStatus};
use arenad_model::instance::InstanceId;
use arenad_store::StoredSlot;

/// An episode at one moment.
#[derive(Debug, Clone)]
pub struct EpisodeView {
    /// The id of the episode.
    pub id: EpisodeId,
    /// The request that the episode came from.
    pub request: Arc<EpisodeRequest>,
    /// The state, with the cause of an end.
    pub state: EpisodeState,
    /// The slots in the order of the request, without shared sites. After the end they belong to other episodes.
    pub slots: Vec<StoredSlot>,
    /// Whether a connection holds the episode.
    pub is_held: bool,
    /// The time until the deadline, which is zero after the end.
    pub left: Duration,
    /// The time of the request.
    pub asked_at: Timestamp,
    /// The time of the grant. `None` before it.
    pub granted_at: Option<Timestamp>,
    /// The time of the end. `None` before it.
    pub ended_at: Option<Timestamp>,
}

/// An episode as it was recorded last.
#[derive(Debug, Clone)]
pub(crate) struct PublishedEpisode {
    pub(crate) registered: RegisteredEpisode,
    pub(crate) slots: Vec<StoredSlot>,
    pub(crate) asked_at: Timestamp,
    pub(crate) granted_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
}

impl PublishedEpisode {
    fn ending(&self) -> Option<&EpisodeEnding> {
        self.registered.life.state().ending()
    }

    fn is_served(&self) -> bool {
        matches!(self.registered.life.state(), EpisodeState::Active | EpisodeState::Frozen)
    }

    fn view(&self, id: &EpisodeId, now: Duration) -> EpisodeView {
        let life = &self.registered.life;
        EpisodeView {
            id: id.clone(),
            request: self.registered.request.clone(),
            state: life.state().clone(),
            slots: self.slots.clone(),
            is_held: life.is_held(),
            left: life.left(now),
            asked_at: self.asked_at,
            granted_at: self.granted_at,
            ended_at: self.ended_at,
        }
    }
}

#[derive(Debug, Default)]
struct PublishedEpisodes {
    episodes: BTreeMap<EpisodeId, PublishedEpisode>,
    /// The episodes whose clients can reach the slots.
    leases: BTreeMap<InstanceId, EpisodeId>,
}

/// The published episodes, which the keeper changes and handles read.
#[derive(Debug)]
pub(crate) struct Published {
    origin: Instant,
    state: RwLock<PublishedEpisodes>,
}

impl Published {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { origin: Instant::now(), state: RwLock::default() })
    }

    /// Returns the time since the daemon started, by which the model measures.
    pub(crate) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Returns the instant of a time that the model measured.
    pub(crate) fn instant(&self, time: Duration) -> Instant {
        self.origin + time
    }

    fn read<T>(&self, look: impl FnOnce(&PublishedEpisodes) -> T) -> T {
        // A panic while the lock is held leaves consistent maps, because `publish` moves values that exist already.
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Publishes changes in one step. An episode that is `None` is forgotten.
    pub(crate) fn publish(&self, changes: Vec<(EpisodeId, Option<PublishedEpisode>)>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let PublishedEpisodes { episodes, leases } = &mut *state;
        for (id, change) in changes {
            let Some(episode) = change else {
                episodes.remove(&id);
                leases.retain(|_, holder| *holder != id);
                continue;
            };
            if episode.is_served() {
                leases.extend(episode.slots.iter().map(|slot| (slot.instance.clone(), id.clone())));
            } else {
                leases.retain(|_, holder| *holder != id);
            }
            episodes.insert(id, episode);
        }
    }

    pub(crate) fn get(&self, id: &EpisodeId) -> Option<EpisodeView> {
        let now = self.now();
        self.read(|published| published.episodes.get(id).map(|episode| episode.view(id, now)))
    }

    pub(crate) fn status(&self, id: &EpisodeId) -> Option<EpisodeStatus> {
        self.read(|published| published.episodes.get(id).map(|episode| episode.registered.life.state().status()))
    }

    /// Returns the episodes whose requests meet a condition, in order of their requests.
    pub(crate) fn list(&self, is_wanted: impl Fn(&EpisodeRequest, &EpisodeState) -> bool) -> Vec<EpisodeView> {
        let now = self.now();
        let mut found: Vec<EpisodeView> = self.read(|published| {
            let wanted = published
                .episodes
                .iter()
                .filter(|(_, episode)| is_wanted(&episode.registered.request, episode.registered.life.state()));
            wanted.map(|(id, episode)| episode.view(id, now)).collect()
        });
        found.sort_by(|one, other| (one.asked_at, &one.id).cmp(&(other.asked_at, &other.id)));
        found
    }

    pub(crate) fn lease_of(&self, slot: &InstanceId) -> Option<EpisodeId> {
        self.read(|published| published.leases.get(slot).cloned())
    }

    /// Decides on a request of a client. See [`fence::admit_client`].
    pub(crate) fn admit_client(&self, id: &EpisodeId, token: &TokenHash) -> FenceDecision {
        let now = self.now();
        self.read(|published| {
            let episode = published.episodes.get(id);
            let parts = episode.map(|episode| (&episode.registered.tokens, &episode.registered.life));
            recorded(episode, fence::admit_client(parts, token, now))
        })
    }

    /// Decides on a request at a slot's own port. See [`fence::admit_lease`].
    pub(crate) fn admit_lease(&self, id: &EpisodeId) -> FenceDecision {
        let now = self.now();
        self.read(|published| {
            let episode = published.episodes.get(id);
            recorded(episode, fence::admit_lease(episode.map(|episode| &episode.registered.life), now))
        })
    }

    /// Decides on a visit of the daemon itself. See [`fence::admit_visitor`].
    pub(crate) fn admit_visitor(&self, id: &EpisodeId) -> FenceDecision {
        let now = self.now();
        self.read(|published| {
            let episode = published.episodes.get(id);
            recorded(episode, fence::admit_visitor(episode.map(|episode| &episode.registered.life), now))
        })
    }
}

/// Withholds an end that is not recorded yet, because a new daemon might continue the episode.
fn recorded(episode: Option<&PublishedEpisode>, decision: FenceDecision) -> FenceDecision {
    let is_recorded = episode.is_some_and(|episode| episode.ending().is_some());
    if matches!(decision, FenceDecision::Ended(_)) && !is_recorded { FenceDecision::NotReady } else { decision }
}
