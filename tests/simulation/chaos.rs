//! What goes wrong: asked at every I/O of the daemon, by the engine's script, the store, the state root and the dialer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arenad_fake_engine::{Call, Failure, Fate as CallFate, Operation};
use arenad_seams::inline::{Fate, Interference, Part, When};
use tokio::sync::Notify;

use crate::random::mix;
use crate::schedule::Mishap;

/// A call that never comes to anything is due when the run is long over.
const NEVER: Duration = Duration::from_secs(400 * 86_400);

/// A mishap that waits for its call.
struct Armed {
    operation: Option<Operation>,
    after: u64,
    mishap: Mishap,
}

#[derive(Default)]
struct State {
    seed: u64,
    /// I/O points that are still passed before the daemon ends.
    crash_in: Option<u64>,
    is_dead: bool,
    /// The harness looks for itself.
    is_ours: bool,
    armed: Vec<Armed>,
    full: u8,
    /// Counts what has gone wrong.
    disturbances: u64,
    /// When the last effect of a call is due whose caller may have gone.
    late_until: Duration,
    points: u64,
    trace: u64,
}

/// The one place that decides about mishaps.
#[derive(Clone, Default)]
pub struct Chaos {
    state: Arc<Mutex<State>>,
    dead: Arc<Notify>,
}

/// Bits of what is full.
pub const STORE_FULL: u8 = 1;
pub const STORAGE_FULL: u8 = 2;
pub const ENGINE_FULL: u8 = 4;

impl Chaos {
    pub fn new(seed: u64) -> Self {
        let chaos = Self::default();
        chaos.state().seed = seed;
        chaos
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the daemon end at the n-th I/O from now.
    pub fn crash_in(&self, points: u64) {
        let mut state = self.state();
        state.crash_in = Some(points);
        state.disturbances += 1;
    }

    /// Ends the daemon now.
    pub fn crash_now(&self) {
        self.state().is_dead = true;
        self.dead.notify_one();
    }

    /// Resolves when the daemon has ended.
    pub async fn crashed(&self) {
        while !self.state().is_dead {
            self.dead.notified().await;
        }
    }

    /// Another daemon begins.
    pub fn revive(&self) {
        let mut state = self.state();
        state.is_dead = false;
        state.crash_in = None;
        state.disturbances += 1;
    }

    pub fn arm(&self, operation: Option<Operation>, after: u64, mishap: Mishap) {
        self.state().armed.push(Armed { operation, after, mishap });
    }

    pub fn set_full(&self, full: u8) {
        let mut state = self.state();
        state.full = full;
        state.disturbances += 1;
    }

    pub fn disturb(&self) {
        self.state().disturbances += 1;
    }

    /// How much has gone wrong so far.
    pub fn disturbances(&self) -> u64 {
        self.state().disturbances
    }

    /// Until when calls may take effect that nobody waits for.
    pub fn late_until(&self) -> Duration {
        self.state().late_until
    }

    /// Calls everything off.
    pub fn calm(&self) {
        let mut state = self.state();
        state.armed.clear();
        state.full = 0;
        state.crash_in = None;
    }

    /// While this is set, nothing goes wrong: the harness looks.
    pub fn look(&self, is_ours: bool) {
        self.state().is_ours = is_ours;
    }

    /// Notes something that must be the same in every run of a seed, with its time. What happens at one time happens in any
    /// order: tokio's watch channels wake those who wait for them by chance.
    pub fn trace(&self, at: Duration, what: &str) {
        let bytes = what.bytes().fold(at.as_micros() as u64, |hash, byte| mix(hash ^ u64::from(byte)).wrapping_add(1));
        let mut state = self.state();
        state.trace = state.trace.wrapping_add(bytes);
    }

    pub fn trace_hash(&self) -> (u64, u64) {
        let state = self.state();
        (state.trace, state.points)
    }

    /// Comes to a point of I/O; true: it is never left.
    fn passes(&self, state: &mut State) -> bool {
        if state.is_dead {
            return false;
        }
        state.points += 1;
        if let Some(left) = &mut state.crash_in {
            *left = left.saturating_sub(1);
            if *left == 0 {
                state.crash_in = None;
                state.is_dead = true;
                self.dead.notify_one();
                return false;
            }
        }
        true
    }

    /// For I/O that is not the store's or the state root's.
    pub async fn point(&self) {
        let passes = {
            let mut state = self.state();
            state.is_ours || self.passes(&mut state)
        };
        if !passes {
            std::future::pending::<()>().await;
        }
    }

    /// What the engine's script says of a call.
    pub fn fate(&self, call: &Call<'_>) -> CallFate {
        let mut state = self.state();
        if state.is_ours {
            return CallFate::proceed();
        }
        // It never reaches the engine, which therefore holds nothing for it.
        let stuck = CallFate::fail(Failure::Unreachable).after(NEVER);
        if state.is_dead || (call.operation != Operation::Events && !self.passes(&mut state)) {
            return stuck;
        }
        // The point behind the effect: it takes place, and nobody hears of it.
        if call.operation != Operation::Events && !self.passes(&mut state) {
            return CallFate::proceed().replying_after(NEVER);
        }
        if call.operation == Operation::Events {
            return CallFate::proceed();
        }
        let matching = |armed: &Armed| armed.operation.is_none_or(|operation| operation == call.operation);
        let mut hit = None;
        for (index, armed) in state.armed.iter_mut().enumerate() {
            if matching(armed) {
                if armed.after == 0 {
                    hit = Some(index);
                    break;
                }
                armed.after -= 1;
            }
        }
        let number = mix(state.seed ^ call.number);
        let usual = (Duration::from_millis(number % 7), Duration::from_millis((number >> 8) % 5));
        let fate = match hit.map(|index| state.armed.remove(index).mishap) {
            None => CallFate::delay(usual.0, usual.1),
            Some(mishap) => {
                state.disturbances += 1;
                match mishap {
                    Mishap::Fail => CallFate::fail(Failure::Transient),
                    Mishap::Refuse => CallFate::fail(Failure::Refused),
                    Mishap::Lose => CallFate::lose_reply(),
                    Mishap::Delay(millis) => CallFate::delay(Duration::from_millis(millis), usual.1),
                    Mishap::LateReply(millis) => CallFate::delay(usual.0, Duration::from_millis(millis)),
                    Mishap::Never => CallFate::never_reply(),
                    Mishap::Die(millis) => CallFate::die_later(Duration::from_millis(millis), 1),
                    Mishap::Oom(millis) => CallFate::oom(Duration::from_millis(millis)),
                }
            }
        };
        let longest = match hit {
            Some(_) => Duration::from_secs(30),
            None => Duration::from_millis(20),
        };
        state.late_until = state.late_until.max(call.at + longest);
        fate
    }
}

impl Interference for Chaos {
    fn at(&self, part: Part, doing: &str, when: When) -> Fate {
        let mut state = self.state();
        if state.is_ours {
            return Fate::Proceed;
        }
        if !self.passes(&mut state) {
            return Fate::Halt;
        }
        let bit = match part {
            Part::Store => STORE_FULL,
            // What needs room.
            Part::Storage if matches!(doing, "receive" | "clone" | "fresh" | "exchange") => STORAGE_FULL,
            Part::Storage => 0,
        };
        if when == When::Before && state.full & bit != 0 { Fate::Fail } else { Fate::Proceed }
    }
}
