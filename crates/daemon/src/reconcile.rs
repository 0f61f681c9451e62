//! Reconciliation of the objects in the engine and the state directory with the store's rows and the drivers. The pass
//! at start is the same as the one that runs every minute, so recovery is exercised all the time.
//!
//! A pass continues after an error: objects that cannot be listed are not judged, objects that cannot be removed are
//! tried again in the next pass, and each cause is reported once. No row is ever removed: a snapshot without images is
//! reported, not treated as an orphan.

mod found;
mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::imports;
use arenad_baseline::{BaselineError, snapshot};
use arenad_engine::EngineError;
use arenad_instance::MeetError;
use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceId;
use arenad_model::reconcile::{Claims, Judgement, ObjectKind, Suspects, Thing, plan};
use arenad_storage::StorageError;
use arenad_store::StoreError;

/// The time for which an object must have been an orphan before it is removed: longer than the time between two
/// passes that directly follow each other, and shorter than the time between two scheduled ones.
const GRACE: Duration = Duration::from_secs(45);

/// The reason why an object could not be listed or removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The engine reported an error.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An operation of the state root failed.
    #[error(transparent)]
    State(#[from] StorageError),
    /// The engine in use could not be recorded.
    #[error(transparent)]
    Meet(#[from] MeetError),
    /// An import could not be abandoned.
    #[error(transparent)]
    Import(#[from] BaselineError),
    /// A file of the state directory could not be removed.
    #[error("remove the file")]
    File(#[from] std::io::Error),
}

/// The objects that this daemon's drivers work with, which the rows do not show.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    /// The ids of the instances that an operation is working on.
    pub busy: BTreeSet<InstanceId>,
    /// The generations that serve, are being made, or are standbys, by the id that they are filed under. They stay even if
    /// their instance should be down, because clients may reach them.
    pub generations: BTreeMap<InstanceId, BTreeSet<u64>>,
}

/// The state that is kept between passes.
#[derive(Debug)]
pub(crate) struct Memory {
    began: Instant,
    suspects: Suspects,
    /// The failures that have been reported and have not succeeded since.
    failing: BTreeSet<String>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { began: Instant::now(), suspects: Suspects::default(), failing: BTreeSet::new() }
    }
}

/// The results of one pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    removed: Vec<String>,
    /// The objects or steps that failed, each with its error.
    failures: Vec<(String, ReconcileError)>,
}

impl Findings {
    /// Returns the value of a result; records the error and returns `None` if there is one.
    fn take<T>(&mut self, doing: &str, result: Result<T, impl Into<ReconcileError>>) -> Option<T> {
        result.map_err(|error| self.failures.push((doing.to_owned(), error.into()))).ok()
    }
}

/// Removes orphans and reports changes. `hands` returns the objects that this daemon's drivers work with. At a daemon's
/// start there is no grace period: the daemon's lock proves that no other daemon is at work.
pub(crate) async fn pass(
    shared: &SharedParts,
    hands: impl Fn() -> Hands + Send,
    memory: &mut Memory,
    is_at_start: bool,
) {
    let mut findings = Findings::default();
    let found = found::list(shared, &mut findings).await;
    if found.answers {
        places::note(shared, &found, &mut findings).await;
    }
    let given_up = findings.take("reading the imports", imports::tend(shared).await);
    for (snapshot, error) in given_up.into_iter().flatten() {
        findings.failures.push((format!("giving up the import of {snapshot}"), error.into()));
    }
    if let Some(claims) = findings.take("reading what is wanted", claims(shared, &hands).await) {
        let grace = if is_at_start { Duration::ZERO } else { GRACE };
        for thing in plan(&found.things, &claims, &mut memory.suspects, memory.began.elapsed(), grace) {
            remove(shared, &hands, thing, &mut findings).await;
        }
    }
    tell(shared, memory, findings).await;
}

/// Removes one object, unless it has been claimed while others were removed.
async fn remove(shared: &SharedParts, hands: &(impl Fn() -> Hands + Send), thing: &Thing, findings: &mut Findings) {
    let name = thing.describe();
    // The names of snapshots' trees, archives and images derive from their content, so an orphan may meanwhile have
    // been created again and claimed.
    if matches!(thing.kind, ObjectKind::Tree | ObjectKind::Image | ObjectKind::Archive) {
        match claims(shared, hands).await {
            Ok(claims) if claims.judge(thing) == Judgement::LeftOver => {}
            Ok(_) => return,
            Err(error) => return findings.failures.push((name, error)),
        }
    }
    let removed: Result<(), ReconcileError> = match thing.kind {
        ObjectKind::Container => {
            shared.engine.remove(&arenad_engine::EngineHandle(thing.id.clone())).await.map_err(Into::into)
        }
        ObjectKind::Network => shared.engine.remove_network(&thing.id).await.map_err(Into::into),
        ObjectKind::Volume => shared.engine.remove_volume(&thing.id).await.map_err(Into::into),
        ObjectKind::Image => match snapshot::release(&shared.baselines, &thing.id).await {
            // Another container runs from it, or another image builds on it. It stays until they are gone.
            Err(error @ EngineError::Conflict { .. }) => {
                tracing::debug!(error = describe(&error), "an image that no snapshot names is in use");
                return;
            }
            released => released.map_err(Into::into),
        },
        ObjectKind::Tree => found::discard(shared, &thing.id).await,
        ObjectKind::Archive => match std::fs::remove_file(shared.state_dir.volumes().join(&thing.id)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            removed => removed.map_err(Into::into),
        },
    };
    if findings.take(&name, removed).is_some() {
        findings.removed.push(name);
    }
}

/// Returns the objects that the store and the drivers claim. The drivers are read both before and after the rows,
/// because a serving generation may become a standby, and a standby may begin to serve, between the two reads.
async fn claims(shared: &SharedParts, hands: &(impl Fn() -> Hands + Send)) -> Result<Claims, ReconcileError> {
    let before = hands();
    // Standbys that were ready when the last daemon ended are adopted by this one.
    let mut claims = Claims { generations: shared.store.claimed_generations().await?, ..Claims::default() };
    claims.kept_builders = shared.baselines.kept_builds.list();
    claims.elsewhere = shared.store.generations_elsewhere().await?;
    let awaited = imports::awaited(shared).await?;
    claims.awaits_archives = !awaited.snapshots.is_empty();
    claims.snapshots = awaited.snapshots;
    claims.images = awaited.images;
    claims.archives = awaited.volumes;
    for stored in shared.store.snapshots().await? {
        claims.snapshots.insert(stored.id);
        claims.images.extend(stored.images.into_values());
        claims.archives.extend(stored.volumes.into_values().flat_map(BTreeMap::into_values));
    }
    for hands in [before, hands()] {
        claims.busy.extend(hands.busy);
        for (instance, generations) in hands.generations {
            claims.generations.entry(instance).or_default().extend(generations);
        }
    }
    Ok(claims)
}

/// Reports the removed objects, and each failure once; a failure is reported again only after a success in between.
async fn tell(shared: &SharedParts, memory: &mut Memory, findings: Findings) {
    if !findings.removed.is_empty() {
        let message = format!("removed left-over objects: {}", findings.removed.join(", "));
        shared.events.note(EventKind::ReconcileRemoved, None, &message).await;
    }
    let mut failing = BTreeSet::new();
    for (what, error) in findings.failures {
        if failing.contains(&what) {
            continue;
        }
        if !memory.failing.contains(&what) {
            let message = format!("reconciliation failed at {what}: {}; it is retried every minute", describe(&error));
            shared.events.note(EventKind::ReconcileFailed, None, &message).await;
        }
        failing.insert(what);
    }
    // A failure whose object is still an orphan and was not tried in this pass has not succeeded.
    let Memory { failing: before, suspects, .. } = memory;
    before.retain(|what| suspects.has(what));
    before.append(&mut failing);
}
