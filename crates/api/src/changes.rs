//! The changes in a site, and the looks that later states are compared with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{ItemChange, LeftOutReason};

/// The answer to `GET /v1/environments/{environment}/sites/{site}/changes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteChanges {
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The id of the instance that was compared.
    pub instance: String,
    /// The generation of the instance.
    pub generation: u64,
    /// The snapshot that the generation started from.
    pub snapshot: String,
    /// The number of the look that is the earlier state; null if the snapshot is.
    pub since: Option<u64>,
    /// The number of the look that is the later state; null if the present is.
    pub until: Option<u64>,
    /// Whether the two states are equal.
    pub equal: bool,
    /// Whether the rows were read in one state; `false` means that the site kept writing to them.
    pub settled: bool,
    /// The time that the comparison took.
    pub duration_ms: f64,
    /// The stores that differ.
    pub stores: Vec<ChangedStore>,
}

/// The answer to `GET /v1/episodes/{id}/changes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeChanges {
    /// The id of the episode.
    pub episode: String,
    /// The name of the environment.
    pub environment: String,
    /// The number of the look that is the earlier state; null if the starting points are.
    pub since: Option<u64>,
    /// The number of the look that is the later state; null if the present is.
    pub until: Option<u64>,
    /// Whether the two states of all compared sites are equal; null if no site could be compared.
    pub equal: Option<bool>,
    /// Whether the rows of each site were read in one state; `false` means that a site kept writing to them.
    pub settled: bool,
    /// The time that the comparison took.
    pub duration_ms: f64,
    /// The sites that were compared, with their changes, in the order of the request.
    pub sites: Vec<SiteChanges>,
    /// The sites of the episode that were not compared.
    pub left_out: Vec<LeftOutSite>,
}

/// A site whose changes cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutSite {
    /// The name of the site.
    pub site: String,
    /// The reason, as a stable word.
    pub code: LeftOutReason,
    /// The reason as a sentence.
    pub reason: String,
}

/// A store that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedStore {
    /// The name of the store.
    pub name: String,
    /// Tables with other rows.
    pub tables: Vec<ChangedTable>,
    /// Sequences, and tables that number their rows.
    pub sequences: Vec<ChangedSequence>,
    /// Definitions of tables, indexes and other objects.
    pub definitions: Vec<ChangedItem>,
    /// Files, folders and other entries of directories.
    pub files: Vec<ChangedFile>,
    /// Keys of a key-value server.
    pub keys: Vec<ChangedItem>,
    /// The number of items that the lists leave out.
    pub omitted: usize,
}

/// A table with other rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedTable {
    /// The name of the table.
    pub name: String,
    /// Whether the table is new, has other rows, or is gone.
    pub change: ItemChange,
    /// The number of rows before.
    pub rows_before: u64,
    /// The number of rows now.
    pub rows_now: u64,
    /// The rows that differ; null if the table has too many rows, or the snapshot's rows are not known.
    pub rows: Option<ChangedRows>,
}

/// The rows of a table that differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedRows {
    /// The columns of the primary key. It is empty if the table has none; then no row counts as changed.
    pub key: Vec<String>,
    /// The number of rows that were added.
    pub added: usize,
    /// The number of rows whose content changed.
    pub changed: usize,
    /// The number of rows that were removed.
    pub removed: usize,
    /// The rows, sorted by key.
    pub listed: Vec<ChangedRow>,
    /// The number of rows that the list leaves out.
    pub omitted: usize,
}

/// A row that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedRow {
    /// How the row differs.
    pub change: ItemChange,
    /// The values of the key's columns.
    pub key: Vec<Option<String>>,
    /// The earlier values by column, with `values=true`: all of a removed row, and those of a changed row that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<BTreeMap<String, Option<String>>>,
    /// The later values by column, with `values=true`: all of an added row, and those of a changed row that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<BTreeMap<String, Option<String>>>,
}

/// A sequence with another number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedSequence {
    /// The name of the sequence, or of the table.
    pub name: String,
    /// The number before; null if there was none.
    pub before: Option<String>,
    /// The number now; null if there is none.
    pub now: Option<String>,
}

/// A definition or key that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedItem {
    /// The name. That of a definition includes its kind: `index posts_pkey`.
    pub name: String,
    /// Whether only one of the states has it, or both do.
    pub change: ItemChange,
}

/// A file or folder that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// The path relative to the store.
    pub path: String,
    /// Whether only one of the states has it, or both do.
    pub change: ItemChange,
    /// The size before, in bytes; null for folders and links.
    pub size_before: Option<u64>,
    /// The size now, in bytes; null for folders and links.
    pub size_now: Option<u64>,
    /// The difference as words: sizes, modes, owners.
    pub text: String,
    /// The difference of the content in the unified format; null for binary and long files.
    pub diff: Option<String>,
    /// Whether the end of `diff` is left out.
    pub diff_is_cut: bool,
}

/// A look: the state of a site at one time, which later changes can be compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    /// The number of the look; it counts from 1 in each generation.
    pub number: u64,
}

/// The answer to `GET /v1/episodes/{id}/looks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EpisodeLooks {
    /// The id of the episode.
    pub episode: String,
    /// The looks that all compared sites of the episode have, in the order of their numbers.
    pub looks: Vec<Look>,
}

/// The answer to `GET /v1/environments/{environment}/sites/{site}/looks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Looks {
    /// The generation that the looks belong to.
    pub generation: u64,
    /// The looks, in the order of their numbers.
    pub looks: Vec<Look>,
}
