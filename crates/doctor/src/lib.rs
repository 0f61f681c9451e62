//! What is in the way of sites on this host, and what to do about it.
//!
//! [`gather`] looks: at the engine, the file systems, the kernel, the ports. What it has seen are [`facts`], plain
//! values. [`judge`] decides, without looking at anything else: facts in, [`Finding`]s out. `arenad doctor` prints all of
//! them; `arenad up` asks [`judge::capacity`] alone, before it starts anything.

pub mod facts;
pub mod finding;
pub mod gather;
pub mod judge;
pub mod ports;

pub use finding::{Area, Finding, Level};

use arenad_engine::EngineError;

/// Why nothing answers at the engine's address, and what to do about it; none for an error of another kind.
pub fn away(endpoint: &str, error: &EngineError) -> Option<Finding> {
    let EngineError::Unreachable { .. } = error else { return None };
    Some(judge::away(endpoint, &gather::absence(endpoint, error)))
}
