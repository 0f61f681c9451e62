//! The proof that an instance is as its snapshot: the digest of its stores against the one that was taken when the
//! snapshot was first started, before any client could reach it.
//!
//! What is made from a snapshot serves only with this proof, whichever way it was made. A site that declares no stores
//! has none; its containers are made anew from the snapshot's images each time, and that is all that is known of them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::SetOnce;

use super::baseline::snapshot;
use super::shared::Shared;
use arenad_digest::{self as digest, Comparison, Digest, DigestError, Known, Lines, Rested, Subject, Taken};
use arenad_launch::Incarnation;
use arenad_model::cause::Cause;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;
use arenad_model::verify::Extent;
use arenad_store::StoreError;

/// How many differences an error names; `arenad verify` names more.
const SHOWN: usize = 5;

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// It is not as the snapshot.
    #[error("not as its snapshot: {}", shown(.0))]
    Differs(Comparison),
    /// Nothing says what the snapshot holds: its digest is taken when it is first started.
    #[error("compare with snapshot {0}: its digest has not been taken")]
    NoReference(String),
    /// The digest could not be computed.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// The store refused something.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ProofError {
    /// Returns the cause, if a person can do something specific about it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Differs(_) => Some(Cause::NotAsSnapshot),
            Self::Digest(error) => error.cause(),
            Self::Store(error) => error.cause(),
            Self::NoReference(_) => None,
        }
    }
}

fn shown(comparison: &Comparison) -> String {
    let all = comparison.differences.len() + comparison.omitted;
    let named: Vec<String> = comparison.differences.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if all > named.len() { format!("; and {} more", all - named.len()) } else { String::new() };
    named.join("; ") + &more
}

/// The digests of snapshots, read once.
#[derive(Debug, Default)]
pub struct References(Mutex<HashMap<String, Arc<Digest>>>);

impl References {
    fn known(&self, snapshot: &str) -> Option<Arc<Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(snapshot).cloned()
    }

    fn learn(&self, snapshot: &str, digest: &Arc<Digest>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(snapshot.to_owned(), digest.clone());
    }
}

/// What is known of an instance that is being rewound.
#[derive(Clone, Copy)]
pub struct Rewound<'a> {
    /// What was proven of it before it served.
    pub before: &'a Taken,
    /// Which of its stores were the snapshot's when their servers were started; set before they are.
    pub rested: &'a OnceLock<Rested>,
}

/// An instance that is to be proven, or looked at.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    /// The daemon's common ground.
    pub shared: &'a Shared,
    /// The instance.
    pub id: &'a InstanceId,
    /// Its definition.
    pub site: &'a Site,
    /// What it was made from.
    pub snapshot: &'a Snapshot,
    /// Its running containers.
    pub incarnation: &'a Incarnation,
}

impl Candidate<'_> {
    /// Whether there is anything to compare: declared stores of which something counts. Where there is a state root,
    /// a snapshot that was taken without one has nothing in it.
    pub fn can_be_proven(&self) -> bool {
        let is_there = self.shared.storage.is_none() || snapshot::state(self.shared, self.snapshot).is_some();
        self.site.can_be_compared() && is_there
    }

    /// Compares everything with the snapshot. `None`: there is nothing to compare.
    pub async fn prove(&self, lines: &Lines) -> Result<Option<Taken>, ProofError> {
        self.prove_rising(lines, None, None).await
    }

    /// The same for one that is being rewound and whose servers are yet to be started: what lies in files is compared before.
    /// Files that are as they were before it served were not touched; a server that was started on the snapshot's files and has
    /// written nothing has the snapshot's rows. Everything else is compared. What that has shown is to be taken up by
    /// [`Self::prove_since`].
    pub async fn prove_rising(
        &self,
        lines: &Lines,
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

    /// The same for one that no client has reached and that was made from the snapshot anew: if the snapshot's digest has
    /// not been taken, this is it.
    pub async fn prove_or_learn(&self, lines: &Lines) -> Result<Option<Taken>, ProofError> {
        if !self.can_be_proven() || self.reference().await?.is_some() {
            return self.prove(lines).await;
        }
        let taken = self.take(Known::default(), lines, None).await?;
        let shared = self.shared;
        let reference = shared.store.save_digest(&self.snapshot.id, &taken.digest).await?;
        // Another that was made from the snapshot may have been first.
        let comparison = digest::compare(&reference, &taken.digest);
        shared.references.learn(&self.snapshot.id, &Arc::new(reference));
        if comparison.is_equal() { Ok(Some(taken)) } else { Err(ProofError::Differs(comparison)) }
    }

    /// Proves again what was proven before, looking only at what has moved since. `None`: nothing has.
    pub async fn prove_again(&self, last: &Taken, lines: &Lines) -> Result<Option<Taken>, ProofError> {
        let folders = self.shared.state_folders(self.id, self.site, self.incarnation);
        if digest::moved(&self.subject(&folders, lines), last).await?.is_empty() {
            return Ok(None);
        }
        self.compare(Known { last: Some(last), ..Known::default() }, lines, None).await.map(Some)
    }

    /// Takes up what was proven while the site was still becoming ready: what has moved since is compared again, and everything
    /// if it could not be proven then.
    pub async fn prove_since(
        &self,
        early: Result<Option<Taken>, ProofError>,
        lines: &Lines,
        rewound: Option<Rewound<'_>>,
    ) -> Result<Option<Taken>, ProofError> {
        match early {
            Ok(Some(taken)) => {
                let folders = self.shared.state_folders(self.id, self.site, self.incarnation);
                if digest::moved(&self.subject(&folders, lines), &taken).await?.is_empty() {
                    return Ok(Some(taken));
                }
                // Probes move marks without writing a row.
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

    /// Computes the digest, and where it differs from the snapshot's.
    pub async fn look(&self) -> Result<(Taken, Comparison), ProofError> {
        let reference = self.needed_reference().await?;
        let taken = self.take(Known::default(), &Lines::passing(), None).await?;
        let comparison = digest::compare(&reference, &taken.digest);
        Ok((taken, comparison))
    }

    async fn compare(
        &self,
        known: Known<'_>,
        lines: &Lines,
        started: Option<&SetOnce<()>>,
    ) -> Result<Taken, ProofError> {
        let reference = self.needed_reference().await?;
        // Sizes and times of files can be set by whoever writes them, so every file is read; only what this daemon has looked
        // at itself since the servers were started is taken for granted.
        let taken = self.take(known, lines, started).await?;
        let comparison = digest::compare(&reference, &taken.digest);
        if comparison.is_equal() { Ok(taken) } else { Err(ProofError::Differs(comparison)) }
    }

    async fn take(&self, known: Known<'_>, lines: &Lines, started: Option<&SetOnce<()>>) -> Result<Taken, DigestError> {
        let folders = self.shared.state_folders(self.id, self.site, self.incarnation);
        let subject = Subject { started, ..self.subject(&folders, lines) };
        digest::take(&subject, known).await
    }

    fn subject<'s>(&'s self, folders: &'s BTreeMap<(ServiceName, String), PathBuf>, lines: &'s Lines) -> Subject<'s> {
        let (engine, site, incarnation) = (self.shared.engine.as_ref(), self.site, self.incarnation);
        let copies = &self.shared.copies;
        Subject { engine, site, incarnation, folders, copies, lines, started: None }
    }

    async fn needed_reference(&self) -> Result<Arc<Digest>, ProofError> {
        self.reference().await?.ok_or_else(|| ProofError::NoReference(self.snapshot.id.to_string()))
    }

    /// The snapshot's digest, unless the stores are declared otherwise by now.
    async fn reference(&self) -> Result<Option<Arc<Digest>>, StoreError> {
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

/// The proof of a standby, and what it is renewed by.
pub struct Proof {
    taken: Taken,
    /// To its servers, for as long as it does not serve.
    lines: Lines,
}

impl Proof {
    /// Compares everything, and keeps the lines on which that was done. `None`: there is nothing to compare.
    pub async fn begin(candidate: &Candidate<'_>) -> Result<Option<Self>, ProofError> {
        Self::begin_rewound(candidate, None).await
    }

    /// The same for one that was rewound.
    pub async fn begin_rewound(
        candidate: &Candidate<'_>,
        rewound: Option<Rewound<'_>>,
    ) -> Result<Option<Self>, ProofError> {
        let lines = Lines::kept();
        Ok(candidate.prove_rising(&lines, rewound, None).await?.map(|taken| Self { taken, lines }))
    }

    /// The same for one that was made from the snapshot anew.
    pub async fn begin_or_learn(candidate: &Candidate<'_>) -> Result<Option<Self>, ProofError> {
        let lines = Lines::kept();
        Ok(candidate.prove_or_learn(&lines).await?.map(|taken| Self { taken, lines }))
    }

    /// Takes up what was proven before it served, and proves it again. After an error it must not serve.
    pub async fn resume(candidate: &Candidate<'_>, taken: Taken) -> Result<Self, ProofError> {
        let mut proof = Self { taken, lines: Lines::kept() };
        proof.renew(candidate).await?;
        Ok(proof)
    }

    /// Compares again as much as is asked for. After an error the standby must not serve.
    pub async fn again(&mut self, candidate: &Candidate<'_>, extent: Extent) -> Result<(), ProofError> {
        match extent {
            Extent::Everything => self.taken = candidate.compare(Known::default(), &self.lines, None).await?,
            Extent::Moved => drop(self.renew(candidate).await?),
            Extent::Nothing => {}
        }
        Ok(())
    }

    /// Looks at what has moved since, and says whether anything had. After an error the standby must not serve.
    ///
    /// Cancellation: safe; the lines that were in use are closed.
    pub async fn renew(&mut self, candidate: &Candidate<'_>) -> Result<bool, ProofError> {
        let again = candidate.prove_again(&self.taken, &self.lines).await?;
        let has_moved = again.is_some();
        if let Some(again) = again {
            self.taken = again;
        }
        Ok(has_moved)
    }

    /// What was found last.
    pub fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Says goodbye to the servers: clients are to reach them, or they are to be stopped.
    pub async fn end(&self) {
        self.lines.close().await;
    }
}
