//! The command line where something is in the way: names that mean several things, an engine that this user may not use, a
//! daemon that cannot be asked, a step that fails. And what it prints: help and tables, as they were written down.

#![allow(clippy::unwrap_used)]

mod configure;
mod denied;
mod documents;
mod entering;
mod environments;
mod help;
mod init;
mod naming;
mod output;
mod reach;
mod second;
mod snapshot;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;
mod user;
