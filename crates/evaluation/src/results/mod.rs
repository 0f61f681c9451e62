//! What runs of agents leave in folders: WebArena's `run.py`, BrowserGym and AgentLab, WebArena-Verified, and evidence of arenad's own.
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

use arenad_verdict::{Benchmark, Evidence, Traffic};

/// How the names of files with evidence end.
pub const EVIDENCE: &str = ".evidence.json";

/// How deep results may lie: a folder of studies has folders of experiments.
const DEPTH_MAX: usize = 4;

/// Who wrote a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    /// `render_<id>.html`.
    WebArena,
    /// A folder of an experiment.
    BrowserGym,
    /// A folder with the number of a task.
    WebArenaVerified,
    /// A file that `--evidence` wrote.
    Evidence,
}

/// A result that lies in a folder, not read yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stored {
    /// Its file or folder.
    pub path: PathBuf,
    /// Who wrote it.
    pub layout: Layout,
}

/// What an agent left.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// The benchmark, where the result says so.
    pub benchmark: Option<Benchmark>,
    /// The task's number.
    pub id: String,
    /// What the agent answered.
    pub answer: String,
    /// The URL of the page where it ended.
    pub url: String,
    /// The traffic of its browser.
    pub traffic: Option<Traffic>,
    /// The score that whoever ran it has given.
    pub recorded: Option<f64>,
}

/// A result that was read.
#[derive(Debug)]
pub enum Read {
    /// What an agent left; its task is to be found.
    Left(Box<Left>),
    /// All that is to be known.
    Evidence(Box<Evidence>),
}

/// Why a result cannot be read. Says which file, and where in it.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// A file cannot be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path} is no {expected}: {found}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
        /// What is wrong, and where.
        found: String,
    },
    /// The run did not come to its end.
    #[error("{path}: {reason}")]
    Unfinished {
        /// The file or folder.
        path: PathBuf,
        /// How that shows.
        reason: &'static str,
    },
}

/// Finds the results below a folder, in order.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn find(folder: &Path) -> Result<Vec<Stored>, ResultError> {
    let mut found = Vec::new();
    let mut walk = WalkDir::new(folder).max_depth(DEPTH_MAX).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            ResultError::Read { path, cause: error.into() }
        })?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy());
        // BrowserGym so hides what it has repeated.
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

fn of_folder(path: &Path, name: &str) -> Option<Layout> {
    if browsergym::is_experiment(path) {
        return Some(Layout::BrowserGym);
    }
    (is_number(name) && verified::FILES.iter().any(|file| path.join(file).is_file()))
        .then_some(Layout::WebArenaVerified)
}

fn of_file(name: &str) -> Option<Layout> {
    if name.ends_with(EVIDENCE) {
        return Some(Layout::Evidence);
    }
    webarena::id(name).map(|_| Layout::WebArena)
}

impl Stored {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// When a file is missing, cannot be read or is not what its name says, and when the run did not come to its end.
    pub fn read(&self) -> Result<Read, ResultError> {
        let left = match self.layout {
            Layout::WebArena => webarena::read(&self.path)?,
            Layout::BrowserGym => browsergym::read(&self.path)?,
            Layout::WebArenaVerified => verified::read(&self.path)?,
            Layout::Evidence => return evidence(&self.path).map(|evidence| Read::Evidence(Box::new(evidence))),
        };
        Ok(Read::Left(Box::new(left)))
    }
}

/// Reads a file that `--evidence` wrote.
///
/// # Errors
///
/// When it cannot be read, or is none.
pub fn evidence(path: &Path) -> Result<Evidence, ResultError> {
    let text = text(path)?;
    serde_json::from_str(&text).map_err(|error| form(path, "evidence of arenad", error))
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

/// The HAR or Playwright trace of a folder, if there is one.
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
        let found: Vec<(String, Layout)> = find(folder.path())
            .expect("a folder")
            .into_iter()
            .map(|stored| {
                (stored.path.strip_prefix(folder.path()).expect("inside").display().to_string(), stored.layout)
            })
            .collect();
        let expected = [
            ("own/webarena.3.evidence.json", Layout::Evidence),
            ("study/2026-01-31_12-00-00_A_on_webarena.3_7", Layout::BrowserGym),
            ("wa/render_310.html", Layout::WebArena),
            ("wav/107", Layout::WebArenaVerified),
            ("wav/108", Layout::WebArenaVerified),
        ];
        assert_eq!(found, expected.map(|(path, layout)| (path.to_owned(), layout)));
        assert!(find(&folder.path().join("none")).is_err());
    }

    #[test]
    fn what_is_broken_says_where() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.evidence.json");
        std::fs::write(&path, "{\"benchmark\": \"webarena\",\n \"id\": 3}").expect("a file");
        let said = Stored { path, layout: Layout::Evidence }.read().expect_err("broken").to_string();
        assert!(said.contains("x.evidence.json") && said.contains("line 2"), "{said}");
    }
}
