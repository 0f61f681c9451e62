//! One installation without containers: a database, slots and clocks that outlive the daemons.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use arenad_episodes::{EpisodeHandle, EpisodeKeeperParts, EpisodeReceipt, EpisodeView, RandomBytes};
use arenad_model::episode::EpisodeState;
use arenad_model::episode::ids::{EpisodeId, EpisodeLabels, Owner};
use arenad_model::episode::life::EpisodeTerms;
use arenad_model::episode::queue::{OwnerQuotas, QueueLimits};
use arenad_model::episode::registry::EpisodeLimits;
use arenad_model::episode::request::{EpisodeRequest, SiteCapacity, SiteWant, StartPoint};
use arenad_model::ids::{EnvironmentName, SiteId, SiteName};
use arenad_model::instance::InstanceId;
use arenad_seams::inline::{Inline, IoComponent};
use arenad_seams::wall_clock::WallClock;
use arenad_store::{DaemonStore, InlineDatabase};
use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::chaos::Chaos;
use crate::fake::{FakeSlots, SlotsOfFake};
use crate::random::Random;

/// The sites with the numbers of their slots. All episodes share the site `wiki`.
pub const SITES: [(&str, u32); 3] = [("shop", 2), ("forge", 1), ("forum", 3)];
pub const REMEMBERED: usize = 40;
pub const PREPARATION: Duration = Duration::from_secs(5);
pub const RECYCLE_LIMIT: Duration = Duration::from_secs(4);

pub fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The time since the installation began, which goes on over the daemons, and the wall clock, which jumps.
#[derive(Default)]
pub struct TestTime {
    before: Mutex<(Duration, Option<Instant>)>,
    /// The number of seconds by which the wall clock is ahead.
    pub ahead: AtomicI64,
}

impl TestTime {
    pub fn now(&self) -> Duration {
        let (before, origin) = *self.before.lock().expect("no panic");
        before + origin.map_or(Duration::ZERO, |origin| origin.elapsed())
    }

    fn enter(&self) {
        self.before.lock().expect("no panic").1 = Some(Instant::now());
    }

    fn leave(&self) {
        let now = self.now();
        *self.before.lock().expect("no panic") = (now, None);
    }
}

/// A database with the current schema, to be copied.
static TEMPLATE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("template.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        DaemonStore::open(&path, WallClock::system()).await.expect("a database").close().await;
    });
    std::fs::read(&path).expect("the database")
});

struct NoChaos;

impl arenad_seams::inline::Interference for NoChaos {
    fn at(&self, _: IoComponent, _: &str, _: arenad_seams::inline::When) -> arenad_seams::inline::IoFate {
        arenad_seams::inline::IoFate::Proceed
    }
}

/// Everything that outlives a daemon.
pub struct Rig {
    _folder: tempfile::TempDir,
    database: InlineDatabase,
    pub chaos: Arc<Chaos>,
    pub time: Arc<TestTime>,
    pub fake: Arc<FakeSlots>,
    pub limits: EpisodeLimits,
    /// The same database, read without faults.
    pub recorded: DaemonStore,
    seed: AtomicU64,
}

pub fn site(name: &str) -> SiteId {
    SiteId { environment: EnvironmentName::parse("mini").expect("valid"), site: SiteName::parse(name).expect("valid") }
}

pub fn slot(text: &str) -> InstanceId {
    format!("mini/{text}").parse().expect("valid")
}

pub fn all_slots() -> Vec<InstanceId> {
    SITES.iter().flat_map(|(name, max)| (1..=*max).map(move |number| slot(&format!("{name}/{number}")))).collect()
}

pub fn request(sites: &[&str]) -> EpisodeRequest {
    let want = |name: &&str| SiteWant { site: site(name), slot: None, start: StartPoint::Baseline };
    EpisodeRequest {
        owner: Owner::parse("ann").expect("valid"),
        key: None,
        sites: sites.iter().map(want).collect(),
        terms: EpisodeTerms::new(seconds(60), seconds(30)).expect("valid"),
        labels: EpisodeLabels::default(),
        record: Default::default(),
        beginning: None,
        replays: Vec::new(),
    }
}

impl Rig {
    pub fn new(seed: u64) -> Self {
        let shared = std::path::Path::new("/dev/shm");
        let base: PathBuf = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let folder = tempfile::tempdir_in(base).expect("a folder");
        let path = folder.path().join("arenad.db");
        std::fs::write(&path, &*TEMPLATE).expect("copy the database");
        let database = InlineDatabase::open(&path).expect("a database");
        let time = Arc::new(TestTime::default());
        let how = Inline::new(IoComponent::Store, Arc::new(NoChaos));
        let recorded = DaemonStore::inline(&database, wall_clock(&time), how);
        let chaos: Arc<Chaos> = Arc::default();
        Self {
            _folder: folder,
            database,
            fake: FakeSlots::new(all_slots(), recorded.clone(), chaos.clone()),
            chaos,
            time,
            limits: EpisodeLimits {
                queue: QueueLimits { waiting: 30, waiting_of_owner: 30 },
                quotas: OwnerQuotas { default: 100, by_owner: BTreeMap::new() },
                open: 100,
                ttl: seconds(24 * 3600),
                preparation: PREPARATION,
                remembered: REMEMBERED,
                remember_for: seconds(30 * 24 * 3600),
            },
            recorded,
            seed: AtomicU64::new(seed),
        }
    }

    /// Starts a keeper. The slots are not added yet.
    pub async fn start(&self) -> EpisodeHandle {
        let how = Inline::new(IoComponent::Store, self.chaos.clone());
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        let random = Mutex::new(Random::new(crate::random::mix(seed)));
        let bytes = move || {
            let mut random = random.lock().expect("no panic");
            std::array::from_fn(|_| u8::try_from(random.below(256)).expect("a byte"))
        };
        let mut sites = vec![(site("wiki"), SiteCapacity::Shared)];
        sites.extend(SITES.map(|(name, max)| (site(name), SiteCapacity::Slots { max, by_name_only: 0 })));
        let parts = EpisodeKeeperParts {
            store: DaemonStore::inline(&self.database, wall_clock(&self.time), how),
            clock: wall_clock(&self.time),
            random: RandomBytes::new(bytes),
            slots: Arc::new(SlotsOfFake(self.fake.clone())),
            limits: self.limits.clone(),
            recycle_limit: RECYCLE_LIMIT,
            sites,
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
        };
        arenad_episodes::start(parts).await.expect("the store can be read")
    }

    /// Starts a keeper with all slots, and waits until they are made.
    pub async fn start_with_slots(&self) -> EpisodeHandle {
        let handle = self.start().await;
        for slot in all_slots() {
            // A slot exists if an episode has it since before a restart.
            let _ = handle.add_slot(slot).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        handle
    }

    /// Runs one daemon, on a runtime of its own that is dropped in the end. Returns `None` if the daemon crashed.
    pub fn live<T>(&self, life: impl AsyncFnOnce(&Self) -> T) -> Option<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let ended = runtime.block_on(async {
            self.time.enter();
            let ended = tokio::select! {
                biased;
                () = self.chaos.crashed() => None,
                ended = life(self) => Some(ended),
            };
            self.time.leave();
            ended
        });
        drop(runtime);
        self.fake.crash();
        self.chaos.revive();
        ended
    }

    #[track_caller]
    pub fn assert_kept(&self) {
        let violation = self.fake.state().violation.clone();
        assert_eq!(violation, None);
    }

    /// Returns the calls to the slots since the last time, without those that made them.
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.fake.state().calls)
    }
}

fn wall_clock(time: &Arc<TestTime>) -> WallClock {
    let time = time.clone();
    WallClock::new(move || {
        let begun = Timestamp::from_second(2_000_000_000 + time.ahead.load(Ordering::Relaxed)).expect("a time");
        begun + time.now()
    })
}

/// Asks for an episode and waits until it is active.
pub async fn active(handle: &EpisodeHandle, sites: &[&str]) -> EpisodeReceipt {
    let receipt = handle.ask(request(sites)).await.expect("admitted");
    let view = handle.wait(&receipt.id).await.expect("known");
    assert_eq!(view.state, EpisodeState::Active);
    receipt
}

pub fn state(handle: &EpisodeHandle, id: &EpisodeId) -> EpisodeState {
    handle.get(id).expect("known").state
}

/// Waits until an episode has ended.
pub async fn ended(handle: &EpisodeHandle, id: &EpisodeId) -> EpisodeView {
    for _ in 0..10_000 {
        let view = handle.get(id).expect("known");
        if view.state.ending().is_some() {
            return view;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} has not ended");
}
