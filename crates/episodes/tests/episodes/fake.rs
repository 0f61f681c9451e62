//! Slots in memory, which outlive the daemon and report every use that the promises exclude.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arenad_episodes::{LeasedSlot, PreparedSlot, SlotPreparation, Slots};
use arenad_model::episode::EpisodeStatus;
use arenad_model::episode::ending::{EpisodeEnding, VoidReason};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::lease::RecycleOrder;
use arenad_model::episode::request::EpisodeRequest;
use arenad_model::instance::InstanceId;
use arenad_seams::inline;
use arenad_store::DaemonStore;

use crate::chaos::Chaos;

/// The content of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The slot equals its baseline.
    Baseline,
    /// The slot belongs to an episode, which may have changed it.
    Of(EpisodeId),
    /// The slot is being changed, or such a change was interrupted.
    Mixed(Option<EpisodeId>),
}

#[derive(Debug)]
pub struct FakeSlot {
    pub content: Content,
    pub generation: u64,
    /// The episode whose client reaches the slot.
    pub route: Option<EpisodeId>,
    /// Whether a call is running.
    is_busy: bool,
    /// Whether an attempt to recycle the slot was made to fail, and none has succeeded since.
    pub is_excused: bool,
}

/// The fate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    Fail,
    Panic,
    Never,
}

/// The course of a call.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    pub delay: Duration,
    /// Whether a preparation changes the slot.
    pub changes: bool,
    pub fate: Fate,
}

impl Course {
    pub fn done(milliseconds: u64) -> Self {
        Self { delay: Duration::from_millis(milliseconds), changes: true, fate: Fate::Done }
    }

    pub fn with(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Prepare,
    Switch,
    Recycle,
}

type Script = Box<dyn FnMut(Call, &InstanceId) -> Course + Send>;

#[derive(Default)]
pub struct FakeState {
    pub slots: BTreeMap<InstanceId, FakeSlot>,
    generations: u64,
    script: Option<Script>,
    /// The calls in their order, such as `prepare mini/shop/1`.
    pub calls: Vec<String>,
    /// The first use that the promises exclude.
    pub violation: Option<String>,
}

/// All slots, and the store by which they check what has been recorded.
pub struct FakeSlots {
    state: Mutex<FakeState>,
    recorded: DaemonStore,
    chaos: Arc<Chaos>,
}

impl FakeSlots {
    pub fn new(slots: Vec<InstanceId>, recorded: DaemonStore, chaos: Arc<Chaos>) -> Arc<Self> {
        let made = |slot| {
            let content = Content::Mixed(None);
            (slot, FakeSlot { content, generation: 0, route: None, is_busy: false, is_excused: false })
        };
        let slots = slots.into_iter().map(made).collect();
        Arc::new(Self { state: Mutex::new(FakeState { slots, ..FakeState::default() }), recorded, chaos })
    }

    pub fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn script(&self, script: impl FnMut(Call, &InstanceId) -> Course + Send + 'static) {
        self.state().script = Some(Box::new(script));
    }

    /// Ends all calls and routes, as the end of the daemon does.
    pub fn crash(&self) {
        for slot in self.state().slots.values_mut() {
            (slot.route, slot.is_busy) = (None, false);
        }
    }

    pub fn violate(&self, sentence: String) {
        self.state().violation.get_or_insert(sentence);
    }

    pub fn check(&self, is_kept: bool, sentence: impl FnOnce() -> String) {
        if !is_kept {
            self.violate(sentence());
        }
    }

    fn course(&self, call: Call, slot: &InstanceId) -> Course {
        let mut state = self.state();
        let word = format!("{call:?}").to_lowercase();
        state.calls.push(format!("{word} {slot}"));
        state.script.as_mut().map_or(Course::done(0), |script| script(call, slot))
    }

    fn with<T>(&self, slot: &InstanceId, change: impl FnOnce(&mut FakeSlot) -> T) -> T {
        change(self.state().slots.get_mut(slot).expect("a slot of this test"))
    }

    /// Returns the recorded state of an episode with its slots, if it has not ended. Reads in place, while no statement
    /// is running.
    fn row(&self, id: &EpisodeId) -> Option<(EpisodeStatus, Vec<LeasedSlot>)> {
        let live = inline::wait(self.recorded.live_episodes()).expect("rows");
        let row = live.into_iter().find(|row| row.id == *id)?;
        let slots = row
            .slots
            .into_iter()
            .map(|slot| LeasedSlot { instance: slot.instance, generation: slot.generation.unwrap_or_default() });
        Some((row.life.status(), slots.collect()))
    }

    /// Begins a call, which must be the only one for the slot.
    fn begin(self: &Arc<Self>, call: Call, slot: &InstanceId) -> RunningCall {
        let (was_busy, route) =
            self.with(slot, |slot| (std::mem::replace(&mut slot.is_busy, true), slot.route.clone()));
        self.check(!was_busy, || format!("{call:?} of {slot} began while another call was running"));
        self.check(route.is_none(), || format!("{call:?} of {slot}, which serves {route:?}"));
        RunningCall(self.clone(), slot.clone())
    }

    fn next_generation(&self, slot: &InstanceId, content: Content) -> u64 {
        let mut state = self.state();
        state.generations += 1;
        let generation = state.generations;
        let slot = state.slots.get_mut(slot).expect("a slot of this test");
        (slot.content, slot.generation) = (content, generation);
        generation
    }
}

struct RunningCall(Arc<FakeSlots>, InstanceId);

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.with(&self.1, |slot| slot.is_busy = false);
    }
}

fn failed(slot: &InstanceId) -> VoidReason {
    VoidReason::ResetFailed { slot: slot.clone(), detail: "scripted".to_owned() }
}

async fn play(course: Course, slot: &InstanceId) -> Result<(), VoidReason> {
    if !course.delay.is_zero() {
        tokio::time::sleep(course.delay).await;
    }
    match course.fate {
        Fate::Done => Ok(()),
        Fate::Fail => Err(failed(slot)),
        Fate::Panic => panic!("scripted"),
        Fate::Never => std::future::pending().await,
    }
}

/// A handle on [`FakeSlots`] that is an implementation of the trait.
#[derive(Clone)]
pub struct SlotsOfFake(pub Arc<FakeSlots>);

#[async_trait::async_trait]
impl Slots for SlotsOfFake {
    async fn prepare(&self, preparation: SlotPreparation) -> Result<PreparedSlot, VoidReason> {
        let SlotPreparation { slot, episode, permit, .. } = &preparation;
        let course = self.0.course(Call::Prepare, slot);
        let _running = self.0.begin(Call::Prepare, slot);
        let content = self.0.with(slot, |slot| slot.content.clone());
        self.0.check(content == Content::Baseline, || format!("{slot} was granted to {episode} as {content:?}"));
        if !course.changes {
            play(course, slot).await?;
            return Ok(PreparedSlot { generation: self.0.with(slot, |slot| slot.generation) });
        }
        permit.begin().await.map_err(|_| failed(slot))?;
        self.0.next_generation(slot, Content::Mixed(Some(episode.clone())));
        play(course, slot).await?;
        Ok(PreparedSlot { generation: self.0.next_generation(slot, Content::Of(episode.clone())) })
    }

    fn switch(&self, episode: &EpisodeId, _: &EpisodeRequest, slots: &[LeasedSlot]) -> Result<(), VoidReason> {
        let row = self.0.row(episode);
        let is_recorded = row.as_ref().is_some_and(|(status, recorded)| {
            matches!(status, EpisodeStatus::Active | EpisodeStatus::Frozen) && recorded == slots
        });
        self.0.check(is_recorded, || format!("{episode} was switched to {slots:?} while its row was {row:?}"));
        for LeasedSlot { instance, generation } in slots {
            let course = self.0.course(Call::Switch, instance);
            match course.fate {
                Fate::Done | Fate::Never => {}
                Fate::Fail => return Err(failed(instance)),
                Fate::Panic => panic!("scripted"),
            }
            let (route, content, current) =
                self.0.with(instance, |slot| (slot.route.clone(), slot.content.clone(), slot.generation));
            self.0.check(route.is_none(), || format!("{instance} was switched to {episode} while it served {route:?}"));
            let is_its = content == Content::Baseline || content == Content::Of(episode.clone());
            self.0.check(is_its && current == *generation, || {
                format!("{episode} got generation {current} of {instance} ({content:?}), not {generation}")
            });
        }
        for LeasedSlot { instance, .. } in slots {
            self.0.with(instance, |slot| {
                (slot.route, slot.content) = (Some(episode.clone()), Content::Of(episode.clone()));
            });
        }
        Ok(())
    }

    fn freeze(&self, episode: &EpisodeId) {
        self.0.state().calls.push(format!("freeze {episode}"));
    }

    fn unfreeze(&self, episode: &EpisodeId) {
        self.0.state().calls.push(format!("unfreeze {episode}"));
    }

    fn cut(&self, episode: &EpisodeId, _: &EpisodeEnding, slots: &[InstanceId]) {
        let row = self.0.row(episode);
        self.0.check(row.is_none(), || format!("{episode} was cut off while its row was {row:?}"));
        for slot in slots {
            self.0.state().calls.push(format!("cut {slot}"));
            self.0.with(slot, |slot| slot.route.take_if(|route| route == episode));
        }
    }

    async fn recycle(&self, order: &RecycleOrder) -> Result<(), VoidReason> {
        let slot = &order.slot;
        self.0.chaos.pass().await;
        let course = self.0.course(Call::Recycle, slot);
        let _running = self.0.begin(Call::Recycle, slot);
        let live = inline::wait(self.0.recorded.live_episodes()).expect("rows");
        let has_slot = |row: &&arenad_store::StoredEpisode| {
            let is_served = matches!(row.life.status(), EpisodeStatus::Active | EpisodeStatus::Frozen);
            is_served && row.slots.iter().any(|other| other.instance == *slot)
        };
        let holder = live.iter().find(has_slot).map(|row| &row.id);
        self.0.check(holder.is_none(), || format!("{slot} was recycled while the row of {holder:?} had it"));
        let (before, is_excused) = self.0.with(slot, |slot| (slot.content.clone(), course.fate != Fate::Done));
        let owner = match before {
            Content::Of(episode) => Some(episode),
            Content::Mixed(episode) => episode,
            Content::Baseline => None,
        };
        self.0.next_generation(slot, Content::Mixed(owner));
        self.0.with(slot, |slot| slot.is_excused |= is_excused);
        play(course, slot).await?;
        self.0.next_generation(slot, Content::Baseline);
        self.0.with(slot, |slot| slot.is_excused = false);
        Ok(())
    }
}
