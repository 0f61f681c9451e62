//! The cage of a browser of the host, built with `bwrap`.
//!
//! In the cage the browser has its own unprivileged user and its own process namespace, which ends with it. It can see
//! only the host's programs, libraries and fonts, and none of arenad's files except its profile. Its memory and
//! processes are limited. Its own sandbox runs inside, and isolates pages from the browser.
//!
//! Netlink is blocked, because Chromium cancels every request when a network appears on the host, which happens all the
//! time here; without netlink it is not notified.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use crate::cgroup::{Group, PREFIX};
use crate::launch::{NoBrowser, found};

/// The browser's user if arenad runs as root: an id that no distribution, service manager or container assigns.
const USER: u32 = 1_893_000_001;

/// Returns the browser's user, as the host sees it.
pub(crate) fn user() -> u32 {
    if is_root() { USER } else { rustix::process::geteuid().as_raw() }
}

/// Path of the profile inside the cage.
const PROFILE: &str = "/profile";

/// Maximum size of each process's data segment, in bytes: the limit of a page, with a margin.
const DATA_MAX: u64 = 2 << 30;

/// Files and folders in `/etc` and `/var` that the browser reads.
const CONFIGURATION: [&str; 9] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/chromium",
    "/etc/chromium.d",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/ssl",
    "/var/cache/fontconfig",
];

/// Shell script that joins the control groups and sets up the browser's pipe and the cage's filter. Arguments: the
/// filter, the groups' files, `--`, the command.
const SCRIPT: &str = r#"filter=$1; shift
while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done; shift
exec "$@" 3<&0 4>&1 9<"$filter" </dev/null >&2"#;

/// The environment in which a browser runs.
pub(crate) struct Cage {
    bwrap: PathBuf,
    filter: PathBuf,
    profile: PathBuf,
    group: Option<Group>,
}

impl Cage {
    /// Creates a cage whose files are in `folder`, which is emptied first.
    ///
    /// Errors: the reason why there is no cage, and the remedy.
    pub(crate) fn make(folder: &Path) -> Result<Self, NoBrowser> {
        Self::make_with(found("bwrap"), folder)
    }

    fn make_with(bwrap: Option<PathBuf>, folder: &Path) -> Result<Self, NoBrowser> {
        let bwrap = bwrap.ok_or(
            "a browser runs in a cage only, and bwrap is not installed: `apt-get install bubblewrap`, or build the browser's \
             image with `make browser` and set ARENAD_CHROMIUM=container",
        )?;
        let filter = netlink_filter();
        if filter.is_empty() {
            return Err(format!("no cage is known for processors of the kind {}", std::env::consts::ARCH).into());
        }
        let group = match Group::make(&group_name(folder)) {
            Ok(group) => Some(group),
            Err(error) => {
                tracing::info!(%error, "the browser has no control group; each of its processes is limited instead");
                None
            }
        };
        let made = Self::lay_out(folder, &filter);
        let (profile, filter) =
            made.map_err(|error| format!("make the browser's folder {}: {error}", folder.display()))?;
        Ok(Self { bwrap, filter, profile, group })
    }

    fn lay_out(folder: &Path, filter: &[u8]) -> io::Result<(PathBuf, PathBuf)> {
        let folder = std::path::absolute(folder)?;
        end_remains(&folder);
        // Files of the previous browser may remain.
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let (profile, written) = (folder.join("profile"), folder.join("filter"));
        DirBuilder::new().recursive(true).mode(0o700).create(&profile)?;
        std::fs::write(&written, filter)?;
        if is_root() {
            chown(&profile, Some(USER), Some(USER))?;
        }
        Ok((profile, written))
    }

    /// Returns the command that runs a program in the cage, with its pipe on standard input and output.
    pub(crate) fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut words: Vec<OsString> =
            vec!["-c".into(), SCRIPT.into(), "arenad-browser".into(), self.filter.clone().into()];
        words.extend(self.group.iter().flat_map(Group::entries).map(OsString::from));
        words.extend(["--".into(), self.bwrap.clone().into()]);
        words.extend(["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"].map(OsString::from));
        words.extend(visible(program));
        let mut add = |added: &[&str]| words.extend(added.iter().map(OsString::from));
        let user = USER.to_string();
        add(&["--bind", &self.profile.display().to_string(), PROFILE]);
        add(&[
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--die-with-parent",
            "--new-session",
            "--seccomp",
            "9",
        ]);
        add(&["--chdir", "/"]);
        if is_root() {
            add(&["--", "setpriv", "--reuid", &user, "--regid", &user, "--clear-groups", "--no-new-privs"]);
            add(&["--inh-caps=-all", "--bounding-set=-all", "--"]);
        } else {
            add(&["--unshare-user", "--uid", &user, "--gid", &user, "--cap-drop", "ALL", "--"]);
        }
        add(&["prlimit", &format!("--data={DATA_MAX}"), "--core=0", "--", &program.display().to_string()]);
        add(arguments);
        add(&[&format!("--user-data-dir={PROFILE}")]);
        let mut command = Command::new("/bin/sh");
        command
            .args(words)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", PROFILE)
            // Archives of pages are put together in a temporary file.
            .env("TMPDIR", PROFILE)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// Returns the arguments that make the required files of the host visible, read-only.
fn visible(program: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["--ro-bind", "/usr", "/usr"].map(OsString::from).into();
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let path = Path::new("/").join(name);
        if let Ok(target) = std::fs::read_link(&path) {
            words.extend(["--symlink".into(), target.into(), path.into()]);
        } else if path.is_dir() {
            words.extend(["--ro-bind".into(), path.clone().into(), path.into()]);
        }
    }
    // bwrap makes the folders above with the umask of the daemon, so that the browser's user could not enter them.
    for folder in ["/etc", "/var", "/var/cache"] {
        words.extend(enterable(Path::new(folder)));
    }
    for path in CONFIGURATION {
        words.extend(["--ro-bind-try", path, path].map(OsString::from));
    }
    // The folder of the program, and the folder to which a link leads, if it is a different one.
    for path in [Some(program.to_owned()), program.canonicalize().ok()].into_iter().flatten() {
        if let Some(folder) = path.parent().filter(|folder| !folder.starts_with("/usr")) {
            let above: Vec<&Path> = folder.ancestors().skip(1).filter(|above| above.parent().is_some()).collect();
            words.extend(above.into_iter().rev().flat_map(enterable));
            words.extend(["--ro-bind".into(), folder.into(), folder.into()]);
        }
    }
    words
}

/// Returns the arguments that make a folder which every user can enter.
fn enterable(folder: &Path) -> [OsString; 4] {
    ["--perms".into(), "0755".into(), "--dir".into(), folder.into()]
}

/// Kills browsers whose files are in `folder`: those of a killed daemon without a control group.
pub(crate) fn end_remains(folder: &Path) {
    let profile = folder.join("profile").display().to_string();
    for process in procfs::process::all_processes().into_iter().flatten().flatten() {
        let is_ours = process.cmdline().is_ok_and(|words| words.contains(&profile));
        if let Some(pid) = Pid::from_raw(process.pid).filter(|_| is_ours) {
            // The process may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Ends the control groups that a previous daemon has left for a browser whose files are in `folder`.
pub(crate) fn end_group(folder: &Path) {
    Group::end_all(&group_name(folder));
}

/// Returns the prefix of the control groups' names for the browser whose files are in `folder`.
fn group_name(folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let hash = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    format!("{PREFIX}{}", &hash[..16])
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns a filter of system calls that blocks only netlink sockets, through which the kernel reports changes of
/// networks.
///
/// Shape: `struct sock_filter` (code, jump if true, jump if false, operand; the host's byte order). Empty on processors
/// whose call numbers are not listed here.
fn netlink_filter() -> Vec<u8> {
    /// Number of the system call `socket` on this processor.
    const SOCKET: u32 = if cfg!(target_arch = "x86_64") { 41 } else { 198 };
    const AF_NETLINK: u32 = 16;
    const EAFNOSUPPORT: u32 = 97;
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Vec::new();
    }
    let program: [(u16, u8, u8, u32); 6] = [
        // Loads and tests the call's number, then the first argument; then returns an error or allows the call.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_in_the_cage_has_a_limit_of_memory_even_without_a_control_group() {
        let cage = Cage { bwrap: "/usr/bin/bwrap".into(), filter: "/filter".into(), profile: "/p".into(), group: None };
        let command = cage.command(Path::new("/usr/bin/chromium"), &["--headless=new"]);
        let words: Vec<_> = command.as_std().get_args().filter_map(std::ffi::OsStr::to_str).collect();
        let limited = ["prlimit", "--data=2147483648", "--core=0", "--", "/usr/bin/chromium", "--headless=new"];
        assert!(words.windows(limited.len()).any(|run| run == limited), "{words:?}");
    }

    #[test]
    fn without_a_cage_there_is_no_browser() {
        let above = tempfile::tempdir().expect("a folder");
        let refused = Cage::make_with(None, &above.path().join("browser")).err().expect("no cage");
        assert!(refused.to_string().contains("apt-get install bubblewrap"), "{refused}");
        assert!(!above.path().join("browser").exists(), "nothing was prepared for a browser");
    }
}
