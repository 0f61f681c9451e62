//! The proof that an instance equals its snapshot: the digest of its stores is compared with the digest that was taken
//! when the snapshot was first started, before any client could reach it.
//!
//! Containers of a snapshot serve only with this proof, regardless of the way in which they were made. A site that
//! declares no stores has no proof; each of its resets creates new containers from the snapshot's images.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::SetOnce;

use super::shared::SharedParts;
use arenad_baseline::snapshot;
use arenad_digest::{
    self as digest, ContentDifferences, Digest, DigestError, Known, Rested, StoreConnections, Subject, Taken,
};
use arenad_launch::Incarnation;
use arenad_model::cause::Cause;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;
use arenad_model::verify::ComparisonExtent;
use arenad_store::StoreError;

/// The number of differences that an error names; `arenad verify` names more.
const SHOWN: usize = 5;

/// The reason why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The instance differs from the snapshot.
    #[error("differs from its snapshot: {}", shown(.0))]
    Differs(ContentDifferences),
    /// There is no digest of the snapshot, which is taken when the snapshot is first started.
    #[error("compare with snapshot {0}: its digest has not been taken")]
    NoReference(String),
    /// The digest could not be computed.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ProofError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Differs(_) => Some(Cause::NotAsSnapshot),
            Self::Digest(error) => error.cause(),
            Self::Store(error) => error.cause(),
            Self::NoReference(_) => None,
        }
    }
}

fn shown(comparison: &ContentDifferences) -> String {
    let all = comparison.differences.len() + comparison.omitted;
    let named: Vec<String> = comparison.differences.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if all > named.len() { format!("; and {} more", all - named.len()) } else { String::new() };
    named.join("; ") + &more
}

/// The digests of snapshots, each read from the store once.
#[derive(Debug, Default)]
pub struct References(Mutex<HashMap<String, Arc<Digest>>>);

impl References {
    fn known(&self, snapshot: &str) -> Option<Arc<Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(snapshot).cloned()
    }

    /// Forgets the digest of a snapshot that was removed.
    pub fn forget(&self, snapshot: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(snapshot);
    }

    fn learn(&self, snapshot: &str, digest: &Arc<Digest>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(snapshot.to_owned(), digest.clone());
    }
}

/// The knowledge about an instance that is being rewound.
#[derive(Clone, Copy)]
pub(crate) struct Rewound<'a> {
    /// The digest that was taken before it served.
    pub before: &'a Taken,
    /// The stores that equaled the snapshot when their servers were started; set before the servers start.
    pub rested: &'a OnceLock<Rested>,
}

/// An instance that is to be compared with its snapshot.
#[derive(Clone, Copy)]
pub struct ProofCandidate<'a> {
    /// The engine, the store and the state root.
    pub shared: &'a SharedParts,
    /// Identifies the trees of the instance.
    pub id: &'a InstanceId,
    /// The definition, which declares the stores.
    pub site: &'a Site,
    /// The snapshot that the instance was made from or brought back to.
    pub snapshot: &'a Snapshot,
    /// The running containers, whose servers are queried.
    pub incarnation: &'a Incarnation,
}

impl ProofCandidate<'_> {
    /// Whether there is anything to compare: stores are declared and not excluded from comparison. If there is a state
    /// root, a snapshot that was taken without one has no content in it.
    pub fn can_be_proven(&self) -> bool {
        let is_there =
            self.shared.storage.is_none() || snapshot::state(&self.shared.baselines, self.snapshot).is_some();
        self.site.can_be_compared() && is_there
    }

    /// Compares everything with the snapshot; returns `None` if there is nothing to compare.
    pub(crate) async fn prove(&self, lines: &StoreConnections) -> Result<Option<Taken>, ProofError> {
        self.prove_rising(lines, None, None).await
    }

    /// Compares an instance that is being rewound and whose servers are not started yet; the content of files is
    /// compared first.
    ///
    /// Files that have not changed since before it served were not touched. A server that was started on the snapshot's
    /// files and has written nothing has the snapshot's rows. Everything else is compared. The result must be passed to
    /// [`Self::prove_since`].
    pub(crate) async fn prove_rising(
        &self,
        lines: &StoreConnections,
        rewound: Option<Rewound<'_>>,
        started: Option<&SetOnce<()>>,
    ) -> Result<Option<Taken>, ProofError> {
        if !self.can_be_proven() {
            return Ok(None);
        }
        let known = match rewound {
            Some(Rewound { before, rested }) => {
                Known { rewound: Some(before), rested: Some(rested), ..Known::default() }
            }
            None => Known::default(),
        };
        self.compare(known, lines, started).await.map(Some)
    }

    /// Compares an instance that was newly made from the snapshot and that no client has reached. If the snapshot has
    /// no digest yet, the instance's digest becomes the snapshot's.
    pub(crate) async fn prove_or_learn(&self, lines: &StoreConnections) -> Result<Option<Taken>, ProofError> {
        let proven = if !self.can_be_proven() || self.reference().await?.is_some() {
            self.prove(lines).await?
        } else {
            Some(self.learn(lines).await?)
        };
        if proven.is_some() {
            self.keep_rows(lines).await;
        }
        Ok(proven)
    }

    /// Makes the instance's digest the snapshot's.
    async fn learn(&self, lines: &StoreConnections) -> Result<Taken, ProofError> {
        let taken = self.take(Known::default(), lines, None).await?;
        let folders = self.shared.state_folders(self.id, self.site, self.incarnation);
        digest::check_reference(&self.subject(&folders, lines), &taken).await?;
        let shared = self.shared;
        let reference = shared.store.save_digest(&self.snapshot.id, &taken.digest).await?;
        // Another instance of the snapshot may have stored its digest first.
        let comparison = digest::compare(&reference, &taken.digest);
        shared.references.learn(&self.snapshot.id, &Arc::new(reference));
        if comparison.is_equal() { Ok(taken) } else { Err(ProofError::Differs(comparison)) }
    }

    /// Compares again the stores that have changed since `last`; returns `None` if none have.
    pub(crate) async fn prove_again(
        &self,
        last: &Taken,
        lines: &StoreConnections,
    ) -> Result<Option<Taken>, ProofError> {
        let folders = self.shared.state_folders(self.id, self.site, self.incarnation);
        if digest::moved(&self.subject(&folders, lines), last).await?.is_empty() {
            return Ok(None);
        }
        self.compare(Known { last: Some(last), ..Known::default() }, lines, None).await.map(Some)
    }

    /// Completes a comparison that was made while the site was becoming ready. Stores that have changed since are
    /// compared again; if the early comparison failed, everything is.
    pub(crate) async fn prove_since(
        &self,
        early: Result<Option<Taken>, ProofError>,
        lines: &StoreConnections,
        rewound: Option<Rewound<'_>>,
    ) -> Result<Option<Taken>, ProofError> {
        let proven = self.complete(early, lines, rewound).await?;
        if proven.is_some() {
            self.keep_rows(lines).await;
        }
        Ok(proven)
    }

    async fn complete(
        &self,
        early: Result<Option<Taken>, ProofError>,
        lines: &StoreConnections,
        rewound: Option<Rewound<'_>>,
    ) -> Result<Option<Taken>, ProofError> {
        match early {
            Ok(Some(taken)) => {
                let folders = self.shared.state_folders(self.id, self.site, self.incarnation);
                if digest::moved(&self.subject(&folders, lines), &taken).await?.is_empty() {
                    return Ok(Some(taken));
                }
                // Probes change the marks of servers without writing a row.
                let known = Known {
                    last: Some(&taken),
                    rewound: rewound.map(|rewound| rewound.before),
                    rested: rewound.map(|rewound| rewound.rested),
                };
                self.compare(known, lines, None).await.map(Some)
            }
            Ok(None) => Ok(None),
            Err(_) => self.prove(lines).await,
        }
    }

    /// Computes the digest, and its differences from the snapshot's.
    pub async fn look(&self) -> Result<(Taken, ContentDifferences), ProofError> {
        let reference = self.needed_reference().await?;
        let taken = self.take(Known::default(), &StoreConnections::passing(), None).await?;
        let comparison = digest::compare(&reference, &taken.digest);
        Ok((taken, comparison))
    }

    async fn compare(
        &self,
        known: Known<'_>,
        lines: &StoreConnections,
        started: Option<&SetOnce<()>>,
    ) -> Result<Taken, ProofError> {
        let reference = self.needed_reference().await?;
        // A process that writes a file can also set its size and times, so every file is read. Only the digests that
        // this daemon has taken since the servers were started are relied upon.
        let taken = self.take(known, lines, started).await?;
        let comparison = digest::compare(&reference, &taken.digest);
        if comparison.is_equal() { Ok(taken) } else { Err(ProofError::Differs(comparison)) }
    }

    async fn take(
        &self,
        known: Known<'_>,
        lines: &StoreConnections,
        started: Option<&SetOnce<()>>,
    ) -> Result<Taken, DigestError> {
        let folders = self.shared.state_folders(self.id, self.site, self.incarnation);
        let subject = Subject { started, ..self.subject(&folders, lines) };
        digest::take(&subject, known).await
    }

    pub(crate) fn subject<'s>(
        &'s self,
        folders: &'s BTreeMap<(ServiceName, String), PathBuf>,
        lines: &'s StoreConnections,
    ) -> Subject<'s> {
        let (engine, site, incarnation) = (self.shared.engine.as_ref(), self.site, self.incarnation);
        let copies = &self.shared.copies;
        Subject { engine, site, incarnation, folders, copies, lines, started: None }
    }

    pub(crate) async fn needed_reference(&self) -> Result<Arc<Digest>, ProofError> {
        self.reference().await?.ok_or_else(|| ProofError::NoReference(self.snapshot.id.to_string()))
    }

    /// Returns the snapshot's digest; `None` if it was taken for other declarations of the stores.
    pub(crate) async fn reference(&self) -> Result<Option<Arc<Digest>>, StoreError> {
        let (shared, id) = (self.shared, &self.snapshot.id);
        let known = match shared.references.known(id) {
            Some(known) => Some(known),
            None => shared.store.digest(id).await?.map(Arc::new),
        };
        let known = known.filter(|digest| digest.is_of(self.site));
        if let Some(digest) = &known {
            shared.references.learn(id, digest);
        }
        Ok(known)
    }
}

/// The proof of a standby, with the connections by which it is renewed.
pub struct StandbyProof {
    taken: Taken,
    /// Connections to the standby's servers, kept until it serves.
    lines: StoreConnections,
}

impl StandbyProof {
    /// Compares everything and keeps the connections; returns `None` if there is nothing to compare.
    pub(crate) async fn begin(candidate: &ProofCandidate<'_>) -> Result<Option<Self>, ProofError> {
        Self::begin_rewound(candidate, None).await
    }

    /// Like [`Self::begin`], for a standby that was rewound.
    pub(crate) async fn begin_rewound(
        candidate: &ProofCandidate<'_>,
        rewound: Option<Rewound<'_>>,
    ) -> Result<Option<Self>, ProofError> {
        let lines = StoreConnections::kept();
        let taken = candidate.prove_rising(&lines, rewound, None).await?;
        if taken.is_some() {
            candidate.keep_rows(&lines).await;
        }
        Ok(taken.map(|taken| Self { taken, lines }))
    }

    /// Like [`Self::begin`], for a standby that was newly made from the snapshot.
    pub(crate) async fn begin_or_learn(candidate: &ProofCandidate<'_>) -> Result<Option<Self>, ProofError> {
        let lines = StoreConnections::kept();
        Ok(candidate.prove_or_learn(&lines).await?.map(|taken| Self { taken, lines }))
    }

    /// Resumes the proof from the digest that was taken before the containers served, and renews it. After an error
    /// they must not serve.
    pub(crate) async fn resume(candidate: &ProofCandidate<'_>, taken: Taken) -> Result<Self, ProofError> {
        let mut proof = Self { taken, lines: StoreConnections::kept() };
        proof.renew(candidate).await?;
        Ok(proof)
    }

    /// Compares again as much as `extent` says. After an error the standby must not serve.
    pub(crate) async fn again(
        &mut self,
        candidate: &ProofCandidate<'_>,
        extent: ComparisonExtent,
    ) -> Result<(), ProofError> {
        match extent {
            ComparisonExtent::Everything => self.taken = candidate.compare(Known::default(), &self.lines, None).await?,
            ComparisonExtent::Moved => drop(self.renew(candidate).await?),
            ComparisonExtent::Nothing => {}
        }
        Ok(())
    }

    /// Compares the stores that have changed since the last comparison; returns whether any had. After an error the
    /// standby must not serve.
    ///
    /// Cancellation: safe; connections that were in use are closed.
    pub(crate) async fn renew(&mut self, candidate: &ProofCandidate<'_>) -> Result<bool, ProofError> {
        let again = candidate.prove_again(&self.taken, &self.lines).await?;
        let has_moved = again.is_some();
        if let Some(again) = again {
            self.taken = again;
        }
        Ok(has_moved)
    }

    /// Returns the newest digest.
    pub(crate) fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Closes the connections, because clients are about to reach the servers or the servers are about to be stopped.
    pub(crate) async fn end(&self) {
        self.lines.close().await;
    }
}
