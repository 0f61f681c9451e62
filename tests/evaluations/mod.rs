//! `arenad eval` and its inputs: an episode on a real site, folders of results, evidence, rendered task files.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

#[expect(dead_code, reason = "the tests of the sites use the rest")]
#[path = "../support/browser.rs"]
pub mod browser;

mod batches;
mod episodes;
mod live;
mod recorded;
mod stored;
mod turking;
