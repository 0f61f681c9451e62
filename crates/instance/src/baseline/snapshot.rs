//! Taking snapshots of stopped containers, knowing whether one is whole, and removing one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::BaselineError;
use crate::shared::Shared;
use arenad_engine::{ContainerState, EngineError, labels};
use arenad_export::content_id;
use arenad_launch::{self as launch, Incarnation, SavedVolumes, StateMount, StateSource};
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::snapshot::{Snapshot, VolumeFiles};
use arenad_seams::fault::{self, Point};
use arenad_storage::Tree;

/// The repository name of committed images.
pub const REPOSITORY: &str = "arenad-snapshot";

/// The exit code of a process that SIGKILL ended: the grace period was too short for it.
const KILLED: i64 = 137;

/// What a snapshot is taken for.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// To be the baseline made from this key.
    Baseline {
        /// What it was made from.
        key: String,
        /// The same, apart from who built it where.
        recipe: String,
    },
    /// Because a person asked.
    Named {
        /// What they call it.
        name: String,
    },
}

/// Brings the writers to rest and stops the containers, the dependent ones first.
pub async fn stop_cleanly(shared: &Shared, site: &Site, incarnation: &Incarnation) -> Result<(), BaselineError> {
    let engine = shared.engine.as_ref();
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

/// Commits stopped containers, saves their volumes, and writes the row.
pub async fn store(
    shared: &Shared,
    id: &InstanceId,
    site: &Site,
    incarnation: &Incarnation,
    purpose: Purpose,
) -> Result<Snapshot, BaselineError> {
    let engine = shared.engine.as_ref();
    let labels = BTreeMap::from([
        (labels::INSTALLATION.to_owned(), shared.installation.clone()),
        (labels::ENVIRONMENT.to_owned(), id.environment.to_string()),
        (labels::SITE.to_owned(), site.name.to_string()),
        (labels::ROLE.to_owned(), labels::ROLE_SNAPSHOT.to_owned()),
    ]);
    let mut layers: BTreeMap<&ServiceName, Vec<String>> = BTreeMap::new();
    let mut images = BTreeMap::new();
    let mut size_bytes = 0;
    for (service, handle) in &incarnation.containers {
        // A tag keeps `docker image prune` away; the name says what it is, the random end keeps two apart.
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
    let folder = shared.state_dir.volumes();
    let volumes = launch::save_volumes(engine, site, &incarnation.containers, &folder).await?;
    let names = |paths: BTreeMap<String, PathBuf>| paths.into_iter().map(|(path, file)| (path, name(&file))).collect();
    let volumes: VolumeFiles = volumes.into_iter().map(|(service, paths)| (service, names(paths))).collect();
    let is_named = matches!(purpose, Purpose::Named { .. });
    // What lies in the state root is in no image's layers.
    let fingerprint = match shared.storage.as_ref().filter(|_| is_named) {
        Some(storage) => launch::fingerprint(storage, site, id, incarnation.made).await?,
        None => None,
    };
    let by_service = layers.iter().map(|(service, layers)| (service.as_str(), layers.as_slice()));
    let archives = volumes.iter().map(|(service, paths)| (service.as_str(), paths));
    let id_text = content_id(id.environment.as_str(), site.name.as_str(), by_service, archives, fingerprint.as_deref());
    if is_named && let Some((name, endpoint)) = shared.store.named_elsewhere(&id_text).await? {
        return Err(BaselineError::KeptElsewhere { id: id_text, name, endpoint });
    }
    let state = match &shared.storage {
        Some(storage) => {
            let live = is_named.then_some((id, incarnation.made));
            launch::save_state(engine, storage, site, &incarnation.containers, live, &id_text).await?;
            launch::state_mounts(site).into_iter().map(|mount| mount.name).collect()
        }
        None => Vec::new(),
    };
    fault::reach(Point::SnapshotSaved).await;
    let (baseline_key, recipe, name) = match purpose {
        Purpose::Baseline { key, recipe } => (Some(key), Some(recipe), None),
        Purpose::Named { name } => (None, None, Some(name)),
    };
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
        is_imported: false,
        size_bytes,
        created_at: shared.clock.now(),
    };
    shared.store.save_snapshot(&snapshot).await?;
    let what = if snapshot.is_baseline() { "baseline" } else { "snapshot" };
    let message = format!("{what} {} of {}/{} is stored", snapshot.id, id.environment, site.name);
    shared.events.note("snapshot.stored", Some(&id.to_string()), &message).await;
    Ok(snapshot)
}

fn name(file: &std::path::Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Where a snapshot's volume archives are.
pub fn saved_volumes(shared: &Shared, snapshot: &Snapshot) -> SavedVolumes {
    let folder = shared.state_dir.volumes();
    let files = |paths: &BTreeMap<String, String>| -> BTreeMap<String, PathBuf> {
        paths.iter().map(|(path, file)| (path.clone(), folder.join(file))).collect()
    };
    snapshot.volumes.iter().map(|(service, paths)| (service.clone(), files(paths))).collect()
}

/// The snapshot's state for a generation of the site; none where there is no state root, or nothing of the site lies in it.
pub fn state<'a>(shared: &'a Shared, snapshot: &Snapshot) -> Option<StateSource<'a>> {
    let storage = shared.storage.as_ref().filter(|_| !snapshot.state.is_empty())?;
    Some(StateSource { storage, snapshot: snapshot.id.to_string() })
}

/// Whether the state root has, of a snapshot, what a site's stores need.
pub fn has_state(shared: &Shared, site: &Site, snapshot: &Snapshot) -> bool {
    let Some(storage) = &shared.storage else { return true };
    let is_there = |mount: &StateMount| {
        let tree = mount.of_snapshot(&snapshot.id);
        snapshot.state.contains(&mount.name) && tree.is_ok_and(|tree| storage.root().is_whole(&tree))
    };
    launch::state_mounts(site).iter().all(is_there)
}

/// Whether everything that a snapshot names is still there: someone may have removed images behind our back.
pub async fn is_whole(shared: &Shared, snapshot: &Snapshot) -> Result<bool, EngineError> {
    for image in snapshot.images.values() {
        if shared.engine.image(image).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(saved_volumes(shared, snapshot).values().flat_map(BTreeMap::values).all(|file| file.is_file()))
}

/// Removes a snapshot's row, then its images and the archives that no other snapshot names. In this order: a row
/// without images would be taken for a snapshot, images without a row are leftovers that reconciliation removes.
pub async fn remove(shared: &Shared, snapshot: &Snapshot) -> Result<(), BaselineError> {
    shared.store.forget_snapshot(&snapshot.id).await?;
    let others = shared.store.snapshots().await?;
    if let Some(storage) = &shared.storage {
        for name in &snapshot.state {
            storage.discard(&Tree::snapshot(&snapshot.id, name)?).await?;
        }
    }
    for image in snapshot.images.values() {
        if !others.iter().any(|other| other.images.values().any(|named| named == image)) {
            match release(shared, image).await {
                // Another snapshot was taken of a site that started from it: it goes when that has gone, as all do that no
                // snapshot names.
                Err(EngineError::Conflict { .. }) => {}
                result => result?,
            }
        }
    }
    let named: Vec<&String> = others.iter().flat_map(Snapshot::archives).collect();
    for file in snapshot.archives() {
        if !named.contains(&file) {
            // Gone already is fine; anything else is found again by `prune`.
            let _ = tokio::fs::remove_file(shared.state_dir.volumes().join(file)).await;
        }
    }
    Ok(())
}

/// The tag by which an image belongs to an imported snapshot of this installation.
pub fn import_tag(installation: &str, snapshot: &str, service: &str) -> String {
    format!("{}{snapshot}-{service}", import_prefix(installation))
}

fn import_prefix(installation: &str) -> String {
    format!("import-{installation}-")
}

/// Removes an image that no snapshot of ours names any more. Where snapshots travel between installations of one engine, the
/// image may be another's too: then it loses the names that we gave it, and stays.
pub async fn release(shared: &Shared, id: &str) -> Result<(), EngineError> {
    let engine = shared.engine.as_ref();
    let Some(image) = engine.image(id).await? else { return Ok(()) };
    let is_made_here = image.labels.get(labels::INSTALLATION) == Some(&shared.installation);
    let ours = import_prefix(&shared.installation);
    let is_ours = |name: &&String| match name.strip_prefix(REPOSITORY).and_then(|rest| rest.strip_prefix(':')) {
        Some(tag) if tag.starts_with("import-") => tag.starts_with(&ours),
        Some(_) => is_made_here,
        None => false,
    };
    let mut result = Ok(());
    if image.tags.iter().all(|name| is_ours(&name)) {
        result = engine.remove_image(id).await;
        // Where other images stand on it, it goes with the last of them, if it has no name.
        if !matches!(result, Err(EngineError::Conflict { .. })) {
            return result;
        }
    }
    for name in image.tags.iter().filter(is_ours) {
        match engine.untag(name).await {
            // Someone runs it.
            Err(EngineError::Conflict { .. }) => {}
            untagged => untagged?,
        }
    }
    result
}
