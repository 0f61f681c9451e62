//! The state root for async callers: each call runs on a thread that may block, or in place.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::archive::ArchiveReader;
use super::{
    ArchiveLimits, Cloned, Exchanged, Fresh, Received, Removed, Restored, StateRoot, StorageError, StoreTree, TreeUsage,
};
use arenad_model::store::StateLimit;
use arenad_seams::inline::Inline;
use arenad_seams::outstanding::Outstanding;

/// The number of an archive's pieces that may wait to be unpacked.
const PIECES: usize = 16;

/// The state root for async callers.
///
/// Cancellation: work that has begun is completed or undone in the background, except for [`Storage::receive`], which
/// is undone because its archive ends early. A tree with a name is never incomplete.
#[derive(Debug, Clone)]
pub struct Storage {
    root: StateRoot,
    outstanding: Outstanding,
    inline: Option<Inline>,
}

impl Storage {
    /// Wraps an opened root.
    pub fn new(root: StateRoot) -> Self {
        Self { root, outstanding: Outstanding::default(), inline: None }
    }

    /// Wraps an opened root and does all work in place. Data is synced to disk exactly as by [`Storage::new`].
    pub fn in_place(root: StateRoot, how: Inline) -> Self {
        Self { root, outstanding: Outstanding::default(), inline: Some(how) }
    }

    /// Returns the root, for calls that do not block: paths, names, and whether cloning works.
    pub fn root(&self) -> &StateRoot {
        &self.root
    }

    /// Waits for work whose callers were cancelled.
    pub async fn settle(&self) {
        self.outstanding.settled().await;
    }

    /// Calls [`StateRoot::receive`] with a stream of pieces.
    pub async fn receive<E>(
        &self,
        mut archive: impl Stream<Item = Result<Bytes, E>> + Unpin,
        tree: &StoreTree,
        limits: ArchiveLimits,
    ) -> Result<Received, StorageError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        if let Some(inline) = &self.inline {
            let streamed = gathered(&mut archive).await;
            return flat(&self.root, inline.run("receive", || self.root.receive(streamed, tree, limits)).await);
        }
        let (pieces, received) = mpsc::channel(PIECES);
        let tree = tree.clone();
        let streamed = Streamed { received, current: Bytes::new() };
        let unpacked = self.blocking("receive", move |root| root.receive(streamed, &tree, limits));
        let ((), received) = tokio::join!(feed(&mut archive, pieces), unpacked);
        received
    }

    /// Calls [`StateRoot::clone_tree`] on a thread that may block.
    pub async fn clone_tree(&self, from: &StoreTree, to: &StoreTree) -> Result<Cloned, StorageError> {
        let (from, to) = (from.clone(), to.clone());
        self.blocking("clone", move |root| root.clone_tree(&from, &to)).await
    }

    /// Calls [`StateRoot::clone_limited`] on a thread that may block.
    pub async fn clone_limited(
        &self,
        from: &StoreTree,
        to: &StoreTree,
        limit: StateLimit,
    ) -> Result<Cloned, StorageError> {
        let (from, to) = (from.clone(), to.clone());
        self.blocking("clone", move |root| root.clone_limited(&from, &to, limit)).await
    }

    /// Calls [`StateRoot::fresh_limited`] on a thread that may block.
    pub async fn fresh_limited(&self, from: &StoreTree, limit: StateLimit) -> Result<Fresh, StorageError> {
        let from = from.clone();
        self.blocking("fresh", move |root| root.fresh_limited(&from, limit)).await
    }

    /// Calls [`StateRoot::exchange`] on a thread that may block.
    pub async fn exchange(&self, live: &StoreTree, fresh: Fresh) -> Result<Exchanged, StorageError> {
        let live = live.clone();
        self.blocking("exchange", move |root| root.exchange(&live, fresh)).await
    }

    /// Calls [`StateRoot::restore`] on a thread that may block.
    pub async fn restore(&self, live: &StoreTree, from: &StoreTree) -> Result<Restored, StorageError> {
        let (live, from) = (live.clone(), from.clone());
        self.blocking("restore", move |root| root.restore(&live, &from)).await
    }

    /// Calls [`StateRoot::discard`] on a thread that may block.
    pub async fn discard(&self, tree: &StoreTree) -> Result<bool, StorageError> {
        let tree = tree.clone();
        self.blocking("discard", move |root| root.discard(&tree)).await
    }

    /// Calls [`StateRoot::trees`] on a thread that may block.
    pub async fn trees(&self) -> Result<Vec<StoreTree>, StorageError> {
        self.blocking("trees", StateRoot::trees).await
    }

    /// Calls [`StateRoot::usage`] on a thread that may block.
    pub async fn usage(&self, tree: &StoreTree) -> Result<TreeUsage, StorageError> {
        let tree = tree.clone();
        self.blocking("usage", move |root| root.usage(&tree)).await
    }

    /// Calls [`StateRoot::check_depth`] on a thread that may block.
    pub async fn check_depth(&self, tree: &StoreTree) -> Result<(), StorageError> {
        let tree = tree.clone();
        self.blocking("check_depth", move |root| root.check_depth(&tree)).await
    }

    /// Calls [`StateRoot::trash_usage`] on a thread that may block.
    pub async fn trash_usage(&self) -> Result<TreeUsage, StorageError> {
        self.blocking("trash_usage", StateRoot::trash_usage).await
    }

    /// Calls [`StateRoot::empty_trash`] on a thread that may block.
    pub async fn empty_trash(&self) -> Result<Removed, StorageError> {
        self.blocking("empty_trash", StateRoot::empty_trash).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&StateRoot) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        if let Some(inline) = &self.inline {
            return flat(&self.root, inline.run(doing, || work(&self.root)).await);
        }
        let (root, piece) = (self.root.clone(), self.outstanding.begin());
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&root);
            drop(piece);
            done
        })
        .await;
        done.unwrap_or_else(|panicked| Err(StorageError::at("work on", self.root.path())(io::Error::other(panicked))))
    }
}

fn flat<T>(root: &StateRoot, done: io::Result<Result<T, StorageError>>) -> Result<T, StorageError> {
    done.unwrap_or_else(|error| Err(StorageError::at("work on", root.path())(error)))
}

/// Collects a whole archive and returns it as one input.
async fn gathered<E>(archive: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin)) -> Streamed
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut pieces = Vec::new();
    while let Some(piece) = archive.next().await {
        pieces.push(piece.map_err(io::Error::other));
    }
    let (sender, received) = mpsc::channel(pieces.len().max(1));
    for piece in pieces {
        // The channel has room for all pieces.
        let _ = sender.try_send(piece);
    }
    Streamed { received, current: Bytes::new() }
}

/// Reads an archive that arrives as a stream of pieces, on a thread that may block.
pub async fn read_stream<E, T>(
    mut archive: impl Stream<Item = Result<Bytes, E>> + Unpin,
    work: impl FnOnce(ArchiveReader<Streamed>) -> T + Send + 'static,
) -> Result<T, StorageError>
where
    E: std::error::Error + Send + Sync + 'static,
    T: Send + 'static,
{
    let (pieces, received) = mpsc::channel(PIECES);
    let streamed = Streamed { received, current: Bytes::new() };
    let read = tokio::task::spawn_blocking(move || work(ArchiveReader::new(streamed)));
    let ((), read) = tokio::join!(feed(&mut archive, pieces), read);
    read.map_err(|panicked| StorageError::Stream(io::Error::other(panicked)))
}

async fn feed<E>(archive: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin), pieces: mpsc::Sender<io::Result<Bytes>>)
where
    E: std::error::Error + Send + Sync + 'static,
{
    while let Some(piece) = archive.next().await {
        // The reader stops receiving after the end mark or a failure.
        if pieces.send(piece.map_err(io::Error::other)).await.is_err() {
            return;
        }
    }
}

/// Joins the pieces of an archive into one input.
pub struct Streamed {
    received: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Read for Streamed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            let next = match self.received.try_recv() {
                // After the whole archive has arrived, every piece is received here, so the thread never blocks.
                Ok(piece) => Some(piece),
                Err(mpsc::error::TryRecvError::Disconnected) => None,
                Err(mpsc::error::TryRecvError::Empty) => self.received.blocking_recv(),
            };
            match next {
                Some(piece) => self.current = piece?,
                None => return Ok(0),
            }
        }
        let length = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
