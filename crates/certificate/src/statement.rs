//! The content of a certificate.

use std::collections::BTreeMap;

use arenad_evaluators as evaluators;
use arenad_model::hex::hex;
use arenad_verdict::Verdict;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::evidence::{EvidenceError, JudgedEvidence, Judgement};
use crate::key::InstallationKey;
use crate::{CertificateError, canonical};

/// The format that this version writes and reads.
pub const FORMAT: &str = "arenad-certificate/1";

/// A statement with its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The statement of the installation about the verdict.
    pub statement: CertifiedStatement,
    /// The public key of the installation, in 64 hexadecimal digits. It tells which key to verify with; only a key from
    /// elsewhere proves the origin.
    pub key: String,
    /// The Ed25519 signature of the statement's canonical form, in 128 hexadecimal digits.
    pub signature: String,
}

/// The statement of an installation about an episode and its verdict. Digests are SHA-256, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedStatement {
    /// The format: [`FORMAT`].
    pub format: String,
    /// The episode that was judged.
    pub episode: CertifiedEpisode,
    /// The sites of the episode.
    pub sites: Vec<CertifiedSite>,
    /// The evaluator that judged.
    pub evaluator: EvaluatorVersion,
    /// The task that the agent was given.
    pub task: CertifiedTask,
    /// The recorded traffic that the evaluator was given, if any.
    pub traffic: Option<CertifiedTraffic>,
    /// The verdict; for a benchmark, by the first profile.
    pub verdict: Verdict,
    /// 1 if the task was accomplished, 0 if it was not, and `None` without a verdict.
    pub reward: Option<u8>,
    /// The complete result of the evaluator: the JSON text of a [`Judgement`].
    pub judgement: String,
    /// Everything that the result follows from: the JSON text of a [`JudgedEvidence`].
    pub evidence: String,
}

/// The episode, and the installation that it took place on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedEpisode {
    /// The id of the episode.
    pub id: String,
    /// The name of the environment.
    pub environment: String,
    /// The person or program that the episode is counted for.
    pub owner: String,
    /// The labels that the client gave.
    pub labels: BTreeMap<String, String>,
    /// The time of the request.
    pub asked_at: String,
    /// The time of the grant.
    pub granted_at: Option<String>,
    /// The time of the judgement.
    pub judged_at: String,
    /// The id of the installation.
    pub installation: String,
    /// The version of arenad.
    pub arenad: String,
}

/// A site of the episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedSite {
    /// The name of the site.
    pub site: String,
    /// The id of the instance.
    pub instance: String,
    /// The generation of the instance.
    pub generation: u64,
    /// The snapshot that the episode started from; `None` if the site has none.
    pub snapshot: Option<CertifiedSnapshot>,
    /// The stores of the site, by name, with the digests of their content when the episode was judged.
    pub stores: BTreeMap<String, CertifiedStore>,
    /// The reason why the stores were not read, if they were not.
    pub unread: Option<String>,
}

/// The snapshot that a site started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedSnapshot {
    /// The id of the snapshot, which is derived from its content.
    pub id: String,
    /// The name that a user gave it; `None` for a baseline.
    pub name: Option<String>,
    /// The digest of the inputs that a baseline was made from.
    pub recipe: Option<String>,
    /// The ids of the images, by service. The id of an image is the digest of its configuration.
    pub images: BTreeMap<String, String>,
}

/// The content of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedStore {
    /// The digest of its content in the snapshot.
    pub snapshot: Option<String>,
    /// The digest of its content when the episode was judged.
    pub judged: Option<String>,
}

/// The evaluator that judged, with its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluatorVersion {
    /// `native`, or the name of the benchmark.
    pub name: String,
    /// The version of arenad's evaluators.
    pub version: String,
}

/// The task, identified by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedTask {
    /// The name of a native task, or the number of a benchmark's.
    pub name: String,
    /// The digest of the JSON text of the task in the evidence.
    pub sha256: String,
}

/// The recorded traffic, identified by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedTraffic {
    /// The digest of the recording.
    pub sha256: String,
    /// The size of the recording.
    pub size_bytes: usize,
}

impl CertifiedStatement {
    /// States what follows from the evidence.
    ///
    /// # Errors
    ///
    /// `NotRepeatable` if the evidence leads to another judgement after it was written and read.
    pub fn of(
        episode: CertifiedEpisode,
        sites: Vec<CertifiedSite>,
        evidence: &JudgedEvidence,
        judgement: &Judgement,
    ) -> Result<Self, EvidenceError> {
        let text = serde_json::to_string(evidence)?;
        let said = serde_json::to_string(judgement)?;
        // Judged from the text, as at every later verification.
        let statement = Self::derived(episode, sites, text)?;
        if statement.judgement == said { Ok(statement) } else { Err(EvidenceError::NotRepeatable) }
    }

    /// Derives from the text of the evidence all that follows from it.
    fn derived(
        episode: CertifiedEpisode,
        sites: Vec<CertifiedSite>,
        evidence_text: String,
    ) -> Result<Self, EvidenceError> {
        let evidence: JudgedEvidence = serde_json::from_str(&evidence_text)?;
        let judgement = evidence.judge()?;
        let (name, task) = evidence.task()?;
        let verdict = judgement.verdict();
        let traffic =
            evidence.traffic().map(|bytes| CertifiedTraffic { sha256: sha256(bytes), size_bytes: bytes.len() });
        Ok(Self {
            format: FORMAT.to_owned(),
            episode,
            sites,
            evaluator: EvaluatorVersion {
                name: evidence.evaluator().to_owned(),
                version: evaluators::VERSION.to_owned(),
            },
            task: CertifiedTask { name, sha256: sha256(task.as_bytes()) },
            traffic,
            verdict,
            reward: match verdict {
                Verdict::Passed => Some(1),
                Verdict::Failed => Some(0),
                Verdict::NeedsJudge | Verdict::Inconclusive | Verdict::Unsupported => None,
            },
            judgement: serde_json::to_string(&judgement)?,
            evidence: evidence_text,
        })
    }

    /// Judges by the evidence, and compares everything that follows from it byte for byte.
    pub(crate) fn judge_again(&self) -> Result<(), CertificateError> {
        let of = |version: &EvaluatorVersion| format!("{} {}", version.name, version.version);
        let derived = Self::derived(self.episode.clone(), self.sites.clone(), self.evidence.clone());
        let derived = derived.map_err(|error| CertificateError::OtherVerdict(error.to_string()))?;
        let differs = if derived.verdict != self.verdict {
            format!("the verdict is {}, and not {}", word(derived.verdict), word(self.verdict))
        } else if derived.judgement != self.judgement {
            "the verdict is the same, and its checks differ".to_owned()
        } else if derived.reward != self.reward || derived.task != self.task || derived.traffic != self.traffic {
            "the reward, the task or the traffic differs".to_owned()
        } else {
            return Ok(());
        };
        let versions = match derived.evaluator == self.evaluator {
            true => String::new(),
            false => format!("; it was judged by {}, and this is {}", of(&self.evaluator), of(&derived.evaluator)),
        };
        Err(CertificateError::OtherVerdict(format!("{differs}{versions}")))
    }

    /// Signs the statement.
    ///
    /// # Errors
    ///
    /// Returns an error if the statement has no canonical form, which no statement of this version lacks.
    pub fn sign(self, key: &InstallationKey) -> Result<Certificate, canonical::NotCanonical> {
        let document = serde_json::to_value(&self)?;
        let signature = key.sign(canonical::text(&document)?.as_bytes());
        Ok(Certificate { statement: self, key: key.public().to_string(), signature })
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn word(verdict: Verdict) -> String {
    serde_json::to_value(verdict).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
