//! Supervises the process that examines inputs: determines how it ended, and at which input.

use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::random::mix;
use crate::shrink::shrink;
use crate::target::{FOLDER, FuzzTarget};
use crate::work::{CURRENT, INPUT};

/// The time beyond the limits of its inputs after which a process counts as hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// An input that breaks a property.
pub struct FuzzFailure {
    target: &'static str,
    seed: u64,
    /// How the process ended.
    how: ProcessEnd,
    /// The input after shortening, and its original length.
    input: Vec<u8>,
    found_bytes: usize,
    kept: PathBuf,
}

/// The end of a process at an input that it should have survived.
#[derive(Debug, Clone)]
pub struct ProcessEnd {
    /// A text that is equal for failures with the same cause.
    pub kind: String,
    /// The last part of the process's output.
    said: String,
}

impl fmt::Display for FuzzFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 600;
        let Self { target, seed, how, input, found_bytes, kept } = self;
        writeln!(f, "fuzz: {target}: {} (seed {seed:#x})", how.kind)?;
        for line in how.said.lines().take(20) {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "the shortest input found, {} of {found_bytes} bytes:", input.len())?;
        writeln!(f, "  {}", input[..input.len().min(SHOWN_MAX)].escape_ascii())?;
        let kept = kept.display();
        write!(f, "  ARENAD_FUZZ_TARGET={target} ARENAD_FUZZ_INPUT={kept} cargo test --test fuzz")
    }
}

/// Lets a process examine inputs for this time. Returns its report, or the input that it should have survived.
pub fn supervise(target: &'static FuzzTarget, seed: u64, length: Duration) -> Result<String, Box<FuzzFailure>> {
    let folder = FuzzFolder::new(target.name);
    let current = folder.0.join("current");
    let seconds = length.as_millis().to_string();
    let variables = [(CURRENT, current.as_os_str().to_owned()), ("ARENAD_FUZZ_SECONDS", seconds.into())];
    let around = (target.around)();
    let of_target = mix(target.name.bytes().fold(seed, |seed, byte| mix(seed ^ u64::from(byte))));
    let shared: Vec<(&str, OsString)> = around.variables.iter().map(|(name, value)| (*name, value.into())).collect();
    let variables = variables.into_iter().chain([("ARENAD_FUZZ_SEED", of_target.to_string().into())]);
    let variables = variables.chain(shared.clone());
    let ended = run(target, &folder.0, variables, || {
        // The file is written between two inputs, so an old file means that one input takes long.
        let written = current.metadata().and_then(|data| data.modified()).ok();
        written.and_then(|written| written.elapsed().ok()).unwrap_or_default()
    });
    match ended {
        Ok(summary) => Ok(summary),
        Err(how) => {
            let found = std::fs::read(&current).unwrap_or_default();
            let found_bytes = found.len();
            let (input, how) = shrink(target, found, how, &|input| look_at(target, input, &shared, &folder.0));
            let kept = keep(target.name, &input);
            Err(Box::new(FuzzFailure { target: target.name, seed, how, input, found_bytes, kept }))
        }
    }
}

/// Examines one input in a process of its own. Returns how the process ended if it should have survived.
fn look_at(
    target: &FuzzTarget,
    input: &[u8],
    shared: &[(&'static str, OsString)],
    folder: &Path,
) -> Option<ProcessEnd> {
    let path = folder.join("candidate");
    std::fs::write(&path, input).expect("a file");
    let begun = Instant::now();
    let variables = [(INPUT, path.into_os_string())].into_iter().chain(shared.iter().cloned());
    run(target, folder, variables, || begun.elapsed()).err()
}

/// Examines the given file in a process that prints the result itself.
pub fn replayed(target: &FuzzTarget) -> ExitCode {
    let around = (target.around)();
    let folder = FuzzFolder::new(target.name);
    let program = std::env::current_exe().expect("a path");
    let mut command = Command::new(program);
    let status =
        command.env(FOLDER, &folder.0).envs(around.variables.iter().map(|(name, value)| (name, value))).status();
    if status.expect("a process").success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program for one target. `stalled` returns how long it has been at the same input.
fn run(
    target: &FuzzTarget,
    folder: &Path,
    variables: impl IntoIterator<Item = (&'static str, OsString)>,
    stalled: impl Fn() -> Duration,
) -> Result<String, ProcessEnd> {
    let program = std::env::current_exe().expect("a path");
    let mut child = Command::new(program)
        .env_remove(INPUT)
        .env_remove(CURRENT)
        .env("ARENAD_FUZZ_TARGET", target.name)
        .env(FOLDER, folder)
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    let (said, complaints) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = wait(&mut child, target.slowest + PATIENCE, stalled);
    let said = said.join().unwrap_or_default();
    let complaints = complaints.join().unwrap_or_default();
    match status {
        Some(status) if status.success() => Ok(said.lines().last().unwrap_or_default().to_owned()),
        status => Err(end(status, complaints)),
    }
}

/// Waits for the process. Returns `None` if it did not end by itself and was killed.
fn wait(child: &mut Child, most: Duration, stalled: impl Fn() -> Duration) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        if stalled() > most {
            child.kill().expect("it can be ended");
            child.wait().expect("a child");
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn end(status: Option<ExitStatus>, said: String) -> ProcessEnd {
    let panicked = said.lines().find_map(|line| line.split_once("panicked at ")).map(|(_, at)| at.to_owned());
    let kind = match (status, panicked) {
        (None, _) => "it never ended".to_owned(),
        (_, Some(at)) => format!("it panicked at {}", at.trim_end_matches(':')),
        (Some(status), None) => {
            let why = ["stack overflow", "memory allocation", "overflowed its stack"];
            let why = said.lines().find(|line| why.iter().any(|why| line.contains(why))).unwrap_or_default();
            let why = why.trim_matches(|c: char| c.is_ascii_digit() || c == '\n');
            format!("it ended by signal {}: {why}", status.signal().unwrap_or_default())
        }
    };
    ProcessEnd { kind, said }
}

fn reader(from: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A report lacks output that cannot be read.
        let _ = from.map(|mut from| from.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Saves a failing input permanently.
fn keep(name: &str, input: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    let hash = input.iter().fold(0, |hash, byte| mix(hash ^ u64::from(*byte)));
    let path = folder.join(format!("{name}-{hash:016x}"));
    std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input)).expect("a file");
    path
}

/// A folder in memory that is removed at the end.
struct FuzzFolder(PathBuf);

impl FuzzFolder {
    fn new(name: &str) -> Self {
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let folder = base.join(format!("arenad-fuzz-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for FuzzFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
