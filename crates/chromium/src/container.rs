//! The browser in a container, for hosts without one: an image that `make browser` builds from Debian's packages.
//!
//! The container shares the host's network, because the pages' proxies listen on the loopback. It has no capabilities,
//! no files of the host, and no netlink (see [`crate::cage`]). Its standard input is a pipe from this process: however
//! this process ends, the pipe ends with it, then the browser, then the container.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use crate::launch::found;

/// The image; its number increases when the expectations of it change.
const IMAGE: &str = "arenad-browser:2";

/// The browser's user in the container and on the host. It is not the image's own user, whose id may belong to another
/// user of this host.
pub(crate) const USER: u32 = 1_893_000_003;

/// Memory limit of the container: the needs of a large page, with a margin.
const MEMORY: &str = "1536m";

/// Limit for the container's processes and threads; a page has about thirty.
const TASKS: &str = "500";

/// The reason why a browser cannot run in a container.
pub(crate) enum Missing {
    /// The engine's client is not installed.
    Client,
    /// The image has not been built.
    Image,
    /// The filter could not be written.
    Filter(std::io::Error),
}

/// Returns the command that runs a browser with these arguments, if its image exists.
pub(crate) async fn command(arguments: &[&str], folder: &Path) -> Result<Command, Missing> {
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
    command.args(run_arguments(&filter, arguments));
    Ok(command)
}

/// Returns the arguments with which the engine's client runs the browser, given the filter's path and the browser's own
/// arguments.
fn run_arguments(filter: &Path, arguments: &[&str]) -> Vec<String> {
    let (user, filter) = (format!("{USER}:{USER}"), format!("seccomp={}", filter.display()));
    let options = [
        ["--pull", "never"],
        ["--network", "host"],
        ["--tmpfs", "/tmp:mode=1777"],
        ["--cap-drop", "ALL"],
        ["--security-opt", "no-new-privileges"],
        ["--security-opt", &filter],
        ["--user", &user],
        ["--memory", MEMORY],
        // Without this setting the container may use the same amount of swap in addition.
        ["--memory-swap", MEMORY],
        ["--pids-limit", TASKS],
        // The browser's answers pass through the container's standard output; the engine would keep them all on disk.
        ["--log-driver", "none"],
        ["--label", "dev.arenad.role=browser"],
    ];
    let run = ["run", "--rm", "--interactive", "--init", "--read-only"];
    // The container replaces Chromium's own sandbox.
    let last = ["--no-sandbox", "--user-data-dir=/tmp/profile"];
    let words = run.iter().chain(options.as_flattened()).chain([&IMAGE]).chain(arguments).chain(&last);
    words.map(|word| (*word).to_owned()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browsers_container_has_limits_and_no_rights() {
        let words = run_arguments(Path::new("/filter.json"), &["--headless=new"]);
        let image = words.iter().position(|word| word == IMAGE).expect("the image");
        let (options, inside) = words.split_at(image);
        for (name, value) in [
            ("--memory", "1536m"),
            ("--memory-swap", "1536m"),
            ("--pids-limit", "500"),
            ("--log-driver", "none"),
            ("--cap-drop", "ALL"),
            ("--security-opt", "no-new-privileges"),
            ("--security-opt", "seccomp=/filter.json"),
            ("--user", "1893000003:1893000003"),
        ] {
            assert!(options.windows(2).any(|pair| pair == [name, value]), "{name} {value}: {options:?}");
        }
        assert!(options.iter().any(|word| word == "--read-only"), "{options:?}");
        assert_eq!(inside[1], "--headless=new");
    }
}
