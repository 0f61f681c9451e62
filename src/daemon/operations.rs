//! The operations that clients wait for, by id. Kept for a while after their end, so that a client whose connection
//! broke can still hear how it ended.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::instance::Ticket;
use crate::domain::instance::InstanceId;

/// How long an operation is remembered; longer than any client waits.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// One operation.
#[derive(Clone)]
pub struct Entry {
    /// `up`, `reset`, `snapshot`.
    pub kind: &'static str,
    /// The instance that it is about. Its name, not its handle: a handle would keep its driver alive.
    pub instance: InstanceId,
    /// Hears how it ends.
    pub ticket: Ticket,
    begun: Instant,
}

/// The operations at hand.
#[derive(Default)]
pub struct Operations(Mutex<HashMap<String, Entry>>);

impl Operations {
    fn with<T>(&self, change: impl FnOnce(&mut HashMap<String, Entry>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Remembers an operation.
    pub fn remember(&self, kind: &'static str, instance: InstanceId, ticket: Ticket) -> Entry {
        let entry = Entry { kind, instance, ticket, begun: Instant::now() };
        self.with(|entries| {
            entries.retain(|_, entry| entry.begun.elapsed() < REMEMBERED);
            entries.insert(entry.ticket.operation.clone(), entry.clone());
        });
        entry
    }

    /// Finds one again.
    pub fn get(&self, id: &str) -> Option<Entry> {
        self.with(|entries| entries.get(id).cloned())
    }
}
