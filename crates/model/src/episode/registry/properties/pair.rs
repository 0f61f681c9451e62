//! The registry under test, driven beside its model.

use std::time::Duration;

use proptest::sample::Index;

use super::model::{Model, ModelEpisode, ModelSlot, ModelWant};
use super::setup::{all_slots, id, new_registry, number_of, site, token};
use super::{EVALUATION, MOST_OPEN, OWNERS, PREPARATION, QUOTA, REMEMBERED, SITES, Step, WAITING, WAITING_OF_OWNER};
use crate::episode::ending::VoidReason;
use crate::episode::fence::FenceDecision;
use crate::episode::ids::{EpisodeId, EpisodeLabels, IdempotencyKey, Owner};
use crate::episode::lease::{RecycleOrder, SlotState};
use crate::episode::life::{EpisodeLife, EpisodeTerms, HOLD_AGAIN_WITHIN, HoldId};
use crate::episode::registry::{
    AskedEpisode, EndCause, EndedEpisode, EpisodeChange, EpisodeRegistry, RECENT_HOLDS, SlotFailure,
};
use crate::episode::request::{AskRefusal, EpisodeRequest, SiteWant, StartPoint};
use crate::instance::InstanceId;

/// The registry under test beside the model. The id of an episode contains its number in the model.
pub(super) struct Pair {
    registry: EpisodeRegistry,
    model: Model,
    requests: Vec<EpisodeRequest>,
    /// The work that has not been reported as done, and all work that ever was to be done.
    pending: Vec<RecycleOrder>,
    orders: Vec<RecycleOrder>,
}

impl Pair {
    pub(super) fn new() -> Self {
        let slots = all_slots().into_iter().map(|slot| (slot, ModelSlot::Recycling)).collect();
        let is_by_name_only = |slot: &InstanceId| slot.site.as_str() == "forum" && slot.number == 1;
        let model = Model { now: 0, episodes: Vec::new(), slots, quota: QUOTA, most_open: MOST_OPEN, is_by_name_only };
        let mut pair =
            Self { registry: new_registry(), model, requests: Vec::new(), pending: Vec::new(), orders: Vec::new() };
        pair.add_slots();
        pair.recycle_all();
        pair
    }

    fn now(&self) -> Duration {
        Duration::from_secs(self.model.now)
    }

    fn add_slots(&mut self) {
        for slot in all_slots() {
            if let Ok(order) = self.registry.add_slot(slot) {
                self.note_orders(vec![order]);
            }
        }
    }

    /// Adds work. An earlier attempt for the same slot is given up.
    fn note_orders(&mut self, orders: Vec<RecycleOrder>) {
        for order in orders {
            self.pending.retain(|pending| pending.slot != order.slot);
            self.orders.push(order.clone());
            self.pending.push(order);
        }
    }

    fn note_ended(&mut self, ended: impl IntoIterator<Item = EndedEpisode>) {
        for ended in ended {
            self.note_orders(ended.recycle);
        }
    }

    /// Chooses an episode, preferably a live one.
    fn choose(&self, at: Index) -> Option<usize> {
        let live: Vec<usize> = (0..self.model.episodes.len()).filter(|n| self.model.episodes[*n].is_live()).collect();
        if live.is_empty() { None } else { Some(*at.get(&live)) }
    }

    fn end(&mut self, number: usize, cause: EndCause, status: &'static str, connection: Option<u64>) {
        let ended = self.registry.end(&id(number), cause, self.now());
        assert_eq!(ended.is_ok(), self.model.close(number, status, connection), "end of {number}: {ended:?}");
        self.note_ended(ended.unwrap_or_default());
    }

    fn change(&mut self, number: usize, change: EpisodeChange, is_expected: bool) {
        let changed = self.registry.change(&id(number), change, self.now());
        assert_eq!(changed.is_ok(), is_expected, "{change:?} of {number}: {changed:?}");
    }

    fn ask(&mut self, request: EpisodeRequest, owner: usize, wants: Vec<ModelWant>) {
        let number = self.model.episodes.len();
        let waits = |episode: &&ModelEpisode| episode.status == "queued";
        let waiting = self.model.episodes.iter().filter(waits).count();
        let of_owner = self.model.episodes.iter().filter(waits).filter(|episode| episode.owner == owner).count();
        let same_key = |(_, other): &(usize, &EpisodeRequest)| other.owner == request.owner && other.key == request.key;
        let mut known =
            self.requests.iter().enumerate().filter(|(number, _)| self.registry.get(&id(*number)).is_some());
        let known = if request.key.is_some() { known.find(same_key).map(|(number, _)| number) } else { None };
        let asked = self.registry.ask(id(number), request.clone(), token(number), self.now());
        if let Some(known) = known {
            match asked {
                Ok(asked) => assert_eq!(asked, AskedEpisode { id: id(known), is_known: true }),
                Err(refused) => assert_eq!(refused, AskRefusal::KeyReused(id(known))),
            }
            return;
        }
        let has_room = waiting < WAITING && of_owner < WAITING_OF_OWNER;
        let is_empty = request.sites.is_empty();
        // Slot 1 of the forum is given only to requests that name it, and the site has others, so nothing else is refused.
        assert_eq!(asked.is_ok(), has_room && !is_empty, "{asked:?}");
        if asked.is_ok() {
            self.model.episodes.push(ModelEpisode {
                owner,
                wants,
                status: "queued",
                ttl: request.terms.ttl().as_secs(),
                deadline: self.model.now + request.terms.wait().as_secs(),
                hold: None,
                hold_again_by: None,
                is_frozen_by_client: false,
                evaluations: 0,
                slots: Vec::new(),
            });
            self.requests.push(request);
        }
    }

    /// Reports of slots that belong to the past of an episode must have no effect.
    fn report_late(&mut self, at: Index) {
        let before: Vec<(InstanceId, SlotState)> =
            self.registry.board().iter().map(|(slot, state)| (slot.clone(), state.clone())).collect();
        for (number, episode) in self.model.episodes.iter().enumerate().filter(|(_, episode)| !episode.is_live()) {
            for (slot, ..) in &episode.slots {
                assert!(self.registry.note_changing(slot, &id(number)).is_err());
                assert!(self.registry.note_prepared(slot, &id(number)).is_err());
            }
            assert!(self.registry.commit(&id(number), Duration::from_secs(self.model.now)).is_err());
            let late = self.registry.end(&id(number), EndCause::Release, Duration::from_secs(self.model.now));
            assert!(late.is_err());
        }
        let done: Vec<RecycleOrder> =
            self.orders.iter().filter(|order| !self.pending.contains(order)).cloned().collect();
        if !done.is_empty() {
            let order = at.get(&done);
            assert!(self.registry.note_recycled(&order.slot, order.turn, self.now()).is_err());
        }
        let after: Vec<(InstanceId, SlotState)> =
            self.registry.board().iter().map(|(slot, state)| (slot.clone(), state.clone())).collect();
        assert_eq!(before, after);
    }

    fn report(&mut self, number: usize, at: Index, is_change: bool) {
        let episode = &mut self.model.episodes[number];
        if episode.slots.is_empty() {
            return;
        }
        let index = at.index(episode.slots.len());
        let is_possible = episode.status == "preparing";
        let (slot, is_changed, is_proven) = &mut episode.slots[index];
        let reported = if is_change {
            self.registry.note_changing(slot, &id(number))
        } else {
            self.registry.note_prepared(slot, &id(number))
        };
        assert_eq!(reported.is_ok(), is_possible, "{reported:?}");
        if is_possible {
            (*is_changed, *is_proven) = (*is_changed || is_change, !is_change);
        }
    }

    fn fail_slot(&mut self, at: Index) {
        let slot = at.get(&all_slots()).clone();
        let reason = VoidReason::ContainerDied { slot: slot.clone(), detail: "exited with code 1".to_owned() };
        let is_held = match self.model.slots[&slot] {
            ModelSlot::Held(number) => Some(self.model.close(number, "void", None)),
            ModelSlot::Free | ModelSlot::Recycling => {
                self.model.slots.insert(slot.clone(), ModelSlot::Recycling);
                None
            }
        };
        match (self.registry.fail_slot(&slot, reason, self.now()), is_held) {
            (SlotFailure::Void(ended), Some(true)) => self.note_ended([ended]),
            (SlotFailure::Recycle(order), None) => self.note_orders(vec![order]),
            (SlotFailure::Nothing, Some(false)) => {}
            (failure, is_held) => panic!("{failure:?} while held: {is_held:?}"),
        }
    }

    fn recycle(&mut self, index: usize) {
        let order = self.pending.swap_remove(index);
        self.registry.note_recycled(&order.slot, order.turn, self.now()).expect("the latest attempt");
        self.model.slots.insert(order.slot, ModelSlot::Free);
    }

    fn recycle_all(&mut self) {
        while !self.pending.is_empty() {
            self.recycle(0);
        }
    }

    fn restart(&mut self) {
        let now = self.now();
        let mut after = new_registry();
        for id in self.registry.ended().map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            after.remember(id.clone(), self.registry.get(&id).expect("ended").clone());
        }
        self.pending.clear();
        // The old turns belong to the old daemon, whose work has ended with it.
        self.orders.clear();
        let mut ended = Vec::new();
        for number in 0..self.model.episodes.len() {
            let Some(episode) = self.registry.live.get(&id(number)) else { continue };
            let mut episode = episode.clone();
            episode.life = EpisodeLife::restored(episode.life.stored(now).expect("live"), now);
            ended.extend(after.restore(id(number), episode).expect("no slot is in two episodes"));
        }
        self.registry = after;
        self.note_ended(ended);
        self.add_slots();
        self.model.restart(HOLD_AGAIN_WITHIN.as_secs());
    }

    fn settle(&mut self) {
        let settled = self.registry.settle(self.now());
        self.model.expire();
        let expected = self.model.grants();
        let granted: Vec<usize> = settled.granted.iter().map(|grant| number_of(&grant.episode)).collect();
        assert_eq!(granted, expected, "grants");
        for grant in &settled.granted {
            self.model.grant(number_of(&grant.episode), &grant.slots, PREPARATION);
        }
        self.note_ended(settled.ended);
    }

    pub(super) fn apply(&mut self, step: Step) {
        // Deadlines may pass some time before they are noticed.
        let is_pass = matches!(step, Step::Pass(_));
        match step {
            Step::Ask { owner, wants, is_shared, wait, ttl, key } => {
                let wants: Vec<ModelWant> = wants.into_iter().map(|(at, slot)| (SITES[at].0, slot)).collect();
                let shared = is_shared.then_some(("wiki", None));
                let want =
                    |(name, slot): &ModelWant| SiteWant { site: site(name), slot: *slot, start: StartPoint::Baseline };
                let request = EpisodeRequest {
                    owner: Owner::parse(OWNERS[owner]).expect("valid"),
                    key: key.map(|key| IdempotencyKey::parse(&key.to_string()).expect("valid")),
                    sites: wants.iter().chain(&shared).map(want).collect(),
                    terms: EpisodeTerms::new(Duration::from_secs(ttl), Duration::from_secs(wait)).expect("valid"),
                    labels: EpisodeLabels::default(),
                    record: Default::default(),
                    beginning: None,
                    replays: Vec::new(),
                };
                self.ask(request, owner, wants);
            }
            Step::Pass(seconds) => self.model.now += seconds,
            Step::Late(at) => self.report_late(at),
            Step::Restart => self.restart(),
            Step::SlotFails(at) => self.fail_slot(at),
            Step::Recycle(at) if !self.pending.is_empty() => self.recycle(at.index(self.pending.len())),
            Step::Recycle(_) => {}
            Step::Change(at)
            | Step::Prove(at)
            | Step::Commit(at)
            | Step::Heartbeat(at)
            | Step::Hold(at, _)
            | Step::CloseHold(at, _)
            | Step::Release(at)
            | Step::Fail(at)
            | Step::Freeze(at, _)
            | Step::Evaluate(at, _) => {
                if let Some(number) = self.choose(at) {
                    self.apply_to(number, at, step);
                }
            }
        }
        if !is_pass {
            self.settle();
        }
        self.compare();
    }

    fn apply_to(&mut self, number: usize, at: Index, step: Step) {
        match step {
            Step::Change(_) => self.report(number, at, true),
            Step::Prove(_) => self.report(number, at, false),
            Step::Commit(_) => {
                let committed = self.registry.commit(&id(number), self.now());
                assert_eq!(committed.is_ok(), self.model.commit(number), "commit of {number}: {committed:?}");
            }
            Step::Heartbeat(_) => {
                let is_expected = self.model.heartbeat(number);
                self.change(number, EpisodeChange::Heartbeat(None), is_expected);
            }
            Step::Hold(_, connection) => {
                let is_expected = self.model.hold(number, connection);
                self.change(number, EpisodeChange::Hold(HoldId(connection)), is_expected);
            }
            Step::CloseHold(_, connection) => {
                self.end(number, EndCause::HoldClosed(HoldId(connection)), "released", Some(connection));
            }
            Step::Release(_) => self.end(number, EndCause::Release, "released", None),
            Step::Fail(_) => self.end(number, EndCause::Failed(VoidReason::EnvironmentDown), "void", None),
            Step::Freeze(_, is_begin) => {
                let is_expected = self.model.freeze(number, is_begin);
                let change = if is_begin { EpisodeChange::Freeze } else { EpisodeChange::Unfreeze };
                self.change(number, change, is_expected);
            }
            Step::Evaluate(_, is_begin) => {
                let is_expected = self.model.evaluate(number, is_begin.then_some(EVALUATION));
                let begin = EpisodeChange::BeginEvaluation(Duration::from_secs(EVALUATION));
                self.change(number, if is_begin { begin } else { EpisodeChange::EndEvaluation }, is_expected);
            }
            _ => {}
        }
    }

    fn compare(&self) {
        let live = self.model.episodes.iter().filter(|episode| episode.is_live());
        let (open, waiting): (Vec<_>, Vec<_>) = live.partition(|episode| episode.is_open());
        assert!(open.len() <= MOST_OPEN && self.registry.queue.len() == waiting.len() && waiting.len() <= WAITING);
        for owner in 0..OWNERS.len() {
            assert!(open.iter().filter(|episode| episode.owner == owner).count() <= QUOTA);
        }
        for (number, episode) in self.model.episodes.iter().enumerate() {
            let Some(registered) = self.registry.get(&id(number)) else {
                assert!(!episode.is_live(), "{number} was forgotten");
                continue;
            };
            assert_eq!(registered.life.state().status().name(), episode.status, "status of {number}");
            let is_in_time = episode.due(self.model.now).is_none();
            let visitor = self.registry.admit_visitor(&id(number), self.now());
            assert_eq!(visitor == FenceDecision::Admitted, episode.is_open() && is_in_time, "{visitor:?}");
            if registered.tokens.contains(&token(number)) {
                let client = self.registry.admit_client(&id(number), &token(number), self.now());
                assert_eq!(client == FenceDecision::Admitted, episode.status == "active" && is_in_time, "{client:?}");
            }
            assert_eq!(self.registry.admit_client(&id(number), &token(255), self.now()), FenceDecision::WrongToken);
        }
        assert_eq!(self.registry.board().iter().count(), self.model.slots.len());
        for (slot, state) in self.registry.board().iter() {
            let modelled = self.model.slots[slot];
            let is_held_by = |lease: &EpisodeId, is_reserved: bool| match modelled {
                ModelSlot::Held(number) => {
                    id(number) == *lease && (self.model.episodes[number].status == "preparing") == is_reserved
                }
                ModelSlot::Free | ModelSlot::Recycling => false,
            };
            let is_equal = match state {
                SlotState::Free { .. } => modelled == ModelSlot::Free,
                SlotState::Reserved { lease, .. } => is_held_by(lease, true),
                SlotState::Leased { lease } => is_held_by(lease, false),
                SlotState::Recycling { .. } => modelled == ModelSlot::Recycling,
            };
            assert!(is_equal, "{slot} is {state:?}, not {modelled:?}");
        }
        let ended = self.registry.ended().count();
        assert!(ended <= REMEMBERED && self.registry.keys.len() <= self.registry.live.len() + ended);
        assert!(self.registry.holds.values().all(|recent| recent.len() <= RECENT_HOLDS));
    }

    /// Lets every episode end, one after the other, without time passing.
    pub(super) fn finish(&mut self) {
        self.settle();
        let numbers = 0..self.model.episodes.len();
        let live: Vec<usize> = numbers.filter(|number| self.model.episodes[*number].is_live()).collect();
        for _ in 0..=live.len() {
            self.recycle_all();
            self.settle();
            for number in &live {
                let episode = &mut self.model.episodes[*number];
                if episode.status == "preparing" {
                    for (slot, _, is_proven) in &mut episode.slots {
                        self.registry.note_prepared(slot, &id(*number)).expect("reserved");
                        *is_proven = true;
                    }
                    assert!(self.model.commit(*number));
                    self.registry.commit(&id(*number), self.now()).expect("prepared");
                }
                if self.model.episodes[*number].is_open() {
                    self.end(*number, EndCause::Release, "released", None);
                }
            }
            self.compare();
        }
        for number in live {
            let episode = &self.model.episodes[number];
            assert_eq!((episode.status, episode.slots.len()), ("released", episode.wants.len()), "{number} starved");
        }
        self.recycle_all();
        assert!(self.registry.board().iter().all(|(_, state)| matches!(state, SlotState::Free { .. })));
        assert_eq!(self.registry.live.len(), 0);
    }
}
