//! Puts data where services mount it, either as a file or unpacked.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use super::load::{ArchiveSelection, LoadOutcome, Works, proven};
use super::shelf::{ArchivePaths, FileStamp, ShelfRecord, Unpacked, sync_folder};
use super::space::Need;
use super::unpack;
use super::watch::WorkProgress;
use super::{ImagesError, file};
use arenad_model::archive::{DataSource, Placement, Unpacking};

/// Number of bytes that are copied at a time.
const CHUNK: usize = 4 << 20;

impl Works {
    /// Puts data in its place, from `from` or from the shelf. The caller holds the turn.
    pub async fn place(
        &self,
        data: &DataSource,
        from: Option<&Path>,
        watch: &Arc<WorkProgress>,
    ) -> Result<LoadOutcome, ImagesError> {
        let place = self.shelf.place_of_data(data);
        if is_placed(data, &place) {
            return Ok(LoadOutcome::Present);
        }
        let path = from.unwrap_or(&place.file);
        if !path.is_file() {
            return Err(ImagesError::NoArchive {
                file: data.archive.file.clone(),
                looked_at: path.to_owned(),
                has_mirrors: !data.archive.mirrors.is_empty(),
            });
        }
        let source = path.display().to_string();
        match (&data.placement, from) {
            (Placement::Folder(_), Some(from)) if from != place.file => {
                self.copy(&place, from, watch).await?;
                let part = place.part();
                match proven(&place, &data.archive, &part, ArchiveSelection::Itself, &source, watch).await {
                    Ok(_) => settle(&place)?,
                    Err(error) => {
                        // Only the copy is removed; the original still exists.
                        let _ = fs::remove_file(&part);
                        return Err(error);
                    }
                }
            }
            // The file was put there by hand or by a pull, so it only needs to be read.
            (Placement::Folder(_), _) => {
                proven(&place, &data.archive, path, ArchiveSelection::Itself, &source, watch).await?;
            }
            (Placement::Unpacked(parts), _) => {
                let record = proven(&place, &data.archive, path, ArchiveSelection::Files, &source, watch).await?;
                self.unpack(&place, path, parts, record, watch).await?;
            }
        }
        Ok(LoadOutcome::Loaded)
    }

    /// Unpacks the parts that are not in their places yet. The record names them before they are renamed, so that after
    /// a crash between two renames it is known of each folder whether it is complete.
    async fn unpack(
        &self,
        place: &ArchivePaths,
        path: &Path,
        parts: &[Unpacking],
        mut record: ShelfRecord,
        watch: &Arc<WorkProgress>,
    ) -> Result<(), ImagesError> {
        record.unpacked.retain(Unpacked::is_in_place);
        let is_missing = |part: &&Unpacking| !record.unpacked.iter().any(|known| known.folder == part.to);
        let missing: Vec<Unpacking> = parts.iter().filter(is_missing).cloned().collect();
        // All parts together are at most as large as the whole archive.
        let need = missing.first().map(|part| Need { folder: part.to.clone(), bytes: record.expanded_bytes });
        self.check_space(&format!("unpack {}", place.name), need.as_slice())?;
        let (path, wanted, reading) = (path.to_owned(), missing.clone(), watch.clone());
        let unpacking = tokio::task::spawn_blocking(move || unpack::unpack(&path, &wanted, &reading)).await;
        match unpacking {
            Ok(Ok(())) => {}
            Ok(Err(error)) if !watch.is_cancelled() => return Err(error),
            _ => return Err(ImagesError::Cancelled),
        }
        for part in &missing {
            let found = fs::metadata(unpack::beside(&part.to)).map_err(file("read", &part.to))?;
            record.unpacked.push(Unpacked { folder: part.to.clone(), inode: found.ino() });
        }
        place.remember(&record)?;
        missing.iter().try_for_each(|part| unpack::settle(&part.to))
    }

    async fn copy(&self, place: &ArchivePaths, from: &Path, watch: &Arc<WorkProgress>) -> Result<(), ImagesError> {
        let size = fs::metadata(from).map_err(file("read", from))?.len();
        let folder = place.file.parent().unwrap_or(Path::new(".")).to_owned();
        self.check_space(&format!("copy {}", place.name), &[Need { folder, bytes: size }])?;
        watch.begin(format!("copying {}", place.name), Some(size));
        // The state of a partial download does not belong to this copy.
        let _ = fs::remove_file(place.part_state());
        let (source, part, copying) = (from.to_owned(), place.part(), watch.clone());
        let copied = tokio::task::spawn_blocking(move || copy(&source, &part, &copying)).await;
        match copied {
            _ if watch.is_cancelled() => Err(ImagesError::Cancelled),
            Ok(copied) => copied.map_err(file("copy to", &place.part())),
            Err(_) => Err(ImagesError::Cancelled),
        }
    }
}

fn copy(from: &Path, to: &Path, watch: &WorkProgress) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    // If the file system can share the blocks, the copy is complete.
    if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
        let mut buffer = vec![0; CHUNK];
        loop {
            if watch.is_cancelled() {
                return Ok(());
            }
            let read = source.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            target.write_all(&buffer[..read])?;
            watch.advance(read);
        }
    }
    target.sync_all()
}

/// Gives a file its final name after it has been read and compared.
pub(crate) fn settle(place: &ArchivePaths) -> Result<(), ImagesError> {
    if !place.is_on_shelf() {
        // Containers read the file under arbitrary users.
        let opened = fs::set_permissions(place.part(), fs::Permissions::from_mode(0o644));
        opened.map_err(file("open to everybody", &place.part()))?;
    }
    fs::rename(place.part(), &place.file).map_err(file("rename", &place.part()))?;
    sync_folder(&place.file).map_err(file("write", &place.file))?;
    let _ = fs::remove_file(place.part_state());
    Ok(())
}

/// Returns whether the data is in its place and unchanged since it was last read.
pub fn is_placed(data: &DataSource, place: &ArchivePaths) -> bool {
    let Some(record) = place.record().filter(|record| matches_definition(data, record)) else {
        return false;
    };
    match &data.placement {
        Placement::Folder(_) => record.seen.is_some() && record.seen == FileStamp::of(&place.file),
        Placement::Unpacked(parts) => {
            let is_there =
                |part: &Unpacking| record.unpacked.iter().any(|known| known.folder == part.to && known.is_in_place());
            parts.iter().all(is_there)
        }
    }
}

fn matches_definition(data: &DataSource, record: &ShelfRecord) -> bool {
    data.archive.sha256.as_ref().is_none_or(|declared| *declared == record.sha256)
}
