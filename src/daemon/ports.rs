//! Who holds a TCP port: for the message that says it is taken.

use std::net::SocketAddr;

use procfs::net::TcpState;
use procfs::process::FDTarget;

use crate::engine::Engine;

/// Names the owner of a port that something listens on, as well as it can be seen from here.
///
/// Shape: `nginx (pid 123)`, `container web (docker)`, or `a process that only root can see`.
pub async fn owner(engine: &dyn Engine, address: SocketAddr) -> String {
    let port = address.port();
    let process = tokio::task::spawn_blocking(move || process_on(port)).await.ok().flatten();
    let is_docker = process.as_ref().is_none_or(|(_, name)| name.starts_with("docker"));
    if is_docker
        && let Ok(containers) = engine.running().await
        && let Some(container) = containers.iter().find(|container| container.ports.contains(&port))
    {
        return format!("container {} (docker)", container.name);
    }
    match process {
        Some((pid, name)) => format!("{name} (pid {pid})"),
        None => "a process that cannot be seen from here".to_owned(),
    }
}

/// The process that listens on a port: pid and name.
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
