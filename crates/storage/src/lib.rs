//! The state root: where the declared stores of sites are kept, on a file system that copies by sharing, if there is one.
//!
//! ```text
//!   engine's archive ──receive──► snapshots/ID/STORE ──clone──► instances/ENV.SITE.N/gG/STORE ──► mounted in a container
//!                                        │                              ▲         │
//!                                        └──────clone──► partial/… ──exchange     └──discard──► trash/… ──► gone
//! ```
//! A *tree* is the folder of one store. What has a tree's name is whole: it is made under another name, brought to disk if it
//! is to outlive the host's next start (snapshots are; instances begin anew then), and renamed. The one thing that
//! changes a tree in its place is an exchange, of all of it or of what was touched (`touched.rs`), and a mark beside the tree
//! says so until it is done.
//!
//! Trees hold what sites wrote, so nothing in them is trusted: folders are opened without following links, below their
//! tree and on its file system only, and links are never read through.
//!
//! Everything here blocks; [`Storage`] is the same for async callers. It knows no engine and no site. The lock of the
//! state directory sees to it that one daemon at a time works here.

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
pub use self::exchange::{Exchanged, Step};
pub use self::receive::{Limits, Received};
pub use self::remove::Removed;
pub use self::root::{Fresh, StateRoot};
pub use self::touched::Restored;
pub use self::tree::Tree;
pub use self::usage::Usage;
