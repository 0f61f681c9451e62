//! A browser that a person sees, for recordings. It is the person's own program, so it has no cage.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use tokio::process::{Child, Command};

use crate::cdp::Cdp;
use crate::launch::{self, NoBrowser, VARIABLE, found};
use arenad_model::browser::PROGRAMS;

/// The script that gives a browser its pipes, as file descriptors 3 and 4.
const PIPES: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >&2";

/// The browser's arguments, apart from its profile. A window that the browser opened by itself would cover the one that is
/// recorded.
const ARGUMENTS: [&str; 10] = [
    "--remote-debugging-pipe",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,Translate",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-startup-window",
    "--password-store=basic",
];

/// The time that a browser has to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// The number of further attempts to remove a profile.
const REMOVALS_MAX: usize = 20;

/// The pause after an attempt that failed.
const REMOVAL_PAUSE: Duration = Duration::from_millis(100);

/// Starts a browser with a window, whose profile is in `folder`. If ARENAD_CHROMIUM has the address of a browser that runs,
/// that one is used. The process, if there is one, ends when it is dropped.
///
/// Errors: the reason why no browser started, and the remedy.
pub async fn start_shown(folder: &Path, message_max: usize) -> Result<(Cdp, Option<Child>), NoBrowser> {
    let named = std::env::var_os(VARIABLE);
    if let Some(address) = named.as_ref().and_then(|named| named.to_str()).filter(|named| named.starts_with("ws://")) {
        return launch::connected(address, message_max).await.map(|cdp| (cdp, None));
    }
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|screen| std::env::var_os(screen).is_some());
    if !has_screen && !cfg!(target_os = "macos") {
        return Err(NoBrowser::from(format!(
            "open a window: there is no screen (DISPLAY, WAYLAND_DISPLAY); run `chromium --remote-debugging-port=9222` \
             where there is one, and set {VARIABLE} to its ws:// address"
        )));
    }
    let programs = PROGRAMS.iter().filter(|name| !name.contains("headless"));
    let program = named.map(PathBuf::from).or_else(|| programs.clone().find_map(|name| found(name)));
    let Some(program) = program else {
        let names: Vec<&str> = programs.copied().collect();
        return Err(NoBrowser::from(format!("find a browser: none of {} is there", names.join(", "))));
    };
    let mut command = Command::new("sh");
    command.args(["-c", PIPES]).arg(&program).args(ARGUMENTS);
    command.arg(format!("--user-data-dir={}", folder.display()));
    if rustix::process::geteuid().is_root() {
        // Chromium refuses to run as root with its sandbox.
        command.arg("--no-sandbox");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let (cdp, child) = launch::answering(&program.display().to_string(), command, message_max).await?;
    Ok((cdp, Some(child)))
}

/// Ends a browser of [`start_shown`] and removes its profile, to which the browser writes until it has ended.
pub async fn end_shown(cdp: &Cdp, process: Option<Child>, folder: &Path) {
    // A browser that ran already goes on.
    let Some(mut process) = process else { return };
    cdp.tell("Browser.close", serde_json::json!({}));
    if tokio::time::timeout(CLOSE_LIMIT, process.wait()).await.is_err() {
        let _ = process.kill().await;
    }
    // Its helpers end a moment later, and write until then.
    let remove = || async { std::fs::remove_dir_all(folder) };
    let pauses = ConstantBuilder::default().with_delay(REMOVAL_PAUSE).with_max_times(REMOVALS_MAX);
    let _ = remove.retry(pauses).when(|_| folder.exists()).await;
}
