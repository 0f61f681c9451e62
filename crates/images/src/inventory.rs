//! Determines which images and data an environment needs, and which of them are present.

use std::fs;

use super::ImagesError;
use super::load::{Works, matches_record};
use super::place::is_placed;
use super::shelf::{ArchivePaths, ShelfRecord};
use arenad_engine::Image;
use arenad_model::archive::{DataSource, ImageProvenance, NeededImage, SourceArchive};

/// Progress of an image or data on its way to the engine or its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InventoryState {
    /// The content is in its place. If it comes from an archive, it has been compared with the archive.
    Present,
    /// Content with the expected name is in its place, but has not been compared with an archive.
    Unverified,
    /// Content with the expected name is in its place, but differs from the archive.
    Different,
    /// The archive is complete but has not been loaded.
    Downloaded,
    /// Only a part of the archive has been fetched.
    Partial,
    /// Neither the content nor any part of its archive is present.
    Missing,
}

/// The status of an image or data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryStatus {
    /// Progress of the image or data.
    pub state: InventoryState,
    /// Number of bytes of the archive that have been fetched.
    pub archived_bytes: u64,
    /// Size of the archive in bytes: exact if known, otherwise as declared in the definition.
    pub archive_bytes: Option<u64>,
    /// Size in bytes once it is loaded: exact if it is present, otherwise as declared in the definition.
    pub loaded_bytes: Option<u64>,
    /// ID of the image in the engine; `None` for data and if the engine has no such image.
    pub id: Option<String>,
    /// SHA-256 (hex) that the archive must have.
    pub sha256: Option<String>,
}

impl Works {
    /// Returns the status of an image.
    pub async fn standing(&self, image: &NeededImage) -> Result<InventoryStatus, ImagesError> {
        let found = self.engine.image(&image.reference).await?;
        let standing = match &image.origin {
            ImageProvenance::Built | ImageProvenance::Registry => {
                let state = if found.is_some() { InventoryState::Present } else { InventoryState::Missing };
                InventoryStatus {
                    state,
                    archived_bytes: 0,
                    archive_bytes: None,
                    loaded_bytes: image.loaded_bytes,
                    id: None,
                    sha256: None,
                }
            }
            ImageProvenance::Archive(archive) => {
                let place = self.shelf.place(archive);
                let mut standing = of_archive(archive, &place);
                standing.loaded_bytes = image.loaded_bytes;
                if let Some(found) = &found {
                    standing.state = compared(place.record().as_ref(), &image.reference, found);
                }
                standing
            }
        };
        Ok(match found {
            Some(found) => InventoryStatus { loaded_bytes: Some(found.size_bytes), id: Some(found.id), ..standing },
            None => standing,
        })
    }

    /// Returns the status of data.
    pub fn standing_of_data(&self, data: &DataSource) -> InventoryStatus {
        let place = self.shelf.place_of_data(data);
        let mut standing = of_archive(&data.archive, &place);
        if is_placed(data, &place) {
            standing.state = InventoryState::Present;
        } else if data.results().iter().all(|result| has_content(result)) {
            standing.state = InventoryState::Unverified;
        }
        standing
    }
}

/// Returns whether a path is a file or a folder with content. An empty folder may exist only as a mount point.
fn has_content(path: &std::path::Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.any(|entry| entry.is_ok_and(|e| !e.file_name().to_string_lossy().starts_with('.'))),
        Err(_) => path.is_file(),
    }
}

fn compared(record: Option<&ShelfRecord>, reference: &str, found: &Image) -> InventoryState {
    match record {
        None => InventoryState::Unverified,
        Some(record) if matches_record(record, reference, found) => InventoryState::Present,
        Some(_) => InventoryState::Different,
    }
}

fn of_archive(archive: &SourceArchive, place: &ArchivePaths) -> InventoryStatus {
    let length =
        |path: &std::path::Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| found.len());
    let record = place.record();
    let whole = length(&place.file);
    let part = length(&place.part()).filter(|length| *length > 0);
    let said =
        fs::read(place.part_state()).ok().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let total = said.and_then(|said| said["total_bytes"].as_u64());
    let state = match (whole, part) {
        (Some(_), _) => InventoryState::Downloaded,
        (None, Some(_)) => InventoryState::Partial,
        (None, None) => InventoryState::Missing,
    };
    InventoryStatus {
        state,
        archived_bytes: whole.or(part).unwrap_or_default(),
        archive_bytes: whole.or(total).or(record.as_ref().map(|record| record.size_bytes)).or(archive.size_bytes),
        loaded_bytes: None,
        id: None,
        sha256: archive.sha256.clone().or(record.map(|record| record.sha256)),
    }
}
