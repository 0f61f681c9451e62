//! Which engine is in use, and which engine has what: the same address may lead to another engine, and an engine may lose
//! images behind our back. Both are told; neither leads to the removal of anything.

use std::sync::atomic::Ordering;

use super::found::Found;
use super::{Findings, ReconcileError};
use crate::daemon::baseline::snapshot;
use crate::daemon::shared::Shared;
use crate::daemon::store::{StoredEngine, StoredSnapshot};
use crate::domain::reconcile::{Kind, Owner};
use crate::engine::EngineDetails;

/// Notes which engine answers, unless that is known: what is made is noted as that engine's. An engine that could not be reached
/// may be another when it can be again.
pub(in crate::daemon) async fn meet(shared: &Shared) -> Result<(), ReconcileError> {
    if shared.engine_met.load(Ordering::SeqCst) < shared.engine_silences.load(Ordering::SeqCst) {
        ask(shared).await?;
    }
    Ok(())
}

/// Asks the engine who it is, and notes that; none if it has no id, for then it cannot be told from another.
async fn ask(shared: &Shared) -> Result<Option<String>, ReconcileError> {
    // A silence that begins while it is asked is not over with this answer.
    let silences = shared.engine_silences.load(Ordering::SeqCst);
    let id = identity(&shared.engine.details().await?);
    if let Some(id) = &id
        && let Some(before) = shared.store.meet_engine(id, shared.engine.endpoint()).await?
    {
        tell_of_change(shared, id, &before).await?;
    }
    shared.engine_met.fetch_max(silences, Ordering::SeqCst);
    Ok(id)
}

/// Notes the engine in use, and what of this installation it has.
pub(super) async fn note(shared: &Shared, found: &Found, findings: &mut Findings) {
    let Some(Some(id)) = findings.take("noting the engine", ask(shared).await) else { return };
    let placed = place_instances(shared, found).await;
    findings.take("noting which engine has what", placed);
    if let Some(images) = &found.images {
        let placed = place_snapshots(shared, &id, images).await;
        findings.take("looking for the images of snapshots", placed);
    }
}

/// What tells an engine from all others; two of one host may share an id, but not the folder of their data.
fn identity(details: &EngineDetails) -> Option<String> {
    (!details.id.is_empty()).then(|| format!("{} {}", details.id, details.version.root.display()))
}

/// An upgrade may give an engine a new id: what is found in it is its own.
async fn place_instances(shared: &Shared, found: &Found) -> Result<(), ReconcileError> {
    for thing in &found.things {
        if let (Kind::Container, Owner::Generation { instance, made }) = (thing.kind, &thing.owner) {
            shared.store.place_instance(instance, *made).await?;
        }
    }
    Ok(())
}

async fn place_snapshots(shared: &Shared, engine: &str, images: &[String]) -> Result<(), ReconcileError> {
    let places = shared.store.snapshot_places().await?;
    for stored in shared.store.snapshots().await? {
        let place = places.get(&stored.id).cloned().unwrap_or_default();
        let are_listed = stored.images.values().all(|image| images.contains(image));
        // Images of imported snapshots bear their maker's id.
        if are_listed || snapshot::is_whole(shared, &stored).await? {
            if place.engine.as_deref() != Some(engine) || place.missing_since.is_some() {
                shared.store.place_snapshot(&stored.id).await?;
            }
            if place.missing_since.is_some() {
                let message = format!("the images of {} are there again", described(&stored));
                shared.events.note("snapshot.found", None, &message).await;
            }
        } else if place.engine.as_deref() == Some(engine) && place.missing_since.is_none() {
            shared.store.miss_snapshot(&stored.id).await?;
            let message = format!(
                "the engine at {} has lost images of {}; the snapshot is kept, and `arenad snapshot rm {}` removes it",
                shared.engine.endpoint(),
                described(&stored),
                stored.id
            );
            shared.events.note("snapshot.missing", None, &message).await;
        }
    }
    Ok(())
}

fn described(stored: &StoredSnapshot) -> String {
    let name = stored.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("snapshot {}{name} of {}/{}", stored.id, stored.environment, stored.site)
}

async fn tell_of_change(shared: &Shared, engine: &str, before: &StoredEngine) -> Result<(), ReconcileError> {
    let places = shared.store.snapshot_places().await?;
    let away = places.values().filter(|place| place.engine.as_deref().is_some_and(|other| other != engine)).count();
    let message = format!(
        "another engine is in use: the one at {}, before that the one at {}; {away} snapshots have their images on other \
         engines and are kept",
        shared.engine.endpoint(),
        before.endpoint
    );
    shared.events.note("engine.changed", None, &message).await;
    Ok(())
}
