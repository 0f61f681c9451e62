//! The state root holds the declared stores of sites, on a file system that shares blocks between copies if there is
//! one.
//!
//! ```text
//!   engine's archive ──receive──► snapshots/ID/STORE ──clone──► instances/ENV.SITE.N/gG/STORE ──► mounted in a container
//!                                        │                              ▲         │
//!                                        └──────clone──► partial/… ──exchange     └──discard──► trash/… ──► gone
//! ```
//! A *tree* is the folder of one store. A folder with a tree's name is complete: it is created under another name,
//! synced to disk if it must survive a restart of the host (snapshots must; instances start afresh), and renamed. Only
//! an exchange, of the whole tree or of its touched entries (`touched.rs`), changes a tree in place; a mark next to the
//! tree records the exchange until it is complete.
//!
//! Sites write the content of trees, so the content is not trusted: folders are opened without following links, only
//! below their tree and only on its file system, and links are never read through.
//!
//! All functions block; [`Storage`] offers them to async callers. The crate depends on no engine and no site. The lock
//! of the state directory ensures that one daemon at a time uses the state root.
//!
//! The crate depends on `model`, `folders` and `seams`. Start reading at `root.rs`, then `tree.rs`.

pub mod archive;
mod attributes;
mod background;
mod clone;
mod content;
pub mod disk;
mod error;
mod exchange;
mod receive;
mod remove;
mod root;
mod send;
mod touched;
mod tree;
pub mod trial;
mod usage;
mod walk;

pub use self::background::Storage;
pub use self::background::{Streamed, read_stream};
pub use self::clone::Cloned;
pub use self::error::StorageError;
pub use self::exchange::{ExchangeStep, Exchanged};
pub use self::receive::{ArchiveLimits, Received};
pub use self::remove::Removed;
pub use self::root::{Fresh, StateRoot};
pub use self::touched::Restored;
pub use self::tree::StoreTree;
pub use self::usage::TreeUsage;
