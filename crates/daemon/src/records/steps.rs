//! The steps of agents, by which benchmarks with key nodes judge an episode: one line of JSON each, beside the record of the
//! episode. They outlive the episode as long as its record would.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::file::RecordFile;
use super::{EpisodeRecords, blocking};
use arenad_api::trajectory::TrajectoryStep;
use arenad_model::episode::ids::EpisodeId;

/// The name of the file in the folder of a record.
const STEPS: &str = "steps.jsonl";

/// The maximum size of an episode's steps, in bytes.
const STEPS_MAX: u64 = 64 << 20;

/// A step was not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddStepError {
    /// The episode's steps take as much space as they may.
    #[error("the steps of an episode take at most {} MiB", STEPS_MAX >> 20)]
    Full,
    /// The file could not be written.
    #[error("record a step")]
    Io(#[from] io::Error),
}

impl EpisodeRecords {
    /// Appends a step to those of an episode. When this returns, the step outlives the daemon.
    pub(crate) async fn add_step(&self, episode: &EpisodeId, step: &TrajectoryStep) -> Result<(), AddStepError> {
        let mut line = serde_json::to_vec(step).map_err(io::Error::from)?;
        line.push(b'\n');
        let (shared, path) = (self.0.clone(), self.steps_path(episode));
        let is_added = blocking(move || {
            // A line is written at the end that was read, so there is one writer at a time.
            let _writer = shared.step_writer.lock().unwrap_or_else(PoisonError::into_inner);
            let mut file = RecordFile::open(&path)?;
            let has_room = file.len() + line.len() as u64 <= STEPS_MAX;
            if has_room {
                file.append(&line)?;
            }
            Ok(has_room)
        });
        if is_added.await? { Ok(()) } else { Err(AddStepError::Full) }
    }

    /// Returns the steps of an episode; none if there are none, or if they have been removed with the record.
    pub(crate) async fn steps(&self, episode: &EpisodeId) -> io::Result<Vec<TrajectoryStep>> {
        let path = self.steps_path(episode);
        blocking(move || read(&path)).await
    }

    fn steps_path(&self, episode: &EpisodeId) -> PathBuf {
        self.0.folder_of(episode).join(STEPS)
    }
}

fn read(path: &Path) -> io::Result<Vec<TrajectoryStep>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // A daemon that was killed may have left a torn line, which no client was told of.
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

/// Returns the size of the steps in the folder of a record, in bytes.
pub(super) fn size_in(folder: &Path) -> u64 {
    fs::metadata(folder.join(STEPS)).map_or(0, |found| found.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_step_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(STEPS);
        assert_eq!(read(&path).expect("no file"), []);
        fs::write(&path, "{\"url\":\"http://a/\"}\n{\"url\":\"http:").expect("written");
        let steps = read(&path).expect("a file");
        assert_eq!(steps, [TrajectoryStep { url: "http://a/".to_owned(), ..TrajectoryStep::default() }]);
        assert_eq!(size_in(folder.path()), 33);
    }
}
