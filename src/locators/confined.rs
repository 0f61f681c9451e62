//! A process of its own for what cannot be stopped from inside: jq filters, and SQLite on a site's file.
//!
//! It is this program once more, started with a hidden command, and it can do little: its memory, processor time and the
//! size of files that it writes are limited, its environment is empty, and it dies with its parent. What it cannot finish
//! in time is killed.
//!
//! ```text
//!   parent: Job as JSON ──stdin──► child: limits, work ──stdout──► Outcome as JSON
//! ```

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::sql::sqlite;
use super::{LocateError, SIZE_MAX, json, json_query};
use crate::domain::locator::Value;

/// The command that makes this program the confined process.
pub const COMMAND: &str = "confined-locator";

/// The memory that it may map, in bytes: a database's copy, a value of 4 MiB in its worst form, and the program itself.
const MEMORY_MAX: u64 = 1 << 30;

/// The largest file that it may write, in bytes: the index of a write-ahead log.
const FILE_MAX: u64 = 4 << 20;

/// What is done there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Job {
    /// A statement on a copy of a database.
    Sqlite {
        /// The copy.
        path: PathBuf,
        /// The statement with `?` for its arguments.
        statement: String,
        /// The arguments.
        arguments: Vec<String>,
    },
    /// A jq filter on JSON text.
    Jq {
        /// The filter.
        filter: String,
        /// The text.
        input: String,
        /// Whether all outputs are wanted.
        all: bool,
    },
    /// A JSONPath on JSON text.
    JsonPath {
        /// The path.
        path: String,
        /// The text.
        input: String,
        /// Whether all values are wanted.
        all: bool,
    },
}

/// What comes back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Value(Json),
    Failed(String),
    TooLarge { what: String, limit: String },
}

/// Starts such processes.
pub(super) struct Confined {
    folder: PathBuf,
}

impl Confined {
    /// `folder` is where databases are copied to.
    pub(super) fn new(folder: PathBuf) -> Self {
        // What a daemon that was killed has left.
        let _ = std::fs::remove_dir_all(&folder);
        Self { folder }
    }

    /// A folder for one job; goes with its owner.
    pub(super) fn folder(&self) -> Result<TempDir, LocateError> {
        let made = std::fs::create_dir_all(&self.folder).and_then(|()| TempDir::new_in(&self.folder));
        made.map_err(|error| LocateError::Unavailable(format!("make a folder in {}: {error}", self.folder.display())))
    }

    /// Does a job.
    pub(super) async fn run(&self, job: &Job, limit: Duration) -> Result<Value, LocateError> {
        let failed = |error: std::io::Error| LocateError::Unavailable(format!("start a confined process: {error}"));
        let job = serde_json::to_vec(job).map_err(|error| failed(error.into()))?;
        let mut child = Command::new(crate::confined::program())
            .arg0("arenad")
            .arg(COMMAND)
            .arg(limit.as_secs().saturating_add(1).to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let work = async {
            if let Some(mut stdin) = stdin {
                // A child that died early says so by its answer.
                let _ = stdin.write_all(&job).await;
            }
            let mut answer = Vec::new();
            if let Some(stdout) = stdout {
                // JSON of bytes, in hexadecimal and with types, is a few times as long as they are.
                stdout.take(16 * SIZE_MAX as u64).read_to_end(&mut answer).await?;
            }
            Ok::<_, std::io::Error>((answer, child.wait().await?))
        };
        let (answer, status) = match tokio::time::timeout(limit, work).await {
            Ok(done) => done.map_err(failed)?,
            Err(_) => return Err(LocateError::TimedOut { limit }),
        };
        match serde_json::from_slice(&answer) {
            Ok(Outcome::Value(value)) => {
                json::from_typed(&value).ok_or_else(|| LocateError::Failed("the value is not understood".to_owned()))
            }
            Ok(Outcome::Failed(reason)) => Err(LocateError::Failed(reason)),
            Ok(Outcome::TooLarge { what, limit }) => Err(LocateError::TooLarge { what, limit }),
            Err(_) => Err(LocateError::TooLarge {
                what: format!("it was ended ({status}) before it had a value"),
                limit: format!("{} MiB of memory, or its time", MEMORY_MAX >> 20),
            }),
        }
    }
}

/// Does the job on standard input and prints its outcome; the hidden command's whole work. `seconds` bounds its processor
/// time.
pub async fn work(seconds: u64) -> std::io::Result<()> {
    confine(seconds)?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut text)?;
    let outcome = match done(serde_json::from_slice(&text)?).await {
        Ok(value) => Outcome::Value(json::typed(&value)),
        Err(LocateError::TooLarge { what, limit }) => Outcome::TooLarge { what, limit },
        Err(LocateError::Failed(reason)) => Outcome::Failed(reason),
        Err(other) => Outcome::Failed(other.to_string()),
    };
    serde_json::to_writer(std::io::stdout().lock(), &outcome)?;
    Ok(())
}

async fn done(job: Job) -> Result<Value, LocateError> {
    match job {
        Job::Sqlite { path, statement, arguments } => sqlite::ask(&path, statement, arguments).await,
        Job::Jq { filter, input, all } => json_query::jq(&filter, &input, all),
        Job::JsonPath { path, input, all } => json_query::json_path(&path, &input, all),
    }
}

fn confine(seconds: u64) -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let limits =
        [(Resource::As, MEMORY_MAX), (Resource::Cpu, seconds), (Resource::Fsize, FILE_MAX), (Resource::Core, 0)];
    for (resource, most) in limits {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
