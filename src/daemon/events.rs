//! The event log: appended to the store first, then told to whoever listens.

use tokio::sync::broadcast;

use super::store::{Store, StoredEvent};

/// How many events a slow listener may lag behind before it has to read them from the store.
const LISTENER_LAG: usize = 256;

/// Appends events and tells listeners.
#[derive(Clone)]
pub struct EventLog {
    store: Store,
    listeners: broadcast::Sender<StoredEvent>,
}

impl EventLog {
    /// A log on top of the store.
    pub fn new(store: Store) -> Self {
        Self { store, listeners: broadcast::channel(LISTENER_LAG).0 }
    }

    /// Notes that something happened. `kind` is a stable word, `message` a sentence that reads alone.
    pub async fn note(&self, kind: &str, instance: Option<&str>, message: &str) {
        tracing::info!(kind, instance.id = instance, "{message}");
        match self.store.append_event(kind, instance, message).await {
            // Nobody listening is not an error.
            Ok(event) => drop(self.listeners.send(event)),
            Err(error) => tracing::error!(error = crate::probes::describe(&error), "an event could not be stored"),
        }
    }

    /// Events from now on.
    pub fn listen(&self) -> broadcast::Receiver<StoredEvent> {
        self.listeners.subscribe()
    }
}
