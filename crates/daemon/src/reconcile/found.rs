//! Listing this installation's objects: in the engine, in the state root, and among the archives of volumes.

use std::collections::BTreeMap;

use super::{Findings, ReconcileError};
use arenad_engine::{EngineError, labels};
use arenad_instance::shared::SharedParts;
use arenad_model::reconcile::{ObjectKind, ObjectOwner, Thing};
use arenad_storage::StoreTree;

/// The objects that a pass has found.
#[derive(Debug, Default)]
pub(super) struct ObjectInventory {
    pub things: Vec<Thing>,
    /// Whether the engine answers.
    pub answers: bool,
    /// The ids of the images with this installation's label; `None` if they could not be listed.
    pub images: Option<Vec<String>>,
}

/// Lists all objects. A kind of object that cannot be listed is recorded as a failure and left out.
pub(super) async fn list(shared: &SharedParts, findings: &mut Findings) -> ObjectInventory {
    let mut found = ObjectInventory::default();
    of_engine(shared, &mut found, findings).await;
    if let Some(storage) = &shared.storage {
        let trees = findings.take("listing the state root", storage.trees().await);
        found.things.extend(trees.unwrap_or_default().iter().map(of_tree));
    }
    found.things.extend(archives(shared));
    found
}

async fn of_engine(shared: &SharedParts, found: &mut ObjectInventory, findings: &mut Findings) {
    let (engine, ours) = (shared.engine.as_ref(), &shared.installation);
    let labelled = |kind, id: String, name: String, labels: &BTreeMap<String, String>| {
        owner(labels).map(|owner| Thing { kind, id, name, owner })
    };
    let containers = engine.containers(labels::INSTALLATION, ours).await;
    found.answers = !matches!(containers, Err(EngineError::Unreachable { .. } | EngineError::TimedOut { .. }));
    let containers = findings.take("listing containers", containers);
    // Each further query would wait just as long and fail.
    if !found.answers {
        return;
    }
    if let Some(containers) = containers {
        let things = containers.into_iter();
        found
            .things
            .extend(things.filter_map(|one| labelled(ObjectKind::Container, one.handle.0, one.name, &one.labels)));
    }
    if let Some(networks) = findings.take("listing networks", engine.networks(labels::INSTALLATION, ours).await) {
        let things = networks.into_iter();
        found
            .things
            .extend(things.filter_map(|one| labelled(ObjectKind::Network, one.name.clone(), one.name, &one.labels)));
    }
    if let Some(volumes) = findings.take("listing volumes", engine.volumes(labels::INSTALLATION, ours).await) {
        let things = volumes.into_iter();
        found
            .things
            .extend(things.filter_map(|one| labelled(ObjectKind::Volume, one.name.clone(), one.name, &one.labels)));
    }
    if let Some(images) = findings.take("listing images", engine.images(labels::INSTALLATION, Some(ours)).await) {
        found.images = Some(images.iter().map(|image| image.id.clone()).collect());
        for image in images {
            if image.labels.get(labels::ROLE).is_some_and(|role| role == labels::ROLE_SNAPSHOT) {
                let name = image.tags.first().unwrap_or(&image.id).clone();
                found.things.push(Thing {
                    kind: ObjectKind::Image,
                    id: image.id,
                    name,
                    owner: ObjectOwner::SnapshotsThatNameIt,
                });
            }
        }
    }
}

/// Returns the owner of an object. `None` if its labels are not those that arenad writes; such an object is left alone.
fn owner(labels: &BTreeMap<String, String>) -> Option<ObjectOwner> {
    let instance = labels.get(labels::INSTANCE)?.parse().ok()?;
    let made = labels.get(labels::GENERATION)?.parse().ok()?;
    // A container that a user runs from one of the snapshots inherits the image's labels, whose role is `snapshot`; it
    // belongs to the user.
    match labels.get(labels::ROLE)?.as_str() {
        labels::ROLE_INSTANCE => Some(ObjectOwner::Generation { instance, made }),
        labels::ROLE_BUILDER => Some(ObjectOwner::Builder { instance }),
        _ => None,
    }
}

fn of_tree(tree: &StoreTree) -> Thing {
    let owner = match tree {
        StoreTree::Instance { instance, generation, .. } => {
            ObjectOwner::Generation { instance: instance.clone(), made: *generation }
        }
        StoreTree::Snapshot { snapshot, .. } => ObjectOwner::Snapshot(snapshot.clone()),
    };
    Thing { kind: ObjectKind::Tree, id: tree.to_string(), name: tree.to_string(), owner }
}

/// Discards a tree, identified by its displayed name.
pub(super) async fn discard(shared: &SharedParts, shown: &str) -> Result<(), ReconcileError> {
    let Some(storage) = &shared.storage else { return Ok(()) };
    if let Some(tree) = storage.trees().await?.into_iter().find(|tree| tree.to_string() == shown) {
        storage.discard(&tree).await?;
    }
    Ok(())
}

fn archives(shared: &SharedParts) -> Vec<Thing> {
    let mut archives = Vec::new();
    // Without the folder, no snapshot has ever had a volume.
    let Ok(folder) = std::fs::read_dir(shared.state_dir.volumes()) else { return archives };
    for entry in folder.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        archives.push(Thing {
            kind: ObjectKind::Archive,
            id: name.clone(),
            name,
            owner: ObjectOwner::SnapshotsThatNameIt,
        });
    }
    archives
}
