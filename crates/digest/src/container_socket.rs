//! Connects to sockets inside containers from this host, without a program in the container.
//!
//! The path leads through the root of the container's first process. A site may place links there, which must not lead
//! out of it: each component is resolved as the container would resolve it, and the connection is made to the socket
//! found in this way.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use tokio::net::UnixStream;

/// Connects to a socket by its path in the container whose first process has the number `pid`.
///
/// Errors: `NotFound` if the path does not exist, `PermissionDenied` without the right to inspect other processes.
pub async fn connect(pid: u32, path: &str) -> io::Result<UnixStream> {
    let found = find(pid, path)?;
    // The path of an open file descriptor leads to that file even if the original path has changed since.
    UnixStream::connect(format!("/proc/self/fd/{}", found.as_raw_fd())).await
}

fn find(pid: u32, path: &str) -> io::Result<OwnedFd> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, format!("/proc/{pid}/root"), folder, Mode::empty())?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(&root, path, flags, Mode::empty(), within)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn links_lead_no_further_than_the_root() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        symlink(&socket, folder.path().join("link")).expect("a link");
        let ours = std::process::id();
        let path = |name: &str| folder.path().join(name).display().to_string();
        connect(ours, &path("socket")).await.expect("the socket");
        // The target of the link is a path below this root, because the process has the root of the host.
        connect(ours, &path("link")).await.expect("the socket behind the link");
        assert_eq!(connect(ours, &path("nothing")).await.expect_err("none").kind(), io::ErrorKind::NotFound);
        // Links through `/proc/self/root` are rejected, because a container cannot refer to a path outside its root.
        symlink("/proc/self/root", folder.path().join("out")).expect("a link");
        let out = format!("{}{}", path("out"), socket.display());
        assert!(connect(ours, &out).await.is_err());
    }
}
