//! arenad runs the sites that web agents are tested on, and resets them to proven snapshots between episodes.
//!
//! Dependencies point downward only: `domain` ← `definition`, `engine` ← `reset` ← `daemon`; `cli` sees `domain`,
//! `definition` and `wire`, and reaches the daemon by HTTP alone; only `arenad images`, `doctor`, `storage` and the proof of an imported file need none and work by themselves. ARCHITECTURE.md says why.

pub mod accounts;
mod beneath;
pub mod cli;
pub mod confined;
pub mod daemon;
pub mod definition;
pub mod dial;
pub mod digest;
pub mod doctor;
pub mod domain;
pub mod engine;
pub mod evaluation;
pub mod evaluators;
pub mod export;
pub mod fault;
mod folders;
mod har;
pub mod images;
pub mod inline;
mod jq;
mod json_path;
pub mod judge;
pub mod launch;
pub mod locators;
mod outbound;
mod outstanding;
pub mod probes;
pub mod reset;
pub mod site_client;
pub mod storage;
pub mod supervised;
pub mod telemetry;
pub mod wall_clock;
pub mod wire;
