//! The daemon: one process that owns the engine's things, the public ports and the API.
//!
//! ```text
//!   api ──► environments ──► instance drivers ──► reset, launch, probes ──► engine
//!                                 │  ▲ events         store: intent and identity
//!                                 └──► gateway routes
//! ```
//! [`Daemon::start`] is the build order, [`Daemon::stop`] the shutdown order. A daemon that stops leaves the containers
//! running; the next one takes them up again. `arenad down` is what removes them.

pub mod answers;
pub mod api;
pub mod baseline;
pub mod checks;
mod closed;
pub mod environments;
pub mod evaluate;
pub mod events;
pub mod export;
pub mod gateway;
pub mod health_log;
pub mod host;
pub mod imports;
pub mod instance;
pub mod locate;
pub mod machine;
pub mod operations;
mod pristine;
pub mod proof;
pub mod reconcile;
pub mod server;
pub mod shared;
pub mod space;
pub mod store;
pub mod stranded;
pub mod tasks;
pub mod traffic;
mod trash;
pub mod turns;

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::answers::Witness;
use self::api::Api;
use self::environments::Environments;
use self::events::EventLog;
use self::gateway::{Gateway, GatewaySettings};
use self::health_log::HealthLog;
use self::machine::{Machine, ThisMachine};
use self::operations::Operations;
use self::server::ListenError;
use self::shared::{ReadDefinition, Shared, StateDir};
use self::store::{Store, StoreError};
use self::turns::Turns;
use crate::dial::Dialer;
use crate::domain::site::Secret;
use crate::domain::subnet::Subnet;
use crate::engine::Engine;
use crate::engine::settled::Settled;
use crate::evaluators::question::{Answer, Question};
use crate::locators::{self, Locators};
use crate::probes::{Prober, describe};
use crate::storage::{StateRoot, Storage, disk, trial};
use crate::wall_clock::WallClock;

/// How long the drivers and the API's requests get to come to their end.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// How long answers on their way to clients get to come to their end.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// What a daemon is started with.
pub struct Settings {
    /// Where files are kept.
    pub state_dir: PathBuf,
    /// Runs containers.
    pub engine: Arc<dyn Engine>,
    /// Where instance networks take their addresses from.
    pub block: Subnet,
    /// How many images are built, and how many sites boot, at once; `None`: as many as the host has processors.
    pub parallel: Option<NonZeroUsize>,
    /// How many standbys boot at once.
    pub standby_boots: NonZeroUsize,
    /// Memory that standbys leave to everything else on the host, in bytes.
    pub memory_reserve: u64,
    /// The TCP address of the API, with the token that it wants.
    pub tcp: Option<(SocketAddr, Secret)>,
    /// The group that may use the socket.
    pub socket_group: Option<u32>,
    /// Whether `arenad up` started the daemon.
    pub background: bool,
}

/// Why the daemon could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory could not be made or opened.
    #[error("use the state directory {path}")]
    StateDir {
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: std::io::Error,
    },
    /// Another daemon runs on the same state directory.
    #[error("lock the state directory {path}: another daemon runs on it{}", if pid.is_empty() { String::new() } else { format!(" (pid {pid})") })]
    Running {
        /// Where.
        path: PathBuf,
        /// Whose; empty for an instant at its start.
        pid: String,
    },
    /// The store refused something.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The gateway's threads could not be started.
    #[error("start the gateway")]
    Gateway(#[source] std::io::Error),
    /// The HTTP client could not be made.
    #[error("prepare the HTTP client")]
    Http(#[source] reqwest::Error),
    /// The API could not be offered.
    #[error("offer the API")]
    Listen(#[from] ListenError),
}

/// What a daemon is put together from: everything that reaches out of the process, so that each can be another's.
pub struct Parts {
    /// Runs containers.
    pub engine: Arc<dyn Engine>,
    /// The way to the containers.
    pub dialer: Dialer,
    /// Tells the time of day.
    pub clock: WallClock,
    /// What the daemon runs on.
    pub machine: Arc<dyn Machine>,
    /// Remembers.
    pub store: Store,
    /// Where the state of sites' stores is kept.
    pub storage: Option<Storage>,
    /// Why there is no such place, or what works less well than it could.
    pub storage_note: Option<String>,
    /// Owns the public ports.
    pub gateway: Gateway,
    /// Reads stored definitions.
    pub read_definition: ReadDefinition,
    /// Bounds what goes on at once.
    pub turns: Turns,
    /// Memory that standbys leave to everything else, in bytes.
    pub memory_reserve: u64,
    /// Where instance networks take their addresses from.
    pub block: Subnet,
    /// Where files are kept.
    pub state_dir: StateDir,
}

impl Parts {
    /// Puts them together, before anything is taken up.
    pub async fn assemble(self) -> Result<Arc<Shared>, StartError> {
        let installation = self.store.installation().await?;
        let interrupted = self.store.note_interrupted_resets().await?;
        if interrupted > 0 {
            tracing::warn!(interrupted, "resets were cut off by the last daemon's end");
        }
        let engine: Arc<dyn Engine> = Arc::new(Settled::new(self.engine));
        let prober = Prober::new(engine.clone(), self.dialer);
        let copies = self.state_dir.copies();
        // What a daemon that was killed has left.
        let _ = std::fs::remove_dir_all(&copies);
        Ok(Arc::new(Shared {
            locators: Locators::new(engine.clone(), prober.http().clone(), self.state_dir.locators())
                .map_err(StartError::Http)?,
            prober,
            clock: self.clock,
            machine: self.machine,
            storage: self.storage,
            storage_note: self.storage_note,
            gateway: self.gateway,
            events: EventLog::new(self.store.clone()),
            health: HealthLog::new(self.store.clone()),
            images: Default::default(),
            references: Default::default(),
            read_definition: self.read_definition,
            engine_silences: AtomicU64::new(1),
            engine_met: AtomicU64::new(0),
            turns: self.turns,
            memory_reserve: self.memory_reserve,
            shutdown: CancellationToken::new(),
            tasks: TaskTracker::new(),
            engine,
            block: self.block,
            store: self.store,
            installation,
            copies,
            state_dir: self.state_dir,
        }))
    }
}

/// Takes up what the last daemon left, and starts the periodic duties.
pub async fn take_up(shared: &Arc<Shared>, environments: &Arc<Environments>) -> Result<(), StoreError> {
    environments.reconcile(true).await;
    environments.restore().await?;
    tasks::spawn(shared, environments);
    Ok(())
}

/// A running daemon.
pub struct Daemon {
    shared: Arc<Shared>,
    environments: Arc<Environments>,
    stop: CancellationToken,
    /// Held until the process ends; the kernel gives it back even after a `kill -9`.
    _lock: File,
}

impl Daemon {
    /// Starts everything, in the order in which each part needs the ones before.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let state_dir = StateDir::new(settings.state_dir);
        let lock = lock(&state_dir, settings.socket_group)?;
        closed::close_content(&state_dir);
        locators::end_remains(&state_dir.locators());
        let clock = WallClock::system();
        let store = Store::open(&state_dir.database(), clock.clone()).await?;
        let (storage, storage_note) = open_state_root(&state_dir);
        let parts = Parts {
            engine: settings.engine,
            dialer: Dialer::tcp(),
            clock,
            machine: Arc::new(ThisMachine),
            store,
            storage,
            storage_note,
            gateway: Gateway::start(gateway_settings()).map_err(StartError::Gateway)?,
            read_definition: Arc::new(environments::read_definition),
            turns: Turns::new(settings.parallel, settings.standby_boots),
            memory_reserve: settings.memory_reserve,
            block: settings.block,
            state_dir,
        };
        let shared = parts.assemble().await?;
        let environments = Arc::new(Environments::new(shared.clone()));
        // The folder of the engine's data is known once it has answered; until then only our own is watched.
        let engine_root = shared.engine.version().await.ok().map(|version| version.root);
        let folders: Vec<PathBuf> = [shared.state_dir.path().to_owned()].into_iter().chain(engine_root).collect();
        let host = watch::Sender::new(host::look(shared.engine.as_ref(), &folders, None).await);
        let stop = CancellationToken::new();
        let api = Arc::new(Api {
            shared: shared.clone(),
            environments: environments.clone(),
            operations: Operations::default(),
            host: host.subscribe(),
            background: settings.background,
            started_at: Timestamp::now(),
            stop: stop.clone(),
        });
        take_up(&shared, &environments).await?;
        let cancel = shared.shutdown.clone();
        shared.tasks.spawn(host::watch(shared.engine.clone(), folders, host, cancel));
        let socket = server::listen_unix(&shared.state_dir.socket(), settings.socket_group)?;
        server::serve(&shared.tasks, socket, api::router(api.clone()), stop.clone());
        if let Some((address, token)) = settings.tcp {
            let listener = server::listen_tcp(address).await?;
            tracing::info!(%address, "the API is offered on TCP");
            let router = api::with_token(api::router(api), token.expose());
            server::serve(&shared.tasks, listener, router, stop.clone());
        }
        let message = format!("arenad {} has started (pid {})", env!("CARGO_PKG_VERSION"), std::process::id());
        shared.events.note("daemon.started", None, &message).await;
        Ok(Self { shared, environments, stop, _lock: lock })
    }

    /// Finds the answer to an evaluator's question on the sites of an environment. `cdp` is the address of the agent's
    /// browser, `accounts` says as whom each site is looked at.
    pub async fn answer(
        &self,
        environment: &str,
        question: &Question,
        cdp: Option<&str>,
        accounts: &BTreeMap<String, String>,
    ) -> Answer {
        let handles = match self.environments.choose(environment, &[]) {
            Ok(handles) => handles,
            Err(error) => return Answer::Unavailable(describe(&error)),
        };
        let host = self.environments.host(environment).unwrap_or_default();
        Witness::new(&self.shared, &handles, &host, cdp, accounts).answer(question).await
    }

    /// Resolves when a client has asked the daemon to stop.
    pub async fn stop_requested(&self) {
        self.stop.cancelled().await;
    }

    /// Stops everything: no new requests, then the gateway, which lets answers end, then the drivers, then the store.
    pub async fn stop(self) {
        self.stop.cancel();
        self.shared.gateway.shutdown(DRAIN_LIMIT).await;
        self.shared.shutdown.cancel();
        self.shared.tasks.close();
        if tokio::time::timeout(STOP_PATIENCE, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not come to their end in time");
        }
        self.shared.locators.close().await;
        // The socket goes before the lock: who finds none knows that no daemon runs.
        if let Err(error) = std::fs::remove_file(self.shared.state_dir.socket()) {
            tracing::debug!(%error, "the socket was gone already");
        }
        self.shared.events.note("daemon.stopped", None, "arenad has stopped").await;
        if let Err(error) = self.shared.health.flush().await {
            tracing::warn!(error = describe(&error), "the last health rounds could not be stored");
        }
        let is_idle = self.shared.store.environments().await.is_ok_and(|environments| environments.is_empty());
        self.shared.store.close().await;
        if is_idle {
            detach(self.shared.state_dir.path());
        }
    }
}

/// Opens the state root, if there can be one; says what works less well than it could.
fn open_state_root(state_dir: &StateDir) -> (Option<Storage>, Option<String>) {
    match StateRoot::open_in(state_dir.path()) {
        Ok(root) => {
            let note = (!root.clones()).then(|| {
                let kind = trial::kind(root.path());
                format!("copies of sites' state are full copies, because {kind} cannot share blocks; `arenad storage init` cures that")
            });
            (Some(Storage::new(root)), note)
        }
        Err(error) => {
            let hint =
                error.hint().unwrap_or("the sites work without it, and are reset by making their containers anew");
            tracing::warn!(error = describe(&error), hint, "there is no state root");
            (None, Some(format!("there is no state root: {}; {hint}", describe(&error))))
        }
    }
}

/// Unmounts the disk of our own, so that an installation that looks after nothing leaves no mount behind.
fn detach(state_dir: &Path) {
    if let Err(error) = disk::detach(state_dir) {
        tracing::debug!(error = describe(&error), "the state root's disk stays mounted");
    }
}

/// Makes the state directory, closed to others, and takes its lock.
fn lock(state_dir: &StateDir, group: Option<u32>) -> Result<File, StartError> {
    let failed = |cause| StartError::StateDir { path: state_dir.path().to_owned(), cause };
    closed::claim(state_dir, group).map_err(failed)?;
    let path = state_dir.lock();
    let file = File::options().create(true).truncate(false).read(true).write(true).open(&path).map_err(failed)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let pid = std::fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
        return Err(StartError::Running { path: state_dir.path().to_owned(), pid });
    }
    std::fs::write(&path, format!("{}\n", std::process::id())).map_err(failed)?;
    Ok(file)
}

/// What the gateway may take of the files that the process may have open.
fn gateway_settings() -> GatewaySettings {
    let usual = GatewaySettings::default();
    let connections_per_route = machine::connections_per_site(machine::raise_file_limit(), usual.connections_per_route);
    GatewaySettings { connections_per_route, ..usual }
}
