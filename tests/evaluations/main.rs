//! `arenad eval` and its inputs: an episode on a real site, folders of results, evidence, rendered task files.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

#[expect(dead_code, unused_imports, reason = "the tests of faults use the rest")]
#[path = "../support/mod.rs"]
mod support;

#[path = "../support/browser.rs"]
mod browser;

mod batches;
mod episodes;
mod live;
mod recorded;
