//! The official environments on stand-in images: the actions on each service and their order, the conditions for
//! readiness, and the output for harnesses.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod ailing;
mod arena;
mod bringing_up;
mod golden;
mod in_place;
mod telling;
