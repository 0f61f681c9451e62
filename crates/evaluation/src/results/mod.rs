//! Results that runs of agents leave in folders: those of WebArena's `run.py`, BrowserGym and AgentLab, and
//! WebArena-Verified, and evidence written by arenad itself.
//!
//! ```text
//!   render_310.html                                      WebArena, VisualWebArena
//!   2026-01-31_12-00-00_AGENT_on_webarena.310_7/         BrowserGym, AgentLab: exp_args.pkl, step_0.pkl.gz, …, summary_info.json
//!   107/agent_response.json, network.har or trace.zip    WebArena-Verified
//!   webarena.310.evidence.json                           `arenad eval --evidence`
//! ```

mod browsergym;
mod pickle;
mod verified;
mod webarena;

use std::io;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use arenad_verdict::{Benchmark, EpisodeEvidence, Traffic};

/// Suffix of the names of evidence files.
pub const EVIDENCE: &str = ".evidence.json";

/// Maximum depth of results below a folder: a folder of studies has folders of experiments.
const DEPTH_MAX: usize = 4;

/// The program that wrote a result, which determines its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResultLayout {
    /// A file `render_<id>.html` of WebArena or VisualWebArena.
    WebArena,
    /// The folder of one experiment.
    BrowserGym,
    /// A folder named by the number of a task.
    WebArenaVerified,
    /// A file written by `arenad eval --evidence`.
    Evidence,
}

/// A result in a folder that has been found but not yet read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stored {
    /// Path of the result's file or folder.
    pub path: PathBuf,
    /// Layout of the result, by which it is read.
    pub layout: ResultLayout,
}

/// The result that an agent left.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// Benchmark, if the result names it.
    pub benchmark: Option<Benchmark>,
    /// Number of the task.
    pub id: String,
    /// Answer of the agent.
    pub answer: String,
    /// URL of the page on which the agent ended.
    pub url: String,
    /// Traffic of the agent's browser.
    pub traffic: Option<Traffic>,
    /// Score that the harness itself recorded.
    pub recorded: Option<f64>,
}

/// A result that has been read.
#[derive(Debug)]
pub enum RecordedResult {
    /// The result that an agent left, without its task.
    Left(Box<Left>),
    /// The complete evidence of an episode, including its task.
    Evidence(Box<EpisodeEvidence>),
}

/// The reason why a result cannot be read, with the file and the position in it.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// A file cannot be read.
    #[error("read {path}")]
    Read {
        /// Path of the unreadable file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The content of a file does not have the form that its name promises.
    #[error("{path} is not {expected}: {found}")]
    Form {
        /// Path of the invalid file.
        path: PathBuf,
        /// Form that the content should have.
        expected: &'static str,
        /// Description of the defect and its position.
        found: String,
    },
    /// The run did not finish.
    #[error("{path}: {reason}")]
    Unfinished {
        /// File or folder of the run.
        path: PathBuf,
        /// Sign by which the unfinished run is recognized.
        reason: &'static str,
    },
}

/// Finds the results below a folder, in order of their paths.
///
/// # Errors
///
/// Returns an error if the folder cannot be read.
pub fn find(folder: &Path) -> Result<Vec<Stored>, ResultError> {
    let mut found = Vec::new();
    let mut walk = WalkDir::new(folder).max_depth(DEPTH_MAX).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            ResultError::Read { path, cause: error.into() }
        })?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy());
        // BrowserGym hides repeated experiments by such a prefix.
        if entry.depth() > 0 && entry.file_type().is_dir() && name.starts_with(['_', '.']) {
            walk.skip_current_dir();
            continue;
        }
        let layout = if entry.file_type().is_dir() { of_folder(path, &name) } else { of_file(&name) };
        if let Some(layout) = layout {
            found.push(Stored { path: path.to_owned(), layout });
            if entry.file_type().is_dir() {
                walk.skip_current_dir();
            }
        }
    }
    Ok(found)
}

fn of_folder(path: &Path, name: &str) -> Option<ResultLayout> {
    if browsergym::is_experiment(path) {
        return Some(ResultLayout::BrowserGym);
    }
    (is_number(name) && verified::FILES.iter().any(|file| path.join(file).is_file()))
        .then_some(ResultLayout::WebArenaVerified)
}

fn of_file(name: &str) -> Option<ResultLayout> {
    if name.ends_with(EVIDENCE) {
        return Some(ResultLayout::Evidence);
    }
    webarena::id(name).map(|_| ResultLayout::WebArena)
}

impl Stored {
    /// Reads the result.
    ///
    /// # Errors
    ///
    /// Returns an error if a file is missing, cannot be read or has the wrong form, or if the run did not finish.
    pub fn read(&self) -> Result<RecordedResult, ResultError> {
        let left = match self.layout {
            ResultLayout::WebArena => webarena::read(&self.path)?,
            ResultLayout::BrowserGym => browsergym::read(&self.path)?,
            ResultLayout::WebArenaVerified => verified::read(&self.path)?,
            ResultLayout::Evidence => {
                return evidence(&self.path).map(|evidence| RecordedResult::Evidence(Box::new(evidence)));
            }
        };
        Ok(RecordedResult::Left(Box::new(left)))
    }
}

/// Reads an evidence file written by `arenad eval --evidence`.
///
/// # Errors
///
/// Returns an error if the file cannot be read or does not contain evidence.
pub fn evidence(path: &Path) -> Result<EpisodeEvidence, ResultError> {
    let text = text(path)?;
    serde_json::from_str(&text).map_err(|error| form(path, "evidence that arenad has written", error))
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn text(path: &Path) -> Result<String, ResultError> {
    bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn bytes(path: &Path) -> Result<Vec<u8>, ResultError> {
    std::fs::read(path).map_err(|cause| ResultError::Read { path: path.to_owned(), cause })
}

fn form(path: &Path, expected: &'static str, found: impl ToString) -> ResultError {
    ResultError::Form { path: path.to_owned(), expected, found: found.to_string() }
}

fn unfinished(path: &Path, reason: &'static str) -> ResultError {
    ResultError::Unfinished { path: path.to_owned(), reason }
}

/// Reads the HAR or Playwright trace of a folder, if there is one.
fn traffic(folder: &Path) -> Result<Option<Traffic>, ResultError> {
    let file = ["network.har", "trace.zip"].map(|name| folder.join(name)).into_iter().find(|path| path.is_file());
    file.map(|path| bytes(&path).map(Traffic::of)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_is_known_by_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, "").expect("a file");
        };
        for path in [
            "wa/render_310.html",
            "wa/config.json",
            "wa/traces/310.zip",
            "wa/report.html",
            "study/2026-01-31_12-00-00_A_on_webarena.3_7/step_0.pkl.gz",
            "study/2026-01-31_12-00-00_A_on_webarena.3_7/5/agent_response.json",
            "study/_2026-01-30_12-00-00_A_on_webarena.3_7/step_0.pkl.gz",
            "wav/107/agent_response.json",
            "wav/108/network.har",
            "wav/109/notes.txt",
            "wav/other/agent_response.json",
            "own/webarena.3.evidence.json",
        ] {
            write(path);
        }
        let found: Vec<(String, ResultLayout)> = find(folder.path())
            .expect("a folder")
            .into_iter()
            .map(|stored| {
                (stored.path.strip_prefix(folder.path()).expect("inside").display().to_string(), stored.layout)
            })
            .collect();
        let expected = [
            ("own/webarena.3.evidence.json", ResultLayout::Evidence),
            ("study/2026-01-31_12-00-00_A_on_webarena.3_7", ResultLayout::BrowserGym),
            ("wa/render_310.html", ResultLayout::WebArena),
            ("wav/107", ResultLayout::WebArenaVerified),
            ("wav/108", ResultLayout::WebArenaVerified),
        ];
        assert_eq!(found, expected.map(|(path, layout)| (path.to_owned(), layout)));
        assert!(find(&folder.path().join("none")).is_err());
    }

    #[test]
    fn what_is_broken_says_where() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.evidence.json");
        std::fs::write(&path, "{\"benchmark\": \"webarena\",\n \"id\": 3}").expect("a file");
        let said = Stored { path, layout: ResultLayout::Evidence }.read().expect_err("broken").to_string();
        assert!(said.contains("x.evidence.json") && said.contains("line 2"), "{said}");
    }
}
