//! Converts images and data into the forms for people and programs.

use comfy_table::Cell;

use crate::cli::output::{self, bytes};
use arenad_api::{ImageArchive, ImageItem, ImageItemKind, ImageList, ImageOrigin, ImageState};
use arenad_images::inventory::{InventoryState, InventoryStatus};
use arenad_images::load::Works;
use arenad_images::shelf::ArchivePaths;
use arenad_model::archive::{DataSource, ImageProvenance, NeededImage, SourceArchive};
use arenad_model::site::Environment;

/// Returns the description of an image.
pub(super) fn image(image: &NeededImage, standing: &InventoryStatus, works: &Works) -> ImageItem {
    let (origin, archive) = match &image.origin {
        ImageProvenance::Built => (ImageOrigin::Built, None),
        ImageProvenance::Registry => (ImageOrigin::Registry, None),
        ImageProvenance::Archive(known) => {
            (ImageOrigin::Archive, Some(archive(known, &works.shelf.place(known), standing)))
        }
    };
    let sites = image.sites.iter().map(ToString::to_string).collect();
    item(&image.reference, ImageItemKind::Image, origin, sites, standing, archive)
}

/// Returns the description of a piece of data.
pub(super) fn data(
    environment: &Environment,
    data: &DataSource,
    standing: &InventoryStatus,
    works: &Works,
) -> ImageItem {
    let mut sites: Vec<String> = environment.users_of(data).iter().map(|(site, _)| site.to_string()).collect();
    sites.dedup();
    let place = works.shelf.place_of_data(data);
    let archive = archive(&data.archive, &place, standing);
    item(&data.name, ImageItemKind::Data, ImageOrigin::Archive, sites, standing, Some(archive))
}

fn item(
    name: &str,
    kind: ImageItemKind,
    origin: ImageOrigin,
    sites: Vec<String>,
    standing: &InventoryStatus,
    archive: Option<ImageArchive>,
) -> ImageItem {
    ImageItem {
        name: name.to_owned(),
        kind,
        origin,
        sites,
        state: state(standing.state),
        id: standing.id.clone(),
        loaded_bytes: standing.loaded_bytes,
        archive,
        outcome: None,
        proven: Vec::new(),
        reason: None,
        hint: None,
    }
}

fn state(state: InventoryState) -> ImageState {
    match state {
        InventoryState::Present => ImageState::Present,
        InventoryState::Unverified => ImageState::Unverified,
        InventoryState::Different => ImageState::Different,
        InventoryState::Downloaded => ImageState::Downloaded,
        InventoryState::Partial => ImageState::Partial,
        InventoryState::Missing => ImageState::Missing,
    }
}

fn archive(archive: &SourceArchive, place: &ArchivePaths, standing: &InventoryStatus) -> ImageArchive {
    ImageArchive {
        file: archive.file.clone(),
        path: place.file.display().to_string(),
        size_bytes: standing.archive_bytes,
        here_bytes: standing.archived_bytes,
        sha256: standing.sha256.clone(),
        mirrors: archive.mirrors.clone(),
    }
}

/// Prints the list, and the steps that remain.
pub(super) fn table(listed: &ImageList) {
    let mut table = output::table(&["NAME", "SITES", "FROM", "STATE", "ARCHIVE", "LOADED", "ID"]);
    for item in &listed.items {
        let from = item.archive.as_ref().map_or(item.origin.word(), |archive| archive.file.as_str());
        let size = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), bytes);
        table.add_row([
            Cell::new(&item.name),
            Cell::new(if item.sites.is_empty() { "-".to_owned() } else { item.sites.join(", ") }),
            Cell::new(from),
            state_cell(item),
            Cell::new(size(item.archive.as_ref().and_then(|archive| archive.size_bytes))),
            Cell::new(size(item.loaded_bytes)),
            Cell::new(item.id.as_deref().map_or("-", short)),
        ]);
    }
    output::print_table(&table);
    let fetched = |item: &&ImageItem| {
        item.origin != ImageOrigin::Built && !matches!(item.state, ImageState::Present | ImageState::Unverified)
    };
    let missing: Vec<&ImageItem> = listed.items.iter().filter(fetched).collect();
    if missing.is_empty() {
        return;
    }
    let rest = |item: &ImageItem| {
        let archive = item.archive.as_ref()?;
        Some(archive.size_bytes?.saturating_sub(archive.here_bytes))
    };
    let roughly = if missing.iter().all(|item| rest(item).is_some()) { "about" } else { "at least" };
    let size = bytes(missing.iter().filter_map(|item| rest(item)).sum());
    let (count, environment) = (missing.len(), &listed.environment);
    outln!("\n{count} missing, {roughly} {size} to fetch: run `arenad images pull {environment}`");
}

/// Returns the state, with a percentage for a partial download.
fn state_cell(item: &ImageItem) -> Cell {
    let percent = item.archive.as_ref().and_then(|archive| {
        let percent = archive.here_bytes.saturating_mul(100).checked_div(archive.size_bytes?)?;
        // A download that lacks a single byte must not show as 100 %.
        Some(percent.min(99))
    });
    let text = match percent.filter(|_| item.state == ImageState::Partial) {
        Some(percent) => format!("{} {percent} %", item.state),
        None => item.state.to_string(),
    };
    let cell = Cell::new(text);
    match item.state {
        ImageState::Present => cell.fg(comfy_table::Color::Green),
        ImageState::Different | ImageState::Missing => cell.fg(comfy_table::Color::Red),
        ImageState::Unverified | ImageState::Downloaded | ImageState::Partial => cell.fg(comfy_table::Color::Yellow),
    }
}

fn short(id: &str) -> &str {
    let id = id.strip_prefix("sha256:").unwrap_or(id);
    id.get(..12).unwrap_or(id)
}
