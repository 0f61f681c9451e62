//! Recording which engine is in use and which objects each engine holds: the same address may lead to another engine,
//! and an engine may lose images outside arenad's control. Both are reported; neither causes any removal.

use super::found::ObjectInventory;
use super::{Findings, ReconcileError};
use arenad_baseline::snapshot;
use arenad_instance::shared::SharedParts;
use arenad_model::event::EventKind;
use arenad_model::reconcile::{ObjectKind, ObjectOwner};
use arenad_model::snapshot::Snapshot;

/// Records the engine in use and the objects of this installation that it holds.
pub(super) async fn note(shared: &SharedParts, found: &ObjectInventory, findings: &mut Findings) {
    let Some(Some(id)) = findings.take("noting the engine", arenad_instance::ask(shared).await) else { return };
    let placed = place_instances(shared, found).await;
    findings.take("noting which engine has what", placed);
    if let Some(images) = &found.images {
        let placed = place_snapshots(shared, &id, images).await;
        findings.take("looking for the images of snapshots", placed);
    }
}

/// Records the instances whose containers the engine holds. An upgrade may give an engine a new id; containers found in
/// it are recorded under that id.
async fn place_instances(shared: &SharedParts, found: &ObjectInventory) -> Result<(), ReconcileError> {
    // Usually there are none, and a pass writes nothing.
    let misplaced = shared.store.misplaced().await?;
    for thing in &found.things {
        if let (ObjectKind::Container, ObjectOwner::Generation { instance, made }) = (thing.kind, &thing.owner)
            && misplaced.contains(&(instance.clone(), *made))
        {
            shared.store.place_instance(instance, *made).await?;
        }
    }
    Ok(())
}

async fn place_snapshots(shared: &SharedParts, engine: &str, images: &[String]) -> Result<(), ReconcileError> {
    for (stored, place) in shared.store.placed_snapshots().await? {
        let are_listed = stored.images.values().all(|image| images.contains(image));
        // Images of imported snapshots carry the label of the installation that made them, so they are not in the list.
        if are_listed || snapshot::is_whole(&shared.baselines, &stored).await? {
            if place.engine.as_deref() != Some(engine) || place.missing_since.is_some() {
                shared.store.place_snapshot(&stored.id).await?;
            }
            if place.missing_since.is_some() {
                let message = format!("the images of {} are present again", described(&stored));
                shared.events.note(EventKind::SnapshotFound, None, &message).await;
            }
        } else if place.engine.as_deref() == Some(engine) && place.missing_since.is_none() {
            shared.store.miss_snapshot(&stored.id).await?;
            let message = format!(
                "the engine at {} no longer has all images of {}; the snapshot is kept, and `arenad snapshot rm {}` removes it",
                shared.engine.endpoint(),
                described(&stored),
                stored.id
            );
            shared.events.note(EventKind::SnapshotMissing, None, &message).await;
        }
    }
    Ok(())
}

fn described(stored: &Snapshot) -> String {
    let name = stored.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("snapshot {}{name} of {}/{}", stored.id, stored.environment, stored.site)
}
