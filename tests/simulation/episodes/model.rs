//! The reference model of episodes: what their clients asked for and were told, what the events say, and which of it is
//! a broken promise.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use arenad_episodes::EpisodeView;
use arenad_model::episode::EpisodeStatus;
use arenad_model::episode::ending::{EpisodeEnding, ExpiryCause, ReleaseCause, VoidReason};
use arenad_model::episode::ids::EpisodeId;
use arenad_store::StoredEpisodeEvent;

use super::steps::EpisodeAsk;
use super::{BY_NAME_ONLY, SHARED, SLOT_NUMBERS, SLOTS, index_of, shown};
use crate::model::{ApiCall, Model};
use crate::schedule::SITES;

/// The label that holds the number of the request.
pub const LABEL: &str = "request";
/// The time within which slots are prepared.
const PREPARATION: Duration = Duration::from_secs(15 * 60);
/// The time within which a new daemon lets the client of a held episode hold it again.
const HOLD_AGAIN: Duration = Duration::from_secs(15);
/// The time that anything takes in the absence of faults.
const PROMPT: Duration = Duration::from_secs(2);
/// Deadlines are stored and compared in milliseconds.
const TICK: Duration = Duration::from_millis(2);

/// Counts of what can make an episode void, or end it early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// All faults, and all ends of daemons.
    pub disturbances: u64,
    /// The faults that end containers.
    pub deaths: u64,
    pub crashes: u64,
    /// The requests of `down`, and their ends.
    pub downs: u64,
    /// The requests to remove a snapshot.
    pub removals: u64,
    /// The requests of people that can make a generation anew.
    pub works: u64,
}

/// The connection that holds an episode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    #[default]
    Never,
    /// A request to hold it is on its way.
    Asked,
    /// The answer to such a request was lost with a daemon, so a new daemon may take the episode for held or not.
    Unsure,
    Held,
    Lost,
}

/// An episode, from its request on.
#[derive(Debug, Clone)]
pub struct ModelEpisode {
    pub id: Option<EpisodeId>,
    pub token: Option<String>,
    pub ask: EpisodeAsk,
    /// The sites, each with the number of the slot if the request names one.
    pub wants: Vec<(usize, Option<u32>)>,
    /// The circumstances at the time of the request.
    since: Circumstances,
    asked_at: Duration,
    /// The state of the newest event, and its time.
    pub status: Option<EpisodeStatus>,
    status_since: Duration,
    pub ending: Option<EpisodeEnding>,
    /// The slots and their generations, from the moment that the client can reach them.
    pub leases: Vec<(usize, u64)>,
    /// The time of the event by which the client could reach its sites.
    pub active_at: Option<Duration>,
    /// Whether the end was observed, so that no request that is sent from now on is answered.
    pub is_over: bool,
    /// The time before which it had not ended.
    pub ended_at: Option<Duration>,
    /// The time before which the episode cannot expire.
    earliest: Duration,
    /// The time at which it must have expired.
    latest: Duration,
    /// The longest time by which a heartbeat has extended it.
    longest: Duration,
    pub hold: Hold,
    is_release_asked: bool,
    /// Whether the client went away before the answer.
    is_abandoned: bool,
    /// Whether the client froze it and was told so.
    pub is_frozen: bool,
    /// The requests to freeze or unfreeze it that are under way.
    pub changes: u32,
    /// The time by which the episode ends.
    must_end_by: Option<Duration>,
    /// Whether only a request that failed wants it to end. The end takes effect later, or is lost with the daemon.
    is_end_unsure: bool,
    /// Whether the clock was set forward since the request. The next daemon then takes the time that has passed from it.
    has_jumped: bool,
    /// Whether the wait may be over at any time.
    is_wait_unsure: bool,
}

impl ModelEpisode {
    /// Whether the episode has begun and has not ended.
    pub fn is_live(&self) -> bool {
        self.ending.is_none() && self.status.is_some()
    }

    /// Whether the episode has its slots.
    pub fn is_served(&self) -> bool {
        matches!(self.status, Some(EpisodeStatus::Active | EpisodeStatus::Frozen)) && self.ending.is_none()
    }

    /// Returns the sites that the episode does not share.
    fn own(&self) -> impl Iterator<Item = &(usize, Option<u32>)> {
        self.wants.iter().filter(|(site, _)| *site != SHARED)
    }
}

/// All episodes of a run.
#[derive(Debug, Default)]
pub struct EpisodesModel {
    /// The episodes by the numbers of their requests.
    pub known: BTreeMap<u64, ModelEpisode>,
    /// The requests without an answer.
    pub open: BTreeMap<u64, Duration>,
    keys: BTreeMap<u64, EpisodeId>,
    /// The requests that wait, in the order of their arrival.
    waiting: Vec<u64>,
    /// The last episode that had each slot.
    pub last: BTreeMap<usize, u64>,
    /// The number of the last event that was read.
    pub seen: i64,
    pub removals: u64,
    pub downs: u64,
    pub works: u64,
}

impl EpisodesModel {
    /// Returns the number of the episode that has a generation of a slot, or had it, and whether it has ended.
    pub fn lease_of(&self, slot: usize, generation: u64) -> Option<(u64, &ModelEpisode)> {
        let number = self.last.get(&slot)?;
        let episode = self.known.get(number)?;
        episode.leases.contains(&(slot, generation)).then_some((*number, episode))
    }

    /// Returns the n-th live episode whose client has its credentials, from the newest one on.
    pub fn live(&self, n: usize) -> Option<u64> {
        let is_meant = |episode: &ModelEpisode| episode.is_live() && episode.token.is_some();
        self.chosen(n, is_meant)
    }

    /// Returns the n-th episode that has ended and whose client has its credentials, from the newest one on.
    pub fn ended(&self, n: usize) -> Option<u64> {
        self.chosen(n, |episode| episode.is_over && episode.token.is_some())
    }

    fn chosen(&self, n: usize, is_meant: impl Fn(&ModelEpisode) -> bool) -> Option<u64> {
        let found: Vec<u64> =
            self.known.iter().rev().filter(|(_, episode)| is_meant(episode)).map(|(number, _)| *number).collect();
        (!found.is_empty()).then(|| found[n % found.len()])
    }

    pub fn is_any_live(&self) -> bool {
        self.known.values().any(ModelEpisode::is_live)
    }
}

impl Model {
    fn check(&mut self, is_kept: bool, sentence: impl FnOnce() -> String) {
        if !is_kept {
            self.violate(sentence());
        }
    }

    /// Records a request for an episode.
    pub fn asks_for_episode(&mut self, number: u64, ask: EpisodeAsk, mut since: Circumstances, now: Duration) {
        let sites = (0..SITES).filter(|site| ask.sites & (1 << site) != 0);
        let wants = sites.map(|site| (site, ask.slot.filter(|_| site == 0))).collect();
        // A `down` that is under way may make the episode void.
        if self.pending.values().any(|pending| pending.asked == ApiCall::Down) {
            since.downs = since.downs.saturating_sub(1);
        }
        // The slot may be given to the episode before the generation that people asked for has taken its place.
        if self.pending.values().any(|pending| is_work(&pending.asked)) {
            since.works = since.works.saturating_sub(1);
        }
        let episode = ModelEpisode {
            id: None,
            token: None,
            ask,
            wants,
            since,
            asked_at: now,
            status: None,
            status_since: now,
            ending: None,
            leases: Vec::new(),
            active_at: None,
            is_over: false,
            ended_at: None,
            earliest: Duration::MAX,
            latest: Duration::MAX,
            longest: Duration::from_secs(ask.ttl),
            hold: Hold::Never,
            is_release_asked: false,
            is_abandoned: false,
            is_frozen: false,
            changes: 0,
            must_end_by: None,
            is_end_unsure: false,
            has_jumped: false,
            is_wait_unsure: false,
        };
        self.episodes.known.insert(number, episode);
        self.episodes.open.insert(number, now);
    }

    /// Records that the connection of a request is to hold its episode.
    pub fn asks_to_hold(&mut self, number: u64) {
        if let Some(episode) = self.episodes.known.get_mut(&number) {
            episode.hold = Hold::Asked;
        }
    }

    /// Records the answer to a request: the id of its episode, and the token.
    pub fn gets_episode(&mut self, number: u64, id: &EpisodeId, token: &str, is_known: bool, is_served: bool) {
        let Some(key) = self.episodes.known.get(&number).map(|episode| episode.ask.key) else { return };
        if let Some(key) = key {
            let earlier = self.episodes.keys.insert(key, id.clone());
            self.check(earlier.as_ref().is_none_or(|earlier| earlier == id), || {
                format!("episodes {earlier:?} and {id} have the same key")
            });
        } else {
            self.check(!is_known, || format!("episode {id} is given to a second client"));
        }
        let known = &mut self.episodes.known;
        let first = known.iter().find(|(_, episode)| episode.id.as_ref() == Some(id)).map(|(number, _)| *number);
        let number = first.unwrap_or(number);
        let Some(episode) = known.get_mut(&number) else { return };
        (episode.id, episode.token) = (Some(id.clone()), Some(token.to_owned()));
        let is_early = is_served && episode.status.is_none_or(|status| status == EpisodeStatus::Queued);
        self.check(!is_early, || format!("episode {number} is said to be active, and no event says so"));
    }

    /// Records that the client went away before the answer. Without a key the episode ends.
    pub fn leaves_before_answer(&mut self, number: u64, now: Duration) {
        if let Some(episode) = self.episodes.known.get_mut(&number)
            && episode.ask.key.is_none()
        {
            episode.is_abandoned = true;
            if episode.hold == Hold::Asked {
                episode.hold = Hold::Lost;
            }
            (episode.must_end_by, episode.is_end_unsure) = (Some(now), false);
        }
    }

    /// Records that the client wants an episode to end.
    pub fn asks_for_release(&mut self, number: u64) {
        if let Some(episode) = self.episodes.known.get_mut(&number) {
            episode.is_release_asked = true;
        }
    }

    /// Records that the client lost the connection that held its episode.
    pub fn loses_hold(&mut self, number: u64, now: Duration) {
        if let Some(episode) = self.episodes.known.get_mut(&number) {
            (episode.hold, episode.must_end_by, episode.is_end_unsure) = (Hold::Lost, Some(now), false);
        }
    }

    /// Records that a connection holds an episode.
    pub fn is_held(&mut self, number: u64) {
        if let Some(episode) = self.episodes.known.get_mut(&number).filter(|episode| episode.ending.is_none()) {
            (episode.hold, episode.must_end_by) = (Hold::Held, None);
        }
    }

    /// Records the id of an episode, whose client may not know it.
    pub fn learns_id(&mut self, number: u64, id: &EpisodeId) {
        if let Some(episode) = self.episodes.known.get_mut(&number) {
            episode.id.get_or_insert_with(|| id.clone());
        }
    }

    /// Records that a client was told of the end of an episode.
    pub fn has_ended(&mut self, number: u64) {
        if let Some(episode) = self.episodes.known.get_mut(&number) {
            episode.is_over = true;
        }
    }

    /// Records that an episode ends by this time. If the end `is_unsure`, it may be lost with the daemon.
    pub fn must_end(&mut self, number: u64, by: Duration, is_unsure: bool) {
        if let Some(episode) = self.episodes.known.get_mut(&number) {
            episode.is_end_unsure = is_unsure && (episode.must_end_by.is_none() || episode.is_end_unsure);
            episode.must_end_by.get_or_insert(by);
        }
    }

    /// Records a heartbeat that was sent at a time, or its success.
    pub fn beats(&mut self, number: u64, sent: Duration, extension: Option<u64>, is_done: bool) {
        let Some(episode) = self.episodes.known.get_mut(&number) else { return };
        let extension = Duration::from_secs(extension.unwrap_or(episode.ask.ttl));
        episode.longest = episode.longest.max(extension);
        if is_done && episode.earliest != Duration::MAX {
            episode.earliest = episode.earliest.max(sent + extension);
        }
    }

    /// Moves the time at which an episode must have expired, because a heartbeat may have been received at this time.
    pub fn may_extend(&mut self, number: u64, now: Duration) {
        if let Some(episode) = self.episodes.known.get_mut(&number)
            && episode.latest != Duration::MAX
        {
            episode.latest = episode.latest.max(now + episode.longest);
        }
    }

    /// Records that the clock was set forward.
    pub fn clock_jumps(&mut self) {
        for episode in self.episodes.known.values_mut().filter(|episode| episode.ending.is_none()) {
            episode.has_jumped = true;
        }
    }

    /// Records the start of another daemon.
    pub fn restarts(&mut self, now: Duration) {
        self.episodes.open.clear();
        for episode in self.episodes.known.values_mut().filter(|episode| episode.is_live()) {
            // The time that is left was stored with the last change of the episode.
            if episode.latest != Duration::MAX {
                episode.latest = episode.latest.max(now + episode.longest);
            }
            episode.status_since = now;
            if std::mem::take(&mut episode.is_end_unsure) {
                episode.must_end_by = None;
            }
            if episode.has_jumped {
                (episode.earliest, episode.is_wait_unsure) = (now, true);
            }
            match episode.hold {
                Hold::Held | Hold::Lost => (episode.hold, episode.must_end_by) = (Hold::Lost, Some(now + HOLD_AGAIN)),
                Hold::Asked | Hold::Unsure => episode.must_end_by = episode.must_end_by.map(|_| now + HOLD_AGAIN),
                Hold::Never => {}
            }
            episode.must_end_by = episode.must_end_by.map(|by| by.max(now));
        }
        // The answers to these were lost, also for episodes of which no event has told yet.
        for episode in self.episodes.known.values_mut().filter(|episode| episode.hold == Hold::Asked) {
            episode.hold = Hold::Unsure;
        }
    }

    /// Checks that a request which reaches a slot at the public port does not change the site of a frozen episode.
    pub fn reaches_at_public_port(&mut self, slot: usize, generation: u64) {
        let is_told = |episode: &ModelEpisode| episode.is_frozen && episode.changes == 0 && !episode.is_over;
        let frozen = self.episodes.lease_of(slot, generation).filter(|(_, episode)| is_told(episode));
        if let Some(number) = frozen.map(|(number, _)| number) {
            let sentence =
                format!("episode {number} is frozen, and a request reaches {} at the public port", super::shown(slot));
            self.violate(sentence);
        }
    }

    /// Records an event of an episode that took place at some time in a period. Returns the number of the episode.
    pub fn notes_event(
        &mut self,
        event: &StoredEpisodeEvent,
        view: Option<&EpisodeView>,
        period: Range<Duration>,
        circumstances: &Circumstances,
    ) -> Option<u64> {
        use EpisodeStatus::{Active, Expired, Frozen, Preparing, Queued, Released, Void};
        let now = period.end;
        self.episodes.seen = event.seq;
        let id = &event.episode;
        let label = view.and_then(|view| view.request.labels.get(LABEL)).and_then(|text| text.parse::<u64>().ok());
        let Some((number, episode)) = label.and_then(|number| Some((number, self.episodes.known.get_mut(&number)?)))
        else {
            self.violate(format!("no client asked for episode {id}"));
            return None;
        };
        let is_other = episode.id.as_ref().is_some_and(|known| known != id);
        episode.id = Some(id.clone());
        let before = episode.status.replace(event.status);
        if before == Some(event.status) {
            // A store that failed may have recorded an event twice.
            let is_excused = circumstances.disturbances > episode.since.disturbances;
            self.check(is_excused, || format!("episode {number} is {} twice", event.status.name()));
            return Some(number);
        }
        episode.status_since = now;
        self.check(!is_other, || format!("request {number} has two episodes"));
        let is_legal = matches!(
            (before, event.status),
            (None, Queued)
                | (Some(Queued), Preparing | Expired)
                | (Some(Preparing), Active)
                | (Some(Active), Frozen | Expired)
                | (Some(Frozen), Active | Expired)
                | (Some(Queued | Preparing | Active | Frozen), Released | Void)
        );
        self.check(is_legal, || format!("episode {number} is {:?} after {before:?}", event.status));
        let slots = view.map(slots_of).unwrap_or_default();
        match event.status {
            Queued => self.episodes.waiting.push(number),
            Preparing => self.notes_grant(number, &slots),
            Active => {
                if before == Some(Preparing) {
                    self.notes_activation(number, view, period);
                }
            }
            Frozen => {}
            Released | Expired | Void => {
                self.episodes.waiting.retain(|waiting| *waiting != number);
                self.notes_end(number, event.ending.as_ref(), period, circumstances);
            }
        }
        Some(number)
    }

    /// Checks that a request which is granted takes nothing that an earlier one waits for, and what no other has.
    fn notes_grant(&mut self, number: u64, slots: &[usize]) {
        let waiting = &mut self.episodes.waiting;
        let place = waiting.iter().position(|waiting| *waiting == number);
        let earlier = place.map(|place| {
            waiting.remove(place);
            waiting[..place].to_vec()
        });
        let earlier = earlier.unwrap_or_default();
        for slot in slots {
            if let Some(passed) = self.passed(number, *slot, &earlier) {
                self.violate(format!("episode {number} gets {}, and {passed} came first", shown(*slot)));
            }
        }
        for slot in slots {
            let other = self.episodes.last.insert(*slot, number);
            let is_taken = other.filter(|other| {
                *other != number && self.episodes.known.get(other).is_some_and(|other| other.ending.is_none())
            });
            self.check(is_taken.is_none(), || format!("{} is given to {number}, and {other:?} has it", shown(*slot)));
        }
    }

    /// Returns the number of an earlier request that must not be passed over by one which is granted a slot. A request that
    /// names a slot claims it. Of the other slots, as many stay as there are earlier requests for any of them; those that
    /// are being recycled count as free.
    fn passed(&self, number: u64, slot: usize, earlier: &[u64]) -> Option<u64> {
        let (site, granted) = SLOT_NUMBERS[slot];
        let wants = |wanted: Option<u32>| {
            let known = earlier.iter().filter_map(|number| Some((*number, self.episodes.known.get(number)?)));
            known
                .filter(move |(_, episode)| episode.own().any(|want| *want == (site, wanted)))
                .map(|(number, _)| number)
        };
        if let Some(claims) = wants(Some(granted)).next() {
            return Some(claims);
        }
        if granted <= BY_NAME_ONLY[site] {
            return None;
        }
        let is_there = |slot: &usize| {
            let (of, number) = SLOT_NUMBERS[*slot];
            of == site && number > BY_NAME_ONLY[site] && wants(Some(number)).next().is_none()
        };
        let is_taken = |slot: &usize| {
            let holder = self.episodes.last.get(slot).filter(|holder| **holder != number);
            holder.and_then(|holder| self.episodes.known.get(holder)).is_some_and(|holder| holder.ending.is_none())
        };
        let free = (0..SLOTS).filter(|slot| is_there(slot) && !is_taken(slot)).count();
        wants(None).nth(free.saturating_sub(1))
    }

    fn notes_activation(&mut self, number: u64, view: Option<&EpisodeView>, period: Range<Duration>) {
        let leases: Vec<(usize, u64)> = view.map(leases_of).unwrap_or_default();
        let Some(episode) = self.episodes.known.get_mut(&number) else { return };
        let wanted: BTreeSet<usize> = episode.own().map(|(site, _)| *site).collect();
        let had: BTreeSet<usize> = leases.iter().map(|(slot, _)| SLOT_NUMBERS[*slot].0).collect();
        let is_named = episode.own().all(|(site, wanted)| {
            let numbers = leases.iter().map(|(slot, _)| SLOT_NUMBERS[*slot]).filter(|(of, _)| of == site);
            numbers.into_iter().all(|(_, number)| wanted.map_or(number > BY_NAME_ONLY[*site], |it| it == number))
        });
        episode.active_at = Some(period.start);
        episode.leases = leases;
        let ttl = Duration::from_secs(episode.ask.ttl);
        (episode.earliest, episode.latest) = (period.start + ttl, period.end + ttl);
        self.check(had == wanted && is_named, || format!("episode {number} has the sites {had:?} of {wanted:?}"));
    }

    /// Checks that the end of an episode has a true reason.
    fn notes_end(
        &mut self,
        number: u64,
        ending: Option<&EpisodeEnding>,
        period: Range<Duration>,
        current: &Circumstances,
    ) {
        let now = period.end;
        let Some(episode) = self.episodes.known.get_mut(&number) else { return };
        (episode.is_over, episode.ended_at) = (true, Some(period.start));
        let Some(ending) = ending else { return self.violate(format!("episode {number} has ended without a cause")) };
        episode.ending = Some(ending.clone());
        let since = &episode.since;
        let is_disturbed = current.disturbances > since.disturbances;
        let is_taken_down = current.downs > since.downs;
        // The end may have taken place before the last daemon ended, and be observed only now.
        let is_true = match ending {
            EpisodeEnding::Released(ReleaseCause::Client) => episode.is_release_asked || episode.is_abandoned,
            EpisodeEnding::Released(ReleaseCause::HoldClosed) => {
                matches!(episode.hold, Hold::Lost | Hold::Unsure)
            }
            EpisodeEnding::Expired(ExpiryCause::Wait) => {
                episode.is_wait_unsure || now + TICK >= episode.asked_at + Duration::from_secs(episode.ask.wait)
            }
            EpisodeEnding::Expired(ExpiryCause::Ttl) => episode.hold != Hold::Held && now + TICK >= episode.earliest,
            EpisodeEnding::Void(reason) => match reason {
                VoidReason::ContainerDied { .. } => current.deaths > since.deaths,
                VoidReason::ResetFailed { .. } => {
                    let has_lost = episode.ask.snapshot.is_some() && current.removals > since.removals;
                    is_disturbed || is_taken_down || has_lost
                }
                VoidReason::ProofFailed { .. } => is_disturbed || is_taken_down,
                VoidReason::InstanceFailed { .. } => is_disturbed || is_taken_down || current.works > since.works,
                VoidReason::StoreFailed { .. } | VoidReason::PreparationTimedOut => is_disturbed,
                VoidReason::DaemonRestarted => current.crashes > since.crashes,
                VoidReason::EnvironmentDown => is_taken_down,
                // No episode of a simulation has a browser.
                VoidReason::EngineLost { .. } | VoidReason::NodeLost { .. } | VoidReason::BrowserFailed { .. } => false,
            },
        };
        self.check(is_true, || format!("episode {number} has ended without a reason: {ending}"));
    }

    /// Checks that an episode does not outlive its deadlines. `calm_since` is the time since which nothing has delayed the
    /// daemon.
    pub fn check_deadlines(&mut self, now: Duration, calm_since: Duration) {
        let mut late = None;
        for (number, episode) in self.episodes.known.iter().filter(|(_, episode)| episode.is_live()) {
            let (wait, since) = (Duration::from_secs(episode.ask.wait), episode.status_since);
            let due = match episode.status {
                Some(EpisodeStatus::Queued) => Some(since + wait),
                Some(EpisodeStatus::Preparing) => Some(since + PREPARATION),
                Some(EpisodeStatus::Active | EpisodeStatus::Frozen) if episode.hold == Hold::Never => {
                    Some(episode.latest)
                }
                _ => None,
            };
            let due = due.into_iter().chain(episode.must_end_by).min();
            if let Some(due) = due.filter(|due| now > (*due).max(calm_since).saturating_add(PROMPT)) {
                let status = episode.status.map_or("not there", EpisodeStatus::name);
                late = Some(format!("episode {number} is {status} after its time, which ended at {due:?}"));
            }
        }
        self.check(late.is_none(), || late.unwrap_or_default());
    }
}

/// Whether a request of people can make a generation anew.
pub fn is_work(asked: &ApiCall) -> bool {
    matches!(asked, ApiCall::Reset | ApiCall::ResetTo(_) | ApiCall::ResetIfDirty | ApiCall::Begin | ApiCall::Up)
}

/// Returns the slots of an episode.
fn slots_of(view: &EpisodeView) -> Vec<usize> {
    view.slots.iter().filter_map(|slot| index_of(&slot.instance)).collect()
}

/// Returns the slots of an episode with the generations that it got.
fn leases_of(view: &EpisodeView) -> Vec<(usize, u64)> {
    view.slots.iter().filter_map(|slot| Some((index_of(&slot.instance)?, slot.generation?))).collect()
}
