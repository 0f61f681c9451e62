//! The programs that run in simulated containers.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::files::{FileNode, NodeContent, View, normal};

/// A request to a program in a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramRequest {
    /// HTTP method, in upper case.
    pub method: String,
    /// Path with the query.
    pub path: String,
    /// Header fields in their order; names keep their case.
    pub headers: Vec<(String, String)>,
    /// Content of the body, in bytes.
    pub body: Bytes,
}

impl ProgramRequest {
    /// Creates a `GET` request without headers.
    pub fn get(path: &str) -> Self {
        Self { method: "GET".to_owned(), path: path.to_owned(), ..Self::default() }
    }

    /// Creates a `POST` request without headers.
    pub fn post(path: &str, body: impl Into<Bytes>) -> Self {
        Self { method: "POST".to_owned(), path: path.to_owned(), headers: Vec::new(), body: body.into() }
    }
}

/// A response of a program in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramResponse {
    /// HTTP status code of the response.
    pub status: u16,
    /// Header fields in their order.
    pub headers: Vec<(String, String)>,
    /// Content of the body, in bytes.
    pub body: Bytes,
}

impl ProgramResponse {
    /// Creates a response with plain text.
    pub(crate) fn text(status: u16, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type".to_owned(), "text/plain; charset=utf-8".to_owned())];
        Self { status, headers, body: body.into() }
    }

    /// Returns the body as text.
    pub fn body_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The result of a command in a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandOutcome {
    /// Exit code of the command.
    pub code: i64,
    /// Complete standard output of the command.
    pub stdout: String,
    /// Complete standard error of the command.
    pub stderr: String,
    /// Duration of the command. Its changes take effect at its beginning.
    pub takes: Duration,
}

impl CommandOutcome {
    /// Creates the result of a command without output.
    pub(crate) fn code(code: i64) -> Self {
        Self { code, ..Self::default() }
    }
}

/// The course of a container's first process after its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessLife {
    /// The process runs until it is stopped.
    Serves,
    /// The process ends by itself.
    Ends {
        /// Time from the start to the end.
        after: Duration,
        /// Exit code of the process.
        code: i64,
    },
}

/// The reaction of a process to a request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// The process ends after a while.
    Exits {
        /// Time from the request to the end.
        after: Duration,
        /// Exit code of the process.
        code: i64,
    },
    /// The process continues until it is killed.
    Ignored,
}

/// A program that runs in a container. It is created once for each container, and started at each start of the
/// container.
///
/// No method waits: all of them decide on the state that they are given. State that must not outlive a run must be
/// cleared in [`Program::start`].
pub trait Program: Send {
    /// Starts the container's first process.
    fn start(&mut self, inside: &mut ContainerView<'_>) -> ProcessLife;

    /// Returns whether connections to a port are accepted.
    fn is_listening(&self, port: u16, uptime: Duration) -> bool;

    /// Returns whether the container's own health check would pass.
    fn is_healthy(&self, uptime: Duration) -> bool {
        let _ = uptime;
        true
    }

    /// Answers a request. The program listens on the port that the request was sent to.
    fn answer(&mut self, request: &ProgramRequest, inside: &mut ContainerView<'_>) -> ProgramResponse;

    /// Runs a command in the container.
    fn run(&mut self, command: &[String], user: Option<&str>, inside: &mut ContainerView<'_>) -> CommandOutcome;

    /// Handles a request to stop the container.
    fn terminate(&mut self, inside: &mut ContainerView<'_>) -> Termination {
        let _ = inside;
        Termination::Exits { after: Duration::ZERO, code: 0 }
    }
}

/// Creates the program of a container.
pub type ProgramMaker = Arc<dyn Fn() -> Box<dyn Program> + Send + Sync>;

/// A line or a part of a line in a container's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogLine {
    pub(super) at: Duration,
    pub(super) is_stderr: bool,
    pub(super) text: String,
}

/// Maximum number of lines of a container's log that are kept.
const LOG_MAX: usize = 1000;

/// The log of a container.
#[derive(Debug, Default)]
pub(super) struct ContainerLog {
    pub(super) lines: VecDeque<LogLine>,
    /// Total number of lines that were written.
    pub(super) written: u64,
}

impl ContainerLog {
    fn push(&mut self, line: LogLine) {
        if self.lines.len() == LOG_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        self.written += 1;
    }

    /// Discards lines that were scheduled after a time.
    pub(super) fn cut(&mut self, at: Duration) {
        let before = self.lines.len();
        self.lines.retain(|line| line.at <= at);
        self.written -= (before - self.lines.len()) as u64;
    }
}

/// A program's view of its container.
pub struct ContainerView<'a> {
    pub(super) files: View<'a>,
    pub(super) log: &'a mut ContainerLog,
    pub(super) at: Duration,
    pub(super) uptime: Duration,
    pub(super) command: &'a [String],
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) input: Bytes,
}

impl ContainerView<'_> {
    /// Returns the time that the first process has run, without pauses.
    pub fn uptime(&self) -> Duration {
        self.uptime
    }

    /// Returns the entry point and command of the first process as the creator of the container set them; empty if
    /// those of the image apply.
    pub(crate) fn command(&self) -> &[String] {
        self.command
    }

    /// Returns the environment variables of the container.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        self.environment
    }

    /// Returns the standard input of the command that runs; empty for the first process.
    pub fn input(&self) -> &Bytes {
        &self.input
    }

    /// Reads a file, following symbolic links.
    pub(crate) fn read(&self, path: &str) -> Option<Bytes> {
        let mut path = normal(path);
        for _ in 0..8 {
            match self.files.get(&path)?.content {
                NodeContent::File(bytes) => return Some(bytes),
                NodeContent::Folder => return None,
                NodeContent::Link(target) if target.starts_with('/') => path = normal(&target),
                NodeContent::Link(target) => path = normal(&format!("{}/{target}", super::files::parent(&path))),
            }
        }
        None
    }

    /// Returns whether a path exists.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.files.get(&normal(path)).is_some()
    }

    /// Returns the sorted names of a folder's entries.
    pub(crate) fn list(&self, folder: &str) -> Vec<String> {
        self.files.children(&normal(folder)).into_iter().collect()
    }

    /// Writes a file, and creates the folders on its path.
    pub(crate) fn write(&mut self, path: &str, content: impl Into<Bytes>) -> io::Result<()> {
        self.files.put(&normal(path), FileNode::file(content))
    }

    /// Creates a folder, and the folders on its path.
    pub(crate) fn make_folder(&mut self, path: &str) -> io::Result<()> {
        self.files.put(&normal(path), FileNode::folder())
    }

    /// Removes a file, or a folder with its content.
    pub(crate) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.files.remove(&normal(path))
    }

    /// Writes a line to the container's log.
    pub(crate) fn print(&mut self, is_stderr: bool, line: &str) {
        self.print_after(Duration::ZERO, is_stderr, line);
    }

    /// Schedules a line of the container's log. It is not written if the process ends before.
    pub(crate) fn print_after(&mut self, after: Duration, is_stderr: bool, line: &str) {
        self.log.push(LogLine { at: self.at.saturating_add(after), is_stderr, text: format!("{line}\n") });
    }
}
