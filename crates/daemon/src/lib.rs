//! The daemon: one process that owns the engine's objects, the public ports and the API.
//!
//! ```text
//!   api ──► environments ──► instance drivers ──► reset, launch, probes ──► engine
//!                                 │  ▲ events         store: intent and identity
//!    │         ▲                  └──► gateway routes
//!    └──► episodes ──► slots
//! ```
//! [`Daemon::start`] shows the order of construction, [`Daemon::stop`] the order of shutdown. A daemon that stops
//! leaves the containers running, and the next daemon adopts them; `arenad down` removes them.
//!
//! The crate depends on `instance`, `episodes`, `gateway` and `store`, and on the crates below them. After `Daemon::start`, read
//! `environments.rs` and `api/mod.rs`.

mod answers;
pub mod api;
mod bounded;
pub mod browsers;
pub mod certificates;
mod checks;
mod closed;
mod compat;
pub mod environments;
mod evaluate;
mod export;
pub mod host;
mod imports;
mod locate;
mod lock;
mod looks;
mod openenv;
pub mod operations;
pub mod port;
pub mod proxy;
mod reconcile;
mod records;
pub mod replays;
mod server;
mod service_manager;
mod slot_ports;
pub mod slots;
mod space;
mod stranded;
mod tasks;
pub mod traffic;
mod trash;

use std::fs::File;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::api::Api;
use self::browsers::EpisodeBrowsers;
use self::certificates::{Certifier, CertifierError};
use self::compat::AskedResets;
use self::environments::EnvironmentRegistry;
use self::operations::Operations;
use self::port::ChosenPort;
use self::proxy::EpisodeDirectory;
use self::replays::ReplayRegistry;
use self::server::{API_CONNECTIONS, COMPAT_CONNECTIONS, ListenError};
use self::slots::EpisodeSettings;
use arenad_baseline::{BaselineParts, Turns};
use arenad_engine::Engine;
use arenad_engine::settled::Settled;
use arenad_episodes::{EpisodeHandle, RandomBytes};
use arenad_gateway::{Gateway, GatewaySettings, OpenError};
use arenad_instance::health_log::HealthLog;
use arenad_instance::machine::{self, Machine, ThisMachine};
use arenad_instance::shared::{ReadDefinition, SharedParts, StateDir};
use arenad_locators::{self as locators, Locators};
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::record_retention::RecordRetention;
use arenad_model::site::Secret;
use arenad_model::subnet::Subnet;
use arenad_probes::Prober;
use arenad_seams::wall_clock::WallClock;
use arenad_site_client::dial::Dialer;
use arenad_storage::{StateRoot, Storage, disk, trial};
use arenad_store::{DaemonStore, EventLog, StoreError};

/// The time that the drivers and the API's requests get to end.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// The time that responses in transit to clients get to end.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// The settings that a daemon is started with.
pub struct DaemonSettings {
    /// The state directory, where all files are kept.
    pub state_dir: PathBuf,
    /// The engine, which runs containers.
    pub engine: Arc<dyn Engine>,
    /// The block of addresses from which instance networks are assigned.
    pub block: Subnet,
    /// The number of images that are built, and of sites that boot, at once; `None` for the number of processors of the
    /// host.
    pub parallel: Option<NonZeroUsize>,
    /// The number of standbys that boot at once.
    pub standby_boots: NonZeroUsize,
    /// The memory that standbys leave to everything else on the host, in bytes.
    pub memory_reserve: u64,
    /// The limits for the records of episodes.
    pub record_retention: RecordRetention,
    /// The TCP address of the API, with the token that it requires; `None` disables TCP.
    pub tcp: Option<(SocketAddr, Secret)>,
    /// The port of the episode proxy; `None` disables the proxy.
    pub proxy: Option<ChosenPort>,
    /// The port of the reset server of harnesses; `None` disables it.
    pub compat: Option<ChosenPort>,
    /// The address of the environment service; `None` disables it.
    pub openenv: Option<SocketAddr>,
    /// The limits of episodes.
    pub episodes: EpisodeSettings,
    /// The id of the group that may use the socket.
    pub socket_group: Option<u32>,
    /// Whether `arenad up` started the daemon.
    pub background: bool,
}

/// The reason why the daemon could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory could not be created or opened.
    #[error("use the state directory {path}")]
    StateDir {
        /// The path of the state directory.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: std::io::Error,
    },
    /// Another daemon runs on the same state directory.
    #[error("lock the state directory {path}: another daemon runs on it{}", if pid.is_empty() { String::new() } else { format!(" (pid {pid})") })]
    Running {
        /// The path of the state directory.
        path: PathBuf,
        /// The other daemon's process id; empty for an instant while that daemon starts.
        pid: String,
    },
    /// An operation of the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key that signs certificates could not be read or made.
    #[error(transparent)]
    Certifier(#[from] CertifierError),
    /// The gateway's threads could not be started.
    #[error("start the gateway")]
    Gateway(#[source] std::io::Error),
    /// The HTTP client could not be created.
    #[error("prepare the HTTP client")]
    Http(#[source] reqwest::Error),
    /// The port of the episode proxy, which the operator has chosen, could not be opened.
    #[error("offer the episode proxy")]
    Proxy(#[source] OpenError),
    /// The port of the reset server of harnesses, which the operator has chosen, could not be opened.
    #[error("offer the reset server of harnesses")]
    Compat(#[source] ListenError),
    /// The port of the environment service could not be opened.
    #[error("offer the environment service")]
    OpenEnv(#[source] ListenError),
    /// The API could not listen.
    #[error("offer the API")]
    Listen(#[from] ListenError),
}

/// The parts that a daemon is built from: everything that reaches outside the process, so that tests can replace each
/// of them.
pub struct DaemonParts {
    /// The engine, which runs containers.
    pub engine: Arc<dyn Engine>,
    /// Opens connections to the containers.
    pub dialer: Dialer,
    /// The clock that gives the time of day.
    pub clock: WallClock,
    /// The machine that the daemon runs on.
    pub machine: Arc<dyn Machine>,
    /// The store, which outlives the daemon.
    pub store: DaemonStore,
    /// The state root, where the state of sites' stores is kept; `None` if there is none.
    pub storage: Option<Storage>,
    /// The reason why there is no state root, or a limitation of the one that there is.
    pub storage_note: Option<String>,
    /// The gateway, which owns the public ports.
    pub gateway: Gateway,
    /// The function that parses stored definitions.
    pub read_definition: ReadDefinition,
    /// The limits on concurrent work.
    pub turns: Turns,
    /// The memory that standbys leave to everything else, in bytes.
    pub memory_reserve: u64,
    /// The block of addresses from which instance networks are assigned.
    pub block: Subnet,
    /// The limits for the records of episodes.
    pub record_retention: RecordRetention,
    /// The state directory, where all files are kept.
    pub state_dir: StateDir,
}

impl DaemonParts {
    /// Builds the shared state, before any environment is restored.
    pub async fn assemble(self) -> Result<Arc<SharedParts>, StartError> {
        let installation = self.store.installation().await?;
        let interrupted = self.store.note_interrupted_resets().await?;
        if interrupted > 0 {
            tracing::warn!(interrupted, "resets were cut off by the last daemon's end");
        }
        let engine: Arc<dyn Engine> = Arc::new(Settled::new(self.engine));
        let prober = Prober::new(engine.clone(), self.dialer);
        let copies = self.state_dir.copies();
        // Files that a killed daemon has left.
        let _ = std::fs::remove_dir_all(&copies);
        let events = EventLog::new(self.store.clone());
        let turns = Arc::new(self.turns);
        let baselines = BaselineParts {
            engine: engine.clone(),
            clock: self.clock.clone(),
            store: self.store.clone(),
            events: events.clone(),
            prober: prober.clone(),
            images: Default::default(),
            kept_builds: Default::default(),
            installation: installation.clone(),
            volumes: self.state_dir.volumes(),
            storage: self.storage.clone(),
            block: self.block,
            turns: turns.clone(),
        };
        Ok(Arc::new(SharedParts {
            locators: Locators::new(engine.clone(), prober.http().clone(), self.state_dir.locators())
                .map_err(StartError::Http)?,
            prober,
            clock: self.clock,
            machine: self.machine,
            storage: self.storage,
            storage_note: self.storage_note,
            gateway: self.gateway,
            events,
            health: HealthLog::new(self.store.clone()),
            baselines,
            references: Default::default(),
            read_definition: self.read_definition,
            engine_silences: AtomicU64::new(1),
            engine_met: AtomicU64::new(0),
            turns,
            memory_reserve: self.memory_reserve,
            shutdown: CancellationToken::new(),
            tasks: TaskTracker::new(),
            engine,
            block: self.block,
            record_retention: self.record_retention,
            store: self.store,
            installation,
            copies,
            state_dir: self.state_dir,
        }))
    }
}

/// Reconciles and restores what the last daemon left, and starts the periodic duties.
pub async fn take_up(shared: &Arc<SharedParts>, environments: &Arc<EnvironmentRegistry>) -> Result<(), StoreError> {
    environments.reconcile(true).await;
    environments.restore().await?;
    tasks::spawn(shared, environments);
    environments.keep_slot_numbers();
    environments.remove_copies();
    Ok(())
}

/// A running daemon, which [`Daemon::stop`] ends.
pub struct Daemon {
    shared: Arc<SharedParts>,
    episodes: EpisodeHandle,
    browsers: Arc<EpisodeBrowsers>,
    stop: CancellationToken,
    /// The lock file, locked until the process ends; the kernel releases the lock even after `kill -9`.
    _lock: File,
}

impl Daemon {
    /// Starts all parts of the daemon, each after the parts that it needs.
    pub async fn start(settings: DaemonSettings) -> Result<Self, StartError> {
        let state_dir = StateDir::new(settings.state_dir);
        let lock = lock::lock(&state_dir, settings.socket_group).await?;
        closed::close_content(&state_dir);
        locators::end_remains(&state_dir.locators());
        arenad_agent_browser::end_remains(&state_dir.browsers());
        let clock = WallClock::system();
        let store = DaemonStore::open(&state_dir.database(), clock.clone()).await?;
        let certifier = Certifier::open(&state_dir.certificate_key())?;
        let (storage, storage_note) = open_state_root(&state_dir);
        let parts = DaemonParts {
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
            record_retention: settings.record_retention,
            state_dir,
        };
        let shared = parts.assemble().await?;
        let (slots, episodes) = slots::start_episodes(&shared, RandomBytes::system(), &settings.episodes).await?;
        let environments = Arc::new(EnvironmentRegistry::new(shared.clone(), slots, episodes.clone()));
        // Before the environments are restored: meanwhile, clients of episodes are told to try again.
        let replays = ReplayRegistry::open(shared.clone()).await;
        let directory = EpisodeDirectory::new(environments.clone(), episodes.clone()).with_replays(replays.clone());
        let proxy = proxy::open(settings.proxy, &shared, directory).await.map_err(StartError::Proxy)?;
        proxy.server.iter().for_each(|server| environments.set_proxy(server));
        let (compat, harnesses) = compat::open(settings.compat, &shared).await.map_err(StartError::Compat)?;
        let trainers = openenv::open(settings.openenv).await.map_err(StartError::OpenEnv)?;
        let asked = Arc::new(AskedResets::restore(shared.store.clone()).await?);
        // The folder of the engine's data is unknown until the engine has answered; without an answer, only arenad's
        // own folder is watched.
        let engine_root = shared.engine.version().await.ok().map(|version| version.root);
        let folders: Vec<PathBuf> = [shared.state_dir.path().to_owned()].into_iter().chain(engine_root).collect();
        let host = watch::Sender::new(host::look(shared.engine.as_ref(), &folders, None).await);
        let directory =
            EpisodeDirectory::of_own_ports(environments.clone(), episodes.clone()).with_replays(replays.clone());
        let browsers = EpisodeBrowsers::new(shared.clone(), episodes.clone(), directory);
        let stop = CancellationToken::new();
        let api = Arc::new(Api {
            shared: shared.clone(),
            environments: environments.clone(),
            episodes: episodes.clone(),
            browsers: browsers.clone(),
            replays,
            certifier,
            episode_settings: settings.episodes,
            proxy,
            compat,
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
        server::serve(&shared.tasks, socket, API_CONNECTIONS, api::router(api.clone()), stop.clone());
        if let Some(listener) = harnesses {
            let router = compat::router(api.clone(), asked);
            server::serve(&shared.tasks, listener, COMPAT_CONNECTIONS, router, stop.clone());
        }
        if let Some(listener) = trainers {
            let router = openenv::router(api.clone());
            server::serve(&shared.tasks, listener, openenv::OPENENV_CONNECTIONS, router, stop.clone());
        }
        if let Some((address, token)) = settings.tcp {
            let listener = server::listen_tcp(address).await?;
            tracing::info!(%address, "the API is offered on TCP");
            let router = api::with_token(api::router(api), token.expose(), episodes.clone());
            server::serve(&shared.tasks, listener, API_CONNECTIONS, router, stop.clone());
        }
        let message = format!("arenad {} has started (pid {})", env!("CARGO_PKG_VERSION"), std::process::id());
        shared.events.note(EventKind::DaemonStarted, None, &message).await;
        shared.tasks.spawn(service_manager::answer_watchdog(environments, shared.shutdown.clone()));
        service_manager::notify_ready();
        Ok(Self { shared, episodes, browsers, stop, _lock: lock })
    }

    /// Returns the handle of the daemon's episodes.
    pub fn episodes(&self) -> &EpisodeHandle {
        &self.episodes
    }

    /// Returns when a client has requested that the daemon stop.
    pub async fn stop_requested(&self) {
        self.stop.cancelled().await;
    }

    /// Stops everything in order: new requests, then the gateway, which lets responses end, then the drivers, then the
    /// store.
    pub async fn stop(self) {
        service_manager::notify_stopping();
        self.stop.cancel();
        self.shared.gateway.shutdown(DRAIN_LIMIT).await;
        self.shared.shutdown.cancel();
        self.shared.tasks.close();
        if tokio::time::timeout(STOP_PATIENCE, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not come to their end in time");
        }
        self.browsers.close_all().await;
        self.shared.locators.close().await;
        // The socket is removed before the lock is released, so that a missing socket means that no daemon runs.
        if let Err(error) = std::fs::remove_file(self.shared.state_dir.socket()) {
            tracing::debug!(%error, "the socket was gone already");
        }
        self.shared.events.note(EventKind::DaemonStopped, None, "arenad has stopped").await;
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

/// Opens the state root, if possible, and returns a note about its limitations.
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

/// Unmounts the state root's own disk, so that an installation without environments leaves no mount behind.
fn detach(state_dir: &Path) {
    if let Err(error) = disk::detach(state_dir) {
        tracing::debug!(error = describe(&error), "the state root's disk stays mounted");
    }
}

/// Returns the gateway's settings, whose connection limit follows from the number of files that the process may open.
fn gateway_settings() -> GatewaySettings {
    let mut settings = GatewaySettings::default();
    let files = machine::raise_file_limit();
    settings.connections_per_route = machine::connections_per_site(files, settings.connections_per_route);
    settings.connections_per_proxy = machine::connections_per_site(files, settings.connections_per_proxy);
    settings
}
