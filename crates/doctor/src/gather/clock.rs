//! Reads the clock: the current time, the newest of the daemon's files, and the synchronisation.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{output, program};
use crate::facts::ClockFacts;

pub(super) async fn look(state_dir: &Path) -> ClockFacts {
    ClockFacts { now: Timestamp::now(), newest_file: newest(state_dir), is_synchronised: synchronised().await }
}

fn newest(folder: &Path) -> Option<(PathBuf, Timestamp)> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let times = files.filter_map(|file| {
        let written = file.metadata().ok()?.modified().ok()?;
        Some((file.path(), Timestamp::try_from(written).ok()?))
    });
    times.max_by_key(|(_, written)| *written)
}

async fn synchronised() -> Option<bool> {
    let timedatectl = program("timedatectl")?;
    let answer = output(&timedatectl, &["show", "--property=NTPSynchronized", "--value"]).await?;
    match String::from_utf8_lossy(&answer.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}
