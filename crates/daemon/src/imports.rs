//! Importing a snapshot that arrives part by part, as `arenad snapshot import` sends it.
//!
//! ```text
//!   begin(manifest) ──► missing parts ──► receive(part) … ──► finish ──► a row
//! ```
//! Parts that have arrived completely are not sent again: an import and its parts are kept until the import is
//! finished, or until it has received nothing for a day. The snapshot's row is written last, so nothing starts from an
//! incomplete snapshot.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use arenad_baseline::{BaselineError, snapshot};
use arenad_engine::EngineError;
use arenad_export::{Manifest, ManifestError, PIECE_BYTES, PartKind};
use arenad_images::ImagesError;
use arenad_images::space::{self, Need};
use arenad_instance::shared::SharedParts;
use arenad_launch as launch;
use arenad_model::event::EventKind;
use arenad_model::hex::hex;
use arenad_model::snapshot::{Snapshot, SnapshotId};
use arenad_storage::{ArchiveLimits, StorageError, StoreTree};
use arenad_store::{StoreError, StoredImport};

/// The time without progress after which an import is abandoned and its parts are removed.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// The reason why a snapshot could not be imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// The manifest is invalid.
    #[error("import the snapshot")]
    Manifest(#[from] ManifestError),
    /// The site has another snapshot of that name.
    #[error("import snapshot {id}: {site} already has a snapshot named {name}")]
    NameTaken {
        /// The id of the snapshot to import.
        id: String,
        /// The environment and site, as `environment/site`.
        site: String,
        /// The name that is taken.
        name: String,
    },
    /// The snapshot holds state that needs a state root, and there is none.
    #[error("import snapshot {0}: it keeps its stores in a state root, and there is none here")]
    NoStateRoot(String),
    /// No import of the snapshot has begun, or it was abandoned.
    #[error("continue the import of {0}: it was not begun, or was abandoned")]
    NotBegun(String),
    /// The manifest has no part with that number.
    #[error("import snapshot {id}: it has no part {index}")]
    NoPart {
        /// The id of the snapshot.
        id: String,
        /// The number of the part, counted from 0.
        index: usize,
    },
    /// A part differs from the manifest.
    #[error("import snapshot {id}: {part} {what}")]
    Damaged {
        /// The id of the snapshot.
        id: String,
        /// The name of the part.
        part: String,
        /// A description of the problem, which continues the message after the name of the part.
        what: String,
    },
    /// The disk has too little free space.
    #[error(transparent)]
    NoRoom(#[from] ImagesError),
    /// The engine reported an error.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An operation of the state root failed.
    #[error(transparent)]
    State(#[from] StorageError),
    /// An operation of the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A volume's archive could not be written.
    #[error("write {path}")]
    File {
        /// The path of the archive.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: io::Error,
    },
}

/// The state of an import when it begins or resumes.
#[derive(Debug)]
pub(crate) enum ImportState {
    /// The snapshot is complete already.
    Present,
    /// The parts that are missing, as indexes into the manifest's list.
    Missing(Vec<usize>),
}

/// Begins or resumes an import, and returns the missing parts.
pub(crate) async fn begin(
    shared: &SharedParts,
    manifest: Manifest,
    name: Option<String>,
) -> Result<ImportState, ImportError> {
    manifest.check()?;
    let id = &manifest.id;
    let known = shared.store.snapshots().await?;
    if let Some(stored) = known.iter().find(|stored| stored.id.as_str() == id)
        && !shared.store.has_import(id).await?
        && snapshot::is_whole(&shared.baselines, stored).await?
        && missing(shared, &manifest).await?.is_empty()
    {
        return Ok(ImportState::Present);
    }
    if let Some(name) = name.as_ref().or(manifest.name.as_ref())
        && known.iter().any(|stored| {
            let is_of_site = stored.is_of(manifest.environment.as_str(), manifest.site.as_str());
            is_of_site && stored.id.as_str() != id && stored.name.as_ref() == Some(name)
        })
    {
        let site = format!("{}/{}", manifest.environment, manifest.site);
        return Err(ImportError::NameTaken { id: id.clone(), site, name: name.clone() });
    }
    if shared.storage.is_none() && manifest.id_covers_stores {
        return Err(ImportError::NoStateRoot(id.clone()));
    }
    let missing = missing(shared, &manifest).await?;
    check_room(shared, &manifest, &missing).await?;
    shared.store.save_import(name.as_deref(), &manifest).await?;
    if wrong_image(shared, &manifest).await?.is_none() {
        hold_images(shared, &manifest).await?;
    }
    Ok(ImportState::Missing(missing))
}

/// Returns the parts that have not arrived, as indexes into the manifest's list.
async fn missing(shared: &SharedParts, manifest: &Manifest) -> Result<Vec<usize>, ImportError> {
    let mut missing = Vec::new();
    for (index, (kind, _)) in manifest.kinds().enumerate() {
        let is_there = match kind {
            PartKind::Images => wrong_image(shared, manifest).await?.is_none(),
            PartKind::Volume(file) => shared.state_dir.volumes().join(file).is_file(),
            PartKind::Store(name) => match &shared.storage {
                Some(storage) => storage.root().is_whole(&StoreTree::snapshot(&manifest.id, &name)?),
                None => true,
            },
        };
        if !is_there {
            missing.push(index);
        }
    }
    Ok(missing)
}

/// Tags the images for this installation, so that they stay when another installation of the same engine removes its
/// own tags.
async fn hold_images(shared: &SharedParts, manifest: &Manifest) -> Result<(), EngineError> {
    for (service, image) in &manifest.services {
        let tag = snapshot::import_tag(&shared.installation, &manifest.id, service.as_str());
        shared.engine.tag(&image.image, snapshot::REPOSITORY, &tag).await?;
    }
    Ok(())
}

/// Returns an image that the engine lacks, or holds with layers other than the manifest's.
async fn wrong_image(shared: &SharedParts, manifest: &Manifest) -> Result<Option<String>, EngineError> {
    for service in manifest.services.values() {
        let found = shared.engine.image(&service.image).await?;
        if found.is_none_or(|found| found.layers != service.layers) {
            return Ok(Some(service.image.clone()));
        }
    }
    Ok(None)
}

async fn check_room(shared: &SharedParts, manifest: &Manifest, missing: &[usize]) -> Result<(), ImportError> {
    // An engine on another machine, or one that does not answer now, reports a full disk itself.
    let engine_root = shared.engine.version().await.ok().map(|version| version.root);
    let mut needs = Vec::new();
    for (index, (kind, part)) in manifest.kinds().enumerate() {
        if !missing.contains(&index) {
            continue;
        }
        let need = match kind {
            PartKind::Images => engine_root.clone().map(|folder| (folder, space::of_loading(part.bytes))),
            PartKind::Volume(_) => Some((shared.state_dir.volumes(), part.bytes)),
            PartKind::Store(_) => shared.storage.as_ref().map(|storage| (storage.root().path().to_owned(), part.bytes)),
        };
        needs.extend(need.map(|(folder, bytes)| Need { folder, bytes }));
    }
    Ok(space::check(&format!("import snapshot {}", manifest.id), &needs)?)
}

/// Receives a part. The part is stored completely or not at all.
pub(crate) async fn receive(
    shared: &SharedParts,
    id: &str,
    index: usize,
    content: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
) -> Result<(), ImportError> {
    let import = begun(shared, id).await?;
    let found = import.manifest.kinds().nth(index).map(|(kind, part)| (kind, part.clone()));
    let Some((kind, part)) = found else { return Err(ImportError::NoPart { id: id.to_owned(), index }) };
    let mut content = Box::pin(proven(content, part.pieces, part.bytes));
    match &kind {
        PartKind::Images => {
            shared.engine.load(content, &|_| {}).await?;
            if let Some(image) = wrong_image(shared, &import.manifest).await? {
                let what = format!("was loaded, and the engine has no image {image}");
                return Err(ImportError::Damaged { id: id.to_owned(), part: kind.to_string(), what });
            }
            hold_images(shared, &import.manifest).await?;
        }
        PartKind::Volume(file) => receive_volume(shared, id, file, content).await?,
        PartKind::Store(name) => {
            if let Some(storage) = &shared.storage {
                let tree = StoreTree::snapshot(id, name)?;
                storage.receive(&mut content, &tree, ArchiveLimits::default()).await?;
                // The archive may end before the part does.
                while let Some(rest) = content.next().await {
                    if let Err(cause) = rest {
                        storage.discard(&tree).await?;
                        let part = kind.to_string();
                        return Err(ImportError::Damaged { id: id.to_owned(), part, what: cause.to_string() });
                    }
                }
            }
        }
    }
    Ok(shared.store.touch_import(id).await?)
}

async fn receive_volume(
    shared: &SharedParts,
    id: &str,
    file: &str,
    mut content: impl Stream<Item = io::Result<Bytes>> + Unpin,
) -> Result<(), ImportError> {
    let folder = shared.state_dir.volumes();
    let partial = folder.join(format!("{:016x}.partial", rand::random::<u64>()));
    let failed = |cause| ImportError::File { path: partial.clone(), cause };
    let received = async {
        tokio::fs::create_dir_all(&folder).await.map_err(failed)?;
        let mut written = tokio::fs::File::create(&partial).await.map_err(failed)?;
        let mut digest = Sha256::new();
        while let Some(piece) = content.next().await {
            let piece = piece.map_err(failed)?;
            digest.update(&piece);
            written.write_all(&piece).await.map_err(failed)?;
        }
        written.sync_all().await.map_err(failed)?;
        let found = format!("{}.tar", hex(&digest.finalize()));
        if found != file {
            let what = format!("has the content of {found}");
            return Err(ImportError::Damaged { id: id.to_owned(), part: file.to_owned(), what });
        }
        tokio::fs::rename(&partial, folder.join(file)).await.map_err(failed)
    };
    let received = received.await;
    if received.is_err() {
        // A file that cannot be removed now becomes an orphan, which reconciliation finds.
        let _ = tokio::fs::remove_file(&partial).await;
    }
    received
}

/// Passes the content of a part on; the stream ends with an error if the content differs from the manifest.
fn proven(
    content: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
    pieces: Vec<String>,
    bytes: u64,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let proof = PartVerifier { pieces: pieces.into_iter(), hasher: blake3::Hasher::new(), in_piece: 0, left: bytes };
    futures_util::stream::try_unfold((content, proof), |(mut content, mut proof)| async move {
        match content.next().await {
            Some(chunk) => {
                let chunk = chunk?;
                proof.take(&chunk)?;
                Ok(Some((chunk, (content, proof))))
            }
            None => proof.end().map(|()| None),
        }
    })
}

/// Compares the pieces of a part with their hashes as they pass.
struct PartVerifier {
    pieces: std::vec::IntoIter<String>,
    hasher: blake3::Hasher,
    in_piece: u64,
    left: u64,
}

impl PartVerifier {
    fn take(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        while !chunk.is_empty() {
            let room = (PIECE_BYTES - self.in_piece).min(self.left);
            if room == 0 {
                return Err(io::Error::other("it is longer than the manifest says"));
            }
            let taken = chunk.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            self.hasher.update(&chunk[..taken]);
            chunk = &chunk[taken..];
            self.in_piece += taken as u64;
            self.left -= taken as u64;
            if self.in_piece == PIECE_BYTES || self.left == 0 {
                let found = std::mem::take(&mut self.hasher).finalize().to_hex().to_string();
                self.in_piece = 0;
                if self.pieces.next() != Some(found) {
                    return Err(io::Error::other("it is not what the manifest says: it was damaged on its way"));
                }
            }
        }
        Ok(())
    }

    fn end(&self) -> io::Result<()> {
        match self.left {
            0 => Ok(()),
            left => Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{left} bytes of it are missing"))),
        }
    }
}

/// Verifies that everything has arrived, and makes it a snapshot.
pub(crate) async fn finish(shared: &SharedParts, id: &str) -> Result<Snapshot, ImportError> {
    let StoredImport { name, manifest, .. } = begun(shared, id).await?;
    let damaged = |part: &str, what: &str| ImportError::Damaged {
        id: id.to_owned(),
        part: part.to_owned(),
        what: what.to_owned(),
    };
    if let Some(index) = missing(shared, &manifest).await?.first() {
        return Err(damaged(&manifest.parts[*index].name, "has not arrived"));
    }
    let state = if shared.storage.is_some() { manifest.stores() } else { Vec::new() };
    if let Some(storage) = &shared.storage {
        let trees = state.iter().map(|name| StoreTree::snapshot(id, name)).collect::<Result<Vec<_>, _>>()?;
        if launch::fingerprint_of(storage, trees.clone()).await? != manifest.fingerprint {
            for tree in &trees {
                storage.discard(tree).await?;
            }
            return Err(damaged("what has arrived of its stores", "is not what was sent; it was removed"));
        }
    }
    let snapshot = Snapshot {
        id: manifest.id.into(),
        environment: manifest.environment,
        site: manifest.site,
        recipe: manifest.baseline.as_ref().and_then(|baseline| baseline.recipe.clone()),
        baseline_key: manifest.baseline.map(|baseline| baseline.key),
        name: name.or(manifest.name),
        images: manifest.services.into_iter().map(|(service, found)| (service, found.image)).collect(),
        volumes: manifest.volumes,
        state,
        copied_from: None,
        is_imported: true,
        size_bytes: manifest.size_bytes,
        created_at: manifest.created_at.parse().unwrap_or_else(|_| Timestamp::now()),
    };
    shared.store.save_snapshot(&snapshot).await?;
    // A digest that cannot be parsed is taken again when the snapshot is first started.
    if let Some(digest) = manifest.digest.and_then(|digest| serde_json::from_str(digest.text()).ok()) {
        shared.store.save_digest(id, &digest).await?;
    }
    shared.store.unpack_sessions(id, &manifest.sessions).await?;
    shared.store.forget_import(id).await?;
    let message = format!("snapshot {id} of {}/{} was imported", snapshot.environment, snapshot.site);
    shared.events.note(EventKind::SnapshotImported, None, &message).await;
    Ok(snapshot)
}

async fn begun(shared: &SharedParts, id: &str) -> Result<StoredImport, ImportError> {
    shared.store.import(id).await?.ok_or_else(|| ImportError::NotBegun(id.to_owned()))
}

/// The objects that imports in progress have brought, which are not orphans.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// The ids of the snapshots.
    pub snapshots: BTreeSet<SnapshotId>,
    /// The ids of the snapshots' images.
    pub images: BTreeSet<String>,
    /// The file names of the snapshots' volume archives.
    pub volumes: BTreeSet<String>,
}

/// Returns the objects that the imports in progress have brought.
pub(crate) async fn awaited(shared: &SharedParts) -> Result<Awaited, StoreError> {
    let mut awaited = Awaited::default();
    for import in shared.store.imports().await? {
        awaited.snapshots.insert(import.snapshot);
        awaited.images.extend(import.images);
        awaited.volumes.extend(import.volumes);
    }
    Ok(awaited)
}

/// Abandons the imports without recent progress. Returns those that could not be abandoned, by snapshot; they are tried
/// again.
pub(crate) async fn tend(shared: &SharedParts) -> Result<Vec<(SnapshotId, BaselineError)>, StoreError> {
    let mut failures = Vec::new();
    for import in shared.store.imports().await? {
        let age = Duration::try_from(Timestamp::now().duration_since(import.touched_at)).unwrap_or_default();
        if age <= PATIENCE {
            continue;
        }
        if let Err(error) = give_up(shared, &import.snapshot, &import.images).await {
            failures.push((import.snapshot, error));
        }
    }
    Ok(failures)
}

/// Abandons all imports in progress.
pub(crate) async fn give_up_all(shared: &SharedParts) -> Result<(), BaselineError> {
    for import in shared.store.imports().await? {
        give_up(shared, &import.snapshot, &import.images).await?;
    }
    Ok(())
}

/// Deletes an import and removes its images, which no other record would identify as arenad's; its files then become
/// orphans.
async fn give_up(shared: &SharedParts, id: &str, images: &BTreeSet<String>) -> Result<(), BaselineError> {
    let named = shared.store.snapshots().await?;
    for image in images {
        if !named.iter().any(|stored| stored.images.values().any(|named| named == image)) {
            match snapshot::release(&shared.baselines, image).await {
                Err(EngineError::Conflict { .. }) => {}
                result => result?,
            }
        }
    }
    shared.store.forget_import(id).await?;
    let message = format!("the import of snapshot {id} was abandoned");
    shared.events.note(EventKind::SnapshotGivenUp, None, &message).await;
    Ok(())
}
