//! The knowledge of clients about their episodes, and the promises that follow from it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arenad_episodes::{EpisodeFilter, EpisodeHandle, EpisodeReceipt, EpisodeToken, EpisodeView};
use arenad_model::episode::ending::EpisodeEnding;
use arenad_model::episode::fence::FenceDecision;
use arenad_model::episode::ids::{EpisodeId, IdempotencyKey, Owner};
use arenad_model::episode::request::EpisodeRequest;
use arenad_model::episode::{EpisodeState, EpisodeStatus};
use arenad_model::instance::InstanceId;
use arenad_store::StoredEpisodeEvent;

use crate::fake::Content;
use crate::random::mix;
use crate::rig::{PREPARATION, REMEMBERED, Rig, seconds};

/// An episode as its client, or the list, has shown it.
#[derive(Debug)]
struct Known {
    token: Option<EpisodeToken>,
    /// Whether its client has, or could get, its id.
    is_known_to_client: bool,
    seen_since: Duration,
    was_active: bool,
    ending: Option<EpisodeEnding>,
    is_held: bool,
    /// The time from which the episode must have ended.
    must_end_by: Option<Duration>,
    /// The time since when its deadline has passed.
    overdue_since: Option<Duration>,
    /// The state of the newest event.
    status: Option<EpisodeStatus>,
}

#[derive(Default)]
pub(super) struct Model {
    known: BTreeMap<EpisodeId, Known>,
    keys: BTreeMap<(Owner, IdempotencyKey), EpisodeId>,
    /// The sites for which episodes wait, in order of arrival.
    waiting: Vec<(EpisodeId, BTreeSet<String>)>,
    /// The times of the ends.
    ended: BTreeMap<EpisodeId, Duration>,
    disturbed_at: Duration,
    restarted_at: Duration,
    /// Whether nothing was observed since the restart.
    is_restarted: bool,
    /// The number of the last event that was read.
    pub(super) seen: i64,
    pub(super) trace: u64,
    pub(super) grants: u64,
    pub(super) ends: u64,
    pub(super) violation: Option<String>,
}

fn own_sites(request: &EpisodeRequest) -> BTreeSet<String> {
    let names = request.sites.iter().map(|want| want.site.site.to_string());
    names.filter(|name| name != "wiki").collect()
}

impl Model {
    pub(super) fn violate(&mut self, sentence: String) {
        self.violation.get_or_insert(sentence);
    }

    fn check(&mut self, is_kept: bool, sentence: impl FnOnce() -> String) {
        if !is_kept {
            self.violate(sentence());
        }
    }

    pub(super) fn trace(&mut self, text: &str) {
        for byte in text.bytes() {
            self.trace = mix(self.trace ^ u64::from(byte));
        }
    }

    /// Returns the live episodes of clients that know them.
    pub(super) fn live(&self) -> Vec<EpisodeId> {
        let live = self.known.iter().filter(|(_, known)| known.ending.is_none() && known.token.is_some());
        live.map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn held(&self) -> Vec<EpisodeId> {
        let held = self.known.iter().filter(|(_, known)| known.is_held && known.ending.is_none());
        held.map(|(id, _)| id.clone()).collect()
    }

    /// Notes a fault that may delay everything.
    pub(super) fn disturbed(&mut self, now: Duration) {
        self.disturbed_at = now;
    }

    pub(super) fn has_outage(&self, now: Duration, is_full: bool) -> bool {
        is_full || now < self.disturbed_at + seconds(2)
    }

    pub(super) fn restarted(&mut self, now: Duration) {
        (self.restarted_at, self.disturbed_at, self.is_restarted) = (now, now, true);
        for known in self.known.values_mut() {
            known.overdue_since = None;
            // Each daemon gives the client of a held episode the same time to hold it again.
            known.must_end_by = known.must_end_by.map(|by| by.max(now + seconds(16)));
        }
    }

    pub(super) fn asked(&mut self, handle: &EpisodeHandle, request: EpisodeRequest, receipt: EpisodeReceipt) {
        let EpisodeReceipt { id, token, is_known } = receipt;
        if let Some(key) = request.key {
            let earlier = self.keys.insert((request.owner, key), id.clone());
            let is_same = earlier.as_ref().is_none_or(|earlier| *earlier == id || handle.get(earlier).is_err());
            self.check(is_same, || format!("{earlier:?} and {id} have the same key"));
        } else {
            self.check(!is_known, || format!("{id} is another client's"));
        }
        let known = self.known.entry(id).or_insert_with(Known::new);
        known.token = Some(token);
        known.is_known_to_client = true;
    }

    pub(super) fn note_held(&mut self, id: &EpisodeId) {
        if let Some(known) = self.known.get_mut(id) {
            (known.is_held, known.must_end_by) = (true, None);
        }
    }

    /// Notes that no connection holds an episode any more, so that it ends at this time.
    pub(super) fn closed(&mut self, id: &EpisodeId, ends_by: Duration) {
        if let Some(known) = self.known.get_mut(id) {
            (known.is_held, known.must_end_by) = (false, Some(ends_by));
        }
    }

    pub(super) fn all_closed(&mut self, now: Duration) {
        for id in self.held() {
            self.closed(&id, now);
        }
    }

    pub(super) fn released(&mut self, handle: &EpisodeHandle, id: &EpisodeId) {
        let state = handle.get(id).map(|view| view.state);
        let is_over = state.as_ref().map_or(true, |state| state.ending().is_some());
        self.check(is_over, || format!("{id} was released and is {state:?}"));
        if let Ok(EpisodeState::Ended(ending)) = state {
            self.known.entry(id.clone()).or_insert_with(Known::new).ending.get_or_insert(ending);
        }
    }

    pub(super) fn observe(&mut self, rig: &Rig, handle: &EpisodeHandle, events: &[StoredEpisodeEvent], is_full: bool) {
        let now = rig.time.now();
        if is_full {
            self.disturbed_at = now;
        }
        let views = handle.list(&EpisodeFilter::default());
        for event in events {
            self.read_event(event, &views, now);
        }
        if std::mem::take(&mut self.is_restarted) {
            // The answers to the last requests were lost in the crash.
            for view in &views {
                let known = self.known.entry(view.id.clone()).or_insert_with(Known::new);
                known.is_known_to_client = true;
            }
        }
        for view in &views {
            self.check_view(rig, handle, view, now);
        }
        self.check_leases(&views);
        self.check_absent(handle, &views);
        self.check_slots(rig, now);
    }

    fn read_event(&mut self, event: &StoredEpisodeEvent, views: &[EpisodeView], now: Duration) {
        use EpisodeStatus::{Active, Expired, Frozen, Preparing, Queued, Released, Void};
        let before = std::mem::replace(&mut self.seen, event.seq);
        self.check(event.seq == before + 1, || format!("event {} follows {before}", event.seq));
        let id = &event.episode;
        let known = self.known.entry(id.clone()).or_insert_with(Known::new);
        let before = known.status.replace(event.status);
        if before.is_none() {
            known.seen_since = now;
        }
        let is_legal = matches!(
            (before, event.status),
            (None, Queued)
                | (Some(Queued), Preparing | Expired)
                | (Some(Preparing), Active)
                | (Some(Active), Frozen | Expired)
                | (Some(Frozen), Active | Expired)
                | (Some(Queued | Preparing | Active | Frozen), Released | Void)
        );
        self.check(is_legal, || format!("{id} is {:?} after {before:?}", event.status));
        match event.status {
            Queued => {
                let request = views.iter().find(|view| view.id == *id).map(|view| &view.request);
                self.waiting.push((id.clone(), request.map(|request| own_sites(request)).unwrap_or_default()));
            }
            Preparing => {
                self.grants += 1;
                let Some(index) = self.waiting.iter().position(|(waiting, _)| waiting == id) else { return };
                let (_, wants) = self.waiting.remove(index);
                let passed =
                    self.waiting[..index].iter().find(|(_, earlier)| !earlier.is_empty() && earlier.is_subset(&wants));
                let passed = passed.map(|(earlier, _)| earlier.clone());
                self.check(passed.is_none(), || format!("{id} was granted before {passed:?}"));
            }
            Released | Expired | Void => {
                self.ends += 1;
                self.waiting.retain(|(waiting, _)| waiting != id);
                self.ended.insert(id.clone(), now);
                let known = self.known.entry(id.clone()).or_insert_with(Known::new);
                known.ending.clone_from(&event.ending);
            }
            Active | Frozen => {}
        }
    }

    fn check_view(&mut self, rig: &Rig, handle: &EpisodeHandle, view: &EpisodeView, now: Duration) {
        let id = &view.id;
        let is_calm = now > self.disturbed_at + seconds(2);
        let (disturbed_at, restarted_at) = (self.disturbed_at, self.restarted_at);
        let known = self.known.entry(id.clone()).or_insert_with(Known::new);
        let was_active = known.was_active;
        let is_served = matches!(view.state, EpisodeState::Active | EpisodeState::Frozen);
        known.was_active |= is_served;
        let ending = view.state.ending().cloned();
        let told = known.ending.clone();
        known.ending = known.ending.take().or_else(|| ending.clone());
        let decision = known.token.as_ref().map(|token| handle.admit_client(id, &token.hash()));
        let is_overdue = is_served && !view.is_held && view.left.is_zero();
        let overdue_since = is_overdue.then(|| known.overdue_since.unwrap_or(now));
        known.overdue_since = overdue_since;
        let since = known.seen_since;
        let is_orphan = !known.is_known_to_client && view.request.key.is_none();
        let must_end_by = known.must_end_by;
        self.check(told.is_none() || told == ending, || format!("{id} was {told:?} and is {:?}", view.state));
        self.check(!was_active || is_served || ending.is_some(), || format!("{id} was active and is {:?}", view.state));
        let wanted = own_sites(&view.request);
        let slots: BTreeSet<String> = view.slots.iter().map(|slot| slot.instance.site.to_string()).collect();
        let is_whole = match view.state {
            EpisodeState::Queued => slots.is_empty(),
            EpisodeState::Preparing | EpisodeState::Active | EpisodeState::Frozen => slots == wanted,
            EpisodeState::Ended(_) => slots.is_empty() || slots == wanted,
        };
        self.check(is_whole, || format!("{id} has {slots:?} of {wanted:?}"));
        for slot in &view.slots {
            let route = rig.fake.state().slots[&slot.instance].route.clone();
            let is_mine = route.as_ref() == Some(id);
            self.check(is_mine == is_served, || {
                format!("{} leads to {route:?}, {id} is {:?}", slot.instance, view.state)
            });
            let lease = handle.lease_of(&slot.instance);
            self.check((lease.as_ref() == Some(id)) == is_served, || format!("{} is {lease:?}'s", slot.instance));
        }
        if let Some(decision) = decision {
            let is_right = match (&decision, &view.state) {
                (FenceDecision::Ended(ending), EpisodeState::Ended(other)) => ending == other,
                (FenceDecision::Admitted, EpisodeState::Active) | (FenceDecision::Frozen, EpisodeState::Frozen) => true,
                (FenceDecision::NotReady, state) => state.ending().is_none(),
                // The token may be one of the oldest, if the request was repeated.
                (FenceDecision::WrongToken, _) => view.request.key.is_some(),
                _ => false,
            };
            self.check(is_right, || format!("{id} is {:?}, its client is {decision:?}", view.state));
        }
        if ending.is_some() {
            return;
        }
        let limit = match view.state {
            EpisodeState::Queued => view.request.terms.wait(),
            EpisodeState::Preparing => view.request.terms.wait() + PREPARATION,
            _ => Duration::MAX,
        };
        let is_late = is_calm && now > since.max(restarted_at).saturating_add(limit).saturating_add(seconds(3));
        self.check(!is_late, || format!("{id} is {:?} for too long", view.state));
        let is_past = |since: Duration| is_calm && now > since + seconds(1);
        // A held episode has 15 s after a restart in which its client can hold it again.
        let overdue = overdue_since.is_some_and(is_past) && now > restarted_at + seconds(17);
        self.check(!overdue, || format!("{id} outlives its time"));
        let is_unclaimed = is_orphan && is_past(since) && now > disturbed_at + seconds(2);
        self.check(!is_unclaimed, || format!("{id} has no client"));
        self.check(!must_end_by.is_some_and(is_past), || format!("{id} outlives its connection"));
    }

    fn check_leases(&mut self, views: &[EpisodeView]) {
        let mut leases: BTreeMap<&InstanceId, &EpisodeId> = BTreeMap::new();
        for view in views.iter().filter(|view| view.state.is_open()) {
            for slot in &view.slots {
                let other = leases.insert(&slot.instance, &view.id);
                self.check(other.is_none(), || format!("{} is in {} and {other:?}", slot.instance, view.id));
            }
        }
    }

    /// Checks that no episode vanishes, and that only so many are remembered.
    fn check_absent(&mut self, handle: &EpisodeHandle, views: &[EpisodeView]) {
        let ended = views.iter().filter(|view| view.state.ending().is_some()).count();
        self.check(ended <= REMEMBERED, || format!("{ended} ended episodes are remembered"));
        let live = views.len() - ended;
        self.check(live <= 30 + 30, || format!("{live} episodes are live"));
        let absent = self
            .known
            .iter()
            .find(|(id, known)| known.token.is_some() && known.ending.is_none() && handle.get(id).is_err());
        let absent = absent.map(|(id, _)| id.clone()).filter(|_| ended < REMEMBERED);
        self.check(absent.is_none(), || format!("{absent:?} has vanished"));
        self.known.retain(|id, known| known.ending.is_none() || views.iter().any(|view| view.id == *id));
    }

    /// Checks that slots come free within 2 s.
    fn check_slots(&mut self, rig: &Rig, now: Duration) {
        let mut late = None;
        for (slot, fake) in &rig.fake.state().slots {
            let (Content::Of(id) | Content::Mixed(Some(id))) = &fake.content else { continue };
            let Some(ended) = self.ended.get(id) else { continue };
            let due = (*ended).max(self.disturbed_at) + seconds(2);
            if now > due && !fake.is_excused {
                late = Some(format!("{slot} is not free {:?} after the end of {id}", now - *ended));
            }
        }
        self.check(late.is_none(), || late.clone().unwrap_or_default());
    }
}

impl Known {
    fn new() -> Self {
        Self {
            token: None,
            is_known_to_client: false,
            seen_since: Duration::ZERO,
            was_active: false,
            ending: None,
            is_held: false,
            must_end_by: None,
            overdue_since: None,
            status: None,
        }
    }
}
