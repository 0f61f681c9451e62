//! The browser in a container, for hosts without one: an image that `make browser` builds from Debian's packages.
//!
//! The container shares the host's network, because the pages' proxies listen on the loopback. It has no capabilities,
//! no files of the host, and no netlink (see [`super::cage`]). Its standard input is a pipe from this process: however
//! this process ends, the pipe ends with it, then the browser, then the container.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use super::launch::found;

/// The image; its number increases when the expectations of it change.
const IMAGE: &str = "arenad-browser:2";

/// The browser's user in the container and on the host. It is not the image's own user, whose id may belong to another
/// user of this host.
pub(super) const USER: u32 = 1_893_000_003;

/// Memory limit of the container: the needs of a large page, with a margin.
const MEMORY: &str = "1536m";

/// The reason why a browser cannot run in a container.
pub(super) enum Missing {
    /// The engine's client is not installed.
    Client,
    /// The image has not been built.
    Image,
    /// The filter could not be written.
    Filter(std::io::Error),
}

/// Returns the command that runs a browser with these arguments, if its image exists.
pub(super) async fn command(arguments: &[&str], folder: &Path) -> Result<Command, Missing> {
    let docker = found("docker").ok_or(Missing::Client)?;
    let known = Command::new(&docker)
        .args(["image", "inspect", IMAGE])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !known.await.is_ok_and(|status| status.success()) {
        return Err(Missing::Image);
    }
    let filter = filter(folder).map_err(Missing::Filter)?;
    let mut command = Command::new(docker);
    command
        .args(["run", "--rm", "--interactive", "--init", "--pull", "never", "--network", "host", "--read-only"])
        .args([
            "--tmpfs",
            "/tmp:mode=1777",
            "--cap-drop",
            "ALL",
            "--security-opt",
            "no-new-privileges",
            "--security-opt",
        ])
        .arg(format!("seccomp={}", filter.display()))
        .args(["--user", &format!("{USER}:{USER}")])
        .args(["--memory", MEMORY, "--pids-limit", "500", "--label", "dev.arenad.role=browser", IMAGE])
        .args(arguments)
        // The container replaces Chromium's own sandbox.
        .args(["--no-sandbox", "--user-data-dir=/tmp/profile"]);
    Ok(command)
}

/// Writes the engine's form of the filter that blocks netlink.
fn filter(folder: &Path) -> std::io::Result<PathBuf> {
    const AF_NETLINK: u32 = 16;
    const EAFNOSUPPORT: u32 = 97;
    let filter = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{
            "names": ["socket"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": EAFNOSUPPORT,
            "args": [{ "index": 0, "value": AF_NETLINK, "op": "SCMP_CMP_EQ" }],
        }],
    });
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join("container-filter.json");
    std::fs::write(&path, filter.to_string())?;
    Ok(path)
}
