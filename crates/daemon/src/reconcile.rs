//! Reconciliation: what the engine and the state directory hold, against the store's rows and the drivers. The pass that
//! runs at start is the pass that runs every minute, so recovery is exercised all the time.
//!
//! A pass goes on after an error: what cannot be looked at is not judged, what cannot be removed is tried again in the next
//! pass, and each cause is told once. No row is ever removed: a snapshot without images is news, not a leftover.

mod found;
mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::imports;
use arenad_engine::EngineError;
use arenad_instance::MeetError;
use arenad_instance::baseline::{BaselineError, snapshot};
use arenad_instance::shared::Shared;
use arenad_model::error::describe;
use arenad_model::reconcile::{Claims, Judgement, Kind, Suspects, Thing, plan};
use arenad_storage::StorageError;
use arenad_store::StoreError;

/// How long a thing must have been left over until it goes: longer than two passes that follow each other by chance, shorter
/// than the time between two by the schedule.
const GRACE: Duration = Duration::from_secs(45);

/// Why something could not be looked at, or removed.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The engine could not be asked.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state root refused something.
    #[error(transparent)]
    State(#[from] StorageError),
    /// The engine in use could not be noted.
    #[error(transparent)]
    Meet(#[from] MeetError),
    /// An import could not be looked after.
    #[error(transparent)]
    Import(#[from] BaselineError),
    /// A file of the state directory could not be removed.
    #[error("remove the file")]
    File(#[from] std::io::Error),
}

/// What this daemon has in hand, of which the rows say nothing.
#[derive(Debug, Default)]
pub struct Hands {
    /// The instances that an operation is working on.
    pub busy: BTreeSet<String>,
    /// The generations of each instance's standbys.
    pub standbys: BTreeMap<String, BTreeSet<u64>>,
    /// The generation that serves of each instance, whatever is wanted of it: nothing that clients reach is left over.
    pub serving: BTreeMap<String, u64>,
}

/// What is remembered from one pass to the next.
#[derive(Debug)]
pub struct Memory {
    began: Instant,
    suspects: Suspects,
    /// What has failed and been told, until it succeeds.
    failing: BTreeSet<String>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { began: Instant::now(), suspects: Suspects::default(), failing: BTreeSet::new() }
    }
}

/// What a pass has come to.
#[derive(Debug, Default)]
pub(super) struct Findings {
    removed: Vec<String>,
    /// What failed, and why.
    failures: Vec<(String, ReconcileError)>,
}

impl Findings {
    /// The value; or none, and its error is noted.
    fn take<T>(&mut self, doing: &str, result: Result<T, impl Into<ReconcileError>>) -> Option<T> {
        result.map_err(|error| self.failures.push((doing.to_owned(), error.into()))).ok()
    }
}

/// Removes what is left over, and tells what has changed. `hands` says what this daemon is working with. At a daemon's start
/// there is no grace: its lock proves that nobody is at work.
pub async fn pass(shared: &Shared, hands: impl Fn() -> Hands + Send, memory: &mut Memory, is_at_start: bool) {
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

/// Removes one thing, unless it has come to be wanted while others were removed.
async fn remove(shared: &Shared, hands: &(impl Fn() -> Hands + Send), thing: &Thing, findings: &mut Findings) {
    let name = thing.describe();
    // Files and images of snapshots are known by what is in them: what was left over may have been taken anew.
    if matches!(thing.kind, Kind::Tree | Kind::Image | Kind::Archive) {
        match claims(shared, hands).await {
            Ok(claims) if claims.judge(thing) == Judgement::LeftOver => {}
            Ok(_) => return,
            Err(error) => return findings.failures.push((name, error)),
        }
    }
    let removed: Result<(), ReconcileError> = match thing.kind {
        Kind::Container => {
            shared.engine.remove(&arenad_engine::EngineHandle(thing.id.clone())).await.map_err(Into::into)
        }
        Kind::Network => shared.engine.remove_network(&thing.id).await.map_err(Into::into),
        Kind::Volume => shared.engine.remove_volume(&thing.id).await.map_err(Into::into),
        Kind::Image => match snapshot::release(shared, &thing.id).await {
            // Someone runs a container from it, or built on it. It stays until they are done.
            Err(error @ EngineError::Conflict { .. }) => {
                tracing::debug!(error = describe(&error), "an image that no snapshot names is in use");
                return;
            }
            released => released.map_err(Into::into),
        },
        Kind::Tree => found::discard(shared, &thing.id).await,
        Kind::Archive => match std::fs::remove_file(shared.state_dir.volumes().join(&thing.id)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            removed => removed.map_err(Into::into),
        },
    };
    if findings.take(&name, removed).is_some() {
        findings.removed.push(name);
    }
}

/// What the store and the drivers claim. The drivers are asked before the rows are read and again afterwards: what serves
/// becomes a standby, and a standby serves, between two looks.
async fn claims(shared: &Shared, hands: &(impl Fn() -> Hands + Send)) -> Result<Claims, ReconcileError> {
    let before = hands();
    let mut claims = Claims::default();
    for environment in shared.store.environments().await? {
        for instance in shared.store.instances(&environment.name).await? {
            if instance.desired_up {
                // Ready when the last daemon ended: this one takes them up.
                for standby in shared.store.standbys(&instance.id).await? {
                    claims.claim(&instance.id, standby.made);
                }
                if let Some(serving) = instance.serving {
                    claims.claim(&instance.id, serving.made);
                }
            }
        }
    }
    claims.kept_builders = shared.kept_builds.list();
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
        for (instance, made) in &hands.serving {
            claims.claim(instance, *made);
        }
        for (instance, standbys) in hands.standbys {
            claims.generations.entry(instance).or_default().extend(standbys);
        }
    }
    Ok(claims)
}

/// Tells what was removed, and each failure once: again only after it has succeeded in between.
async fn tell(shared: &Shared, memory: &mut Memory, findings: Findings) {
    if !findings.removed.is_empty() {
        let message = format!("removed what was left over: {}", findings.removed.join(", "));
        shared.events.note("reconcile.removed", None, &message).await;
    }
    let mut failing = BTreeSet::new();
    for (what, error) in findings.failures {
        if failing.contains(&what) {
            continue;
        }
        if !memory.failing.contains(&what) {
            let message =
                format!("reconciliation failed at {what}: {}; it is tried again every minute", describe(&error));
            shared.events.note("reconcile.failed", None, &message).await;
        }
        failing.insert(what);
    }
    // What is still left over and was not tried this time has not succeeded.
    let Memory { failing: before, suspects, .. } = memory;
    before.retain(|what| suspects.has(what));
    before.append(&mut failing);
}
