//! The browser's processes: found, started, caged where there is a cage, and gone when their owner is.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::container::{self, Missing};
use crate::domain::browser::PROGRAMS;

/// The variable that names another: a program, `ws://…`, or the word for the one in a container.
const VARIABLE: &str = "ARENAD_CHROMIUM";

/// What [`VARIABLE`] says where the container is wanted although the host has a browser.
const CONTAINER: &str = "container";

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the browser is started with, besides its profile.
const ARGUMENTS: [&str; 22] = [
    "--headless=new",
    "--remote-debugging-port=0",
    // Contexts have proxies of their own; what has none goes nowhere.
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
    // A script that eats memory ends in a crash of its page.
    "--js-flags=--max-old-space-size=512",
];

/// A running browser; killed, with all that it started, when it goes.
pub(super) struct Process {
    address: String,
    _child: Option<Child>,
}

impl Process {
    /// The WebSocket address at which it takes commands.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

/// Starts a browser whose files are in `folder`, which is emptied first. Errors: why not, and what to do.
pub(super) async fn start(folder: &Path) -> Result<Process, String> {
    let named = std::env::var_os(VARIABLE);
    let is_container_wanted = named.as_ref().is_some_and(|named| named == CONTAINER);
    if let Some(address) = named.as_ref().and_then(|named| named.to_str()).filter(|named| named.starts_with("ws://")) {
        return Ok(Process { address: address.to_owned(), _child: None });
    }
    let program = match named.filter(|named| named != CONTAINER) {
        Some(named) => Some(PathBuf::from(named)),
        None if is_container_wanted => None,
        None => PROGRAMS.iter().find_map(|name| found(name)),
    };
    let shown = program.as_ref().map_or_else(|| "the browser's container".to_owned(), |it| it.display().to_string());
    let doing = |error: std::io::Error| format!("start {shown}: {error}");
    let cage = Cage::make(folder).map_err(doing)?;
    let mut command = match &program {
        Some(program) => cage.command(program),
        None => contained(folder).await?,
    };
    let mut child = command.spawn().map_err(doing)?;
    let stderr = child.stderr.take().ok_or_else(|| doing(std::io::Error::other("it has no output")))?;
    let mut lines = BufReader::new(stderr).lines();
    let mut last = String::new();
    let listening = async {
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(address) = line.strip_prefix("DevTools listening on ") {
                return Ok(address.trim().to_owned());
            }
            last = line;
        }
        Err(format!("start {shown}: it ended at once: {last}"))
    };
    let address = tokio::time::timeout(PATIENCE, listening)
        .await
        .unwrap_or_else(|_| Err(format!("start {shown}: it does not listen within {PATIENCE:?}")))?;
    // It goes on talking, and would stop if nobody listened.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(Process { address, _child: Some(child) })
}

/// The command that runs the browser in a container.
async fn contained(folder: &Path) -> Result<Command, String> {
    let mut command = container::command(&ARGUMENTS, folder).await.map_err(|missing| {
        let none = format!("find a browser: none of {} is there", PROGRAMS.join(", "));
        let cure = format!("install chromium-headless-shell or chromium, or name one in {VARIABLE}");
        match missing {
            Missing::Image => format!("{none}, nor its image; {cure}, or build the image with `make browser`"),
            Missing::Client => format!("{none}; {cure}"),
            Missing::Filter(error) => format!("start the browser's container: write in {}: {error}", folder.display()),
        }
    })?;
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// A program of the search path.
pub(super) fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// What a browser runs in.
///
/// Where there is `bwrap`: its own processes, which end with it; the host's files to look at but not to write, without
/// those of users, services and arenad; no rights; and no netlink. The last is because Chromium cancels every request
/// whenever a network appears on the host, which here happens all the time; it does not hear of it then. Else `setpriv`,
/// so that it dies with the daemon.
struct Cage {
    profile: PathBuf,
    folder: PathBuf,
    filter: PathBuf,
    bwrap: Option<PathBuf>,
    setpriv: Option<PathBuf>,
}

impl Cage {
    fn make(folder: &Path) -> std::io::Result<Self> {
        let folder = std::path::absolute(folder)?;
        // What the last one has left.
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let profile = folder.join("profile");
        DirBuilder::new().recursive(true).mode(0o700).create(&profile)?;
        let filter = folder.join("filter");
        let bytes = netlink_filter();
        std::fs::write(&filter, &bytes)?;
        let bwrap = found("bwrap").filter(|_| !bytes.is_empty());
        Ok(Self { profile, folder, filter, bwrap, setpriv: found("setpriv") })
    }

    fn command(&self, program: &Path) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |added: &[&str]| words.extend(added.iter().map(OsString::from));
        let mut command = match (&self.bwrap, &self.setpriv) {
            (Some(bwrap), _) => {
                let (folder, profile) = (self.folder.display().to_string(), self.profile.display().to_string());
                // A shell opens the filter for it: descriptors of our own are closed when a program starts.
                add(&["-c", "exec \"$@\" 9<\"$0\"", &self.filter.display().to_string(), &bwrap.display().to_string()]);
                add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run"]);
                add(&[
                    "--tmpfs",
                    "/root",
                    "--tmpfs",
                    "/home",
                    "--tmpfs",
                    folder.rsplit_once('/').map_or("/tmp", |(up, _)| up),
                ]);
                add(&["--bind", &profile, &profile, "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
                add(&["--cap-drop", "ALL", "--die-with-parent", "--new-session", "--seccomp", "9", "--"]);
                add(&[&program.display().to_string()]);
                Command::new("/bin/sh")
            }
            (None, Some(setpriv)) => {
                add(&["--pdeathsig", "KILL", "--", &program.display().to_string()]);
                Command::new(setpriv)
            }
            (None, None) => Command::new(program),
        };
        add(&ARGUMENTS);
        add(&[&format!("--user-data-dir={}", self.profile.display())]);
        if self.bwrap.is_some() || rustix::process::geteuid().is_root() {
            // Its own sandbox refuses root, and does not fit into the cage.
            add(&["--no-sandbox"]);
        }
        command
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.profile)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// A filter of system calls that lets everything pass but sockets to the kernel's news of networks.
///
/// Shape: `struct sock_filter` (code, jump if true, jump if false, operand; the host's byte order). Empty on processors
/// whose numbers are not known here.
fn netlink_filter() -> Vec<u8> {
    /// `socket` of the processor.
    const SOCKET: u32 = if cfg!(target_arch = "x86_64") { 41 } else { 198 };
    const AF_NETLINK: u32 = 16;
    const EAFNOSUPPORT: u32 = 97;
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Vec::new();
    }
    let program: [(u16, u8, u8, u32); 6] = [
        // The call's number; the first argument; an error or the call.
        (0x20, 0, 0, 0),
        (0x15, 0, 3, SOCKET),
        (0x20, 0, 0, 16),
        (0x15, 0, 1, AF_NETLINK),
        (0x06, 0, 0, 0x0005_0000 | EAFNOSUPPORT),
        (0x06, 0, 0, 0x7fff_0000),
    ];
    let bytes = |(code, yes, no, operand): (u16, u8, u8, u32)| {
        [code.to_ne_bytes().as_slice(), &[yes, no], &operand.to_ne_bytes()].concat()
    };
    program.into_iter().flat_map(bytes).collect()
}
