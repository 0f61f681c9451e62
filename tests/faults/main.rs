//! arenad's program on toy sites and a real engine: the whole way up and down, crashes at every step, an engine that
//! fails, baselines that cannot be made, and what containers cannot do.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod baselines;
mod containers;
mod crash;
mod engines;
mod isolation;
mod lifecycle;
mod mistakes;
mod services;
