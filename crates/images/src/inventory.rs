//! What an environment needs, and what of it is there.

use std::fs;

use super::ImagesError;
use super::load::{Works, matches_record};
use super::place::is_placed;
use super::shelf::{Place, Record};
use arenad_engine::Image;
use arenad_model::archive::{Archive, DataSource, NeededImage, Origin};

/// How far something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is there. What comes from an archive has been compared with it.
    Present,
    /// Something of that name is there that nobody has compared with an archive.
    Unverified,
    /// Something of that name is there that is not what the archive held.
    Different,
    /// The whole archive is there; it only has to be loaded.
    Downloaded,
    /// A part of the archive is there.
    Partial,
    /// Nothing of it is there.
    Missing,
}

impl State {
    /// The word for tables and programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Unverified => "unverified",
            Self::Different => "different",
            Self::Downloaded => "downloaded",
            Self::Partial => "partial",
            Self::Missing => "missing",
        }
    }
}

/// What is known of an image or data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// How far it is.
    pub state: State,
    /// How much of the archive is there, in bytes.
    pub archived_bytes: u64,
    /// How large the archive is: exactly where that is known, else as the definition says.
    pub archive_bytes: Option<u64>,
    /// How large it is when it is there: exactly where it is, else as the definition says.
    pub loaded_bytes: Option<u64>,
    /// The engine's id of the image.
    pub id: Option<String>,
    /// SHA-256 (hex) that the archive must have.
    pub sha256: Option<String>,
}

impl Works {
    /// How far an image is.
    pub async fn standing(&self, image: &NeededImage) -> Result<Standing, ImagesError> {
        let found = self.engine.image(&image.reference).await?;
        let standing = match &image.origin {
            Origin::Built | Origin::Registry => {
                let state = if found.is_some() { State::Present } else { State::Missing };
                Standing {
                    state,
                    archived_bytes: 0,
                    archive_bytes: None,
                    loaded_bytes: image.loaded_bytes,
                    id: None,
                    sha256: None,
                }
            }
            Origin::Archive(archive) => {
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
            Some(found) => Standing { loaded_bytes: Some(found.size_bytes), id: Some(found.id), ..standing },
            None => standing,
        })
    }

    /// How far data is.
    pub fn standing_of_data(&self, data: &DataSource) -> Standing {
        let place = self.shelf.place_of_data(data);
        let mut standing = of_archive(&data.archive, &place);
        if is_placed(data, &place) {
            standing.state = State::Present;
        } else if data.results().iter().all(|result| has_content(result)) {
            standing.state = State::Unverified;
        }
        standing
    }
}

/// A file, or a folder with something in it: an empty one may be there only to be mounted.
fn has_content(path: &std::path::Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.any(|entry| entry.is_ok_and(|e| !e.file_name().to_string_lossy().starts_with('.'))),
        Err(_) => path.is_file(),
    }
}

fn compared(record: Option<&Record>, reference: &str, found: &Image) -> State {
    match record {
        None => State::Unverified,
        Some(record) if matches_record(record, reference, found) => State::Present,
        Some(_) => State::Different,
    }
}

fn of_archive(archive: &Archive, place: &Place) -> Standing {
    let length =
        |path: &std::path::Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| found.len());
    let record = place.record();
    let whole = length(&place.file);
    let part = length(&place.part()).filter(|length| *length > 0);
    let said =
        fs::read(place.part_state()).ok().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let total = said.and_then(|said| said["total_bytes"].as_u64());
    let state = match (whole, part) {
        (Some(_), _) => State::Downloaded,
        (None, Some(_)) => State::Partial,
        (None, None) => State::Missing,
    };
    Standing {
        state,
        archived_bytes: whole.or(part).unwrap_or_default(),
        archive_bytes: whole.or(total).or(record.as_ref().map(|record| record.size_bytes)).or(archive.size_bytes),
        loaded_bytes: None,
        id: None,
        sha256: archive.sha256.clone().or(record.map(|record| record.sha256)),
    }
}
