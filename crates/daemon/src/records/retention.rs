//! Removes the records that are too old, and the oldest ones when all of them take too much space.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;

use super::beginning::BEGINNING;
use super::{FILE, SharedRecords, steps};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::record_retention::RecordSize;

/// Removes records of ended episodes. A failure is logged; the next pass may succeed.
pub(super) async fn remove_old(shared: Arc<SharedRecords>) {
    // When a record goes, the shares of the others in its beginning grow, so they may take too much space now.
    let removed = tokio::task::spawn_blocking(move || {
        while remove_chosen(&shared)? {}
        Ok::<_, io::Error>(())
    });
    if let Ok(Err(error)) = removed.await {
        tracing::warn!(%error, "old records could not be removed");
    }
}

/// Removes the records that are too old or too many by their present sizes. Returns whether there were any.
fn remove_chosen(shared: &SharedRecords) -> io::Result<bool> {
    // Read before the list of live episodes: a record that begins in between is not in the list of folders.
    let found = found(&shared.folder)?;
    let live = shared.live();
    let sizes: Vec<RecordSize> = found
        .iter()
        .map(|record| RecordSize {
            bytes: record.bytes,
            changed_at: record.changed_at,
            is_live: live.contains_key(&record.episode),
        })
        .collect();
    drop(live);
    let chosen = shared.retention.choose(&sizes, shared.clock.now());
    for index in &chosen {
        let record = &found[*index];
        fs::remove_dir_all(&record.folder)?;
        tracing::info!(episode.id = %record.episode, "the record of episode {} was removed", record.episode);
    }
    Ok(!chosen.is_empty())
}

/// A record in the folder of all records.
pub(crate) struct FoundRecord {
    pub(crate) episode: EpisodeId,
    pub(crate) folder: PathBuf,
    /// The size, with its share of a beginning that other records have as well.
    pub(crate) bytes: u64,
    pub(crate) changed_at: Timestamp,
}

/// Returns all records. Folders that are none are left alone.
pub(crate) fn found(folder: &Path) -> io::Result<Vec<FoundRecord>> {
    let mut records = Vec::new();
    for folder in paths_in(folder)? {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Ok(episode) = name.parse::<EpisodeId>() else { continue };
        // A record without its file is one whose removal or beginning was interrupted.
        let metadata = fs::metadata(folder.join(FILE)).or_else(|_| fs::metadata(&folder));
        let Ok(metadata) = metadata else { continue };
        let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let changed_at = Timestamp::try_from(changed).unwrap_or(Timestamp::UNIX_EPOCH);
        let beginning = fs::metadata(folder.join(BEGINNING)).map_or(0, |found| found.len() / found.nlink().max(1));
        let bytes = metadata.len() + beginning + steps::size_in(&folder);
        records.push(FoundRecord { episode, folder, bytes, changed_at });
    }
    Ok(records)
}

/// Returns the paths of what is in a folder; none if the folder does not exist.
pub(super) fn paths_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
