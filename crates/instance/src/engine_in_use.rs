//! Detection of a different engine at the same address. A change is announced by an event; nothing is removed because
//! of it.

use std::sync::atomic::Ordering;

use crate::shared::SharedParts;
use arenad_engine::{EngineDetails, EngineError};
use arenad_model::event::EventKind;
use arenad_store::{StoreError, StoredEngine};

/// The reason why the identity of the engine is unknown.
#[derive(Debug, thiserror::Error)]
pub enum MeetError {
    /// The engine did not respond or returned an error.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Determines the identity of the engine, unless it is known, so that new containers and images are recorded as that
/// engine's. After the engine was unreachable, it may be a different one.
pub async fn meet(shared: &SharedParts) -> Result<(), MeetError> {
    if shared.engine_met.load(Ordering::SeqCst) < shared.engine_silences.load(Ordering::SeqCst) {
        ask(shared).await?;
    }
    Ok(())
}

/// Asks the engine for its identity and stores it; returns `None` if the engine has no id and cannot be distinguished
/// from others.
pub async fn ask(shared: &SharedParts) -> Result<Option<String>, MeetError> {
    // An engine that becomes unreachable during this call must be asked again.
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

/// Returns the text that identifies an engine. Two engines on one host may have the same id, but not the same data
/// folder.
fn identity(details: &EngineDetails) -> Option<String> {
    (!details.id.is_empty()).then(|| format!("{} {}", details.id, details.version.root.display()))
}

async fn tell_of_change(shared: &SharedParts, engine: &str, before: &StoredEngine) -> Result<(), MeetError> {
    let places = shared.store.snapshot_places().await?;
    let away = places.values().filter(|place| place.engine.as_deref().is_some_and(|other| other != engine)).count();
    let message = format!(
        "another engine is in use, at {}; the previous one was at {}; {away} snapshots have their images on other \
         engines and are kept",
        shared.engine.endpoint(),
        before.endpoint
    );
    shared.events.note(EventKind::EngineChanged, None, &message).await;
    Ok(())
}
