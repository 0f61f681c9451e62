//! Validation of a whole file, from end to end, before anything is created from it.

use std::collections::BTreeSet;
use std::io::{self, Read};

use super::manifest::{Manifest, PartKind};
use super::reader::{Next, ReadError, SnapshotReader};
use arenad_images::scan as archives;

/// Reads a file to its end and returns its manifest, after checking that the content matches the manifest, that the
/// manifest yields the snapshot's id, and that the images are exactly those of the services and carry no tags.
///
/// A tag would replace another image's name in the engine.
pub fn scan(file: impl Read) -> Result<Manifest, ReadError> {
    let mut reader = SnapshotReader::new(file)?;
    let mut images = None;
    loop {
        match reader.advance()? {
            Next::Part(PartKind::Images, mut part) => match archives::images(&mut part) {
                Ok(found) => images = Some(found),
                Err(error) => {
                    return Err(part.failure().unwrap_or_else(|| ReadError::Damaged(format!("images.tar: {error}"))));
                }
            },
            Next::Part(_, mut part) => {
                if let Err(error) = io::copy(&mut part, &mut io::sink()) {
                    return Err(part.failure().unwrap_or(ReadError::Unreadable(error)));
                }
            }
            Next::Manifest(manifest) => {
                check_images(&manifest, &images.unwrap_or_default())?;
                return Ok(*manifest);
            }
        }
    }
}

fn check_images(manifest: &Manifest, found: &[archives::ArchivedImage]) -> Result<(), ReadError> {
    if let Some(tag) = found.iter().flat_map(|image| &image.tags).next() {
        return Err(ReadError::Damaged(format!("an image in it would take the name `{}`", tag.escape_default())));
    }
    let found: BTreeSet<&[String]> = found.iter().map(|image| image.layers.as_slice()).collect();
    let wanted: BTreeSet<&[String]> = manifest.services.values().map(|service| service.layers.as_slice()).collect();
    match found == wanted {
        true => Ok(()),
        false => Err(ReadError::Damaged("its images are not those of the manifest".to_owned())),
    }
}
