//! Exporting a snapshot as a stream of bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use arenad_engine::EngineError;
use arenad_export::{Baseline, DIGEST_BYTES_MAX, Manifest, PartKind, RawJson, ServiceImage, Writer, content_id};
use arenad_instance::shared::SharedParts;
use arenad_launch as launch;
use arenad_model::error::describe;
use arenad_model::snapshot::Snapshot;
use arenad_storage::{StorageError, StoreTree};
use arenad_store::StoreError;

/// The number of pieces that may wait for the client.
const PIECES_AHEAD: usize = 16;

/// The size of the pieces that are sent to the client, in bytes.
const PIECE: usize = 256 << 10;

/// The reason why a snapshot could not be exported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    /// An object that belongs to the snapshot is missing.
    #[error("export snapshot {id}: {what}")]
    NotWhole {
        /// The id of the snapshot.
        id: String,
        /// The missing object, or the error that was met there.
        what: String,
    },
    /// The content does not yield the snapshot's id.
    #[error("export snapshot {id}: what is there has the id {found}")]
    Changed {
        /// The id of the snapshot.
        id: String,
        /// The id that the content yields.
        found: String,
    },
    /// The engine reported an error.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An operation of the state root failed.
    #[error(transparent)]
    State(#[from] StorageError),
    /// An operation of the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file could not be read, or the client has disconnected.
    #[error("write snapshot {id}")]
    Write {
        /// The id of the snapshot.
        id: String,
        /// The error that the system reported.
        #[source]
        cause: io::Error,
    },
}

/// A snapshot that is ready to be exported: its content is complete and yields the snapshot's id.
pub(crate) struct Export {
    shared: Arc<SharedParts>,
    manifest: Manifest,
    parts: Vec<PartKind>,
    /// The approximate total length of the parts, in bytes.
    pub about_bytes: u64,
}

/// Checks a snapshot before it is exported. Reads all its trees, so the duration depends on their size.
pub(crate) async fn prepare(shared: &Arc<SharedParts>, stored: &Snapshot) -> Result<Export, ExportError> {
    let id = || stored.id.to_string();
    let mut services = BTreeMap::new();
    let mut about_bytes = 0;
    for (service, image) in &stored.images {
        let Some(found) = shared.engine.image(image).await? else {
            return Err(ExportError::NotWhole { id: id(), what: format!("the engine has no image {image}") });
        };
        about_bytes = about_bytes.max(found.size_bytes);
        services.insert(service.clone(), ServiceImage { image: image.clone(), layers: found.layers });
    }
    let mut parts = vec![PartKind::Images];
    let archives: BTreeSet<&String> = stored.archives().collect();
    for file in archives {
        match tokio::fs::metadata(shared.state_dir.volumes().join(file)).await {
            Ok(found) => about_bytes += found.len(),
            Err(error) => return Err(ExportError::NotWhole { id: id(), what: format!("{file}: {error}") }),
        }
        parts.push(PartKind::Volume(file.clone()));
    }
    let trees: Vec<StoreTree> =
        stored.state.iter().map(|name| StoreTree::snapshot(&stored.id, name)).collect::<Result<_, _>>()?;
    let mut fingerprint = None;
    if let Some(storage) = shared.storage.as_ref().filter(|_| !trees.is_empty()) {
        for tree in &trees {
            if !storage.root().is_whole(tree) {
                return Err(StorageError::Missing(tree.clone()).into());
            }
            about_bytes += storage.usage(tree).await?.allocated_bytes;
            parts.push(PartKind::Store(tree.store().to_owned()));
        }
        fingerprint = launch::fingerprint_of(storage, trees).await?;
    } else if !trees.is_empty() {
        return Err(ExportError::NotWhole { id: id(), what: "there is no state root".to_owned() });
    }
    // In a baseline, images and volumes hold the complete state; in a named snapshot, the state root may hold it.
    let layers = || services.iter().map(|(name, service)| (name.as_str(), service.layers.as_slice()));
    let volumes = || stored.volumes.iter().map(|(service, paths)| (service.as_str(), paths));
    let (environment, site) = (stored.environment.as_str(), stored.site.as_str());
    let derive = |with: Option<&str>| content_id(environment, site, layers(), volumes(), with);
    let id_covers_stores = fingerprint.is_some() && derive(fingerprint.as_deref()) == stored.id.as_str();
    if !id_covers_stores && derive(None) != stored.id.as_str() {
        return Err(ExportError::Changed { id: id(), found: derive(fingerprint.as_deref()) });
    }
    let digest = match shared.store.digest(&stored.id).await? {
        Some(digest) => {
            Some(RawJson::of(&digest).map_err(|error| ExportError::Write { id: id(), cause: error.into() })?)
        }
        None => None,
    };
    // A digest that is too long is left out; it is taken again when the snapshot is first started.
    let digest = digest.filter(|digest| digest.text().len() <= DIGEST_BYTES_MAX);
    let manifest = Manifest {
        id: id(),
        environment: stored.environment.clone(),
        site: stored.site.clone(),
        name: stored.name.clone(),
        baseline: stored.baseline_key.as_ref().map(|key| Baseline { key: key.clone(), recipe: stored.recipe.clone() }),
        volumes: stored.volumes.clone(),
        fingerprint,
        id_covers_stores,
        digest,
        sessions: shared.store.packed_sessions(&stored.id).await?,
        size_bytes: stored.size_bytes,
        created_at: stored.created_at.to_string(),
        writer: format!("arenad {}", env!("CARGO_PKG_VERSION")),
        parts: Vec::new(),
        services,
    };
    Ok(Export { shared: shared.clone(), manifest, parts, about_bytes })
}

impl Export {
    /// Writes the file. The stream ends with an error if the file is incomplete.
    pub(crate) fn stream(self) -> mpsc::Receiver<io::Result<Bytes>> {
        let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
        let (shared, runtime) = (self.shared.clone(), Handle::current());
        let work = move || {
            let id = self.manifest.id.clone();
            let to = io::BufWriter::with_capacity(PIECE, PieceSender(sender.clone()));
            if let Err(error) = self.write(to, &runtime) {
                tracing::warn!(error = describe(&error), "snapshot {id} was not exported");
                // The error is dropped if the client has disconnected.
                let _ = sender.blocking_send(Err(io::Error::other(describe(&error))));
            }
        };
        shared.tasks.spawn_blocking(work);
        receiver
    }

    fn write(self, to: impl Write, runtime: &Handle) -> Result<(), ExportError> {
        let id = self.manifest.id.clone();
        let failed = |cause| ExportError::Write { id: id.clone(), cause };
        let mut writer = Writer::new(to).map_err(failed)?;
        for part in &self.parts {
            writer.begin(part).map_err(failed)?;
            match part {
                PartKind::Images => {
                    let mut ids: Vec<String> =
                        self.manifest.services.values().map(|service| service.image.clone()).collect();
                    ids.sort_unstable();
                    ids.dedup();
                    let mut archive = self.shared.engine.save(&ids);
                    while let Some(chunk) = runtime.block_on(archive.next()) {
                        writer.write_all(&chunk?).map_err(failed)?;
                    }
                }
                PartKind::Volume(file) => {
                    let path = self.shared.state_dir.volumes().join(file);
                    let copied = std::fs::File::open(path).and_then(|mut file| io::copy(&mut file, &mut writer));
                    copied.map_err(failed)?;
                }
                PartKind::Store(name) => {
                    let tree = StoreTree::snapshot(&id, name)?;
                    if let Some(storage) = &self.shared.storage {
                        storage.root().send(&tree, &mut writer)?;
                    }
                }
            }
        }
        writer.finish(self.manifest).map_err(failed)
    }
}

/// Sends each written piece to the client.
struct PieceSender(mpsc::Sender<io::Result<Bytes>>);

impl Write for PieceSender {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        match self.0.blocking_send(Ok(Bytes::copy_from_slice(content))) {
            Ok(()) => Ok(content.len()),
            Err(_) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the client has disconnected")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
