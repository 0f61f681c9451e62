//! The changes between two states of an instance: rows of tables by key, sequences, definitions, files and keys.
//!
//! ```text
//!   digest + rows of the tables whose digests differ + texts of the files that differ ──► StatePoint
//!   compare(before, after) ──► StateChanges
//! ```
//! Comparisons are pure. [`LookFile`] keeps a state on disk: rows of the baseline, which are read when its digest is
//! known, and *looks*, which a client takes of a running instance. The crate does not read from instances; `digest` does,
//! and `instance` combines both. Start reading at [`compare`].

mod compare;
mod look_file;
mod text_diff;

pub use compare::{
    CellChange, ChangeKind, DefinitionChange, FileChange, KeyChange, ROWS_LISTED_MAX, RowChange, RowChanges,
    SequenceChange, StateChanges, StatePoint, StoreChanges, StoreTexts, TableChange, TextPaths, compare,
    differing_tables, differing_texts,
};
pub use look_file::{LookContent, LookFile};
pub use text_diff::{TextDiff, diff};
