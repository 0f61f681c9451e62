//! The state that all parts of the daemon share: the engine, the store, the gateway, limits and shutdown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::changes::LookFolder;
use super::health_log::HealthLog;
use super::machine::Machine;
use super::proof::References;
use arenad_baseline::{BaselineParts, Turns};
use arenad_definition::Diagnostics;
use arenad_engine::Engine;
use arenad_gateway::Gateway;
use arenad_launch::{self as launch, Incarnation, Remains, RemoveError};
use arenad_locators::Locators;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::record_retention::RecordRetention;
use arenad_model::site::{Environment, Site};
use arenad_model::subnet::Subnet;
use arenad_probes::Prober;
use arenad_seams::wall_clock::WallClock;
use arenad_storage::Storage;
use arenad_store::{DaemonStore, EventLog, StoredEnvironment};

/// The folder in which an installation keeps its files.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// Names the folder; nothing is created.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The folder's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The lock file; one daemon at a time holds its lock.
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The Unix socket of the API.
    pub fn socket(&self) -> PathBuf {
        self.0.join("arenad.sock")
    }

    /// The SQLite database of the store.
    pub fn database(&self) -> PathBuf {
        self.0.join("arenad.db")
    }

    /// The state root, which holds the content of the sites' declared stores.
    pub fn stores(&self) -> PathBuf {
        self.0.join("stores")
    }

    /// The folder of copies of sites' databases, which exist while they are read.
    pub fn copies(&self) -> PathBuf {
        self.0.join("copies")
    }

    /// The folder of marks of serving generations that no client has reached.
    pub(crate) fn pristine(&self) -> PathBuf {
        self.0.join("pristine")
    }

    /// The folder of marks of slots that an episode has, or had and that have not been recycled since.
    pub fn episodes(&self) -> PathBuf {
        self.0.join("episodes")
    }

    /// The folder of the records of episodes.
    pub fn records(&self) -> PathBuf {
        self.0.join("records")
    }

    /// The folder of rows of snapshots, and of looks at instances.
    pub fn looks(&self) -> LookFolder {
        LookFolder::new(self.0.join("looks"))
    }

    /// The folder of the replays, and of the authority that vouches for their hosts.
    pub fn replays(&self) -> PathBuf {
        self.0.join("replays")
    }

    /// The private key that signs certificates.
    pub fn certificate_key(&self) -> PathBuf {
        self.0.join("certificate.key")
    }

    /// The folder of files that locators need while they run.
    pub fn locators(&self) -> PathBuf {
        self.0.join("locators")
    }

    /// The folder of the files of browsers that episodes have.
    pub fn browsers(&self) -> PathBuf {
        self.0.join("browsers")
    }

    /// The folder of archives of snapshots' volumes.
    pub fn volumes(&self) -> PathBuf {
        self.0.join("volumes")
    }
}

/// Reads a stored definition. A simulation that starts thousands of daemons with one definition parses it once.
pub type ReadDefinition = Arc<dyn Fn(&StoredEnvironment) -> Result<Environment, Diagnostics> + Send + Sync>;

/// The parts of the daemon that instances, the API and background tasks share.
pub struct SharedParts {
    /// The container engine, which all instances share.
    pub engine: Arc<dyn Engine>,
    /// The time of day, which simulations replace.
    pub clock: WallClock,
    /// The memory, disks and ports of the host.
    pub machine: Arc<dyn Machine>,
    /// The database of intent and identity.
    pub store: DaemonStore,
    /// The event log of all instances.
    pub events: EventLog,
    /// The history of probe rounds, which collects rounds that pass.
    pub health: HealthLog,
    /// The owner of the public ports.
    pub gateway: Gateway,
    /// Runs the probes of sites.
    pub prober: Prober,
    /// Reads values from sites.
    pub locators: Locators,
    /// Makes baselines, and takes and removes snapshots.
    pub baselines: BaselineParts,
    /// The digests of snapshots, cached by snapshot id.
    pub references: References,
    /// The id of the installation, which labels everything that it creates in the engine.
    pub installation: String,
    /// The folder of the installation's files.
    pub state_dir: StateDir,
    /// The folder of copies of sites' databases, which exist while they are read.
    pub copies: PathBuf,
    /// The state root that keeps the sites' stores; `None` if the system does not support one.
    pub storage: Option<Storage>,
    /// The reason why there is no state root, or why its copies take space and time.
    pub storage_note: Option<String>,
    /// The address range from which the networks of instances are taken.
    pub block: Subnet,
    /// Reads the definitions that the store keeps.
    pub read_definition: ReadDefinition,
    /// The number of times that the engine has stopped responding. The time before its first response counts as one.
    pub engine_silences: AtomicU64,
    /// The value of `engine_silences` when the engine's identity was last determined.
    pub engine_met: AtomicU64,
    /// Limits concurrent builds and boots.
    pub turns: Arc<Turns>,
    /// Memory that standbys leave to everything else on the host, in bytes.
    pub memory_reserve: u64,
    /// The limits for the records of episodes.
    pub record_retention: RecordRetention,
    /// Cancelled when the daemon stops; every task ends with it.
    pub shutdown: CancellationToken,
    /// Tracks the daemon's tasks, so that shutdown can wait for them.
    pub tasks: TaskTracker,
}

impl SharedParts {
    /// Removes the objects of an instance from the engine and the state root.
    pub async fn remove(&self, remains: Remains<'_>) -> Result<(), RemoveError> {
        launch::remove(self.engine.as_ref(), self.storage.as_ref(), remains).await
    }

    /// Waits until no cancelled call to the engine or the state root can still create anything, for `patience` at most.
    pub(crate) async fn settle(&self, patience: Duration) {
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

    /// Returns the folders of this host that are mounted into an instance, by service and path in the container. The
    /// result is empty if the site's stores are not in the state root.
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
