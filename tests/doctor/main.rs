//! `arenad doctor` on hosts with one real fault each: it finds the fault, names the cure, and where the cure is a
//! setting, the setting cures it.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests of faults use the rest")]
mod support;

mod capacity;
mod engines;
mod examined;
mod host;
mod network;
mod storage;
