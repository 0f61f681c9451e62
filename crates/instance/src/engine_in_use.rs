//! Which engine is in use: the same address may lead to another one. That is told, and leads to the removal of nothing.

use std::sync::atomic::Ordering;

use crate::shared::Shared;
use arenad_engine::{EngineDetails, EngineError};
use arenad_store::{StoreError, StoredEngine};

/// Why it is not known which engine is in use.
#[derive(Debug, thiserror::Error)]
pub enum MeetError {
    /// The engine could not be asked.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Notes which engine answers, unless that is known: what is made is noted as that engine's. An engine that could not be reached
/// may be another when it can be again.
pub async fn meet(shared: &Shared) -> Result<(), MeetError> {
    if shared.engine_met.load(Ordering::SeqCst) < shared.engine_silences.load(Ordering::SeqCst) {
        ask(shared).await?;
    }
    Ok(())
}

/// Asks the engine who it is, and notes that; none if it has no id, for then it cannot be told from another.
pub async fn ask(shared: &Shared) -> Result<Option<String>, MeetError> {
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

/// What tells an engine from all others; two of one host may share an id, but not the folder of their data.
fn identity(details: &EngineDetails) -> Option<String> {
    (!details.id.is_empty()).then(|| format!("{} {}", details.id, details.version.root.display()))
}

async fn tell_of_change(shared: &Shared, engine: &str, before: &StoredEngine) -> Result<(), MeetError> {
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
