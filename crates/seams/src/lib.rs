//! Seams at which simulations and tests replace the outside world: the time of day ([`wall_clock`]), I/O in place
//! ([`inline`]), calls that outlive their callers ([`outstanding`]), and fault points ([`fault`]).
//!
//! Every crate may use this one, which does not depend on sites. Further seams are traits in other crates: `Engine`,
//! `Dial`, `Machine`.
//!
//! The crate depends on no other crate of arenad. Start reading at [`fault`].

pub mod fault;
pub mod inline;
pub mod ordered_watch;
pub mod outstanding;
pub mod wall_clock;
