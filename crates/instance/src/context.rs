//! The parts of the daemon and of the definition that all modules of an instance use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::shared::SharedParts;
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceId;
use arenad_model::request_queue::Cover;
use arenad_model::site::Site;

/// The daemon, the instance's id and its definition. They do not change while the driver lives.
pub(super) struct InstanceContext {
    pub(super) shared: Arc<SharedParts>,
    pub(super) id: InstanceId,
    pub(super) site: Arc<Site>,
}

impl InstanceContext {
    /// Stores an event about the instance and waits until it is stored.
    pub(super) async fn note(&self, kind: EventKind, message: &str) {
        self.shared.events.note(kind, Some(&self.id), message).await;
    }

    /// Stores an event in the background, where a client waits for the work that follows.
    pub(super) fn note_later(&self, kind: EventKind, message: String) {
        let (shared, id) = (self.shared.clone(), self.id.clone());
        self.shared.tasks.spawn(async move { shared.events.note(kind, Some(&id), &message).await });
    }
}

/// The progress of the current operation. The driver reads it when it admits a request.
#[derive(Debug, Clone, Default)]
pub(super) struct OperationProgress(Arc<AtomicU8>);

impl OperationProgress {
    /// Begins a new operation.
    pub(super) fn restart(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// Records that the operation can end only with a new generation or a failure.
    pub(super) fn commit(&self) {
        self.0.fetch_max(1, Ordering::SeqCst);
    }

    /// Records that clients are about to reach the new generation.
    pub(super) fn open(&self) {
        self.0.fetch_max(2, Ordering::SeqCst);
    }

    pub(super) fn cover(&self) -> Cover {
        match self.0.load(Ordering::SeqCst) {
            0 => Cover::Undecided,
            1 => Cover::Fresh,
            _ => Cover::Open,
        }
    }
}
