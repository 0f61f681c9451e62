//! The parts that outlive daemons: the engine, the state directory, the project and the time of day.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arenad_api::{Condition, SourceText, UpRequest};
use arenad_baseline::Turns;
use arenad_daemon::api::{self, Api};
use arenad_daemon::browsers::EpisodeBrowsers;
use arenad_daemon::certificates::Certifier;
use arenad_daemon::environments::{self, EnvironmentRegistry};
use arenad_daemon::host::HostReport;
use arenad_daemon::operations::Operations;
use arenad_daemon::port::OfferedPort;
use arenad_daemon::proxy::EpisodeDirectory;
use arenad_daemon::replays::ReplayRegistry;
use arenad_daemon::slots::{DaemonSlots, EpisodeSettings, start_episodes};
use arenad_daemon::{DaemonParts, take_up};
use arenad_doctor::facts;
use arenad_doctor::judge::capacity::Resources;
use arenad_engine::Engine;
use arenad_episodes::{EpisodeHandle, RandomBytes};
use arenad_fake_engine::{EngineCall, FakeClock, FakeEngine, FakeImage, ShelvedEngine, ToySite};
use arenad_gateway::Gateway;
use arenad_instance::machine::Machine;
use arenad_instance::shared::{ReadDefinition, SharedParts, StateDir};
use arenad_model::site::Environment;
use arenad_seams::inline::{Inline, IoComponent};
use arenad_seams::wall_clock::WallClock;
use arenad_site_client::dial::Dialer;
use arenad_storage::{StateRoot, Storage};
use arenad_store::{DaemonStore, InlineDatabase, StoredEnvironment};
use axum::Router;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::chaos::Chaos;
use crate::dial::SimulatedDial;
use crate::episodes::{EpisodeConnection, SEVERAL_SLOTS};
use crate::random::mix;
use crate::schedule::SITES;

pub const ENVIRONMENT: &str = "sim";
/// The names of the sites, by number.
pub const NAMES: [&str; SITES] = ["shop", "forum", "wiki"];
/// The number of standbys for each site.
pub const STANDBYS: [usize; SITES] = [1, 1, 0];
/// The first site's public port; the others follow it.
pub const FIRST_PORT: u16 = 20_001;
/// The line that every baseline's store contains.
pub const SEED: &str = "data/seed=1";

/// One installation and its engine.
pub struct SimulatedWorld {
    pub folder: PathBuf,
    pub engine: FakeEngine,
    pub clock: FakeClock,
    pub chaos: Chaos,
    /// The number of seconds by which the time of day is ahead.
    pub ahead: Arc<AtomicI64>,
    /// The rows. The database is opened once, because opening takes as long as a dozen steps.
    database: InlineDatabase,
    /// The engine that was replaced by another.
    pub shelved: RefCell<Option<ShelvedEngine>>,
    /// Whether a site has several slots.
    has_episodes: bool,
    /// The number of ids and tokens of episodes so far.
    random: Arc<AtomicU64>,
    read_definition: ReadDefinition,
}

/// The parts of a running daemon.
pub struct DaemonLife {
    pub shared: Arc<SharedParts>,
    pub environments: Arc<EnvironmentRegistry>,
    pub router: Router,
    pub slots: Arc<DaemonSlots>,
    pub episodes: EpisodeHandle,
    /// The decisions of the episode proxy.
    pub directory: EpisodeDirectory,
    /// The connections that hold episodes, by the number of the episode.
    pub holds: RefCell<BTreeMap<u64, EpisodeConnection>>,
    /// Kept as long as the daemon, because dropping the sender would end its receivers.
    _host: watch::Sender<HostReport>,
}

/// Caches the last definitions with and without episodes across schedules; reading one takes a fifth of a schedule's
/// time.
fn read_once(has_episodes: bool) -> ReadDefinition {
    thread_local! {
        static LAST: RefCell<[Option<(StoredEnvironment, Environment)>; 2]> = const { RefCell::new([None, None]) };
    }
    Arc::new(move |stored| {
        LAST.with_borrow_mut(|last| {
            let last = &mut last[usize::from(has_episodes)];
            if let Some((_, definition)) = last.as_ref().filter(|(known, _)| known == stored) {
                return Ok(definition.clone());
            }
            let definition = environments::read_definition(stored)?;
            *last = Some((stored.clone(), definition.clone()));
            Ok(definition)
        })
    })
}

struct Plenty;

#[async_trait::async_trait]
impl Machine for Plenty {
    fn free_memory(&self) -> u64 {
        64 << 30
    }

    fn resources(&self, _: &Path, _: &Path, _: &Environment) -> Resources {
        let machine = facts::MachineFacts { memory_bytes: 64 << 30, available_bytes: 64 << 30, processors: 8 };
        Resources { machine, disks: Vec::new() }
    }

    async fn port_owner(&self, _: &dyn Engine, _: SocketAddr) -> String {
        "someone".to_owned()
    }
}

fn condition() -> Condition {
    Condition {
        kind: arenad_api::ConditionKind::Ready,
        status: arenad_api::ConditionStatus::True,
        reason: String::new(),
        message: String::new(),
        last_transition_time: String::new(),
    }
}

fn definition(has_episodes: bool) -> String {
    let mut text = format!("name: {ENVIRONMENT}\ndescription: Simulated\nsites:\n");
    let more = [
        "    stores: { notes: { kind: directory, path: /data } }
    writers: { stop: [ { command: [stop-writers] } ], start: [ { command: [start-writers] } ] }
    reset: { standby: 1, hold_timeout: 20s }
",
        "    reset: { standby: 1 }\n",
        "    reset: { strategy: keep }\n",
    ];
    for (number, (name, more)) in NAMES.iter().zip(more).enumerate() {
        let port = usize::from(FIRST_PORT) + number;
        let slots = if has_episodes && number == 0 { SEVERAL_SLOTS } else { "" };
        text.push_str(&format!(
            "  {name}:
    title: {name}
    entry: {{ port: 80 }}
    public: {{ port: {port}, variable: SHOPPING_{number} }}
    ready:
      timeout: 20s
      probes: [ {{ name: page, http: {{ path: /, contains: seed }} }} ]
    health: {{ shallow: {{ every: 20s, probes: [ {{ name: page, http: {{ path: /, contains: seed }} }} ] }} }}
{more}{slots}"
        ));
    }
    text
}

fn compose() -> String {
    let mut text = "services:\n".to_owned();
    for (number, name) in NAMES.iter().enumerate() {
        let port = usize::from(FIRST_PORT) + number;
        text.push_str(&format!(
            "  {name}:
    image: arenad-sim/{name}:1
    build: {{ context: {name} }}
    ports: [ \"{port}:80\" ]
    mem_reservation: 16m
    stop_grace_period: 5s
"
        ));
    }
    text
}

impl SimulatedWorld {
    /// Recreates the folder, and creates an engine with a base image only.
    pub fn new(folder: &Path, template: &Path, seed: u64, has_episodes: bool) -> Self {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder.join("state")).expect("a folder");
        std::fs::copy(template, folder.join("state/arenad.db")).expect("copy the database");
        let project = folder.join("project");
        for name in NAMES {
            std::fs::create_dir_all(project.join("compose").join(name)).expect("a folder");
        }
        let clock = FakeClock::default();
        let engine = FakeEngine::with_clock(clock.clone());
        let toy =
            ToySite { boot: Duration::from_millis(120), commands: Duration::from_millis(5), ..ToySite::default() };
        engine.install_program("toy", toy.maker());
        let mut base = FakeImage::new("toy-base:1", "toy");
        base.files.insert("/data/seed".to_owned(), b"1".to_vec());
        engine.offer_image(base);
        let world = Self {
            folder: folder.to_owned(),
            engine,
            clock,
            chaos: Chaos::new(seed),
            ahead: Arc::default(),
            database: InlineDatabase::open(&folder.join("state/arenad.db")).expect("a database"),
            shelved: Default::default(),
            has_episodes,
            random: Arc::new(AtomicU64::new(seed)),
            read_definition: read_once(has_episodes),
        };
        let chaos = world.chaos.clone();
        world.engine.set_script(move |call: &EngineCall<'_>| chaos.fate(call));
        (0..SITES).for_each(|site| world.set_build(site, true));
        world
    }

    /// Determines whether a site's image can be built.
    pub fn set_build(&self, site: usize, is_whole: bool) {
        let path = self.folder.join("project/compose").join(NAMES[site]).join("Dockerfile");
        let more = if is_whole { "" } else { "RUN exit 5\n" };
        std::fs::write(path, format!("FROM toy-base:1\nLABEL site={}\n{more}", NAMES[site])).expect("write a file");
    }

    pub fn wall_clock(&self) -> WallClock {
        let (clock, ahead) = (self.clock.clone(), self.ahead.clone());
        WallClock::new(move || {
            let seconds = clock.unix() + ahead.load(Ordering::Relaxed);
            let nanos = i32::try_from(clock.now().subsec_nanos()).unwrap_or_default();
            Timestamp::new(seconds, nanos).expect("a time of this century")
        })
    }

    /// Returns the body of `PUT /v1/environments/sim`.
    pub fn up_request(&self, sites: &[String]) -> UpRequest {
        let project = self.folder.join("project");
        let source = |kind: &str, text: String| SourceText {
            path: project.join(kind).join(format!("{ENVIRONMENT}.yaml")).display().to_string(),
            text,
        };
        UpRequest {
            root: project.display().to_string(),
            environment: source("environments", definition(self.has_episodes)),
            compose: source("compose", compose()),
            dotenv: None,
            variables: BTreeMap::new(),
            sites: sites.to_vec(),
            force: true,
            recreate: false,
            keep_failed: false,
        }
    }

    /// Returns the source of ids and tokens of episodes, which continues in the next daemon.
    fn random_bytes(&self) -> RandomBytes {
        let random = self.random.clone();
        RandomBytes::new(move || {
            let mut bytes = [0; 32];
            for eight in bytes.chunks_exact_mut(8) {
                eight.copy_from_slice(&mix(random.fetch_add(1, Ordering::Relaxed)).to_le_bytes());
            }
            bytes
        })
    }

    /// Starts a daemon and waits until it has adopted the objects of the previous one. Returns `None` if it ended at
    /// once.
    pub async fn start(&self) -> Option<DaemonLife> {
        let state_dir = StateDir::new(self.folder.join("state"));
        let chaos: Arc<Chaos> = Arc::new(self.chaos.clone());
        let how = Inline::new(IoComponent::Store, chaos.clone());
        let store = DaemonStore::inline(&self.database, self.wall_clock(), how);
        let root = StateRoot::open_unstamped(state_dir.stores()).expect("a state root");
        let parts = DaemonParts {
            engine: Arc::new(self.engine.clone()),
            dialer: Dialer::new(SimulatedDial { engine: self.engine.clone(), chaos: self.chaos.clone() }),
            clock: self.wall_clock(),
            machine: Arc::new(Plenty),
            store,
            storage: Some(Storage::in_place(root, Inline::new(IoComponent::Storage, chaos))),
            storage_note: None,
            gateway: Gateway::without_sockets(),
            read_definition: self.read_definition.clone(),
            turns: Turns::new(std::num::NonZeroUsize::new(2), std::num::NonZeroUsize::MIN),
            memory_reserve: 0,
            record_retention: Default::default(),
            block: "10.101.0.0/16".parse().expect("a subnet"),
            state_dir,
        };
        let shared = parts.assemble().await.ok()?;
        let (slots, episodes) = start_episodes(&shared, self.random_bytes(), &EpisodeSettings::default()).await.ok()?;
        let environments = Arc::new(EnvironmentRegistry::new(shared.clone(), slots.clone(), episodes.clone()));
        let report = HostReport { engine: condition(), disk: condition() };
        let (host, listener) = watch::channel(report);
        let directory = EpisodeDirectory::of_own_ports(environments.clone(), episodes.clone());
        let browsers = EpisodeBrowsers::new(shared.clone(), episodes.clone(), directory);
        let api = Arc::new(Api {
            shared: shared.clone(),
            environments: environments.clone(),
            episodes: episodes.clone(),
            browsers,
            replays: ReplayRegistry::open(shared.clone()).await,
            certifier: Certifier::unkept().expect("random numbers"),
            episode_settings: EpisodeSettings::default(),
            proxy: OfferedPort::default(),
            compat: OfferedPort::default(),
            operations: Operations::default(),
            host: listener,
            background: true,
            started_at: shared.clock.now(),
            stop: CancellationToken::new(),
        });
        take_up(&shared, &environments).await.ok()?;
        let directory = EpisodeDirectory::new(environments.clone(), episodes.clone());
        let (router, holds) = (api::router(api), RefCell::default());
        Some(DaemonLife { shared, environments, router, slots, episodes, directory, holds, _host: host })
    }
}
