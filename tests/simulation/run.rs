//! Runs one schedule, from an empty installation to its end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};

use crate::episodes::{SLOTS, has_episodes};
use crate::model::Model;
use crate::schedule::{SITES, ScheduleStep};
use crate::world::{DaemonLife, SimulatedWorld};

/// The outcome of a run.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// The law that was broken, and the step at which it was broken.
    pub violation: Option<(usize, String)>,
    /// Equal in all runs of the same schedule.
    pub trace: (u64, u64),
}

/// The end of a temporary fault.
#[derive(Debug, Clone)]
pub enum Undo {
    EngineUp,
    Unpause(String),
    Events,
    Room(u8),
    OwnEngine,
}

/// The state of a run; it outlives the daemons.
pub struct SimulationRun {
    pub world: SimulatedWorld,
    pub model: RefCell<Model>,
    pub agenda: RefCell<BTreeMap<(Duration, u64), Undo>>,
    pub broken: RefCell<[bool; SITES]>,
    pub full: Cell<u8>,
    /// Whether the second engine is in the place of the first.
    pub is_elsewhere: Cell<bool>,
    /// The engine of the next daemon, if it changes: whether it is the second one.
    pub engine_change: Cell<Option<bool>>,
    /// The time since which no fault has been present that could leave anything behind.
    pub calm_since: Cell<Duration>,
    /// The time at which the last successful `down` was reported.
    pub down_since: Cell<Duration>,
    pub counter: Cell<u64>,
    /// The number of resets that were reported done.
    pub resets: Cell<u64>,
    /// The reason why the last reset failed.
    pub last_refusal: RefCell<String>,
    /// The time since which each site has been ready without serving.
    pub lying_since: RefCell<[Option<Duration>; SITES]>,
    /// The time since which each slot has not been as its episode, or its lack of one, requires, and in which way.
    pub wrong_since: RefCell<[Option<(Duration, String)>; SLOTS]>,
    /// The number of daemons that have ended.
    pub crashes: Cell<u64>,
    /// Whether the schedule has episodes.
    pub has_episodes: bool,
    pub verbose: bool,
    /// The run's folder, as it appears in messages.
    pub shown_folder: String,
    /// The trace as text, if requested.
    pub dump: RefCell<Option<String>>,
    pub step: Cell<usize>,
}

/// The reason why one daemon's part of a run is over.
enum DaemonEnd {
    /// No step is left.
    Finished,
    /// The daemon could not start.
    Stillborn,
}

impl SimulationRun {
    pub fn now(&self) -> Duration {
        self.world.clock.now()
    }

    pub fn number(&self) -> u64 {
        self.counter.set(self.counter.get() + 1);
        self.counter.get()
    }

    /// Adds an event to the trace and to the verbose output.
    pub fn tell(&self, what: impl FnOnce() -> String) {
        // Some messages contain the folder, which differs between runs.
        let text = what().replace(&self.shown_folder, "~");
        if let Some(trace) = &mut *self.dump.borrow_mut() {
            trace.push_str(&format!("{:.6} {text}\n", self.now().as_secs_f64()));
        }
        if self.verbose {
            eprintln!("{:>12.3} {text}", self.now().as_secs_f64());
        }
        self.world.chaos.trace(self.now(), &text);
    }

    pub fn is_violated(&self) -> bool {
        self.model.borrow().violation.is_some()
    }

    pub fn later(&self, after: u64, undo: Undo) {
        let due = self.now() + Duration::from_millis(after);
        self.agenda.borrow_mut().insert((due, self.number()), undo);
    }

    /// Records that a fault was present until now.
    pub fn is_disturbed(&self) {
        self.world.chaos.disturb();
        self.calm_since.set(self.now());
    }

    /// Ends the faults that are due, or all of them.
    pub fn undo_due(&self, all: bool) {
        loop {
            let next = self.agenda.borrow().first_key_value().map(|(key, undo)| (*key, undo.clone()));
            let Some((key, undo)) = next.filter(|((due, _), _)| all || *due <= self.now()) else { return };
            self.agenda.borrow_mut().remove(&key);
            self.is_disturbed();
            self.tell(|| format!("undo {undo:?}"));
            match undo {
                Undo::EngineUp => self.world.engine.come_up(),
                Undo::Unpause(container) => drop(self.world.engine.unpause(&container)),
                Undo::Events => self.world.engine.drop_events(false),
                Undo::Room(bits) => self.set_full(self.full.get() & !bits),
                Undo::OwnEngine => {
                    self.engine_change.set(Some(false));
                    self.world.chaos.crash_now();
                }
            }
        }
    }

    pub fn set_full(&self, bits: u8) {
        self.full.set(bits);
        self.world.chaos.set_full(bits);
        self.world.engine.fill_disk(bits & crate::chaos::ENGINE_FULL != 0);
    }

    /// Advances the time, and ends the faults that are due in it.
    pub async fn advance(self: &Rc<Self>, life: &DaemonLife, time: Duration) {
        let until = self.now() + time;
        loop {
            self.undo_due(false);
            self.look_for_lies(life);
            if self.has_episodes {
                self.look_at_episodes(life);
            }
            let now = self.now();
            if now >= until || self.is_violated() {
                return;
            }
            let due = self.agenda.borrow().keys().next().map_or(until, |(due, _)| (*due).min(until));
            let most = now + Duration::from_secs(10);
            tokio::time::sleep((due.min(most).saturating_sub(now)).max(Duration::from_millis(1))).await;
        }
    }

    async fn live(self: &Rc<Self>, steps: &[ScheduleStep], cursor: &Cell<usize>) -> DaemonEnd {
        let began = self.now();
        let Some(life) = self.world.start().await else {
            tokio::time::sleep(Duration::from_secs(5)).await;
            self.undo_due(false);
            return DaemonEnd::Stillborn;
        };
        let life = Rc::new(life);
        self.tell(|| "a daemon has started".to_owned());
        if self.has_episodes {
            self.model.borrow_mut().restarts(self.now());
            tokio::task::spawn_local(self.clone().follow_episodes(life.clone(), began));
        }
        self.look_for_rows(&life).await;
        while cursor.get() < steps.len() && !self.is_violated() {
            let index = cursor.get();
            self.step.set(index);
            self.tell(|| format!("step {index}: {}", steps[index]));
            // A crash in a rest step repeats that step.
            let is_rest = steps[index] == ScheduleStep::Rest;
            cursor.set(if is_rest { index } else { index + 1 });
            self.act(&life, &steps[index]).await;
            cursor.set(index + 1);
            self.advance(&life, Duration::from_millis(1)).await;
            self.look(&life).await;
        }
        if !self.is_violated() {
            self.finish(&life).await;
        }
        DaemonEnd::Finished
    }
}

/// Runs a schedule in a folder of its own.
pub fn run(seed: u64, steps: &[ScheduleStep], folder: &Path, template: &Path, verbose: bool) -> Ended {
    let run = Rc::new(SimulationRun {
        world: SimulatedWorld::new(folder, template, seed, has_episodes(seed)),
        model: RefCell::new(Model::new()),
        agenda: RefCell::default(),
        broken: RefCell::default(),
        full: Cell::new(0),
        is_elsewhere: Cell::new(false),
        engine_change: Cell::new(None),
        calm_since: Cell::new(Duration::ZERO),
        down_since: Cell::new(Duration::ZERO),
        counter: Cell::new(0),
        resets: Cell::new(0),
        last_refusal: RefCell::default(),
        lying_since: RefCell::default(),
        wrong_since: RefCell::default(),
        crashes: Cell::new(0),
        has_episodes: has_episodes(seed),
        verbose,
        shown_folder: folder.display().to_string(),
        dump: RefCell::new(std::env::var_os("ARENAD_SIM_DUMP").map(|_| String::new())),
        step: Cell::new(0),
    });
    let cursor = Cell::new(0);
    let mut stillborn = 0;
    loop {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build_local(LocalOptions::default())
            .expect("a runtime");
        let chaos = run.world.chaos.clone();
        let end = runtime.block_on(async {
            run.world.clock.enter();
            tokio::select! {
                biased;
                () = chaos.crashed() => None,
                end = run.live(steps, &cursor) => Some(end),
            }
        });
        runtime.block_on(async { run.world.clock.leave() });
        drop(runtime);
        match end {
            Some(DaemonEnd::Finished) => break,
            Some(DaemonEnd::Stillborn) => stillborn += 1,
            None => {
                run.tell(|| "the daemon has ended".to_owned());
                run.crashes.set(run.crashes.get() + 1);
                run.model.borrow_mut().pending.clear();
            }
        }
        if let Some(is_other) = run.engine_change.take() {
            run.change_engine(is_other);
        }
        if run.is_violated() {
            break;
        }
        if stillborn > 1000 {
            run.model.borrow_mut().violate("no daemon can be started");
            break;
        }
        run.is_disturbed();
        chaos.revive();
    }
    if let (Some(path), Some(trace)) = (std::env::var_os("ARENAD_SIM_DUMP"), run.dump.take()) {
        // For a manual comparison of two traces.
        let _ = std::fs::write(path, trace);
    }
    let violation = run.model.borrow().violation.clone().map(|sentence| (run.step.get(), sentence));
    Ended { violation, trace: run.world.chaos.trace_hash() }
}
