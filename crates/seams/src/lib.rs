//! The seams at which simulations and tests stand in for the world: the time of day ([`wall_clock`]), I/O that is done in place
//! ([`inline`]), calls that outlive their callers ([`outstanding`]) and points at which something breaks ([`fault`]).
//!
//! Everything above may use them; they know nothing of sites. Further seams are traits of their own crates: `Engine`, `Dial`, `Machine`.

pub mod fault;
pub mod inline;
pub mod ordered_watch;
pub mod outstanding;
pub mod wall_clock;
