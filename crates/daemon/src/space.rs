//! Measuring disk usage, and freeing disk space.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::environments::EnvironmentRegistry;
use arenad_api::{Df, DfFile, DfGeneration, DfImage, DfRoot, DfSnapshot, Pruned, PrunedItem, PrunedKind, Space};
use arenad_baseline::{BaselineError, snapshot};
use arenad_engine::{EngineError, Image, labels};
use arenad_instance::shared::SharedParts;
use arenad_launch::{GenerationSelector, Remains};
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceId;
use arenad_model::prune::{self, PruneBudget, PruneCandidate};
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_storage::{Storage, StorageError, StoreTree, TreeUsage, trial};

/// The name that is shown for images that have lost their tags to newer ones.
const NAMELESS: &str = "<none>";

/// Measures the disk usage of all objects. It walks through every tree, which is slow if there are many files.
pub(crate) async fn df(shared: &SharedParts) -> Result<Df, BaselineError> {
    let trees = measured(shared).await?;
    let mut snapshots = Vec::new();
    for stored in shared.store.snapshots().await? {
        let used_by = shared.store.snapshot_users(&stored.id).await?;
        snapshots.push(shown(shared, stored, &used_by, &trees));
    }
    let mut images = built(shared).await?;
    images.sort_by(|a, b| a.tags.cmp(&b.tags));
    Ok(Df {
        state_root: match &shared.storage {
            Some(storage) => Some(root(storage).await?),
            None => None,
        },
        snapshots,
        generations: generations(shared, &trees).await?,
        images: images
            .into_iter()
            .map(|image| DfImage { size_bytes: image.size_bytes, name: name(&image), id: image.id })
            .collect(),
        archives: files(&shared.state_dir.path().join("archives")).await,
        volumes: files(&shared.state_dir.volumes()).await,
        records: records(shared.state_dir.records()).await,
    })
}

/// Removes objects that nothing needs; with `is_trial`, only lists them. `only` names the objects that may be removed;
/// an empty list allows all.
pub(crate) async fn prune(
    environments: &EnvironmentRegistry,
    shared: &SharedParts,
    budget: PruneBudget,
    only: &[String],
    is_trial: bool,
) -> Result<Pruned, BaselineError> {
    // The lock keeps environments from being brought up meanwhile; objects that an operation works on are left alone.
    let (_turn, hands) = environments.in_turn().await;
    let trees = measured(shared).await?;
    let stored = shared.store.snapshots().await?;
    let mut candidates = Vec::new();
    for snapshot in &stored {
        let is_in_hand = hands.busy.iter().any(|id| id.environment == snapshot.environment && id.site == snapshot.site);
        candidates.push(PruneCandidate {
            site: (snapshot.environment.to_string(), snapshot.site.to_string()),
            is_named: snapshot.name.is_some() || !snapshot.is_baseline(),
            is_used: is_in_hand || !shared.store.snapshot_users(&snapshot.id).await?.is_empty(),
            age: Duration::try_from(Timestamp::now().duration_since(snapshot.created_at)).unwrap_or_default(),
            bytes: snapshot.size_bytes + of_snapshot(&snapshot.id, &trees).allocated_bytes,
        });
    }
    let may_go = |name: &str| only.is_empty() || only.iter().any(|allowed| allowed == name);
    let mut items = Vec::new();
    for (index, reason) in prune::choose(&candidates, budget) {
        let snapshot = &stored[index];
        if !may_go(&snapshot.id) {
            continue;
        }
        if !is_trial {
            snapshot::remove(&shared.baselines, snapshot).await?;
        }
        items.push(PrunedItem {
            kind: PrunedKind::Snapshot,
            name: snapshot.id.to_string(),
            of: format!("{}/{}", snapshot.environment, snapshot.site),
            bytes: candidates[index].bytes,
            reason: reason.describe().to_owned(),
        });
    }
    items.extend(kept_builds(shared, &hands.busy, &may_go, is_trial).await?);
    // A build in progress creates layers that have no tags yet.
    if hands.busy.is_empty() {
        for image in built(shared).await?.into_iter().filter(|image| image.tags.is_empty() && may_go(&image.id)) {
            if is_trial || remove(shared, &image).await? {
                items.push(nameless(image));
            }
        }
    }
    if !is_trial && !items.is_empty() {
        let names: Vec<String> = items.iter().map(|item| format!("{} {}", item.kind, item.name)).collect();
        shared.events.note(EventKind::Pruned, None, &format!("removed to free space: {}", names.join(", "))).await;
    }
    Ok(Pruned { items, is_trial })
}

/// Removes, or only lists, the containers of baselines that could not be made, which were kept for inspection.
async fn kept_builds(
    shared: &SharedParts,
    busy: &BTreeSet<InstanceId>,
    may_go: &impl Fn(&str) -> bool,
    is_trial: bool,
) -> Result<Vec<PrunedItem>, BaselineError> {
    let mut items = Vec::new();
    let is_free = |id: &InstanceId| !busy.contains(id) && may_go(&id.to_string());
    for id in shared.baselines.kept_builds.list().into_iter().filter(is_free) {
        if !is_trial {
            let (installation, role) = (&shared.installation, labels::ROLE_BUILDER);
            shared.remove(Remains { installation, instance: &id, role, which: GenerationSelector::All }).await?;
            shared.baselines.kept_builds.forget(&id);
        }
        items.push(PrunedItem {
            kind: PrunedKind::Container,
            of: format!("{}/{}", id.environment, id.site),
            bytes: 0,
            reason: "kept from a baseline that could not be made".to_owned(),
            name: id.to_string(),
        });
    }
    Ok(items)
}

fn nameless(image: Image) -> PrunedItem {
    PrunedItem {
        kind: PrunedKind::Image,
        bytes: image.size_bytes,
        of: NAMELESS.to_owned(),
        reason: "a newer build has taken its name".to_owned(),
        name: image.id,
    }
}

/// Removes an image and returns whether it was removed; an image that a container or another image uses stays.
async fn remove(shared: &SharedParts, image: &Image) -> Result<bool, BaselineError> {
    match shared.engine.remove_image(&image.id).await {
        Ok(()) => Ok(true),
        Err(EngineError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the images that this installation has built.
async fn built(shared: &SharedParts) -> Result<Vec<Image>, EngineError> {
    let mut images = shared.engine.images(labels::INSTALLATION, Some(&shared.installation)).await?;
    // Snapshots inherit the labels of the image they were taken from, but have a role.
    images.retain(|image| image.labels.contains_key(labels::BUILD_INPUTS) && !image.labels.contains_key(labels::ROLE));
    Ok(images)
}

fn name(image: &Image) -> String {
    image.tags.first().cloned().unwrap_or_else(|| NAMELESS.to_owned())
}

async fn root(storage: &Storage) -> Result<DfRoot, StorageError> {
    let path = storage.root().path();
    let room = trial::room(path).unwrap_or_default();
    Ok(DfRoot {
        path: path.display().to_string(),
        file_system: trial::kind(path),
        clones: storage.root().clones(),
        total_bytes: room.total_bytes,
        free_bytes: room.free_bytes,
        trash_bytes: storage.trash_usage().await?.exclusive_bytes,
    })
}

/// Returns every tree with its disk usage. A tree that disappears meanwhile is left out.
async fn measured(shared: &SharedParts) -> Result<Vec<(StoreTree, TreeUsage)>, StorageError> {
    let Some(storage) = &shared.storage else { return Ok(Vec::new()) };
    let mut measured = Vec::new();
    for tree in storage.trees().await? {
        match storage.usage(&tree).await {
            Ok(usage) => measured.push((tree, usage)),
            Err(StorageError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(measured)
}

fn shown(
    shared: &SharedParts,
    stored: Snapshot,
    used_by: &[InstanceId],
    trees: &[(StoreTree, TreeUsage)],
) -> DfSnapshot {
    let size = |file: &String| shared.state_dir.volumes().join(file).metadata().map_or(0, |found| found.len());
    DfSnapshot {
        state: of_snapshot(&stored.id, trees),
        volume_bytes: stored.archives().map(size).sum(),
        id: stored.id.into(),
        environment: stored.environment.to_string(),
        site: stored.site.to_string(),
        name: stored.name,
        image_bytes: stored.size_bytes,
        used_by: used_by.iter().map(InstanceId::to_string).collect(),
    }
}

fn of_snapshot(id: &SnapshotId, trees: &[(StoreTree, TreeUsage)]) -> Space {
    let mut space = Space::default();
    for (tree, usage) in trees {
        if matches!(tree, StoreTree::Snapshot { snapshot, .. } if snapshot == id) {
            add(&mut space, usage);
        }
    }
    space
}

/// Returns the generations that have trees. The trees are filed by site, whichever slot a generation serves in.
async fn generations(
    shared: &SharedParts,
    trees: &[(StoreTree, TreeUsage)],
) -> Result<Vec<DfGeneration>, BaselineError> {
    let mut serving: BTreeMap<(String, u64), u32> = BTreeMap::new();
    for environment in shared.store.environments().await? {
        for row in shared.store.instances(&environment.name).await? {
            if let Some(served) = row.serving {
                serving.insert((row.id.site_id().to_string(), served.made), row.id.number);
            }
        }
    }
    let mut found: BTreeMap<(String, u64), Space> = BTreeMap::new();
    for (tree, usage) in trees {
        if let StoreTree::Instance { instance, generation, .. } = tree {
            add(found.entry((instance.site_id().to_string(), *generation)).or_default(), usage);
        }
    }
    let shown = found.into_iter().map(|(of, state)| {
        let slot = serving.get(&of).copied();
        DfGeneration { site: of.0, generation: of.1, slot, state }
    });
    Ok(shown.collect())
}

fn add(space: &mut Space, usage: &TreeUsage) {
    space.apparent_bytes += usage.apparent_bytes;
    space.allocated_bytes += usage.allocated_bytes;
    space.exclusive_bytes += usage.exclusive_bytes;
}

/// Returns the regular files of a folder, if it exists, sorted by path.
/// Returns the records of episodes; none if the folder cannot be read.
async fn records(folder: PathBuf) -> Vec<DfFile> {
    let found = tokio::task::spawn_blocking(move || crate::records::found(&folder)).await;
    let mut records: Vec<DfFile> = found
        .map(Result::unwrap_or_default)
        .unwrap_or_default()
        .into_iter()
        .map(|record| DfFile { file: record.folder.display().to_string(), size_bytes: record.bytes })
        .collect();
    records.sort_by(|a, b| a.file.cmp(&b.file));
    records
}

async fn files(folder: &Path) -> Vec<DfFile> {
    let mut files = Vec::new();
    // Without the folder, there has never been such a file.
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else { return files };
    while let Ok(Some(entry)) = entries.next_entry().await {
        if let Ok(found) = entry.metadata().await
            && found.is_file()
        {
            files.push(DfFile { file: entry.path().display().to_string(), size_bytes: found.len() });
        }
    }
    files.sort_by(|a, b| a.file.cmp(&b.file));
    files
}
