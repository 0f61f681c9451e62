//! The headless browser: found, and seen to show a page.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;

use super::{output, program};
use crate::doctor::facts::Browser;
use crate::domain::browser::PROGRAMS;

/// A browser that has not shown an empty page by then will not show a site's.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn look() -> Browser {
    let Some(path) = PROGRAMS.iter().find_map(|name| program(name)) else { return Browser::Missing };
    let version =
        output(&path, &["--version"]).await.map(|answer| String::from_utf8_lossy(&answer.stdout).into_owned());
    let version = version.as_deref().and_then(|text| text.lines().next()).unwrap_or("Chromium").trim().to_owned();
    match shows_a_page(&path).await {
        Ok(()) => Browser::Works { path, version },
        Err(reason) => Browser::Fails { path, reason },
    }
}

async fn shows_a_page(path: &Path) -> Result<(), String> {
    let profile = Profile::new().map_err(|error| format!("make a folder for its profile: {error}"))?;
    let mut command = Command::new(path);
    command
        .args(["--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.0.display()))
        .args(["--dump-dom", "data:text/html,<p>arenad</p>"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // It is many processes: they end together.
        .process_group(0)
        .kill_on_drop(true);
    if rustix::process::geteuid().is_root() {
        // Its sandbox refuses root, and what is shown here is our own text.
        command.arg("--no-sandbox");
    }
    let child = command.spawn().map_err(|error| error.to_string())?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    if let Some(group) = group {
        // Gone already is fine.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let answer = match ended {
        Ok(answer) => answer.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("it shows nothing within {} s", PATIENCE.as_secs())),
    };
    if String::from_utf8_lossy(&answer.stdout).contains("arenad") {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
    Err(format!("{}: {last}", answer.status))
}

/// A folder for one run, removed with it.
struct Profile(PathBuf);

impl Profile {
    fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("arenad-doctor-{:016x}", rand::random::<u64>()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // What is left lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
