//! The command line in adverse conditions: ambiguous names, an engine that this user may not access, a daemon that does
//! not answer, a step that fails. Also the output: help and tables are compared with snapshots.

#![allow(clippy::unwrap_used)]

mod background;
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
pub mod second;
mod snapshot;
mod user;
