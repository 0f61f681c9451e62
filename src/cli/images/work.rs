//! Processes one image or piece of data, and shows the progress.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::board;
use super::choice::SelectedImages;
use crate::cli::failure::CommandFailure;
use arenad_api::{ImageItem, ImageOutcome};
use arenad_images::ImagesError;
use arenad_images::fetch::{Fetcher, SpaceCheck};
use arenad_images::inventory::InventoryState;
use arenad_images::load::{ArchiveSelection, LoadOutcome, Works};
use arenad_images::place::is_placed;
use arenad_images::shelf::ArchivePaths;
use arenad_images::space::Need;
use arenad_images::verify::VerificationReport;
use arenad_images::watch::WorkProgress;
use arenad_model::archive::{DataSource, ImageProvenance, NeededImage, Placement, SourceArchive};
use arenad_model::error::describe;

/// The work to do on each item.
pub(super) enum ItemAction {
    /// Fetch the missing parts, and load them.
    Pull(Box<Fetcher>),
    /// Load from that folder or from the shelf.
    Load(Option<PathBuf>),
    /// Verify the copy in that folder or on the shelf.
    Verify(Option<PathBuf>),
}

/// The result for one item.
pub(super) enum ItemResult {
    /// The item is present now, or was before.
    Done(LoadOutcome),
    /// The command does not apply to the item, for this reason.
    Skipped(&'static str),
    /// The facts that were verified.
    Verified(VerificationReport),
}

/// The state that one command shares across its items.
pub(super) struct ImagesContext {
    pub(super) works: Works,
    pub(super) task: ItemAction,
    pub(super) is_silent: bool,
}

impl ItemAction {
    /// Rejects selections that contradict the command.
    pub(super) fn check(&self, choice: &SelectedImages) -> Result<(), CommandFailure> {
        match self {
            Self::Load(Some(from)) | Self::Verify(Some(from)) => choice.check_file(from),
            Self::Pull(_) | Self::Load(None) | Self::Verify(None) => Ok(()),
        }
    }

    /// Returns the path of an archive's copy in the folder that was given with `--from`.
    fn brought(&self, archive: &SourceArchive) -> Option<PathBuf> {
        let from = match self {
            Self::Load(Some(from)) | Self::Verify(Some(from)) => from,
            Self::Pull(_) | Self::Load(None) | Self::Verify(None) => return None,
        };
        if from.is_dir() {
            return Some(from.join(&archive.file)).filter(|file| file.is_file());
        }
        Some(from.clone())
    }
}

impl ImagesContext {
    /// Processes one image, until it is done or cancelled.
    pub(super) async fn image(
        &self,
        image: &NeededImage,
        cancel: &CancellationToken,
    ) -> Result<ItemResult, ImagesError> {
        let watch = Arc::new(WorkProgress::new(cancel.clone()));
        if cancel.is_cancelled() {
            return Err(ImagesError::Cancelled);
        }
        let work = self.image_in_silence(image, &watch);
        board::follow(&image.reference, self.is_silent, &watch, work).await
    }

    async fn image_in_silence(
        &self,
        image: &NeededImage,
        watch: &Arc<WorkProgress>,
    ) -> Result<ItemResult, ImagesError> {
        let reference = &image.reference;
        let archive = match (&image.origin, &self.task) {
            (ImageProvenance::Archive(archive), _) => archive,
            (_, ItemAction::Verify(_)) => {
                return Ok(ItemResult::Verified(self.works.verify(image, None, watch).await?));
            }
            (ImageProvenance::Built, _) => return Ok(ItemResult::Skipped("`arenad up` builds it")),
            (ImageProvenance::Registry, ItemAction::Pull(_)) => {
                return Ok(ItemResult::Done(self.works.pull(reference, watch).await?));
            }
            (ImageProvenance::Registry, ItemAction::Load(_)) => {
                return Ok(ItemResult::Skipped("it comes from a registry; run `arenad images pull`"));
            }
        };
        let place = self.works.shelf.place(archive);
        let _turn = place.take_turn()?;
        let brought = self.task.brought(archive);
        let done = match &self.task {
            ItemAction::Verify(_) => {
                return Ok(ItemResult::Verified(self.works.verify(image, brought.as_deref(), watch).await?));
            }
            ItemAction::Load(_) => self.works.load(reference, archive, brought.as_deref(), watch).await?,
            ItemAction::Pull(fetcher) => {
                let standing = self.works.standing(image).await?;
                match (standing.state, standing.id) {
                    (InventoryState::Present, _) => LoadOutcome::Present,
                    (InventoryState::Unverified, _) if !self.works.replace => {
                        return Ok(ItemResult::Skipped(
                            "the engine has an image of that name; `--replace` fetches it again",
                        ));
                    }
                    (InventoryState::Different, Some(found)) if !self.works.replace => {
                        let (path, reference) = (place.file, reference.clone());
                        return Err(ImagesError::WouldReplace { path, reference, found });
                    }
                    _ => {
                        let room = |total: u64, here: u64| {
                            let of_engine = self.works.need_of_engine(total.max(image.loaded_bytes.unwrap_or(0)));
                            self.room(&place, total, here, of_engine)
                        };
                        self.fetch(fetcher, archive, &place, ArchiveSelection::Image(reference), &room, watch).await?;
                        self.works.load(reference, archive, None, watch).await?
                    }
                }
            }
        };
        self.discard(&place);
        Ok(ItemResult::Done(done))
    }

    /// Processes one piece of data, until it is done or cancelled.
    pub(super) async fn data(&self, data: &DataSource, cancel: &CancellationToken) -> Result<ItemResult, ImagesError> {
        let watch = Arc::new(WorkProgress::new(cancel.clone()));
        if cancel.is_cancelled() {
            return Err(ImagesError::Cancelled);
        }
        board::follow(&data.name, self.is_silent, &watch, self.data_in_silence(data, &watch)).await
    }

    async fn data_in_silence(&self, data: &DataSource, watch: &Arc<WorkProgress>) -> Result<ItemResult, ImagesError> {
        let archive = &data.archive;
        let place = self.works.shelf.place_of_data(data);
        let _turn = place.take_turn()?;
        let brought = self.task.brought(archive);
        let done = match &self.task {
            ItemAction::Verify(_) => {
                return Ok(ItemResult::Verified(self.works.verify_data(data, brought.as_deref(), watch).await?));
            }
            ItemAction::Load(_) => self.works.place(data, brought.as_deref(), watch).await?,
            ItemAction::Pull(_) if is_placed(data, &place) => LoadOutcome::Present,
            ItemAction::Pull(fetcher) => {
                let (wanted, first) = match &data.placement {
                    Placement::Folder(_) => (ArchiveSelection::Itself, None),
                    Placement::Unpacked(parts) => (ArchiveSelection::Files, parts.first()),
                };
                let room = |total: u64, here: u64| {
                    let unpacked = first.map(|part| Need { folder: part.to.clone(), bytes: total });
                    self.room(&place, total, here, unpacked)
                };
                self.fetch(fetcher, archive, &place, wanted, &room, watch).await?;
                self.works.place(data, None, watch).await?;
                LoadOutcome::Loaded
            }
        };
        if matches!(data.placement, Placement::Unpacked(_)) {
            self.discard(&place);
        }
        Ok(ItemResult::Done(done))
    }

    async fn fetch(
        &self,
        fetcher: &Fetcher,
        archive: &SourceArchive,
        place: &ArchivePaths,
        wanted: ArchiveSelection<'_>,
        room: SpaceCheck<'_>,
        watch: &Arc<WorkProgress>,
    ) -> Result<(), ImagesError> {
        if archive.mirrors.is_empty() && !place.file.is_file() {
            let (file, looked_at) = (archive.file.clone(), place.file.clone());
            return Err(ImagesError::NoArchive { file, looked_at, has_mirrors: false });
        }
        fetcher.fetch(archive, place, wanted, room, watch).await.map(drop)
    }

    /// Checks that there is space for the rest of a download, and for the content that is unpacked from it.
    fn room(&self, place: &ArchivePaths, total: u64, here: u64, then: Option<Need>) -> Result<(), ImagesError> {
        let folder = place.file.parent().unwrap_or(Path::new("/")).to_owned();
        let rest = Need { folder, bytes: total.saturating_sub(here) };
        let needs: Vec<Need> = [rest].into_iter().chain(then).collect();
        self.works.check_space(&format!("fetch {}", place.name), &needs)
    }

    /// Removes an archive from the shelf after its use; one that was given with `--from` belongs to the user and stays.
    fn discard(&self, place: &ArchivePaths) {
        if self.works.discard
            && let Err(error) = fs::remove_file(&place.file)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            errln!("{}: present, but its archive cannot be removed: {error}", place.name);
        }
    }

    /// Prints and records the result for an item; returns an error that ends the whole command.
    pub(super) fn told(
        &self,
        mut item: ImageItem,
        done: Result<ItemResult, ImagesError>,
        errors: &mut Vec<(String, ImagesError)>,
    ) -> Result<ImageItem, CommandFailure> {
        let (outcome, said) = match done {
            Ok(ItemResult::Done(LoadOutcome::Present)) => (ImageOutcome::Present, "already present".to_owned()),
            Ok(ItemResult::Done(LoadOutcome::Loaded)) => (ImageOutcome::Loaded, format!("loaded{}", shown_id(&item))),
            Ok(ItemResult::Skipped(why)) => (ImageOutcome::Skipped, format!("skipped: {why}")),
            Ok(ItemResult::Verified(report)) => {
                let is_sound = report.problems.is_empty();
                let said = if is_sound { report.proven.join("; ") } else { report.problems.join("; ") };
                item.reason = (!is_sound).then(|| report.problems.join("; "));
                item.proven = report.proven;
                if is_sound { (ImageOutcome::Proven, said) } else { (ImageOutcome::Failed, format!("wrong: {said}")) }
            }
            Err(ImagesError::Cancelled) => return Err(super::failure(ImagesError::Cancelled)),
            Err(error) => {
                item.reason = Some(describe(&error));
                item.hint = error.hint();
                errors.push((item.name.clone(), error));
                (ImageOutcome::Failed, String::new())
            }
        };
        item.outcome = Some(outcome);
        // Errors are printed at the end, where they are not overlooked.
        if !self.is_silent && !said.is_empty() {
            outln!("{}: {said}", item.name);
        }
        Ok(item)
    }
}

fn shown_id(item: &ImageItem) -> String {
    item.id.as_ref().map(|id| format!(": {id}")).unwrap_or_default()
}
