//! Episodes on a database file and in real time, with many clients at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arenad_episodes::{
    EpisodeFilter, EpisodeHandle, EpisodeKeeperParts, LeasedSlot, PreparedSlot, RandomBytes, SlotPreparation, Slots,
};
use arenad_model::episode::EpisodeState;
use arenad_model::episode::ending::{EpisodeEnding, VoidReason};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::lease::RecycleOrder;
use arenad_model::episode::queue::{OwnerQuotas, QueueLimits};
use arenad_model::episode::registry::EpisodeLimits;
use arenad_model::episode::request::{EpisodeRequest, SiteCapacity};
use arenad_model::instance::InstanceId;
use arenad_seams::wall_clock::WallClock;
use arenad_store::DaemonStore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::rig::{request, seconds, site, slot};

/// Slots that are prepared and recycled at once.
#[derive(Default)]
struct QuickSlots(AtomicU64);

#[async_trait::async_trait]
impl Slots for QuickSlots {
    async fn prepare(&self, _: SlotPreparation) -> Result<PreparedSlot, VoidReason> {
        Ok(PreparedSlot { generation: self.0.fetch_add(1, Ordering::Relaxed) })
    }

    fn switch(&self, _: &EpisodeId, _: &EpisodeRequest, _: &[LeasedSlot]) -> Result<(), VoidReason> {
        Ok(())
    }

    fn freeze(&self, _: &EpisodeId) {}

    fn unfreeze(&self, _: &EpisodeId) {}

    fn cut(&self, _: &EpisodeId, _: &EpisodeEnding, _: &[InstanceId]) {}

    async fn recycle(&self, _: &RecycleOrder) -> Result<(), VoidReason> {
        Ok(())
    }
}

/// A keeper on a database file.
struct FileKeeper {
    handle: EpisodeHandle,
    store: DaemonStore,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl FileKeeper {
    async fn start(path: &Path) -> Self {
        let store = DaemonStore::open(path, WallClock::system()).await.expect("a store");
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let parts = EpisodeKeeperParts {
            store: store.clone(),
            clock: WallClock::system(),
            random: RandomBytes::system(),
            slots: Arc::new(QuickSlots::default()),
            limits: EpisodeLimits {
                queue: QueueLimits { waiting: 500, waiting_of_owner: 500 },
                quotas: OwnerQuotas { default: 500, by_owner: BTreeMap::new() },
                open: 500,
                ttl: seconds(3600),
                preparation: seconds(60),
                remembered: 1000,
                remember_for: seconds(3600),
            },
            recycle_limit: seconds(60),
            sites: vec![(site("shop"), SiteCapacity::Slots { max: 4, by_name_only: 0 })],
            tasks: tasks.clone(),
            shutdown: shutdown.clone(),
        };
        let handle = arenad_episodes::start(parts).await.expect("the store can be read");
        for number in 1..=4 {
            // A slot exists if an episode has it since before a restart.
            let _ = handle.add_slot(slot(&format!("shop/{number}"))).await;
        }
        Self { handle, store, tasks, shutdown }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.store.close().await;
    }
}

async fn client(handle: EpisodeHandle) -> Duration {
    let begun = Instant::now();
    let receipt = handle.ask(request(&["shop"])).await.expect("admitted");
    let view = handle.wait(&receipt.id).await.expect("known");
    assert_eq!(view.state, EpisodeState::Active);
    let took = begun.elapsed();
    handle.release(&receipt.id).await.expect("active");
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_are_served_and_a_restart_keeps_what_they_have() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("arenad.db");
    let keeper = FileKeeper::start(&path).await;
    let alone = client(keeper.handle.clone()).await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..200 {
        clients.spawn(client(keeper.handle.clone()));
    }
    let begun = Instant::now();
    assert_eq!(clients.join_all().await.len(), 200);
    println!("one client waits {alone:?}; 200 clients with 4 slots take {:?}", begun.elapsed());
    let kept = keeper.handle.ask(request(&["shop"])).await.expect("admitted");
    keeper.handle.wait(&kept.id).await.expect("known");
    keeper.stop().await;
    let keeper = FileKeeper::start(&path).await;
    let list = |is_live| keeper.handle.list(&EpisodeFilter { is_live, ..EpisodeFilter::default() });
    assert_eq!((list(false).len(), list(true).len()), (202, 1));
    assert_eq!(keeper.handle.get(&kept.id).expect("known").state, EpisodeState::Active);
    client(keeper.handle.clone()).await;
    keeper.handle.release(&kept.id).await.expect("active");
    keeper.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_may_not_survive_a_crash_of_the_host_is_void() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, wal) = (folder.path().join("arenad.db"), folder.path().join("arenad.db-wal"));
    let keeper = FileKeeper::start(&path).await;
    client(keeper.handle.clone()).await;
    // SQLite goes on with the file, and the store cannot flush it.
    std::fs::rename(&wal, folder.path().join("aside")).expect("renamed");
    let receipt = keeper.handle.ask(request(&["shop"])).await.expect("a request need not be flushed");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let view = keeper.handle.get(&receipt.id).expect("known");
    assert_eq!((view.state, keeper.handle.lease_of(&slot("shop/2"))), (EpisodeState::Preparing, None));
    std::fs::rename(folder.path().join("aside"), &wal).expect("renamed");
    let view = keeper.handle.wait(&receipt.id).await.expect("known");
    let reason = view.state.ending().map(EpisodeEnding::code);
    assert_eq!(reason, Some("store_failed"));
    client(keeper.handle.clone()).await;
    keeper.stop().await;
}
