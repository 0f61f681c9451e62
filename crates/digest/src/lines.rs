//! Lines to the servers of an instance's stores. A look at a standby that is about to serve must not cost what it takes to
//! sign in or to start a client, so the connections of one look are kept for the next.
//!
//! Whoever looks takes a line out and puts it back when every answer has been read: what was given up half way is closed, not
//! kept. A line that died meanwhile is replaced. A server that is to be stopped, or that clients are to reach, has none:
//! [`Lines::close`] comes first.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use arenad_confined::Worker;
use arenad_model::store::Store;
use arenad_probes::KeptConnection;

/// The lines to the servers of one instance.
#[derive(Default)]
pub struct Lines {
    /// By store, and by what of it is asked; none where lines are not kept.
    kept: Option<Mutex<BTreeMap<(String, String), Line>>>,
}

/// One line.
pub(super) enum Line {
    /// To a database.
    Database(KeptConnection),
    /// To a key-value server; it closes with its worker.
    Keys(Box<Worker>),
}

impl Line {
    async fn close(self) {
        if let Self::Database(connection) = self {
            connection.close().await;
        }
    }
}

impl Lines {
    /// Lines that end with each look.
    pub fn passing() -> Self {
        Self::default()
    }

    /// Lines that are kept from one look to the next.
    pub fn kept() -> Self {
        Self { kept: Some(Mutex::default()) }
    }

    /// Takes a line out.
    pub(super) fn take(&self, store: &Store, part: &str) -> Option<Line> {
        self.with(|lines| lines.remove(&(store.name.clone(), part.to_owned()))).flatten()
    }

    /// Puts a line back, or closes it.
    pub(super) async fn put(&self, store: &Store, part: &str, line: Line) {
        let mut line = Some(line);
        let replaced =
            self.with(|lines| line.take().and_then(|line| lines.insert((store.name.clone(), part.to_owned()), line)));
        for line in line.into_iter().chain(replaced.flatten()) {
            line.close().await;
        }
    }

    /// Says goodbye on all of them.
    pub async fn close(&self) {
        let lines = self.with(std::mem::take).unwrap_or_default();
        futures_util::future::join_all(lines.into_values().map(Line::close)).await;
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<(String, String), Line>) -> T) -> Option<T> {
        let kept = self.kept.as_ref()?;
        Some(change(&mut kept.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
