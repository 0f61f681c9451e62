//! arenad's program on toy sites and a real engine: the whole way up and down, crashes at every step, a failing engine,
//! baselines that cannot be built, and the restrictions of containers.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod baselines;
mod checks;
mod containers;
mod crash;
mod engines;
mod health;
mod isolation;
mod lifecycle;
mod mistakes;
mod panics;
mod past;
mod points;
mod services;
mod shared;
mod standbys;
mod trust;
mod turns;
mod uncovered;
mod written;
