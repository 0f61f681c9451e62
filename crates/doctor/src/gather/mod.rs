//! Gathers the facts: the only part of the doctor that accesses the host. Facts that cannot be determined stay unknown;
//! nothing here fails.

mod browser;
mod clock;
mod engine;
mod environment;
mod folder;
mod system;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use tokio::process::Command;

use super::facts::{self, DaemonState, Facts, NetworkFacts};
use arenad_engine::Engine;
use arenad_model::site::Environment;
use arenad_model::subnet::Subnet;
use arenad_storage::disk;

pub(super) use engine::absence;
pub use environment::{needs, resources};

/// The time limit for a program of the host.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(5);

/// The objects to examine.
pub struct ExaminationSubject<'a> {
    /// The engine to query.
    pub engine: &'a dyn Engine,
    /// The state of the daemon, if it is known.
    pub daemon: DaemonState,
    /// The directory of the daemon's files.
    pub state_dir: &'a Path,
    /// The block from which instance networks are allocated.
    pub block: Subnet,
    /// The environment that is to be brought up.
    pub environment: Option<&'a Environment>,
    /// The names of its sites that are already up.
    pub running: BTreeSet<String>,
    /// The ports of the daemon.
    pub daemon_ports: DaemonPorts,
}

/// The ports that the daemon uses, or will use once it runs.
#[derive(Debug, Clone, Default)]
pub struct DaemonPorts {
    /// The ports that it uses for something else than the sites of the examined environment, with the use.
    pub others: BTreeMap<u16, String>,
    /// Whether the examined environment is up, so that all further ports of the daemon are its own.
    pub is_up: bool,
}

/// Gathers all facts about the host.
pub async fn facts(subject: ExaminationSubject<'_>) -> Facts {
    let daemon_pid = match &subject.daemon {
        DaemonState::Answers { pid, .. } => Some(*pid),
        DaemonState::None | DaemonState::Silent { .. } | DaemonState::Hidden { .. } => None,
    };
    let routes_before = system::routes();
    let (engine, state_dir, stores, filters, clock, browser) = tokio::join!(
        engine::look(subject.engine),
        folder::look(subject.state_dir.to_owned()),
        folder::look(disk::stores(subject.state_dir)),
        system::filters(),
        clock::look(subject.state_dir),
        browser::look(),
    );
    // Networks may appear and disappear while the engine lists them, so only routes that exist before and after the
    // listing count.
    let routes = system::routes().into_iter().filter(|route| routes_before.contains(route)).collect();
    let answering = matches!(engine, facts::EngineState::Answers(_)).then_some(subject.engine);
    let environment = match subject.environment {
        Some(wanted) => {
            let daemon = environment::DaemonListener { pid: daemon_pid, ports: &subject.daemon_ports };
            Some(environment::look(answering, wanted, &subject.running, daemon).await)
        }
        None => None,
    };
    Facts {
        engine,
        daemon: subject.daemon,
        state_dir,
        stores,
        machine: system::machine(),
        system: system::look(),
        network: NetworkFacts { block: subject.block, routes, filters },
        clock,
        browser,
        environment,
    }
}

/// Returns the path of the program of that name on PATH.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Returns the output of a program; `None` if it does not exist or does not end in time.
async fn output(program: &Path, args: &[&str]) -> Option<Output> {
    let run = Command::new(program).args(args).stdin(std::process::Stdio::null()).kill_on_drop(true).output();
    tokio::time::timeout(PROGRAM_PATIENCE, run).await.ok()?.ok()
}
