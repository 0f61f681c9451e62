//! `arenad doctor` on hosts with one real fault each: it finds the fault and names the remedy, and a remedy that is a
//! setting is effective.

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
