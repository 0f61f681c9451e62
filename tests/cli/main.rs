//! The command line where something is in the way: names that mean several things, an engine that this user may not use, a
//! daemon that cannot be asked, a step that fails.

#![allow(clippy::unwrap_used)]

mod configure;
mod denied;
mod documents;
mod environments;
mod reach;
mod second;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;
mod user;
