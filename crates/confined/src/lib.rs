//! Confined processes for untrusted data: this program, started again with a hidden command and few privileges.
//!
//! A worker receives one open connection and answers questions about the server at its other end, or a folder with
//! copies of a site's files ([`Folder`]). Its user owns nothing. It cannot open files elsewhere, other connections or
//! processes, and its memory is limited. It ends with its parent, or when its answer is no longer awaited. A failure
//! that a hostile server or file causes in a worker, including a crash, becomes an error with a reason in the parent.
//!
//! ```text
//!   parent: question ──► socket pair ──► child: the connection ◄──► server
//!              answer ◄──────┘ (bounded)       (a local socket, for clients that take no connection)
//! ```
//! The crate depends on no other crate of arenad. Start reading at [`Worker::ask`] for the parent and [`serve`] for the
//! child.

mod child;
mod folder;
mod spare;
mod worker;

pub use child::{Locked, WorkerConnection, serve, serve_within};
pub use folder::Folder;
pub use worker::{Worker, WorkerError};

use std::path::PathBuf;
use std::sync::OnceLock;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program that workers run, for programs other than arenad, such as tests. Later calls have no effect.
pub fn set_program(path: PathBuf) {
    // A second call names the same program.
    let _ = PROGRAM.set(path);
}

/// Returns the program that workers run. The default is this program, even if its file has been replaced since its
/// start.
pub(crate) fn program() -> PathBuf {
    PROGRAM.get().cloned().unwrap_or_else(|| "/proc/self/exe".into())
}
