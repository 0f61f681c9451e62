//! Images and data from archives: loading that is interrupted, truncated, damaged or out of space, and fetching from
//! faulty mirrors. `present` is never reported for an image or file that is not there.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

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
