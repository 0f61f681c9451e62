//! What every part of the daemon has in hand: the engine, the store, the gateway, the clock's end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::baseline::images::Images;
use super::baseline::kept::KeptBuilds;
use super::events::EventLog;
use super::health_log::HealthLog;
use super::machine::Machine;
use super::proof::References;
use super::turns::Turns;
use arenad_definition::Diagnostics;
use arenad_engine::Engine;
use arenad_gateway::Gateway;
use arenad_launch::{self as launch, Incarnation, Remains, RemoveError};
use arenad_locators::Locators;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::{Environment, Site};
use arenad_model::subnet::Subnet;
use arenad_probes::Prober;
use arenad_seams::wall_clock::WallClock;
use arenad_storage::Storage;
use arenad_store::{Store, StoredEnvironment};

/// The folder that an installation keeps its files in.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// Names the folder; nothing is made yet.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The lock that one daemon at a time holds.
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The API's socket.
    pub fn socket(&self) -> PathBuf {
        self.0.join("arenad.sock")
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.0.join("arenad.db")
    }

    /// What a daemon in the background says.
    pub fn log(&self) -> PathBuf {
        self.0.join("arenad.log")
    }

    /// The state root: what sites keep in their declared stores.
    pub fn stores(&self) -> PathBuf {
        self.0.join("stores")
    }

    /// Where sites' databases are copied to while they are read.
    pub fn copies(&self) -> PathBuf {
        self.0.join("copies")
    }

    /// Which serving generations no client has reached.
    pub fn pristine(&self) -> PathBuf {
        self.0.join("pristine")
    }

    /// What locators keep while they run.
    pub fn locators(&self) -> PathBuf {
        self.0.join("locators")
    }

    /// The archives of snapshots' volumes.
    pub fn volumes(&self) -> PathBuf {
        self.0.join("volumes")
    }
}

/// How a stored definition is read. A simulation that starts thousands of daemons on one definition reads it once.
pub type ReadDefinition = Arc<dyn Fn(&StoredEnvironment) -> Result<Environment, Diagnostics> + Send + Sync>;

/// The daemon's common ground.
pub struct Shared {
    /// Runs containers.
    pub engine: Arc<dyn Engine>,
    /// Tells the time of day.
    pub clock: WallClock,
    /// What it runs on.
    pub machine: Arc<dyn Machine>,
    /// Remembers.
    pub store: Store,
    /// Tells what happens.
    pub events: EventLog,
    /// Remembers what watching has seen.
    pub health: HealthLog,
    /// Owns the public ports.
    pub gateway: Gateway,
    /// Looks at sites.
    pub prober: Prober,
    /// Reads values of sites.
    pub locators: Locators,
    /// Builds and pulls images, each once.
    pub images: Images,
    /// Which baselines that could not be made are kept to look into.
    pub kept_builds: KeptBuilds,
    /// What is in snapshots' stores.
    pub references: References,
    /// The installation's id.
    pub installation: String,
    /// Where files are kept.
    pub state_dir: StateDir,
    /// Where sites' databases are copied to while they are read.
    pub copies: PathBuf,
    /// Where the state of sites' stores is kept; none where the system does not allow it.
    pub storage: Option<Storage>,
    /// Why there is no such place, or why copies there are not free: what works less well than it could.
    pub storage_note: Option<String>,
    /// Where address ranges are taken from.
    pub block: Subnet,
    /// Reads stored definitions.
    pub read_definition: ReadDefinition,
    /// How often the engine has fallen silent; the time before it first answers is a silence, too.
    pub engine_silences: AtomicU64,
    /// After which of these silences it was last asked who it is.
    pub engine_met: AtomicU64,
    /// Bounds what goes on at once.
    pub turns: Turns,
    /// Memory that standbys leave to everything else on the host, in bytes.
    pub memory_reserve: u64,
    /// Ends everything.
    pub shutdown: CancellationToken,
    /// Owns every task.
    pub tasks: TaskTracker,
}

impl Shared {
    /// Removes what the engine and the state root hold of an instance.
    pub async fn remove(&self, remains: Remains<'_>) -> Result<(), RemoveError> {
        launch::remove(self.engine.as_ref(), self.storage.as_ref(), remains).await
    }

    /// Waits until no cancelled call to the engine or the state root can still make anything; for so long at most.
    pub async fn settle(&self, patience: Duration) {
        let settled = async {
            self.engine.settle().await;
            if let Some(storage) = &self.storage {
                storage.settle().await;
            }
        };
        if tokio::time::timeout(patience, settled).await.is_err() {
            tracing::warn!("calls to the engine are still under way; reconciliation removes what they leave");
        }
    }

    /// The folders of this host that are mounted into an instance, by service and path in the container. None, where its
    /// stores are not in the state root.
    pub fn state_folders(
        &self,
        id: &InstanceId,
        site: &Site,
        incarnation: &Incarnation,
    ) -> BTreeMap<(ServiceName, String), PathBuf> {
        let Some(storage) = &self.storage else { return BTreeMap::new() };
        let mounts = launch::state_mounts(site).into_iter();
        let folders = mounts.filter_map(|mount| {
            let tree = mount.of_instance(id, incarnation.made).ok()?;
            Some(((mount.service, mount.path), storage.root().folder(&tree)))
        });
        folders.collect()
    }
}
