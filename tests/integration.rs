//! The real program on a real Docker engine, with toy sites.

mod api;
mod attacks;
mod bounds;
mod cli;
mod clients;
mod doctor;
mod episodes;
mod evaluations;
mod faults;
#[path = "support/hostile/mod.rs"]
#[expect(dead_code, unused_imports, reason = "it has servers of other protocols too")]
mod hostile_servers;
mod images;
mod official;
mod snapshots;
mod support;
