//! Identifies the process that holds a TCP port, for the message that the port is taken.

use std::fmt;
use std::net::SocketAddr;

use procfs::net::TcpState;
use procfs::process::FDTarget;

use arenad_engine::Engine;

/// The process that listens on a port, as far as it is visible from here.
///
/// Shown as `nginx (pid 123)`, `container web (docker)`, or `a process that cannot be seen from here`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortOwner {
    /// A process of this host.
    Process {
        /// The id of the process.
        pid: i32,
        /// The name of the process.
        name: String,
    },
    /// A container that publishes the port.
    Container(String),
    /// A process that is not visible from here.
    Unknown,
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, name } => write!(f, "{name} (pid {pid})"),
            Self::Container(name) => write!(f, "container {name} (docker)"),
            Self::Unknown => f.write_str("a process that cannot be seen from here"),
        }
    }
}

/// Finds the owner of a port that something listens on; with an engine, also the container behind its port proxy.
pub async fn owner(engine: Option<&dyn Engine>, address: SocketAddr) -> PortOwner {
    let port = address.port();
    let process = tokio::task::spawn_blocking(move || process_on(port)).await.ok().flatten();
    let is_docker = process.as_ref().is_none_or(|(_, name)| name.starts_with("docker"));
    if is_docker
        && let Some(engine) = engine
        && let Ok(containers) = engine.running().await
        && let Some(container) = containers.into_iter().find(|container| container.ports.contains(&port))
    {
        return PortOwner::Container(container.name);
    }
    process.map_or(PortOwner::Unknown, |(pid, name)| PortOwner::Process { pid, name })
}

/// Returns the pid and the name of the process that listens on a port.
fn process_on(port: u16) -> Option<(i32, String)> {
    let entries = procfs::net::tcp().into_iter().chain(procfs::net::tcp6()).flatten();
    let inodes: Vec<u64> = entries
        .filter(|entry| entry.state == TcpState::Listen && entry.local_address.port() == port)
        .map(|entry| entry.inode)
        .collect();
    let owns = |process: &procfs::process::Process| {
        process.fd().is_ok_and(|fds| {
            fds.flatten().any(|fd| matches!(fd.target, FDTarget::Socket(inode) if inodes.contains(&inode)))
        })
    };
    let process = procfs::process::all_processes().ok()?.flatten().find(owns)?;
    Some((process.pid(), process.stat().map(|stat| stat.comm).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::process_on;

    #[test]
    fn our_own_listener_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (pid, _) = process_on(port).expect("an owner");
        assert_eq!(pid.unsigned_abs(), std::process::id());
    }
}
