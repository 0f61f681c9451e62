//! The operations that clients can wait for, by id. They are kept for an hour from their beginning, so that a client
//! whose connection broke can still ask for the outcome.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use arenad_api::OperationKind;
use arenad_instance::Ticket;
use arenad_model::instance::InstanceId;

/// The time for which an operation is kept, from its beginning; longer than any client waits.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// The number of operations that are kept. With resets in direct succession, an hour of them would take a hundred
/// megabytes. Operations that have not ended are never dropped to make room.
const MOST: usize = 1000;

/// One operation that clients can wait for.
#[derive(Clone)]
pub(crate) struct OperationEntry {
    /// The kind of operation.
    pub kind: OperationKind,
    /// The id of the instance. It is not the handle, which would keep the instance's driver alive.
    pub instance: InstanceId,
    /// Resolves with the outcome of the operation.
    pub ticket: Ticket,
    begun: Instant,
}

/// The operations that are kept, by id.
#[derive(Default)]
pub struct Operations(Mutex<HashMap<String, OperationEntry>>);

impl Operations {
    fn with<T>(&self, change: impl FnOnce(&mut HashMap<String, OperationEntry>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Adds an operation, and drops old ones.
    pub(crate) fn remember(&self, kind: OperationKind, instance: InstanceId, ticket: Ticket) -> OperationEntry {
        let entry = OperationEntry { kind, instance, ticket, begun: Instant::now() };
        self.with(|entries| {
            entries.retain(|_, entry| !entry.ticket.has_ended() || entry.begun.elapsed() < REMEMBERED);
            if entries.len() >= MOST {
                let ended = entries.iter().filter(|(_, entry)| entry.ticket.has_ended());
                let oldest = ended.min_by_key(|(_, entry)| entry.begun).map(|(id, _)| id.clone());
                oldest.map(|id| entries.remove(&id));
            }
            entries.insert(entry.ticket.operation.clone(), entry.clone());
        });
        entry
    }

    /// Returns the operation with the given id, if it is still kept.
    pub(crate) fn get(&self, id: &str) -> Option<OperationEntry> {
        self.with(|entries| entries.get(id).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_instance::OperationOutcome;
    use arenad_model::ids::{EnvironmentName, SiteName};
    use arenad_seams::ordered_watch as watch;

    #[tokio::test]
    async fn the_oldest_that_have_ended_make_room() {
        let operations = Operations::default();
        let environment = EnvironmentName::parse("mini").expect("valid");
        let instance = InstanceId::serving(&environment, &SiteName::parse("shopping").expect("valid"));
        let ticket = |operation: &str| {
            let (end, done) = watch::channel(None);
            (Ticket::new(operation.to_owned(), false, done), end)
        };
        let (running, end) = ticket("running");
        operations.remember(OperationKind::Snapshot, instance.clone(), running);
        for number in 0..MOST + 5 {
            let (ended, end) = ticket(&number.to_string());
            end.send_replace(Some(OperationOutcome::Superseded));
            operations.remember(OperationKind::Reset, instance.clone(), ended);
        }
        assert!(operations.get("running").is_some(), "it goes on");
        assert!(operations.get("5").is_none() && operations.get("6").is_some(), "the oldest went");
        drop(end);
    }
}
