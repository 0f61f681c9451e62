//! Loads images into the engine, from their archives or from a registry.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::docker_archive::ArchivedImage;
use super::scan::{self, ArchiveKind, ScanError};
use super::shelf::{ArchivePaths, FileStamp, Shelf, ShelfRecord};
use super::space::{self, Need};
use super::watch::WorkProgress;
use super::{ImagesError, compression, file};
use arenad_engine::{Engine, Image};
use arenad_model::archive::{SourceArchive, full_reference};

/// Number of bytes that are sent to the engine at a time.
const CHUNK: usize = 1 << 20;

/// Maximum number of chunks that wait for the engine.
const CHUNKS_AHEAD: usize = 8;

/// The settings and resources that the commands share.
pub struct Works {
    /// Engine that receives the images.
    pub engine: Arc<dyn Engine>,
    /// Folder of the archives.
    pub shelf: Shelf,
    /// Folder of the engine's images, if the engine reports it; it is a path on the engine's machine.
    pub engine_root: Option<PathBuf>,
    /// Whether to skip the check of disk space.
    pub ignore_space: bool,
    /// Whether an image may take a name from another image.
    pub replace: bool,
    /// Whether an archive is removed once its content is in place.
    pub discard: bool,
}

/// The result of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadOutcome {
    /// The right content was already present.
    Present,
    /// The content has been loaded by this call.
    Loaded,
}

impl Works {
    /// Checks the disk space unless the user has disabled the check.
    pub fn check_space(&self, doing: &str, needs: &[Need]) -> Result<(), ImagesError> {
        if self.ignore_space { Ok(()) } else { space::check(doing, needs) }
    }

    /// Returns the space that loading needs on the engine's disk, or `None` if the engine's folder is unknown.
    pub fn need_of_engine(&self, expanded_bytes: u64) -> Option<Need> {
        let bytes = space::of_loading(expanded_bytes);
        self.engine_root.clone().map(|folder| Need { folder, bytes })
    }

    /// Pulls an image from its registry through the engine, unless the engine already has it.
    pub async fn pull(&self, reference: &str, watch: &WorkProgress) -> Result<LoadOutcome, ImagesError> {
        if self.engine.image(reference).await?.is_some() {
            return Ok(LoadOutcome::Present);
        }
        let stage = format!("pulling {reference}");
        watch.begin(&stage, None);
        let progress = |line: &str| watch.tell(&stage, line);
        tokio::select! {
            pulled = self.engine.pull(reference, &progress) => pulled?,
            // The engine aborts a pull when its client disconnects, and keeps the layers that it has received.
            () = watch.cancelled() => return Err(ImagesError::Cancelled),
        }
        Ok(LoadOutcome::Loaded)
    }

    /// Loads an image from its archive: from `from`, or from the shelf. The caller holds the turn.
    ///
    /// An interrupted load is never taken for a complete one: the record lists the content of the archive before the
    /// engine is asked to load it, and the engine gives the image its name last.
    pub async fn load(
        &self,
        reference: &str,
        archive: &SourceArchive,
        from: Option<&Path>,
        watch: &Arc<WorkProgress>,
    ) -> Result<LoadOutcome, ImagesError> {
        let place = self.shelf.place(archive);
        let path = from.map_or_else(|| place.file.clone(), Path::to_owned);
        if !path.is_file() {
            // The archive may have been removed after its content was loaded.
            if from.is_none() && self.has(reference, &place).await? {
                return Ok(LoadOutcome::Present);
            }
            let has_mirrors = !archive.mirrors.is_empty();
            return Err(ImagesError::NoArchive { file: archive.file.clone(), looked_at: path, has_mirrors });
        }
        let record =
            proven(&place, archive, &path, ArchiveSelection::Image(reference), &path.display().to_string(), watch)
                .await?;
        let image = of_name(&record, reference, &path)?.clone();
        if self.has(reference, &place).await? {
            return Ok(LoadOutcome::Present);
        }
        self.check_names(&record, &path).await?;
        let needs: Vec<Need> = self.need_of_engine(record.expanded_bytes).into_iter().collect();
        self.check_space(&format!("load {reference}"), &needs)?;
        self.stream(&path, reference, record.expanded_bytes, watch).await?;
        let proven = self.engine.image(reference).await?;
        match proven {
            Some(found) if is_same(&image, &found) => {
                place.remember(&ShelfRecord { engine_id: Some(found.id), ..record })?;
                Ok(LoadOutcome::Loaded)
            }
            found => Err(ImagesError::NotProven {
                path,
                reference: reference.to_owned(),
                expected: image.id().to_owned(),
                found: found
                    .map_or_else(|| "has no image of that name".to_owned(), |found| format!("has {}", found.id)),
            }),
        }
    }

    /// Returns whether the engine has the image that the record describes.
    pub(crate) async fn has(&self, reference: &str, place: &ArchivePaths) -> Result<bool, ImagesError> {
        let Some(record) = place.record() else { return Ok(false) };
        let Some(found) = self.engine.image(reference).await? else { return Ok(false) };
        Ok(matches_record(&record, reference, &found))
    }

    /// Checks that loading does not take names from other images. For the requested image this may be intended; for
    /// others it is not.
    async fn check_names(&self, record: &ShelfRecord, path: &Path) -> Result<(), ImagesError> {
        for image in record.images.iter().filter(|_| !self.replace) {
            for tag in &image.tags {
                let found = self.engine.image(tag).await?.filter(|found| !is_same(image, found));
                if let Some(found) = found {
                    let (path, reference) = (path.to_owned(), tag.clone());
                    return Err(ImagesError::WouldReplace { path, reference, found: found.id });
                }
            }
        }
        Ok(())
    }

    async fn stream(
        &self,
        path: &Path,
        reference: &str,
        size: u64,
        watch: &Arc<WorkProgress>,
    ) -> Result<(), ImagesError> {
        watch.begin(format!("loading {reference}"), Some(size));
        let (sender, receiver) = tokio::sync::mpsc::channel(CHUNKS_AHEAD);
        let opened = File::open(path).map_err(file("read", path))?;
        let reading = watch.clone();
        // The task ends when the engine stops reading, because the channel is then closed.
        let reader = tokio::task::spawn_blocking(move || {
            let mut content = match compression::open(BufReader::with_capacity(CHUNK, opened)) {
                Ok(Ok(content)) => content,
                Ok(Err(other)) => return drop(sender.blocking_send(Err(std::io::Error::other(other.0)))),
                Err(error) => return drop(sender.blocking_send(Err(error))),
            };
            loop {
                let mut chunk = vec![0; CHUNK];
                let sent = match content.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(read) => {
                        chunk.truncate(read);
                        reading.advance(read);
                        sender.blocking_send(Ok(Bytes::from(chunk)))
                    }
                    Err(error) => sender.blocking_send(Err(error)),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        let chunks = futures_util::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        let stage = format!("unpacking {reference}");
        let progress = |line: &str| watch.tell(&stage, line);
        let loaded = tokio::select! {
            loaded = self.engine.load(Box::pin(chunks), &progress) => loaded.map_err(ImagesError::Engine),
            () = watch.cancelled() => Err(ImagesError::Cancelled),
        };
        drop(reader);
        loaded
    }
}

/// The part of an archive that is needed.
#[derive(Debug, Clone, Copy)]
pub enum ArchiveSelection<'a> {
    /// The image with this name.
    Image(&'a str),
    /// The files that the archive contains.
    Files,
    /// The file as it is, without unpacking it.
    Itself,
}

impl ArchiveSelection<'_> {
    fn kind(self) -> ArchiveKind {
        match self {
            Self::Image(_) => ArchiveKind::Images,
            Self::Files => ArchiveKind::Files,
            Self::Itself => ArchiveKind::File,
        }
    }
}

/// Reads an archive unless this copy has been read before, compares it with the pin, and writes the record.
///
/// The record pins the content, so it is written last.
pub(crate) async fn proven(
    place: &ArchivePaths,
    archive: &SourceArchive,
    path: &Path,
    wanted: ArchiveSelection<'_>,
    source: &str,
    watch: &Arc<WorkProgress>,
) -> Result<ShelfRecord, ImagesError> {
    let before = place.record();
    let stamp = FileStamp::of(path);
    if let Some(record) = before.clone()
        && record.seen.is_some()
        && record.seen == stamp
        && archive.sha256.as_ref().is_none_or(|declared| *declared == record.sha256)
    {
        return Ok(record);
    }
    let scanned = {
        let (path, watch, kind) = (path.to_owned(), watch.clone(), wanted.kind());
        let scan = move || scan::scan(&path, kind, &watch);
        tokio::task::spawn_blocking(scan).await.unwrap_or(Err(ScanError::Cancelled))
    };
    let scanned = scanned.map_err(|cause| match cause {
        ScanError::Cancelled => ImagesError::Cancelled,
        cause => ImagesError::Unsound { path: path.to_owned(), cause },
    })?;
    check_pin(place, archive, before.as_ref(), path, &scanned.sha256)?;
    let before = before.filter(|before| before.sha256 == scanned.sha256);
    let record = ShelfRecord {
        sha256: scanned.sha256,
        size_bytes: scanned.size_bytes,
        expanded_bytes: scanned.expanded_bytes,
        images: scanned.images,
        source: before.as_ref().map_or_else(|| source.to_owned(), |before| before.source.clone()),
        // If the file changed during the scan, the stamp must not vouch for it.
        seen: stamp.filter(|stamp| FileStamp::of(path).as_ref() == Some(stamp)),
        engine_id: before.as_ref().and_then(|before| before.engine_id.clone()),
        unpacked: before.map(|before| before.unpacked).unwrap_or_default(),
    };
    if let ArchiveSelection::Image(reference) = wanted {
        of_name(&record, reference, path)?;
    }
    place.remember(&record)?;
    Ok(record)
}

/// Compares a digest with that of the definition or of the first copy.
pub(crate) fn check_pin(
    place: &ArchivePaths,
    archive: &SourceArchive,
    before: Option<&ShelfRecord>,
    path: &Path,
    found: &str,
) -> Result<(), ImagesError> {
    let (expected, pin, record) = match (&archive.sha256, before) {
        (Some(declared), _) => (declared, "that in the definition", None),
        (None, Some(before)) => (&before.sha256, "that of the first copy", Some(place.record_path().to_owned())),
        (None, None) => return Ok(()),
    };
    if expected == found {
        return Ok(());
    }
    let (path, found, expected) = (path.to_owned(), found.to_owned(), expected.clone());
    Err(ImagesError::OtherContent { path, found, expected, pin, record })
}

/// Returns the image of an archive that has the name.
pub fn of_name<'a>(record: &'a ShelfRecord, reference: &str, path: &Path) -> Result<&'a ArchivedImage, ImagesError> {
    record.images.iter().find(|image| image.is_called(reference)).ok_or_else(|| ImagesError::OtherImage {
        path: path.to_owned(),
        reference: full_reference(reference),
        holds: record.images.iter().flat_map(|image| image.tags.clone()).collect(),
    })
}

/// Returns whether an image of the engine is the one that the record describes.
pub(crate) fn matches_record(record: &ShelfRecord, reference: &str, found: &Image) -> bool {
    record.images.iter().any(|image| image.is_called(reference) && is_same(image, found))
}

/// Returns whether an image of the engine is one from an archive. An engine that identifies images by manifests creates
/// a manifest for an archive that has none; in that case only the layers can be compared.
fn is_same(archived: &ArchivedImage, found: &Image) -> bool {
    archived.ids.contains(&found.id)
        || (found.is_named_by_manifest && !found.layers.is_empty() && archived.layers == found.layers)
}
