//! Fault injection. The daemon's I/O asks for its fate at every point: through the engine's script, the store, the
//! state root and the dialer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arenad_fake_engine::{CallFailure, CallFate, EngineCall, EngineMethod};
use arenad_seams::inline::{Interference, IoComponent, IoFate, When};
use tokio::sync::Notify;

use crate::random::mix;
use crate::schedule::Mishap;

/// The delay of a call that never completes; it exceeds the length of any run.
const NEVER: Duration = Duration::from_secs(400 * 86_400);
/// The time for which the engine may send no progress of an image before that is an error.
const IMAGE_SILENCE: Duration = Duration::from_secs(3600);

/// A fault that waits for a matching call.
struct Armed {
    operation: Option<EngineMethod>,
    after: u64,
    mishap: Mishap,
}

#[derive(Default)]
struct ChaosState {
    seed: u64,
    /// The number of I/O points that the daemon still passes before it crashes.
    crash_in: Option<u64>,
    is_dead: bool,
    /// Whether the harness itself is doing the I/O.
    is_ours: bool,
    armed: Vec<Armed>,
    full: u8,
    /// The number of faults so far.
    disturbances: u64,
    /// The number of faults that end containers.
    deaths: u64,
    /// The time until which the last fault in a call may have effects.
    fault_until: Duration,
    /// The time at which the last delayed effect is due of a call whose caller may be gone.
    late_until: Duration,
    points: u64,
    trace: u64,
}

/// The only source of decisions about faults.
#[derive(Clone, Default)]
pub struct Chaos {
    state: Arc<Mutex<ChaosState>>,
    dead: Arc<Notify>,
}

/// Bit flags of the full disks.
pub const STORE_FULL: u8 = 1;
pub const STORAGE_FULL: u8 = 2;
pub const ENGINE_FULL: u8 = 4;

impl Chaos {
    pub fn new(seed: u64) -> Self {
        let chaos = Self::default();
        chaos.state().seed = seed;
        chaos
    }

    fn state(&self) -> MutexGuard<'_, ChaosState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Crashes the daemon at the n-th I/O point from now.
    pub fn crash_in(&self, points: u64) {
        let mut state = self.state();
        state.crash_in = Some(points);
        state.disturbances += 1;
    }

    /// Crashes the daemon now.
    pub fn crash_now(&self) {
        self.state().is_dead = true;
        self.dead.notify_one();
    }

    /// Resolves when the daemon has crashed.
    pub async fn crashed(&self) {
        while !self.state().is_dead {
            self.dead.notified().await;
        }
    }

    /// Allows I/O again, for the next daemon.
    pub fn revive(&self) {
        let mut state = self.state();
        state.is_dead = false;
        state.crash_in = None;
        state.disturbances += 1;
    }

    pub fn arm(&self, operation: Option<EngineMethod>, after: u64, mishap: Mishap) {
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

    /// Records a fault that ends containers.
    pub fn note_death(&self) {
        self.state().deaths += 1;
    }

    /// Returns the number of faults so far that end containers.
    pub fn deaths(&self) -> u64 {
        self.state().deaths
    }

    /// Returns the time until which the last fault in a call to the engine may have effects.
    pub fn fault_until(&self) -> Duration {
        self.state().fault_until
    }

    /// Returns the number of faults so far.
    pub fn disturbances(&self) -> u64 {
        self.state().disturbances
    }

    /// Returns the time until which abandoned calls may still take effect.
    pub fn late_until(&self) -> Duration {
        self.state().late_until
    }

    /// Cancels all pending faults.
    pub fn calm(&self) {
        let mut state = self.state();
        state.armed.clear();
        state.full = 0;
        state.crash_in = None;
    }

    /// Disables faults while the harness inspects the system.
    pub fn look(&self, is_ours: bool) {
        self.state().is_ours = is_ours;
    }

    /// Adds an event and its time to the trace, which must be equal in all runs of a seed. The order of events at the
    /// same time does not count, because tokio's watch channels wake their receivers in random order.
    pub fn trace(&self, at: Duration, what: &str) {
        let bytes = what.bytes().fold(at.as_micros() as u64, |hash, byte| mix(hash ^ u64::from(byte)).wrapping_add(1));
        let mut state = self.state();
        state.trace = state.trace.wrapping_add(bytes);
    }

    pub fn trace_hash(&self) -> (u64, u64) {
        let state = self.state();
        (state.trace, state.points)
    }

    /// Passes an I/O point. Returns false if the daemon never leaves it.
    fn passes(&self, state: &mut ChaosState) -> bool {
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

    /// Passes an I/O point that belongs neither to the store nor to the state root.
    pub async fn point(&self) {
        let passes = {
            let mut state = self.state();
            state.is_ours || self.passes(&mut state)
        };
        if !passes {
            std::future::pending::<()>().await;
        }
    }

    /// Decides the fate of a call to the engine.
    pub fn fate(&self, call: &EngineCall<'_>) -> CallFate {
        let mut state = self.state();
        if state.is_ours {
            return CallFate::proceed();
        }
        // The call never reaches the engine, so the engine keeps no state for it.
        let stuck = CallFate::fail(CallFailure::Unreachable).after(NEVER);
        if state.is_dead || (call.operation != EngineMethod::Events && !self.passes(&mut state)) {
            return stuck;
        }
        // The second point follows the effect: the call takes effect, and its reply is lost.
        if call.operation != EngineMethod::Events && !self.passes(&mut state) {
            return CallFate::proceed().replying_after(NEVER);
        }
        if call.operation == EngineMethod::Events {
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
        let mishap = hit.map(|index| state.armed.remove(index).mishap);
        let fate = match mishap {
            None => CallFate::delay(usual.0, usual.1),
            Some(mishap) => {
                state.disturbances += 1;
                state.deaths += u64::from(matches!(mishap, Mishap::Die(_) | Mishap::Oom(_)));
                match mishap {
                    Mishap::Fail => CallFate::fail(CallFailure::Transient),
                    Mishap::Refuse => CallFate::fail(CallFailure::Refused),
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
        if let Some(mishap) = mishap {
            let is_image = matches!(call.operation, EngineMethod::Build | EngineMethod::Pull | EngineMethod::Load);
            let lasts = if is_image && matches!(mishap, Mishap::Never) { IMAGE_SILENCE } else { longest };
            state.fault_until = state.fault_until.max(call.at + lasts);
        }
        fate
    }
}

impl Interference for Chaos {
    fn at(&self, part: IoComponent, doing: &str, when: When) -> IoFate {
        let mut state = self.state();
        if state.is_ours {
            return IoFate::Proceed;
        }
        if !self.passes(&mut state) {
            return IoFate::Halt;
        }
        let bit = match part {
            IoComponent::Store => STORE_FULL,
            // The operations that need disk space.
            IoComponent::Storage if matches!(doing, "receive" | "clone" | "fresh" | "exchange") => STORAGE_FULL,
            IoComponent::Storage => 0,
        };
        if when == When::Before && state.full & bit != 0 { IoFate::Fail } else { IoFate::Proceed }
    }
}
