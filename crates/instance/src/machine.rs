//! The machine that the daemon runs on: its memory, its disks, and who holds its ports.

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::{Resource, getrlimit, setrlimit};

use arenad_doctor::judge::capacity::Resources;
use arenad_doctor::{gather, ports};
use arenad_engine::Engine;
use arenad_model::site::Environment;

/// What the daemon asks of its machine.
#[async_trait::async_trait]
pub trait Machine: Send + Sync + 'static {
    /// Memory that nothing uses, in bytes.
    fn free_memory(&self) -> u64;
    /// What there is for the sites of an environment.
    fn resources(&self, engine_root: &Path, state_dir: &Path, environment: &Environment) -> Resources;
    /// Who listens on a port, in words.
    async fn port_owner(&self, engine: &dyn Engine, address: SocketAddr) -> String;
}

/// The one that the process runs on.
pub struct ThisMachine;

#[async_trait::async_trait]
impl Machine for ThisMachine {
    fn free_memory(&self) -> u64 {
        // Where the kernel does not say, none is promised.
        procfs::Current::current().map_or(0, |memory: procfs::Meminfo| memory.mem_available.unwrap_or(memory.mem_free))
    }

    fn resources(&self, engine_root: &Path, state_dir: &Path, environment: &Environment) -> Resources {
        gather::resources(engine_root, state_dir, environment)
    }

    async fn port_owner(&self, engine: &dyn Engine, address: SocketAddr) -> String {
        ports::owner(Some(engine), address).await.to_string()
    }
}

/// Files that visitors of sites leave to the daemon: the store, the API, drivers, probes, browsers and confined processes.
const RESERVED_FILES: u64 = 512;

/// The part of all visitors' connections that one site may have.
const SHARE: u64 = 4;

/// Raises the number of files that this process may have open as far as its limits let it, and returns it.
pub fn raise_file_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let soft = limit.current;
    limit.current = limit.maximum;
    // With the lower one fewer visitors are let in.
    if setrlimit(Resource::Nofile, limit).is_err() {
        limit.current = soft;
    }
    limit.current.unwrap_or(u64::MAX)
}

/// How many visitors' connections one site may have at a time, where so many files may be open: each takes two, and no site
/// takes them all.
pub fn connections_per_site(files: u64, most: usize) -> usize {
    let share = files.saturating_sub(RESERVED_FILES) / 2 / SHARE;
    usize::try_from(share).unwrap_or(most).clamp(16, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_site_takes_all_files() {
        assert_eq!(connections_per_site(u64::MAX, 4096), 4096);
        assert_eq!(connections_per_site(1024, 4096), 64);
        assert_eq!(connections_per_site(65_536, 4096), 4096);
        assert_eq!(connections_per_site(256, 4096), 16);
    }
}
