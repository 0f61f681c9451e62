//! Tests of the episode keeper on a scripted fake of the slots, a real database in memory and virtual time.

#![expect(unreachable_pub, reason = "nothing of a test program is reachable from outside")]

mod chaos;
mod failures;
mod fake;
mod files;
mod lives;
mod random;
mod restarts;
mod rig;
mod simulation;
