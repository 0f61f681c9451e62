//! The official environments on stand-in images: what is done to each service, in which order; that a site is ready when
//! it is what it should be and not before; what harnesses are told.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

#[expect(dead_code, unused_imports, reason = "shared with tests that need more of it")]
#[path = "../support/mod.rs"]
mod support;

mod ailing;
mod arena;
mod bringing_up;
mod golden;
mod in_place;
mod telling;
