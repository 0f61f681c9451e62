//! Resets and what proves them.

use serde::{Deserialize, Serialize};

/// `POST /v1/environments/{environment}/resets`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// Site names; empty is all.
    #[serde(default)]
    pub sites: Vec<String>,
    /// Whether sites that are proven to be as their snapshots are left as they are.
    #[serde(default)]
    pub if_dirty: bool,
    /// The snapshot to go to, by name or id; of one site. Without one: the baseline.
    #[serde(default)]
    pub to: Option<String>,
}

/// `POST /v1/environments/{environment}/sites/{site}/verify`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The instance that was looked at.
    pub instance: String,
    /// Its generation.
    pub generation: u64,
    /// The snapshot that it was compared with.
    pub snapshot: String,
    /// Whether it is as that.
    pub equal: bool,
    /// SHA-256 over everything that was found.
    pub digest: String,
    /// What differs, by store.
    pub differences: Vec<Difference>,
    /// How many differences there are beyond those.
    pub omitted: usize,
    /// What was looked at.
    pub stores: Vec<VerifiedStore>,
}

/// Something that is not as in the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The store.
    pub store: String,
    /// `table`, `counter`, `object`, `file`, `key`, `store`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it was; null: it was not there.
    pub before: Option<String>,
    /// What it is; null: it is gone.
    pub now: Option<String>,
    /// The same as a sentence.
    pub text: String,
}

/// A store that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifiedStore {
    /// Its name.
    pub name: String,
    /// How long it took.
    pub duration_ms: f64,
}

/// How a reset went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reset {
    /// Its id.
    pub id: String,
    /// The instance.
    pub instance: String,
    /// `swap`, `rewind`, `recreate`, `keep`, `untouched`.
    pub strategy: String,
    /// When it was asked for.
    pub requested_at: String,
    /// When it ended.
    pub finished_at: Option<String>,
    /// `done`, `failed`, `cancelled`, `interrupted`; null while it goes on.
    pub outcome: Option<String>,
    /// Why it failed; where it was done, why by no faster way, such as a standby that there was no memory for.
    pub reason: Option<String>,
    /// From the request to the new containers serving.
    pub duration_ms: Option<f64>,
    /// Where the time went. Stages may overlap.
    pub stages: Vec<Stage>,
    /// How much was compared with the snapshot before it served: `everything`, `moved` (what had moved since it was last
    /// compared), `nothing`; null if it did not come to that.
    #[serde(default)]
    pub verified: Option<String>,
    /// Which of the declared stores that covered; null if it did not come to that.
    #[serde(default)]
    pub compared: Option<Compared>,
}

/// Which of the declared stores a reset compared with the snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// How many stores the definition declares.
    pub declared: usize,
    /// The names of those that were compared.
    pub stores: Vec<String>,
    /// What was left out.
    pub left_out: Vec<LeftOut>,
}

/// A store, or a part of one, that was not compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The store.
    pub store: String,
    /// The part, such as `file logs/**`; null: all of it.
    pub part: Option<String>,
    /// Why, in the definition's words.
    pub reason: String,
}

impl Compared {
    /// What people are told where not every store was compared; none where each was, or there are none.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// `queue`, `thaw`, `knock`, `record`; `hold`, `wait`, `remove`, `create`, `start`, `ready`, `switch`.
    pub stage: String,
    /// How long it took.
    pub duration_ms: f64,
}
