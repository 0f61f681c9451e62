//! Reads everything again and compares archives with their digests, and images with their archives.

use std::path::Path;
use std::sync::Arc;

use super::ImagesError;
use super::load::{ArchiveSelection, Works, matches_record, proven};
use super::shelf::{ArchivePaths, ShelfRecord};
use super::watch::WorkProgress;
use arenad_model::archive::{DataSource, ImageProvenance, NeededImage, Placement, SourceArchive};

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerificationReport {
    /// Statements that were proven.
    pub proven: Vec<String>,
    /// Faults that were found.
    pub problems: Vec<String>,
}

impl Works {
    /// Verifies an image. If it comes from an archive that is present or given as `from`, the archive is verified too.
    /// The caller holds the turn.
    pub async fn verify(
        &self,
        image: &NeededImage,
        from: Option<&Path>,
        watch: &Arc<WorkProgress>,
    ) -> Result<VerificationReport, ImagesError> {
        let mut report = VerificationReport::default();
        let found = self.engine.image(&image.reference).await?;
        if let ImageProvenance::Archive(archive) = &image.origin {
            let place = self.shelf.place(archive);
            let path = from.map_or_else(|| place.file.clone(), Path::to_owned);
            self.archive(archive, &place, &path, ArchiveSelection::Image(&image.reference), &mut report, watch).await?;
            match (place.record(), &found) {
                (Some(record), Some(found)) if matches_record(&record, &image.reference, found) => {
                    report.proven.push(format!("the engine has {}", found.id));
                }
                (Some(record), Some(found)) => {
                    let expected = expected(&record, &image.reference);
                    report.problems.push(format!("the engine has {}, the archive holds {expected}", found.id));
                }
                (None, Some(found)) => {
                    let problem = format!("the engine has {}, and there is no archive to compare it with", found.id);
                    report.problems.push(problem);
                }
                (_, None) => report.problems.push("the engine has no image of that name".to_owned()),
            }
        } else {
            match found {
                Some(found) => report.proven.push(format!("the engine has {}", found.id)),
                None => report.problems.push("the engine has no image of that name".to_owned()),
            }
        }
        Ok(report)
    }

    /// Verifies data. The caller holds the turn.
    pub async fn verify_data(
        &self,
        data: &DataSource,
        from: Option<&Path>,
        watch: &Arc<WorkProgress>,
    ) -> Result<VerificationReport, ImagesError> {
        let mut report = VerificationReport::default();
        let place = self.shelf.place_of_data(data);
        // A data file that is used as it is must itself be correct, wherever it was copied from.
        let (wanted, path) = match (&data.placement, from) {
            (Placement::Folder(_), _) => (ArchiveSelection::Itself, place.file.clone()),
            (Placement::Unpacked(_), from) => (ArchiveSelection::Files, from.unwrap_or(&place.file).to_owned()),
        };
        self.archive(&data.archive, &place, &path, wanted, &mut report, watch).await?;
        if let Placement::Unpacked(parts) = &data.placement {
            let unpacked = place.record().map(|record| record.unpacked).unwrap_or_default();
            for part in parts {
                let shown = part.to.display();
                match unpacked.iter().find(|known| known.folder == part.to) {
                    Some(known) if known.is_in_place() => report.proven.push(format!("{shown} is what was unpacked")),
                    _ => report.problems.push(format!("{shown} is not there, or was not unpacked by arenad")),
                }
            }
        }
        Ok(report)
    }

    /// Reads an archive from end to end, even if its record says that it has been read before.
    async fn archive(
        &self,
        archive: &SourceArchive,
        place: &ArchivePaths,
        path: &Path,
        wanted: ArchiveSelection<'_>,
        report: &mut VerificationReport,
        watch: &Arc<WorkProgress>,
    ) -> Result<(), ImagesError> {
        if !path.is_file() {
            match place.record() {
                Some(record) if !matches!(wanted, ArchiveSelection::Itself) => {
                    report.proven.push(format!("the archive is not here any more; it was {}", record.sha256));
                }
                _ => report.problems.push(format!("{} is not there", path.display())),
            }
            return Ok(());
        }
        if let Some(record) = place.record() {
            place.remember(&ShelfRecord { seen: None, ..record })?;
        }
        match proven(place, archive, path, wanted, &path.display().to_string(), watch).await {
            Ok(record) => report.proven.push(format!("{} has the SHA-256 {}", path.display(), record.sha256)),
            Err(ImagesError::Cancelled) => return Err(ImagesError::Cancelled),
            Err(error) => report.problems.push(arenad_model::error::describe(&error)),
        }
        Ok(())
    }
}

fn expected(record: &ShelfRecord, reference: &str) -> String {
    let image = record.images.iter().find(|image| image.is_called(reference));
    image.map_or_else(|| "no image of that name".to_owned(), |image| image.id().to_owned())
}
