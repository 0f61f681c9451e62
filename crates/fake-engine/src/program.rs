//! What runs in simulated containers.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::files::{Content, Node, View, normal};

/// A request to what runs in a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// In capitals.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// In order, names as they came.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body.
    pub body: Bytes,
}

impl Request {
    /// A `GET` without headers.
    pub fn get(path: &str) -> Self {
        Self { method: "GET".to_owned(), path: path.to_owned(), ..Self::default() }
    }

    /// A `POST` without headers.
    pub fn post(path: &str, body: impl Into<Bytes>) -> Self {
        Self { method: "POST".to_owned(), path: path.to_owned(), headers: Vec::new(), body: body.into() }
    }
}

/// An answer of what runs in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// In order.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body.
    pub body: Bytes,
}

impl Response {
    /// An answer in plain text.
    pub(crate) fn text(status: u16, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type".to_owned(), "text/plain; charset=utf-8".to_owned())];
        Self { status, headers, body: body.into() }
    }

    /// The body as text.
    pub fn body_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What a command in a container did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandOutcome {
    /// The exit code of the process.
    pub code: i64,
    /// The complete standard output.
    pub stdout: String,
    /// The complete standard error.
    pub stderr: String,
    /// How long it took. What it changed is changed at its beginning.
    pub takes: Duration,
}

impl CommandOutcome {
    /// A command that said nothing.
    pub(crate) fn code(code: i64) -> Self {
        Self { code, ..Self::default() }
    }
}

/// How a container's first process goes on after its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs until it is stopped.
    Serves,
    /// It ends by itself.
    Ends {
        /// After its start.
        after: Duration,
        /// The exit code of the process.
        code: i64,
    },
}

/// What a process does when it is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// It ends.
    Exits {
        /// After it was asked.
        after: Duration,
        /// The exit code of the process.
        code: i64,
    },
    /// It goes on until it is killed.
    Ignored,
}

/// What runs in a container: made anew for each container, started at each of its starts.
///
/// All methods are decisions on the state that they are given; none waits. Memory of one run that must not outlive it is
/// cleared in [`Program::start`].
pub trait Program: Send {
    /// The container's first process begins.
    fn start(&mut self, inside: &mut Inside<'_>) -> Life;

    /// Whether connections to a port are accepted.
    fn is_listening(&self, port: u16, uptime: Duration) -> bool;

    /// Whether the container's own health check would pass.
    fn is_healthy(&self, uptime: Duration) -> bool {
        let _ = uptime;
        true
    }

    /// Answers a request. The port is one that it listens on.
    fn answer(&mut self, request: &Request, inside: &mut Inside<'_>) -> Response;

    /// Runs a command in the container.
    fn run(&mut self, command: &[String], user: Option<&str>, inside: &mut Inside<'_>) -> CommandOutcome;

    /// The container is asked to stop.
    fn terminate(&mut self, inside: &mut Inside<'_>) -> Termination {
        let _ = inside;
        Termination::Exits { after: Duration::ZERO, code: 0 }
    }
}

/// Makes the program of a container.
pub type ProgramMaker = Arc<dyn Fn() -> Box<dyn Program> + Send + Sync>;

/// One line or piece of a container's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogLine {
    pub(super) at: Duration,
    pub(super) is_stderr: bool,
    pub(super) text: String,
}

/// How many lines of a container's log are kept.
const LOG_MAX: usize = 1000;

/// The log of a container.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) lines: VecDeque<LogLine>,
    /// How many were written in all.
    pub(super) written: u64,
}

impl Log {
    fn push(&mut self, line: LogLine) {
        if self.lines.len() == LOG_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        self.written += 1;
    }

    /// Drops what would have been written after a time.
    pub(super) fn cut(&mut self, at: Duration) {
        let before = self.lines.len();
        self.lines.retain(|line| line.at <= at);
        self.written -= (before - self.lines.len()) as u64;
    }
}

/// What a program finds inside of its container.
pub struct Inside<'a> {
    pub(super) files: View<'a>,
    pub(super) log: &'a mut Log,
    pub(super) at: Duration,
    pub(super) uptime: Duration,
    pub(super) command: &'a [String],
    pub(super) environment: &'a BTreeMap<String, String>,
}

impl Inside<'_> {
    /// How long the first process has run, time in which it was frozen apart.
    pub fn uptime(&self) -> Duration {
        self.uptime
    }

    /// Entry point and command of the first process as the container's creator gave them; empty: the image's.
    pub(crate) fn command(&self) -> &[String] {
        self.command
    }

    /// The environment variables.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        self.environment
    }

    /// Reads a file.
    pub(crate) fn read(&self, path: &str) -> Option<Bytes> {
        let mut path = normal(path);
        for _ in 0..8 {
            match self.files.get(&path)?.content {
                Content::File(bytes) => return Some(bytes),
                Content::Folder => return None,
                Content::Link(target) if target.starts_with('/') => path = normal(&target),
                Content::Link(target) => path = normal(&format!("{}/{target}", super::files::parent(&path))),
            }
        }
        None
    }

    /// Whether there is anything at a path.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.files.get(&normal(path)).is_some()
    }

    /// The names of what a folder holds, sorted.
    pub(crate) fn list(&self, folder: &str) -> Vec<String> {
        self.files.children(&normal(folder)).into_iter().collect()
    }

    /// Writes a file, and makes the folders on the way.
    pub(crate) fn write(&mut self, path: &str, content: impl Into<Bytes>) -> io::Result<()> {
        self.files.put(&normal(path), Node::file(content))
    }

    /// Makes a folder.
    pub(crate) fn make_folder(&mut self, path: &str) -> io::Result<()> {
        self.files.put(&normal(path), Node::folder())
    }

    /// Removes a file or folder.
    pub(crate) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.files.remove(&normal(path))
    }

    /// Writes a line to the container's log.
    pub(crate) fn print(&mut self, is_stderr: bool, line: &str) {
        self.print_after(Duration::ZERO, is_stderr, line);
    }

    /// Writes a line to the container's log later, unless the process has ended by then.
    pub(crate) fn print_after(&mut self, after: Duration, is_stderr: bool, line: &str) {
        self.log.push(LogLine { at: self.at.saturating_add(after), is_stderr, text: format!("{line}\n") });
    }
}
