//! Snapshots of stopped containers: taking them, checking whether they are complete, and removing them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;

use super::{BaselineError, BaselineParts};
use arenad_engine::{ContainerState, EngineError, labels};
use arenad_export::content_id;
use arenad_launch::{self as launch, Incarnation, SavedVolumes, StateMount, StateSource};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::event::EventKind;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::snapshot::{Snapshot, SnapshotId, VolumeFiles};
use arenad_seams::fault::{self, Point};
use arenad_storage::StoreTree;

/// The repository name of committed images.
pub const REPOSITORY: &str = "arenad-snapshot";

/// The exit code of a process that SIGKILL ended because the grace period was too short for it.
const KILLED: i64 = 137;

/// The purpose of a snapshot, which decides how it is identified.
#[derive(Debug, Clone)]
pub enum SnapshotPurpose {
    /// The snapshot becomes the baseline of this key.
    Baseline {
        /// SHA-256 of the definition's relevant parts and the images' ids.
        key: String,
        /// SHA-256 of the definition's relevant parts and the builds' inputs, the same on every host.
        recipe: String,
    },
    /// A person asked for the snapshot.
    Named {
        /// The name that the person gave it.
        name: String,
    },
    /// The forks of a running episode start from the snapshot.
    Copy(SnapshotCopy),
}

/// The identity of a copy for the forks of an episode.
#[derive(Debug, Clone)]
pub struct SnapshotCopy {
    /// The id of the copy.
    pub id: SnapshotId,
    /// The episode whose state it holds.
    pub episode: EpisodeId,
    /// The time that the clocks of containers start from which are made from it: that of the episode's own snapshot.
    pub clock_start: Timestamp,
}

/// Stops the writers and then the containers, dependent containers first.
pub async fn stop_cleanly(parts: &BaselineParts, site: &Site, incarnation: &Incarnation) -> Result<(), BaselineError> {
    let engine = parts.engine.as_ref();
    for step in &site.baseline.quiesce {
        launch::run(engine, incarnation, step).await.map_err(BaselineError::Quiesce)?;
    }
    for service in site.services.iter().rev() {
        let Some(handle) = incarnation.containers.get(&service.name) else {
            continue;
        };
        engine.stop(handle, service.stop_grace_period).await?;
        let status = engine.inspect(handle).await?;
        let what = match status.state {
            ContainerState::Exited(KILLED) => {
                format!("it did not end within its stop_grace_period of {:?} and was killed", service.stop_grace_period)
            }
            ContainerState::Exited(_) => continue,
            state => format!("it is {state:?}"),
        };
        return Err(BaselineError::NotClean { service: service.name.clone(), what });
    }
    Ok(())
}

/// Commits stopped containers, saves their volumes and trees, and writes the row.
pub async fn store(
    parts: &BaselineParts,
    id: &InstanceId,
    site: &Site,
    incarnation: &Incarnation,
    purpose: SnapshotPurpose,
) -> Result<Snapshot, BaselineError> {
    let engine = parts.engine.as_ref();
    let labels = BTreeMap::from([
        (labels::INSTALLATION.to_owned(), parts.installation.clone()),
        (labels::ENVIRONMENT.to_owned(), id.environment.to_string()),
        (labels::SITE.to_owned(), site.name.to_string()),
        (labels::ROLE.to_owned(), labels::ROLE_SNAPSHOT.to_owned()),
    ]);
    let mut layers: BTreeMap<&ServiceName, Vec<String>> = BTreeMap::new();
    let mut images = BTreeMap::new();
    let mut size_bytes = 0;
    for (service, handle) in &incarnation.containers {
        // A tag protects the image from `docker image prune`. It names the service, and its random end makes it unique.
        let tag = format!("{}-{}-{service}-{:08x}", id.environment, site.name, rand::random::<u32>());
        let image_id = engine.commit(handle, REPOSITORY, &tag, &labels).await?;
        let image = engine.image(&image_id).await?.ok_or_else(|| EngineError::NotFound {
            doing: "look up the committed image".to_owned(),
            message: image_id.clone(),
        })?;
        layers.insert(service, image.layers);
        size_bytes += image.size_bytes;
        images.insert(service.clone(), image_id);
    }
    fault::reach(Point::SnapshotCommitted).await;
    let volumes = launch::save_volumes(engine, site, &incarnation.containers, &parts.volumes).await?;
    let names = |paths: BTreeMap<String, PathBuf>| paths.into_iter().map(|(path, file)| (path, name(&file))).collect();
    let volumes: VolumeFiles = volumes.into_iter().map(|(service, paths)| (service, names(paths))).collect();
    let (is_named, is_baseline) =
        (matches!(purpose, SnapshotPurpose::Named { .. }), matches!(purpose, SnapshotPurpose::Baseline { .. }));
    // The content of the state root is not part of any image's layers.
    let fingerprint = match parts.storage.as_ref().filter(|_| is_named) {
        Some(storage) => launch::fingerprint(storage, site, id, incarnation.made).await?,
        None => None,
    };
    let by_service = layers.iter().map(|(service, layers)| (service.as_str(), layers.as_slice()));
    let archives = volumes.iter().map(|(service, paths)| (service.as_str(), paths));
    let id_text = match &purpose {
        SnapshotPurpose::Copy(copy) => copy.id.to_string(),
        SnapshotPurpose::Baseline { .. } | SnapshotPurpose::Named { .. } => {
            content_id(id.environment.as_str(), site.name.as_str(), by_service, archives, fingerprint.as_deref())
        }
    };
    if is_named && let Some((name, endpoint)) = parts.store.named_elsewhere(&id_text).await? {
        return Err(BaselineError::KeptElsewhere { id: id_text, name, endpoint });
    }
    let state = match &parts.storage {
        Some(storage) => {
            let live = (!is_baseline).then_some((id, incarnation.made));
            launch::save_state(engine, storage, site, &incarnation.containers, live, &id_text).await?;
            launch::state_mounts(site).into_iter().map(|mount| mount.name).collect()
        }
        None => Vec::new(),
    };
    fault::reach(Point::SnapshotSaved).await;
    let (mut baseline_key, mut recipe, mut name, mut copied_from) = (None, None, None, None);
    let mut created_at = parts.clock.now();
    match purpose {
        SnapshotPurpose::Baseline { key, recipe: of } => (baseline_key, recipe) = (Some(key), Some(of)),
        SnapshotPurpose::Named { name: given } => name = Some(given),
        SnapshotPurpose::Copy(copy) => (copied_from, created_at) = (Some(copy.episode), copy.clock_start),
    }
    let snapshot = Snapshot {
        id: id_text.into(),
        environment: id.environment.clone(),
        site: site.name.clone(),
        baseline_key,
        name,
        images,
        volumes,
        state,
        recipe,
        copied_from,
        is_imported: false,
        size_bytes,
        created_at,
    };
    parts.store.save_snapshot(&snapshot).await?;
    if snapshot.is_copy() {
        return Ok(snapshot);
    }
    let what = if snapshot.is_baseline() { "baseline" } else { "snapshot" };
    let message = format!("{what} {} of {}/{} is stored", snapshot.id, id.environment, site.name);
    parts.events.note(EventKind::SnapshotStored, Some(id), &message).await;
    Ok(snapshot)
}

/// Stores the state of containers whose writers rest, and which hold what they were made from outside of their stores.
/// `of` is the snapshot that they were made from.
pub async fn copy_at_rest(
    parts: &BaselineParts,
    id: &InstanceId,
    site: &Site,
    incarnation: &Incarnation,
    of: &Snapshot,
    copy: SnapshotCopy,
) -> Result<Snapshot, BaselineError> {
    let mut state = Vec::new();
    if let Some(storage) = &parts.storage {
        let live = Some((id, incarnation.made));
        launch::save_state(parts.engine.as_ref(), storage, site, &incarnation.containers, live, &copy.id).await?;
        state.extend(launch::state_mounts(site).into_iter().map(|mount| mount.name));
    }
    fault::reach(Point::SnapshotSaved).await;
    let snapshot = Snapshot {
        id: copy.id,
        baseline_key: None,
        name: None,
        recipe: None,
        state,
        copied_from: Some(copy.episode),
        is_imported: false,
        size_bytes: 0,
        created_at: copy.clock_start,
        ..of.clone()
    };
    parts.store.save_snapshot(&snapshot).await?;
    Ok(snapshot)
}

fn name(file: &std::path::Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the paths of a snapshot's volume archives.
pub fn saved_volumes(parts: &BaselineParts, snapshot: &Snapshot) -> SavedVolumes {
    let files = |paths: &BTreeMap<String, String>| -> BTreeMap<String, PathBuf> {
        paths.iter().map(|(path, file)| (path.clone(), parts.volumes.join(file))).collect()
    };
    snapshot.volumes.iter().map(|(service, paths)| (service.clone(), files(paths))).collect()
}

/// Returns the snapshot's trees for a generation of the site; `None` if there is no state root or the snapshot has no
/// tree in it.
pub fn state<'a>(parts: &'a BaselineParts, snapshot: &Snapshot) -> Option<StateSource<'a>> {
    let storage = parts.storage.as_ref().filter(|_| !snapshot.state.is_empty())?;
    Some(StateSource { storage, snapshot: snapshot.id.to_string() })
}

/// Whether the images, archives and trees that instances of the site are made from all exist.
pub async fn is_usable(parts: &BaselineParts, site: &Site, snapshot: &Snapshot) -> Result<bool, EngineError> {
    Ok(is_whole(parts, snapshot).await? && has_state(parts, site, snapshot))
}

/// Whether the state root holds all trees of a snapshot that the site's stores need.
fn has_state(parts: &BaselineParts, site: &Site, snapshot: &Snapshot) -> bool {
    let Some(storage) = &parts.storage else { return true };
    let is_there = |mount: &StateMount| {
        let tree = mount.of_snapshot(&snapshot.id);
        snapshot.state.contains(&mount.name) && tree.is_ok_and(|tree| storage.root().is_whole(&tree))
    };
    launch::state_mounts(site).iter().all(is_there)
}

/// Whether all images and archives of a snapshot exist; a person may have removed some.
pub async fn is_whole(parts: &BaselineParts, snapshot: &Snapshot) -> Result<bool, EngineError> {
    for image in snapshot.images.values() {
        if parts.engine.image(image).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(saved_volumes(parts, snapshot).values().flat_map(BTreeMap::values).all(|file| file.is_file()))
}

/// Removes a snapshot's row, then its trees, images and archives, except those that another snapshot names. The order
/// matters: a row without images would count as a snapshot, while images without a row are leftovers that
/// reconciliation removes.
pub async fn remove(parts: &BaselineParts, snapshot: &Snapshot) -> Result<(), BaselineError> {
    parts.store.forget_snapshot(&snapshot.id).await?;
    let others = parts.store.snapshots().await?;
    if let Some(storage) = &parts.storage {
        for name in &snapshot.state {
            storage.discard(&StoreTree::snapshot(&snapshot.id, name)?).await?;
        }
    }
    for image in snapshot.images.values() {
        if !others.iter().any(|other| other.images.values().any(|named| named == image)) {
            match release(parts, image).await {
                // An image of another snapshot is based on this one. It is removed once that image is gone, like every
                // image that no snapshot names.
                Err(EngineError::Conflict { .. }) => {}
                result => result?,
            }
        }
    }
    let named: Vec<&String> = others.iter().flat_map(Snapshot::archives).collect();
    for file in snapshot.archives() {
        if !named.contains(&file) {
            // The file may be gone already; if the removal fails, `prune` finds the file later.
            let _ = tokio::fs::remove_file(parts.volumes.join(file)).await;
        }
    }
    Ok(())
}

/// The tag that marks an image as part of an imported snapshot of this installation.
pub fn import_tag(installation: &str, snapshot: &str, service: &str) -> String {
    format!("{}{snapshot}-{service}", import_prefix(installation))
}

fn import_prefix(installation: &str) -> String {
    format!("import-{installation}-")
}

/// Removes an image that no snapshot of this installation names any more. If snapshots travel between installations of
/// one engine, another installation may use the image; then it loses only the names that this installation gave it.
pub async fn release(parts: &BaselineParts, id: &str) -> Result<(), EngineError> {
    let engine = parts.engine.as_ref();
    let Some(image) = engine.image(id).await? else { return Ok(()) };
    let is_made_here = image.labels.get(labels::INSTALLATION) == Some(&parts.installation);
    let ours = import_prefix(&parts.installation);
    let is_ours = |name: &&String| match name.strip_prefix(REPOSITORY).and_then(|rest| rest.strip_prefix(':')) {
        Some(tag) if tag.starts_with("import-") => tag.starts_with(&ours),
        Some(_) => is_made_here,
        None => false,
    };
    let mut result = Ok(());
    if image.tags.iter().all(|name| is_ours(&name)) {
        result = engine.remove_image(id).await;
        // Other images are based on it. It is removed with the last of them if it has no name.
        if !matches!(result, Err(EngineError::Conflict { .. })) {
            return result;
        }
    }
    for name in image.tags.iter().filter(is_ours) {
        match engine.untag(name).await {
            // A container uses it.
            Err(EngineError::Conflict { .. }) => {}
            untagged => untagged?,
        }
    }
    result
}
