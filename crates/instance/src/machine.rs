//! The machine that the daemon runs on: its memory, its disks, and the processes that listen on its ports.

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::{Resource, getrlimit, setrlimit};

use arenad_doctor::judge::capacity::Resources;
use arenad_doctor::{gather, ports};
use arenad_engine::Engine;
use arenad_model::site::Environment;

/// The daemon's view of its host. Simulations replace it.
#[async_trait::async_trait]
pub trait Machine: Send + Sync + 'static {
    /// Memory that is available to new processes, in bytes.
    fn free_memory(&self) -> u64;
    /// Returns the memory, processors and disk space of the host for the sites of an environment.
    fn resources(&self, engine_root: &Path, state_dir: &Path, environment: &Environment) -> Resources;
    /// Describes the process or container that listens on an address.
    async fn port_owner(&self, engine: &dyn Engine, address: SocketAddr) -> String;
}

/// The machine that this process runs on.
pub struct ThisMachine;

#[async_trait::async_trait]
impl Machine for ThisMachine {
    fn free_memory(&self) -> u64 {
        // If the kernel does not report it, no memory counts as free.
        procfs::Current::current().map_or(0, |memory: procfs::Meminfo| memory.mem_available.unwrap_or(memory.mem_free))
    }

    fn resources(&self, engine_root: &Path, state_dir: &Path, environment: &Environment) -> Resources {
        gather::resources(engine_root, state_dir, environment)
    }

    async fn port_owner(&self, engine: &dyn Engine, address: SocketAddr) -> String {
        ports::owner(Some(engine), address).await.to_string()
    }
}

/// The number of files reserved for the daemon itself: the store, the API, drivers, probes, browsers and confined
/// processes.
const RESERVED_FILES: u64 = 512;

/// One site may use at most one in so many of the connections that are available to all visitors.
const SHARE: u64 = 4;

/// Raises the limit on open files of this process to its maximum, and returns the resulting limit.
pub fn raise_file_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let soft = limit.current;
    limit.current = limit.maximum;
    // The soft limit still works, with fewer connections.
    if setrlimit(Resource::Nofile, limit).is_err() {
        limit.current = soft;
    }
    limit.current.unwrap_or(u64::MAX)
}

/// Returns the number of visitors' connections that one site may have at a time, given the limit on open files. Each
/// connection takes two files, and no site may use all of them.
pub fn connections_per_site(files: u64, most: usize) -> usize {
    let share = files.saturating_sub(RESERVED_FILES) / 2 / SHARE;
    usize::try_from(share).unwrap_or(most).clamp(16, most)
}

#[cfg(test)]
mod tests {
    use rustix::process::Rlimit;

    use super::*;

    #[test]
    fn no_site_takes_all_files() {
        assert_eq!(connections_per_site(u64::MAX, 4096), 4096);
        assert_eq!(connections_per_site(1024, 4096), 64);
        assert_eq!(connections_per_site(65_536, 4096), 4096);
        assert_eq!(connections_per_site(256, 4096), 16);
    }

    #[test]
    fn a_low_limit_of_open_files_is_raised() {
        let before = getrlimit(Resource::Nofile);
        let low = Rlimit { current: before.maximum.map(|most| most.min(1024)).or(Some(1024)), ..before };
        setrlimit(Resource::Nofile, low).expect("a lower limit");
        let raised = raise_file_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
        assert_eq!(raised, before.maximum.unwrap_or(u64::MAX));
    }
}
