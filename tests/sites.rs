//! The real sites of the mini environment: their tasks and locators, the digests of their stores, and thousands of
//! resets.

#[path = "support/alone.rs"]
mod alone;
#[path = "support/arena.rs"]
#[expect(dead_code, reason = "the benchmarks use the rest")]
mod arena;
#[path = "support/browser.rs"]
#[expect(dead_code, reason = "the evaluations use the rest")]
mod browser;
mod digest;
#[path = "support/family.rs"]
mod family;
#[path = "support/hostile/mod.rs"]
#[expect(dead_code, unused_imports, reason = "it has servers of other protocols too")]
mod hostile_servers;
mod locators;
mod mini;
mod resets;
mod tasks;
