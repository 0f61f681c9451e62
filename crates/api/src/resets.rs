//! The JSON of resets and of the comparisons that prove them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DifferenceKind, Extent, ResetOutcome, ResetWay};

/// The body of `POST /v1/environments/{environment}/resets`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// The names of the sites; empty means all.
    #[serde(default)]
    pub sites: Vec<String>,
    /// Whether to skip sites that are proven to equal their snapshots.
    #[serde(default)]
    pub if_dirty: bool,
    /// The name or id of the snapshot to reset to, for a single site. Default: the baseline.
    #[serde(default)]
    pub to: Option<String>,
}

/// The answer to `POST /v1/environments/{environment}/sites/{site}/verify`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The id of the instance that was compared.
    pub instance: String,
    /// The generation of the instance.
    pub generation: u64,
    /// The snapshot that the instance was compared with.
    pub snapshot: String,
    /// Whether the instance equals the snapshot.
    pub equal: bool,
    /// The SHA-256 over the complete content of the stores.
    pub digest: String,
    /// The differences from the snapshot, by store.
    pub differences: Vec<StoreDifference>,
    /// The number of differences that the list leaves out.
    pub omitted: usize,
    /// The stores that were compared.
    pub stores: Vec<VerifiedStore>,
}

/// One difference between an instance and its snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreDifference {
    /// The name of the store.
    pub store: String,
    /// The kind of object: `table`, `counter`, `object`, `file`, `key` or `store`.
    pub kind: DifferenceKind,
    /// The name of the object that differs.
    pub name: String,
    /// The content in the snapshot; null if the object did not exist.
    pub before: Option<String>,
    /// The content in the instance; null if the object no longer exists.
    pub now: Option<String>,
    /// The difference as a sentence.
    pub text: String,
}

/// A store that was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedStore {
    /// The name of the store.
    pub name: String,
    /// The time that the comparison took.
    pub duration_ms: f64,
}

/// The course and the outcome of a reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reset {
    /// The id of the reset.
    pub id: String,
    /// The id of the instance.
    pub instance: String,
    /// The way of the reset: `swap`, `rewind`, `recreate`, `keep` or `untouched`.
    pub strategy: ResetWay,
    /// The time at which the reset was requested.
    pub requested_at: String,
    /// The time at which the reset ended.
    pub finished_at: Option<String>,
    /// The outcome: `done`, `failed`, `cancelled` or `interrupted`; null while the reset is in progress.
    pub outcome: Option<ResetOutcome>,
    /// The reason for a failure; after a success, the reason why a faster way was unavailable, such as too little
    /// memory for a standby.
    pub reason: Option<String>,
    /// The time from the request until the new containers serve.
    pub duration_ms: Option<f64>,
    /// The stages that the time was spent in. Stages may overlap.
    pub stages: Vec<ResetStage>,
    /// The extent of the comparison with the snapshot before the instance served: `everything`, `moved` (the stores
    /// that had changed since the last comparison) or `nothing`; null if the reset ended before it.
    #[serde(default)]
    pub verified: Option<Extent>,
    /// The declared stores that the comparison covered; null if the reset ended before it.
    #[serde(default)]
    pub compared: Option<Compared>,
}

/// The declared stores that a reset compared with the snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The number of stores that the definition declares.
    pub declared: usize,
    /// The names of the compared stores.
    pub stores: Vec<String>,
    /// The stores and parts that were left out.
    pub left_out: Vec<UncomparedPart>,
}

/// A store, or a part of one, that was not compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UncomparedPart {
    /// The name of the store.
    pub store: String,
    /// The part, such as `file logs/**`; null means the whole store.
    pub part: Option<String>,
    /// The reason, as the definition states it.
    pub reason: String,
}

impl Compared {
    /// Returns a note for people if some store was not compared; `None` if each was compared or none is declared.
    pub fn told(&self) -> Option<String> {
        let count = self.stores.len();
        if count >= self.declared {
            return None;
        }
        let whole: Vec<&str> =
            self.left_out.iter().filter(|left| left.part.is_none()).map(|left| left.store.as_str()).collect();
        let without = if whole.is_empty() { String::new() } else { format!(", without {}", whole.join(", ")) };
        Some(format!("compared {count} of {} stores{without}", self.declared))
    }
}

/// One stage of a reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResetStage {
    /// The stage's name: `queue`, `thaw`, `knock`, `record`; `hold`, `wait`, `remove`, `create`, `start`, `ready`,
    /// `switch`.
    pub stage: String,
    /// The time that the stage took.
    pub duration_ms: f64,
}
