//! `arenad doctor` on hosts with one real fault each: it finds the fault and names the remedy, and a remedy that is a
//! setting is effective.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod capacity;
mod engines;
mod examined;
mod host;
mod network;
mod storage;
