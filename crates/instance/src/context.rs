//! What every part of an instance has in hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::shared::Shared;
use arenad_model::instance::InstanceId;
use arenad_model::request_queue::Cover;
use arenad_model::site::Site;

/// The daemon, the instance's name and its definition. None of them changes while the driver lives.
pub(super) struct Context {
    pub(super) shared: Arc<Shared>,
    pub(super) id: InstanceId,
    pub(super) site: Arc<Site>,
}

impl Context {
    /// Notes an event about the instance, and waits until it is stored.
    pub(super) async fn note(&self, kind: &str, message: &str) {
        self.shared.events.note(kind, Some(&self.id.to_string()), message).await;
    }

    /// The same beside whatever comes next: a client waits for that.
    pub(super) fn note_later(&self, kind: &'static str, message: String) {
        let (shared, id) = (self.shared.clone(), self.id.to_string());
        self.shared.tasks.spawn(async move { shared.events.note(kind, Some(&id), &message).await });
    }
}

/// How far the current operation has come, read by the driver when it admits a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<AtomicU8>);

impl Progress {
    /// A new operation begins.
    pub(super) fn restart(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// The operation ends with a new generation, or fails.
    pub(super) fn commit(&self) {
        self.0.fetch_max(1, Ordering::SeqCst);
    }

    /// Clients are about to reach the new generation.
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
