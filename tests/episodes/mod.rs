//! Episodes on toy sites and a real engine. The daemon is a process of its own, so that it can be killed.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod daemon;
mod leases;
mod restarts;
mod several;
