//! Creates and removes incarnations: the containers, networks and volumes of one generation of an instance.
//!
//! The reset strategies (from a snapshot) and the baseline builder (from plain images) call it. Every created object
//! bears the labels of its [`Ownership`], and removal selects by those labels, never by memory: the same code removes
//! known objects and those that a crash or a lost reply left behind. The callers decide when to create and remove.
//!
//! The crate depends on `engine` and `storage`. Start reading at [`start`] and [`remove`].

mod clock;
mod command;
mod frozen;
mod inside;
mod network;
mod state;
mod volumes;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use arenad_engine::labels::{self, Ownership};
use arenad_engine::{ContainerHealth, ContainerSpec, ContainerState, CpuWeight, Engine, EngineError, EngineHandle};
use arenad_model::cause::Cause;
use arenad_model::clock::ClockSetting;
use arenad_model::coverage::Traces;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::service::{DependencyCondition, ServiceSpec};
use arenad_model::site::Site;
use arenad_model::subnet::Subnet;
use arenad_storage::{Storage, StorageError};

pub use clock::check_clock;
pub use command::{CommandError, run, run_with_input};
pub use frozen::{FreezeError, freeze, thaw};
pub use inside::{InsideError, InspectedContainers};
pub use state::{
    StateMount, StateSource, exchange, fingerprint, fingerprint_of, fresh, knows_touched, save_state, state_mounts,
};
pub use volumes::{SavedVolumes, save_volumes};

/// The period at which a container is inspected while a caller waits for a change of its state.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The reason why an incarnation could not be created.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The engine refused a request or is unreachable.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// No address range is left for the instance's network.
    #[error("find a free /{prefix} for the instance's network in {block}")]
    NoSubnet {
        /// The block of addresses that was searched.
        block: Subnet,
        /// The prefix length of the range that was needed.
        prefix: u8,
    },
    /// A dependency did not reach the condition that another service requires.
    #[error("start {service}: {dependency} {what}")]
    Dependency {
        /// The service that waits.
        service: ServiceName,
        /// The service that it waits for.
        dependency: ServiceName,
        /// The predicate of the message: how the dependency failed.
        what: String,
    },
    /// A container has no address, because it does not run.
    #[error("find the address of {service}: its container {}", what_it_did(*.state))]
    NoAddress {
        /// The service whose address was requested.
        service: ServiceName,
        /// The state of its container.
        state: ContainerState,
    },
    /// An operation on the state root failed.
    #[error(transparent)]
    State(#[from] StorageError),
    /// A container does not show the time that the definition sets.
    #[error("set the clock of {service} to {wanted}: {what}")]
    Clock {
        /// The service whose clock was checked.
        service: ServiceName,
        /// The time that it should show.
        wanted: String,
        /// The observed time or failure.
        what: String,
    },
    /// A volume's archive could not be read or written.
    #[error("{doing} {path}")]
    Archive {
        /// The failed action, as an imperative phrase.
        doing: &'static str,
        /// The path of the archive.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: std::io::Error,
    },
}

impl LaunchError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Engine(error) => error.cause(),
            Self::State(error) => error.cause(),
            Self::Archive { cause, .. } => Cause::of_io(cause),
            Self::NoAddress { state: ContainerState::Paused, .. } => Some(Cause::Paused),
            Self::NoSubnet { .. } | Self::Dependency { .. } | Self::NoAddress { .. } | Self::Clock { .. } => None,
        }
    }
}

fn what_it_did(state: ContainerState) -> String {
    match state {
        ContainerState::Exited(code) => format!("exited with code {code}"),
        state => format!("is {state:?}").to_lowercase(),
    }
}

/// The input from which an incarnation is created.
#[derive(Debug, Clone)]
pub struct Blueprint<'a> {
    /// The instance that gets the containers.
    pub id: &'a InstanceId,
    /// The definition of the instance's site.
    pub site: &'a Site,
    /// The owner that the labels name, including the generation.
    pub ownership: Ownership,
    /// The image id of each service.
    pub images: BTreeMap<ServiceName, String>,
    /// The archives to fill volumes with, by service and mount path. Empty for builders.
    pub volumes: SavedVolumes,
    /// The snapshot's state, if it is stored outside of the images. `None` for builders.
    pub state: Option<StateSource<'a>>,
    /// The block from which address ranges are allocated.
    pub block: Subnet,
    /// The clock that the containers show; `None` for the host's clock.
    pub clock: Option<ClockSetting>,
    /// The CPU weight of the containers.
    pub weight: CpuWeight,
}

/// The containers of one generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation {
    /// The number of the generation that the containers now serve.
    pub generation: u64,
    /// The generation that the containers were created for and that their labels name: an earlier one if they have
    /// since been restored to the snapshot.
    pub made: u64,
    /// The container of each service.
    pub containers: BTreeMap<ServiceName, EngineHandle>,
    /// The address of each service; empty until started.
    pub addresses: BTreeMap<ServiceName, IpAddr>,
    /// The time when the first container was started, in seconds since 1970 UTC. Log probes read from this time on.
    pub started_at: i64,
    /// The content of the containers outside of their stores before the first client. `None` if it is unknown, because
    /// it was not inspected or another daemon created the containers.
    pub pristine: Option<Arc<Traces>>,
}

impl Incarnation {
    /// Returns the socket address of a service's port; `None` if the service has no address.
    pub fn socket(&self, service: &ServiceName, port: u16) -> Option<SocketAddr> {
        self.addresses.get(service).map(|address| SocketAddr::new(*address, port))
    }
}

impl Blueprint<'_> {
    fn name(&self, part: Option<&str>) -> String {
        let id = labels::filed_under(self.id, self.ownership.role);
        id.resource_name(self.ownership.generation, part, &self.ownership.installation)
    }

    fn container_name(&self, service: &ServiceName) -> String {
        let part = (self.site.services.len() > 1).then(|| service.as_str());
        let name = self.name(part);
        if self.ownership.role == labels::ROLE_BUILDER { format!("{name}-builder") } else { name }
    }

    /// Creates the networks, volumes and containers without starting any container.
    pub async fn create(&self, engine: &dyn Engine) -> Result<Incarnation, LaunchError> {
        let network = match self.ownership.role {
            labels::ROLE_BUILDER => format!("{}-builder", self.name(None)),
            _ => self.name(None),
        };
        let networks = network::create_all(engine, &network, self.block, self.site, &self.ownership.labels()).await?;
        let volumes = volumes::create(engine, self).await?;
        let state = match &self.state {
            Some(source) => state::clone(source, self.site, self.id, self.ownership.generation).await?,
            None => BTreeMap::new(),
        };
        let mut containers = BTreeMap::new();
        for service in &self.site.services {
            let spec = ContainerSpec {
                name: self.container_name(&service.name),
                image: self.images.get(&service.name).cloned().unwrap_or_else(|| service.image.clone()),
                service,
                labels: self.ownership.container_labels(service.name.as_str()),
                network: networks.inner.clone(),
                outward: networks.outward_of(self.site, &service.name),
                volumes: volumes.get(&service.name).cloned().unwrap_or_default(),
                binds: state.get(&service.name).cloned().unwrap_or_default(),
                environment: clock::variables(self.site, service, self.clock.as_ref()),
                weight: self.weight,
                keeps_stores_in_layer: self.state.is_none()
                    && self.site.stores.iter().any(|store| store.service == service.name),
            };
            let handle = engine.create(&spec).await?;
            containers.insert(service.name.clone(), handle);
        }
        volumes::fill(engine, self, &containers).await?;
        let generation = self.ownership.generation;
        let addresses = BTreeMap::new();
        Ok(Incarnation { generation, made: generation, containers, addresses, started_at: 0, pristine: None })
    }
}

/// Starts the containers in the order of their dependencies and finds their addresses.
pub async fn start(
    engine: &dyn Engine,
    site: &Site,
    incarnation: &mut Incarnation,
    deadline: Instant,
) -> Result<(), LaunchError> {
    incarnation.started_at = jiff::Timestamp::now().as_second();
    incarnation.addresses.clear();
    for service in &site.services {
        await_dependencies(engine, service, incarnation, deadline).await?;
        if let Some(handle) = incarnation.containers.get(&service.name) {
            engine.start(handle).await?;
        }
    }
    find_addresses(engine, site, incarnation).await
}

/// Reads the addresses of a running incarnation's services from the engine.
pub async fn find_addresses(
    engine: &dyn Engine,
    site: &Site,
    incarnation: &mut Incarnation,
) -> Result<(), LaunchError> {
    for service in &site.services {
        let Some(handle) = incarnation.containers.get(&service.name) else {
            continue;
        };
        let status = engine.inspect(handle).await?;
        match (status.address, status.state) {
            (Some(address), ContainerState::Running) => {
                incarnation.addresses.insert(service.name.clone(), address);
            }
            // A one-shot service that has finished needs no address.
            (_, ContainerState::Exited(0)) => {}
            (_, state) => {
                return Err(LaunchError::NoAddress { service: service.name.clone(), state });
            }
        }
    }
    Ok(())
}

async fn await_dependencies(
    engine: &dyn Engine,
    service: &ServiceSpec,
    incarnation: &Incarnation,
    deadline: Instant,
) -> Result<(), LaunchError> {
    for dependency in &service.depends_on {
        let Some(handle) = incarnation.containers.get(&dependency.service) else {
            continue;
        };
        let failed = |what: String| LaunchError::Dependency {
            service: service.name.clone(),
            dependency: dependency.service.clone(),
            what,
        };
        loop {
            let status = engine.inspect(handle).await?;
            let reached = match dependency.condition {
                DependencyCondition::Started => status.state != ContainerState::Created,
                DependencyCondition::Healthy => status.health == ContainerHealth::Healthy,
                DependencyCondition::CompletedSuccessfully => status.state == ContainerState::Exited(0),
            };
            if reached {
                break;
            }
            if let ContainerState::Exited(code) = status.state {
                return Err(failed(format!("exited with code {code}")));
            }
            if Instant::now() >= deadline {
                return Err(failed(format!("is not {} in time", condition_name(dependency.condition))));
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }
    Ok(())
}

fn condition_name(condition: DependencyCondition) -> &'static str {
    match condition {
        DependencyCondition::Started => "started",
        DependencyCondition::Healthy => "healthy",
        DependencyCondition::CompletedSuccessfully => "completed",
    }
}

/// Selects the objects of an instance that are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remains<'a> {
    /// The installation that the objects belong to.
    pub installation: &'a str,
    /// An instance of the site that the objects belong to. Builders belong to the instance itself.
    pub instance: &'a InstanceId,
    /// The role that their labels name.
    pub role: &'static str,
    /// The generations that the objects belong to.
    pub which: GenerationSelector<'a>,
}

/// Selects generations by the labels of their containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerationSelector<'a> {
    /// Every generation of the site.
    All,
    /// Only the generation with this number.
    Only(u64),
    /// The generations with these numbers.
    Among(&'a [u64]),
}

impl GenerationSelector<'_> {
    fn means(self, generation: u64) -> bool {
        match self {
            Self::All => true,
            Self::Only(meant) => generation == meant,
            Self::Among(meant) => meant.contains(&generation),
        }
    }

    /// Returns whether a generation label is selected. A missing or unreadable label belongs to no generation, so only
    /// [`Self::All`] selects it.
    fn covers(self, label: Option<&String>) -> bool {
        match label.and_then(|label| label.parse().ok()) {
            Some(generation) => self.means(generation),
            None => matches!(self, Self::All),
        }
    }
}

impl Remains<'_> {
    /// Returns the id that the objects are filed under.
    fn id(&self) -> InstanceId {
        labels::filed_under(self.instance, self.role)
    }

    fn covers(&self, found: &BTreeMap<String, String>) -> bool {
        let is = |label: &str, value: &str| found.get(label).is_some_and(|found| found == value);
        is(labels::INSTALLATION, self.installation)
            && is(labels::INSTANCE, &self.id().to_string())
            && is(labels::ROLE, self.role)
            && self.which.covers(found.get(labels::GENERATION))
    }
}

/// The reason why an object of an instance could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The engine refused a request or is unreachable.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An operation on the state root failed.
    #[error(transparent)]
    State(#[from] StorageError),
}

impl RemoveError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Engine(error) => error.cause(),
            Self::State(error) => error.cause(),
        }
    }
}

/// Removes containers, then networks, volumes and state.
///
/// Errors: objects that are already gone are ignored; the first other failure is returned after all removals were
/// tried.
pub async fn remove(engine: &dyn Engine, storage: Option<&Storage>, remains: Remains<'_>) -> Result<(), RemoveError> {
    let instance = remains.id().to_string();
    let containers = engine.containers(labels::INSTANCE, &instance).await?;
    let ours = containers.iter().filter(|found| remains.covers(&found.labels));
    let mut outcome = first_error(futures_util::future::join_all(ours.map(|found| engine.remove(&found.handle))).await);
    for found in engine.networks(labels::INSTANCE, &instance).await? {
        if remains.covers(&found.labels) {
            outcome = outcome.and(network::remove(engine, &found.name).await);
        }
    }
    for volume in engine.volumes(labels::INSTANCE, &instance).await? {
        if remains.covers(&volume.labels) {
            outcome = outcome.and(engine.remove_volume(&volume.name).await);
        }
    }
    outcome?;
    if let Some(storage) = storage.filter(|_| remains.role == labels::ROLE_INSTANCE) {
        state::discard(storage, &remains.id(), remains.which).await?;
    }
    Ok(())
}

fn first_error(results: Vec<Result<(), EngineError>>) -> Result<(), EngineError> {
    results.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}

/// Finds the running containers that were created for a generation; `None` unless every service has one.
///
/// The daemon uses it after a restart to adopt running containers instead of creating new ones.
pub async fn find(
    engine: &dyn Engine,
    site: &Site,
    installation: &str,
    instance: &InstanceId,
    made: u64,
) -> Result<Option<Incarnation>, LaunchError> {
    let Some(mut incarnation) = find_containers(engine, site, installation, instance, made).await? else {
        return Ok(None);
    };
    match find_addresses(engine, site, &mut incarnation).await {
        Ok(()) => Ok(Some(incarnation)),
        Err(LaunchError::NoAddress { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Finds the containers in any state, without their addresses, so that paused ones can be resumed.
pub async fn find_containers(
    engine: &dyn Engine,
    site: &Site,
    installation: &str,
    instance: &InstanceId,
    made: u64,
) -> Result<Option<Incarnation>, LaunchError> {
    let remains =
        Remains { installation, instance, role: labels::ROLE_INSTANCE, which: GenerationSelector::Only(made) };
    let found = engine.containers(labels::INSTANCE, &remains.id().to_string()).await?;
    let (containers, addresses) = (BTreeMap::new(), BTreeMap::new());
    let mut incarnation = Incarnation { generation: made, made, containers, addresses, started_at: 0, pristine: None };
    for container in found {
        let service = container.labels.get(labels::SERVICE).and_then(|name| ServiceName::parse(name).ok());
        if let (true, Some(service)) = (remains.covers(&container.labels), service) {
            incarnation.started_at = container.created;
            incarnation.containers.insert(service, container.handle);
        }
    }
    let is_whole = site.services.iter().all(|service| incarnation.containers.contains_key(&service.name));
    Ok(is_whole.then_some(incarnation))
}
