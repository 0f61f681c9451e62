//! Finds the problems of this host that affect sites, and states how to fix them.
//!
//! [`gather`] examines the engine, the file systems, the kernel and the ports. Its results are [`facts`], which are
//! plain values. [`judge`] converts facts into [`Finding`]s without any other input. `arenad doctor` prints all of
//! them; `arenad up` uses [`judge::capacity`] alone, before it starts anything.
//!
//! The crate depends on `engine`, `storage` and `locators`, whose requirements it examines. Start reading at
//! `judge/mod.rs`.

pub mod facts;
mod finding;
pub mod gather;
pub mod judge;
pub mod ports;

pub use finding::{Area, Finding, Level};

use arenad_engine::EngineError;

/// Returns the reason why there is no answer at the engine's address, with its cure; `None` for an error of another
/// kind.
pub fn away(endpoint: &str, error: &EngineError) -> Option<Finding> {
    let EngineError::Unreachable { .. } = error else { return None };
    Some(judge::away(endpoint, &gather::absence(endpoint, error)))
}
