//! Reconciliation: the engine's things against the store's rows. The pass that runs at start is the pass that runs every
//! minute, so recovery is exercised all the time.

use std::collections::{BTreeMap, BTreeSet};

use super::baseline::{BaselineError, snapshot};
use super::imports::{self, Awaited};
use super::shared::Shared;
use super::store::StoreError;
use crate::domain::reconcile::{Known, Labelled, Suspects};
use crate::engine::{EngineError, labels};
use crate::probes::describe;
use crate::storage::{StorageError, Tree};

/// Why a pass could not look at everything.
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
    /// A snapshot could not be removed.
    #[error(transparent)]
    Snapshot(#[from] BaselineError),
}

/// What this daemon has in hand, of which the rows say nothing.
#[derive(Debug, Default)]
pub struct Hands {
    /// The instances that an operation is working on.
    pub busy: BTreeSet<String>,
    /// The generations of each instance's standbys.
    pub standbys: BTreeMap<String, BTreeSet<u64>>,
}

fn labelled(name: &str, labels: &BTreeMap<String, String>) -> Option<Labelled> {
    let role = labels.get(labels::ROLE)?;
    // A container that someone runs by hand from one of our snapshots inherits the image's labels, whose role is
    // `snapshot`: it is theirs.
    if role != labels::ROLE_INSTANCE && role != labels::ROLE_BUILDER {
        return None;
    }
    Some(Labelled {
        name: name.to_owned(),
        instance: labels.get(labels::INSTANCE)?.clone(),
        generation: labels.get(labels::GENERATION)?.parse().ok()?,
        is_builder: role == labels::ROLE_BUILDER,
    })
}

/// Removes what is left over; returns how many things went. `hands` says what this daemon is working with. Without
/// `suspects` there is no grace: right at a daemon's start, when its lock proves that nobody is at work.
pub async fn pass(
    shared: &Shared,
    hands: impl Fn() -> Hands + Send,
    mut suspects: Option<&mut Suspects>,
) -> Result<usize, ReconcileError> {
    let engine = shared.engine.as_ref();
    let ours = &shared.installation;
    // Listed before the rows are read: a generation has its row before its first container, so that whatever is made in
    // between is on neither list, and what was being made is that of an operation that is busy or has ended.
    let containers = engine.containers(labels::INSTALLATION, ours).await?;
    let networks = engine.networks(labels::INSTALLATION, ours).await?;
    let volumes = engine.volumes(labels::INSTALLATION, ours).await?;
    let known = known(shared, hands()).await?;
    let awaited = imports::tend(shared).await?;
    let is_left_over = |name: &str, labels| labelled(name, labels).is_some_and(|thing| known.is_orphan(&thing));
    let mut is_due = |name: &str| suspects.as_mut().is_none_or(|suspects| suspects.note(name));
    let mut removed = Vec::new();
    for container in containers.iter().filter(|found| is_left_over(&found.name, &found.labels)) {
        let name = format!("container {}", container.name);
        if is_due(&name) {
            engine.remove(&container.handle).await?;
            removed.push(name);
        }
    }
    for network in networks.iter().filter(|found| is_left_over(&found.name, &found.labels)) {
        let name = format!("network {}", network.name);
        if is_due(&name) {
            engine.remove_network(&network.name).await?;
            removed.push(name);
        }
    }
    for volume in volumes.iter().filter(|found| is_left_over(&found.name, &found.labels)) {
        let name = format!("volume {}", volume.name);
        if is_due(&name) {
            engine.remove_volume(&volume.name).await?;
            removed.push(name);
        }
    }
    if let Some(storage) = &shared.storage {
        let snapshots = shared.store.snapshots().await?;
        for tree in storage.trees().await? {
            let is_left_over = match &tree {
                Tree::Instance { instance, generation, .. } => known.is_orphan(&Labelled {
                    name: String::new(),
                    instance: instance.to_string(),
                    generation: *generation,
                    is_builder: false,
                }),
                // One that is being taken has no row yet.
                Tree::Snapshot { snapshot, .. } => {
                    known.busy.is_empty()
                        && !awaited.snapshots.contains(snapshot)
                        && !snapshots.iter().any(|stored| stored.id == *snapshot)
                }
            };
            let name = format!("state {tree}");
            if is_left_over && is_due(&name) {
                storage.discard(&tree).await?;
                removed.push(name);
            }
        }
    }
    if let Some(suspects) = suspects {
        suspects.end_pass();
    }
    if known.busy.is_empty() {
        removed.extend(images(shared, &awaited).await?);
        removed.extend(archives(shared, &awaited).await?);
    }
    if !removed.is_empty() {
        let message = format!("removed what was left over: {}", removed.join(", "));
        shared.events.note("reconcile.removed", None, &message).await;
    }
    Ok(removed.len())
}

async fn known(shared: &Shared, hands: Hands) -> Result<Known, StoreError> {
    let mut known = Known { busy: hands.busy, generations: hands.standbys };
    for environment in shared.store.environments().await? {
        for instance in shared.store.instances(&environment.name).await? {
            if instance.desired_up {
                // Ready when the last daemon ended: this one takes them up.
                let standbys = shared.store.standbys(&instance.id).await?.into_iter().map(|standby| standby.made);
                known.generations.entry(instance.id.clone()).or_default().extend(standbys);
                known.generations.entry(instance.id).or_default().extend(instance.serving.map(|serving| serving.made));
            }
        }
    }
    Ok(known)
}

/// Removes committed images that no snapshot names: a crash came between commit and row.
async fn images(shared: &Shared, awaited: &Awaited) -> Result<Vec<String>, ReconcileError> {
    let images = shared.engine.images(labels::INSTALLATION, Some(&shared.installation)).await?;
    let mut snapshots = shared.store.snapshots().await?;
    let mut removed = Vec::new();
    let is_listed = |id: &String| images.iter().any(|image| image.id == *id);
    for stored in snapshots.clone() {
        // Someone has removed its images, and nothing is running from it: a name for nothing.
        let is_broken = !stored.images.values().all(is_listed) && !snapshot::is_whole(shared, &stored).await?;
        if is_broken && shared.store.snapshot_users(&stored.id).await?.is_empty() {
            snapshot::remove(shared, &stored).await?;
            removed.push(format!("snapshot {}, whose images are gone", stored.id));
            snapshots.retain(|kept| kept.id != stored.id);
        }
    }
    for image in images {
        let is_snapshot = image.labels.get(labels::ROLE).is_some_and(|role| role == labels::ROLE_SNAPSHOT);
        let is_named = awaited.images.contains(&image.id)
            || snapshots.iter().any(|snapshot| snapshot.images.values().any(|id| *id == image.id));
        if !is_snapshot || is_named {
            continue;
        }
        match snapshot::release(shared, &image.id).await {
            Ok(()) => removed.push(format!("image {}", image.tags.first().unwrap_or(&image.id))),
            // Someone runs a container from it, or built on it. It stays until they are done.
            Err(error @ EngineError::Conflict { .. }) => {
                tracing::debug!(error = describe(&error), "an image that no snapshot names is in use");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(removed)
}

/// Removes the archives of volumes that no snapshot names: those of a snapshot that was never finished, or is gone.
async fn archives(shared: &Shared, awaited: &Awaited) -> Result<Vec<String>, ReconcileError> {
    let snapshots = shared.store.snapshots().await?;
    let named: BTreeSet<&String> =
        snapshots.iter().flat_map(|snapshot| snapshot.volumes.values().flat_map(|paths| paths.values())).collect();
    let mut removed = Vec::new();
    // No folder: no snapshot has ever had a volume.
    let Ok(mut folder) = tokio::fs::read_dir(shared.state_dir.volumes()).await else {
        return Ok(removed);
    };
    while let Ok(Some(entry)) = folder.next_entry().await {
        let name = entry.file_name().to_string_lossy().into_owned();
        // One that is still being written is nobody's yet.
        let is_awaited =
            awaited.volumes.contains(&name) || (!awaited.snapshots.is_empty() && name.ends_with(".partial"));
        if !is_awaited && !named.contains(&name) && tokio::fs::remove_file(entry.path()).await.is_ok() {
            removed.push(format!("archive {name}"));
        }
    }
    Ok(removed)
}
