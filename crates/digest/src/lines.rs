//! Connections to the servers of an instance's stores. The check of a standby that is about to serve must not spend
//! time on signing in or on starting a client, so the connections of one check are kept for the next.
//!
//! A check takes a connection out and puts it back once it has read every answer. If the check is abandoned, its
//! connection is closed. A connection that has broken in the meantime is replaced. [`StoreConnections::close`] must be
//! called before a server is stopped or becomes reachable for clients.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use arenad_confined::Worker;
use arenad_model::store::Store;
use arenad_probes::KeptConnection;

/// The connections to the servers of one instance.
#[derive(Default)]
pub struct StoreConnections {
    /// Connections by store and by part of the store, such as a database; `None` if connections are not kept.
    kept: Option<Mutex<BTreeMap<(String, String), StoreConnection>>>,
}

/// A connection to a server.
pub(super) enum StoreConnection {
    /// A connection to a database.
    Database(KeptConnection),
    /// A worker that is connected to a key-value server; the connection closes when the worker ends.
    Keys(Box<Worker>),
}

impl StoreConnection {
    async fn close(self) {
        if let Self::Database(connection) = self {
            connection.close().await;
        }
    }
}

impl StoreConnections {
    /// Creates a set that closes each connection after its use.
    pub fn passing() -> Self {
        Self::default()
    }

    /// Creates a set that keeps connections for the next check.
    pub fn kept() -> Self {
        Self { kept: Some(Mutex::default()) }
    }

    /// Takes a kept connection out.
    pub(super) fn take(&self, store: &Store, part: &str) -> Option<StoreConnection> {
        self.with(|lines| lines.remove(&(store.name.clone(), part.to_owned()))).flatten()
    }

    /// Keeps a connection for the next check, or closes it if connections are not kept.
    pub(super) async fn put(&self, store: &Store, part: &str, line: StoreConnection) {
        let mut line = Some(line);
        let replaced =
            self.with(|lines| line.take().and_then(|line| lines.insert((store.name.clone(), part.to_owned()), line)));
        for line in line.into_iter().chain(replaced.flatten()) {
            line.close().await;
        }
    }

    /// Closes all kept connections properly.
    pub async fn close(&self) {
        let lines = self.with(std::mem::take).unwrap_or_default();
        futures_util::future::join_all(lines.into_values().map(StoreConnection::close)).await;
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<(String, String), StoreConnection>) -> T) -> Option<T> {
        let kept = self.kept.as_ref()?;
        Some(change(&mut kept.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
