//! Images and data from archives: loading that is interrupted, truncated, damaged or out of space; fetching from mirrors
//! that do all that mirrors do; and never a word of `present` about what is not.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

#[expect(dead_code, unused_imports, reason = "other targets look into more than images")]
#[path = "../support/mod.rs"]
mod support;

mod archive;
mod big;
mod data;
mod full_disk;
mod loading;
mod mirror;
mod project;
mod pulling;
mod registry;
mod trust;
mod up;
