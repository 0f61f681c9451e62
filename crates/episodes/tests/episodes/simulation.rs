//! Random schedules of clients, failures, clock steps and crashes, held against the promises.
//!
//! A seed determines a schedule, and a failure prints it. `ARENAD_EPISODES_SEED` replays one schedule with a trace,
//! `ARENAD_EPISODES_SCHEDULES` sets their number and `ARENAD_EPISODES_BASE` the seed from which theirs are derived.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arenad_episodes::{EpisodeFilter, EpisodeHandle, EvaluationGuard, HoldGuard};
use arenad_model::episode::request::SiteCapacity;

use self::model::Model;
use crate::fake::{Call, Content, Course, Fate};
use crate::processor::stay_on;
use crate::random::{Random, mix};
use crate::rig::{Rig, SITES, all_slots, request, seconds, site};
use crate::setting::number_of;

mod act;
mod model;

const SCHEDULES: u64 = 200;
const STEPS: u32 = 60;

/// One schedule, which goes on over the daemons.
pub(super) struct SimulationRun {
    random: RefCell<Random>,
    model: RefCell<Model>,
    steps: Cell<u32>,
    /// The time until which the disk is full.
    full_until: Cell<Option<Duration>>,
    is_verbose: bool,
}

/// The guards that the clients of one daemon have.
#[derive(Default)]
pub(super) struct Grip {
    holds: Vec<HoldGuard>,
    evaluations: Vec<EvaluationGuard>,
}

impl SimulationRun {
    fn below(&self, bound: u64) -> u64 {
        self.random.borrow_mut().below(bound)
    }

    fn percent(&self, percent: u64) -> bool {
        self.random.borrow_mut().percent(percent)
    }

    fn tell(&self, rig: &Rig, what: impl FnOnce() -> String) {
        let text = format!("{:>9.3} {}", rig.time.now().as_secs_f64(), what());
        if self.is_verbose {
            println!("{text}");
        }
        self.model.borrow_mut().trace(&text);
    }

    async fn observe(&self, rig: &Rig, handle: &EpisodeHandle) {
        let after = self.model.borrow().seen;
        let events = rig.recorded.episode_events_after(after, 100_000).await.expect("events");
        for event in &events {
            self.tell(rig, || format!("event {} {} {:?}", event.episode, event.status.name(), event.ending));
        }
        let is_full = rig.chaos.is_full();
        self.model.borrow_mut().observe(rig, handle, &events, is_full);
    }

    fn is_violated(&self, rig: &Rig) -> bool {
        self.violation(rig).is_some()
    }

    fn violation(&self, rig: &Rig) -> Option<String> {
        rig.fake.state().violation.clone().or_else(|| self.model.borrow().violation.clone())
    }

    /// Lets time pass, and checks the promises meanwhile.
    async fn advance(&self, rig: &Rig, handle: &EpisodeHandle, time: Duration) {
        let until = rig.time.now() + time;
        loop {
            if self.full_until.get().is_some_and(|end| end <= rig.time.now()) {
                self.full_until.set(None);
                rig.chaos.set_full(false);
                self.model.borrow_mut().disturbed(rig.time.now());
                self.tell(rig, || "the disk has room".to_owned());
            }
            self.observe(rig, handle).await;
            let left = until.saturating_sub(rig.time.now());
            if left.is_zero() || self.is_violated(rig) {
                return;
            }
            tokio::time::sleep(left.min(Duration::from_millis(500))).await;
        }
    }

    async fn live(&self, rig: &Rig) {
        let handle = rig.start().await;
        self.model.borrow_mut().restarted(rig.time.now());
        self.tell(rig, || "a daemon has started".to_owned());
        self.offer(&handle).await;
        let mut grip = Grip::default();
        self.observe(rig, &handle).await;
        self.hold_again(rig, &handle, &mut grip).await;
        while self.steps.get() > 0 && !self.is_violated(rig) {
            self.steps.set(self.steps.get() - 1);
            self.act(rig, &handle, &mut grip).await;
            let time = if self.percent(4) { 5000 + self.below(20_000) } else { self.below(600) };
            self.advance(rig, &handle, Duration::from_millis(time)).await;
        }
        drop(grip);
        self.model.borrow_mut().all_closed(rig.time.now());
        if !self.is_violated(rig) {
            self.finish(rig, &handle).await;
        }
    }

    async fn offer(&self, handle: &EpisodeHandle) {
        handle.offer_site(site("wiki"), SiteCapacity::Shared).await.expect("running");
        for (name, max) in SITES {
            let capacity = SiteCapacity::Slots { max, by_name_only: 0 };
            handle.offer_site(site(name), capacity).await.expect("running");
        }
        for slot in all_slots() {
            // A slot exists if an episode has it since before a restart.
            let _ = handle.add_slot(slot).await;
        }
    }

    /// Lets all faults and all episodes end. Then every slot is free, and the next client gets all sites.
    async fn finish(&self, rig: &Rig, handle: &EpisodeHandle) {
        self.tell(rig, || "calm".to_owned());
        rig.fake.script(|_, _| Course::done(100));
        rig.chaos.crash_in(u64::MAX - 1);
        self.full_until.set(None);
        rig.chaos.set_full(false);
        self.model.borrow_mut().disturbed(rig.time.now());
        self.advance(rig, handle, seconds(3)).await;
        let live = EpisodeFilter { is_live: true, ..EpisodeFilter::default() };
        for view in handle.list(&live) {
            // It may have expired.
            let _ = handle.release(&view.id).await;
        }
        for _ in 0..90 {
            self.advance(rig, handle, seconds(1)).await;
            if rig.fake.state().slots.values().all(|slot| slot.content == Content::Baseline) {
                break;
            }
        }
        let all = ["shop", "forge", "forum", "wiki"];
        let Ok(receipt) = handle.ask(request(&all)).await else {
            return self.model.borrow_mut().violate("the last client was refused".to_owned());
        };
        self.model.borrow_mut().asked(handle, request(&all), receipt.clone());
        self.advance(rig, handle, seconds(2)).await;
        let view = handle.get(&receipt.id).expect("known");
        if view.state != arenad_model::episode::EpisodeState::Active {
            let slots = format!("{:?}", rig.fake.state().slots);
            return self.model.borrow_mut().violate(format!("the last client waits: {:?}, {slots}", view.state));
        }
        handle.release(&receipt.id).await.expect("active");
        self.advance(rig, handle, seconds(3)).await;
        let live = rig.recorded.live_episodes().await.expect("rows").len();
        let waiting = handle.queue().await.expect("running").len();
        if (live, waiting) != (0, 0) {
            self.model.borrow_mut().violate(format!("{live} rows and {waiting} requests are left"));
        }
    }
}

/// Returns a script of delays and faults.
fn script(seed: u64) -> impl FnMut(Call, &arenad_model::instance::InstanceId) -> Course + Send {
    let random = Arc::new(Mutex::new(Random::new(mix(seed))));
    move |call, _| {
        let mut random = random.lock().expect("no panic");
        let fate = match random.below(100) {
            0..4 => Fate::Fail,
            4..7 => Fate::Panic,
            7..10 if call != Call::Switch => Fate::Never,
            _ => Fate::Done,
        };
        let is_slow = call == Call::Prepare && random.percent(4);
        let longest = if random.percent(30) { 1 } else { 900 };
        let delay = if is_slow { random.within(4000..8000) } else { random.below(longest) };
        // Preparations, unlike the work of recycling, may find that nothing has to be changed.
        Course { delay: Duration::from_millis(delay), changes: random.percent(70), fate }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Outcome {
    trace: u64,
    crashes: u64,
    grants: u64,
    ends: u64,
}

fn run(seed: u64, is_verbose: bool) -> Result<Outcome, String> {
    let rig = Rig::new(seed);
    rig.fake.script(script(seed));
    let run = SimulationRun {
        random: RefCell::new(Random::new(seed)),
        model: RefCell::default(),
        steps: Cell::new(STEPS),
        full_until: Cell::new(None),
        is_verbose,
    };
    let mut crashes = 0;
    while rig.live(async |rig| run.live(rig).await).is_none() {
        crashes += 1;
        run.tell(&rig, || "the daemon has crashed".to_owned());
        run.full_until.set(None);
        rig.chaos.set_full(false);
        if run.is_violated(&rig) || crashes > 1000 {
            break;
        }
        // The start crashes as well now and then.
        if run.percent(15) {
            rig.chaos.crash_in(run.below(20));
        }
    }
    match run.violation(&rig) {
        Some(sentence) => Err(sentence),
        None => {
            let model = run.model.borrow();
            Ok(Outcome { trace: model.trace, crashes, grants: model.grants, ends: model.ends })
        }
    }
}

/// Keeps the messages of scripted panics out of the output.
fn silence_scripted_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&"scripted") {
            print(panic);
        }
    }));
}

#[test]
fn random_schedules_keep_the_promises() {
    silence_scripted_panics();
    if let Some(seed) = number_of("ARENAD_EPISODES_SEED") {
        println!("{:?}", run(seed, true));
        return;
    }
    let base = number_of("ARENAD_EPISODES_BASE").unwrap_or(1);
    let schedules = number_of("ARENAD_EPISODES_SCHEDULES").unwrap_or(SCHEDULES);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(0);
    let (sum, failed) = (Mutex::new(Outcome::default()), Mutex::new(None));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (next, sum, failed) = (&next, &sum, &failed);
            scope.spawn(move || {
                stay_on(thread);
                while failed.lock().expect("no panic").is_none() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= schedules {
                        return;
                    }
                    let seed = mix(mix(base).wrapping_add(number));
                    match std::panic::catch_unwind(|| run(seed, false)) {
                        Ok(Ok(outcome)) => {
                            let mut sum = sum.lock().expect("no panic");
                            sum.crashes += outcome.crashes;
                            sum.grants += outcome.grants;
                            sum.ends += outcome.ends;
                            sum.trace ^= outcome.trace;
                        }
                        Ok(Err(sentence)) => {
                            failed.lock().expect("no panic").get_or_insert((seed, sentence));
                        }
                        Err(_) => {
                            failed.lock().expect("no panic").get_or_insert((seed, "a panic".to_owned()));
                        }
                    }
                }
            });
        }
    });
    println!("base seed {base:#x}, {schedules} schedules: {:?}", sum.into_inner().expect("no panic"));
    if let Some((seed, sentence)) = failed.into_inner().expect("no panic") {
        panic!(
            "seed {seed:#x}: {sentence}\n  ARENAD_EPISODES_SEED={seed:#x} cargo test -p arenad-episodes \
             random_schedules -- --nocapture"
        );
    }
}

#[test]
fn a_seed_determines_its_schedule() {
    silence_scripted_panics();
    for seed in 1..4 {
        let traces = [run(seed, false), run(seed, false)].map(|outcome| outcome.expect("no violation").trace);
        assert_eq!(traces[0], traces[1], "seed {seed}");
    }
}
