//! Tests of the episode keeper on a scripted fake of the slots, a real database in memory and virtual time.

#![expect(unreachable_pub, reason = "nothing of a test program is reachable from outside")]

mod chaos;
mod failures;
mod fake;
mod files;
mod lives;
#[path = "../../../../tests/simulation/processor.rs"]
mod processor;
#[path = "../../../../tests/simulation/random.rs"]
mod random;
mod restarts;
mod rig;
#[path = "../../../../tests/simulation/setting.rs"]
mod setting;
mod simulation;
