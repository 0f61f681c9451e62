//! The browser's processes: how they are found, started in a cage or a container, and ended with their owner.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use crate::cage::{self, Cage};
use crate::cdp::{Cdp, CdpError};
use crate::container::{self, Missing};
use crate::transport::{self, MESSAGE_MAX};
use arenad_model::browser::PROGRAMS;

/// The environment variable that selects another browser: a program, `ws://…`, or [`CONTAINER`].
pub(crate) const VARIABLE: &str = "ARENAD_CHROMIUM";

/// Value of [`VARIABLE`] that selects the container although the host has a browser.
const CONTAINER: &str = "container";

/// Time within which a browser must answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Message of a browser that cannot create the namespaces of its sandbox. Source: Chromium's
/// `zygote_host_impl_linux.cc`.
const NO_SANDBOX: &str = "No usable sandbox!";

/// The browser's arguments, apart from its profile.
const ARGUMENTS: [&str; 22] = [
    "--headless=new",
    // Commands arrive over a pipe, which no other process can open.
    "--remote-debugging-pipe",
    // Contexts have proxies of their own; requests without a proxy lead nowhere.
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,Translate",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--hide-scrollbars",
    "--mute-audio",
    "--window-size=1280,720",
    // A script that exhausts its memory ends in a crash of its page.
    "--js-flags=--max-old-space-size=512",
];

arenad_model::text_error! {
    /// The reason why no browser started, and the remedy.
    pub struct NoBrowser;
}

/// A running browser; dropping it kills it with all processes that it has started.
pub struct BrowserProcess {
    _child: Child,
    /// Dropped after the child: processes left in its control group end with it.
    cage: Option<Cage>,
}

impl BrowserProcess {
    /// Returns the user of the browser's processes, as the host sees it.
    pub fn user(&self) -> u32 {
        if self.cage.is_some() { cage::user() } else { container::USER }
    }
}

/// Starts a browser whose files are in `folder`, which is emptied first. Its messages have at most `message_max` bytes; a
/// longer one ends the connection.
///
/// Errors: the reason why no browser started, and the remedy.
pub async fn start(folder: &Path, message_max: usize) -> Result<(Cdp, Option<BrowserProcess>), NoBrowser> {
    let named = std::env::var_os(VARIABLE);
    if let Some(address) = named.as_ref().and_then(|named| named.to_str()).filter(|named| named.starts_with("ws://")) {
        return connected(address, message_max).await.map(|cdp| (cdp, None));
    }
    let is_container_wanted = named.as_ref().is_some_and(|named| named == CONTAINER);
    let program = match named.filter(|named| named != CONTAINER) {
        Some(named) => Some(PathBuf::from(named)),
        None if is_container_wanted => None,
        None => PROGRAMS.iter().find_map(|name| found(name)),
    };
    let Some(program) = program else {
        let (cdp, child) = answering("the browser's container", contained(folder).await?, message_max).await?;
        return Ok((cdp, Some(BrowserProcess { _child: child, cage: None })));
    };
    let (cdp, process) = caged(&program, folder, message_max).await?;
    Ok((cdp, Some(process)))
}

/// Connects to a browser that runs.
pub(crate) async fn connected(address: &str, message_max: usize) -> Result<Cdp, NoBrowser> {
    let connected = Cdp::connect(address, message_max).await;
    connected.map_err(|error| format!("connect to the browser at {address}: {error}").into())
}

/// Starts a program of the host in a cage whose files are in `folder`.
async fn caged(program: &Path, folder: &Path, message_max: usize) -> Result<(Cdp, BrowserProcess), NoBrowser> {
    let shown = program.display().to_string();
    let cage = Cage::make(folder)?;
    let started = match answering(&shown, cage.command(program, &ARGUMENTS), message_max).await {
        // The host lets no unprivileged process create a namespace: the cage, which root created, is the sandbox.
        Err(none) if none.to_string().contains(NO_SANDBOX) => {
            let arguments = [ARGUMENTS.as_slice(), &["--no-sandbox"]].concat();
            answering(&shown, cage.command(program, &arguments), message_max).await
        }
        started => started,
    };
    let (cdp, child) = started?;
    Ok((cdp, BrowserProcess { _child: child, cage: Some(cage) }))
}

/// Starts a program in its cage, with `folder` for its files, and has it show a page. Returns the browser's product
/// name. No process of it remains.
pub async fn try_browser(program: &Path, folder: &Path) -> Result<String, NoBrowser> {
    let tried = shown_by(program, folder).await;
    let folder = folder.to_owned();
    // If a process remains, the next start of a browser ends it.
    let _ = tokio::task::spawn_blocking(move || end_remains(&folder)).await;
    tried
}

async fn shown_by(program: &Path, folder: &Path) -> Result<String, NoBrowser> {
    const PAGE: &str = "data:text/html,<title>arenad</title>";
    let (cdp, _process) = caged(program, folder, MESSAGE_MAX).await?;
    let failed = |error: CdpError| format!("{}: {error}", program.display());
    let shown = async {
        let version = cdp.call(None, "Browser.getVersion", json!({})).await.map_err(failed)?;
        let target = cdp.call(None, "Target.createTarget", json!({ "url": PAGE })).await.map_err(failed)?;
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = cdp.call(None, "Target.attachToTarget", attached).await.map_err(failed)?;
        let wanted = json!({
            "expression": "new Promise(shown => document.title ? shown(document.title) : addEventListener('load', () => shown(document.title)))",
            "awaitPromise": true,
            "returnByValue": true,
        });
        let session = attached["sessionId"].as_str();
        let title = cdp.call(session, "Runtime.evaluate", wanted).await.map_err(failed)?;
        match title["result"]["value"].as_str() {
            Some("arenad") => Ok(version["product"].as_str().unwrap_or("Chromium").to_owned()),
            _ => Err(format!("{}: it does not show a page", program.display()).into()),
        }
    };
    match tokio::time::timeout(PATIENCE, shown).await {
        Ok(shown) => shown,
        Err(_) => Err(format!("{}: it shows nothing within {PATIENCE:?}", program.display()).into()),
    }
}

/// Ends the processes that a previous daemon has left of a browser whose files are in `folder`.
pub fn end_remains(folder: &Path) {
    cage::end_remains(folder);
    cage::end_group(folder);
}

/// Runs a browser and waits until it answers.
pub(crate) async fn answering(
    shown: &str,
    mut command: Command,
    message_max: usize,
) -> Result<(Cdp, Child), NoBrowser> {
    let doing = |error: &dyn std::fmt::Display| NoBrowser::from(format!("start {shown}: {error}"));
    let mut child = command.spawn().map_err(|error| doing(&error))?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(doing(&"it has no pipes"));
    };
    let said = tokio::spawn(last_words(stderr));
    let cdp = Cdp::over(transport::pipe(stdout, stdin, message_max));
    match tokio::time::timeout(PATIENCE, cdp.call(None, "Browser.getVersion", json!({}))).await {
        Ok(Ok(_)) => Ok((cdp, child)),
        Ok(Err(_)) => {
            let said = said.await.unwrap_or_default();
            Err(doing(&format_args!("it ended at once: {said}")))
        }
        Err(_) => Err(doing(&format_args!("it does not answer within {PATIENCE:?}"))),
    }
}

/// Reads a browser's standard error until it ends, because the browser would block on a full pipe. Returns the reason
/// for its end, as far as it can be determined.
async fn last_words(stderr: impl AsyncRead + Unpin) -> String {
    let mut lines = BufReader::new(stderr).lines();
    let mut last = String::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if !last.contains(NO_SANDBOX) {
            last = line;
        }
    }
    last
}

/// Returns the command that runs the browser in a container.
async fn contained(folder: &Path) -> Result<Command, NoBrowser> {
    let mut command = container::command(&ARGUMENTS, folder).await.map_err(|missing| {
        let none = format!("find a browser: none of {} is there", PROGRAMS.join(", "));
        let cure = format!("install chromium-headless-shell or chromium, or name one in {VARIABLE}");
        match missing {
            Missing::Image => format!("{none}, nor its image; {cure}, or build the image with `make browser`"),
            Missing::Client => format!("{none}; {cure}"),
            Missing::Filter(error) => format!("start the browser's container: write in {}: {error}", folder.display()),
        }
    })?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// Returns the path of a program in the search path.
pub(crate) fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}
