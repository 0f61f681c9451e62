//! Processes of our own for what strangers say: this program once more, started with a hidden command, which can do little.
//!
//! A worker is handed one connection, already made, and answers questions about what is at its other end; or a folder with copies
//! of a site's files ([`Folder`]). It is a user that owns nothing, may open no file elsewhere, no other connection and no process,
//! and has a bounded memory; it ends with its parent, or when nobody waits for its answer any more. What a hostile server or file
//! makes of it, a crash included, is an error with a reason here.
//!
//! ```text
//!   parent: question ──► socket pair ──► child: the connection ◄──► server
//!              answer ◄──────┘ (bounded)       (a local socket, for clients that take no connection)
//! ```

mod child;
mod folder;
mod spare;
mod worker;

pub use child::{Inside, Locked, serve, serve_within};
pub use folder::Folder;
pub use worker::{Worker, WorkerError};

use std::path::PathBuf;
use std::sync::OnceLock;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that workers are, for programs that are not arenad themselves, such as tests. Only the first call counts.
pub fn set_program(path: PathBuf) {
    // A second one names the same program.
    let _ = PROGRAM.set(path);
}

/// The program that workers are: this one, also where its file has been replaced since it was started, unless another was named.
pub(crate) fn program() -> PathBuf {
    PROGRAM.get().cloned().unwrap_or_else(|| "/proc/self/exe".into())
}
