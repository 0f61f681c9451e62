//! The failures that the trials cause.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{OwnEngine, World};

/// The file that fills the disk.
const FILLER: &str = "filler";

/// A failure that a trial causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// `kill -9` of the daemon.
    Daemon,
    /// `kill -9` of all containers of the site.
    Containers,
    /// `kill -9` of the processes in them, by the kernel and not by the engine.
    Processes,
    /// The disk with the state directory is full.
    Disk,
    /// `kill -9` of dockerd and its containerd. The containers live on until the engine is back, and end then.
    Engine,
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Harm {
    pub fn strike(self, world: &World, engine: Option<&mut OwnEngine>) {
        match self {
            Self::Daemon => world.signal_daemon(Signal::KILL),
            Self::Containers => kill_containers(world),
            Self::Processes => kill_processes(world),
            Self::Disk => fill(&world.state_dir()),
            Self::Engine => engine.expect("an engine of its own").stop_dockerd(Signal::KILL),
        }
    }

    /// Undoes the permanent part of a failure.
    pub fn repair(self, world: &World, engine: Option<&mut OwnEngine>) {
        match self {
            Self::Daemon | Self::Containers | Self::Processes => {}
            Self::Disk => std::fs::remove_file(world.state_dir().join(FILLER)).expect("remove a file"),
            Self::Engine => engine.expect("an engine of its own").start_dockerd(),
        }
    }
}

/// Kills all containers, including paused ones.
pub fn kill_containers(world: &World) {
    for id in world.engine.containers(&world.label()) {
        // Some containers have not been started yet.
        let _ = world.engine.try_docker(&["kill", &id]);
    }
}

fn kill_processes(world: &World) {
    for id in world.engine.containers(&world.label()) {
        let pid = world.engine.try_docker(&["inspect", "--format", "{{.State.Pid}}", &id]);
        if let Some(pid) = pid.ok().and_then(|pid| pid.trim().parse().ok()).and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn fill(folder: &Path) {
    let mut file = File::create(folder.join(FILLER)).expect("a file");
    while file.write_all(&[0; 1 << 16]).is_ok() {}
}
