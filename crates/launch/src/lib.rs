//! Incarnations: the containers, network and volumes of one generation of an instance, made from images and removed again.
//!
//! Called by the reset strategies (from a snapshot) and by the baseline builder (from plain images). Everything made
//! bears the labels of its [`Ownership`], and removal goes by those labels, never by memory: what a crash or a lost
//! reply left behind is removed by the same code as what is known. Nothing here decides when.

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
use arenad_model::clock::ClockSetting;
use arenad_model::coverage::Traces;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::{DependencyCondition, ServiceSpec, Site};
use arenad_model::subnet::Subnet;
use arenad_storage::{Storage, StorageError};

pub use clock::check_clock;
pub use command::{CommandError, run};
pub use frozen::{FreezeError, freeze, thaw};
pub use inside::{Inside, InsideError};
pub use state::{
    StateMount, StateSource, exchange, fingerprint, fingerprint_of, fresh, knows_touched, save_state, state_mounts,
};
pub use volumes::{SavedVolumes, save_volumes};

/// How often a container is looked at while something is awaited of it.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Why an incarnation could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The engine refused or is gone.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// No address range is left for the instance's network.
    #[error("find a free /{prefix} for the instance's network in {block}")]
    NoSubnet {
        /// Where one was looked for.
        block: Subnet,
        /// The size wanted.
        prefix: u8,
    },
    /// A dependency did not come as far as another service needs it.
    #[error("start {service}: {dependency} {what}")]
    Dependency {
        /// The service that waits.
        service: ServiceName,
        /// The service it waits for.
        dependency: ServiceName,
        /// What happened instead.
        what: String,
    },
    /// A container has no address, because it does not run.
    #[error("find the address of {service}: its container {}", what_it_did(*.state))]
    NoAddress {
        /// The service.
        service: ServiceName,
        /// What its container is doing.
        state: ContainerState,
    },
    /// The state root refused something.
    #[error(transparent)]
    State(#[from] StorageError),
    /// A container has not the clock that the definition gives it.
    #[error("set the clock of {service} to {wanted}: {what}")]
    Clock {
        /// The service.
        service: ServiceName,
        /// What it should show.
        wanted: String,
        /// What is wrong.
        what: String,
    },
    /// A volume's archive could not be read or written.
    #[error("{doing} {path}")]
    Archive {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: std::io::Error,
    },
}

fn what_it_did(state: ContainerState) -> String {
    match state {
        ContainerState::Exited(code) => format!("ended with code {code}"),
        state => format!("is {state:?}").to_lowercase(),
    }
}

/// What an incarnation is made from.
#[derive(Debug, Clone)]
pub struct Blueprint<'a> {
    /// The instance.
    pub id: &'a InstanceId,
    /// The definition.
    pub site: &'a Site,
    /// Who it belongs to, generation included.
    pub ownership: Ownership,
    /// The image id of each service.
    pub images: BTreeMap<ServiceName, String>,
    /// The archives to fill volumes with, by service and mount path. Empty for builders.
    pub volumes: SavedVolumes,
    /// The snapshot's state, where it is kept outside of the images. None for builders.
    pub state: Option<StateSource<'a>>,
    /// Where address ranges are taken from.
    pub block: Subnet,
    /// What the containers take the time for; none: what the host does.
    pub clock: Option<ClockSetting>,
    /// How much the containers get of the processors.
    pub weight: CpuWeight,
}

/// The containers of one generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation {
    /// The generation.
    pub generation: u64,
    /// The generation that the containers were made for, which their labels name: an earlier one, where they have been
    /// brought back to the snapshot since.
    pub made: u64,
    /// The container of each service.
    pub containers: BTreeMap<ServiceName, EngineHandle>,
    /// The address of each service; empty until started.
    pub addresses: BTreeMap<ServiceName, IpAddr>,
    /// When the first container was started, in seconds since 1970 UTC; where log probes begin to read.
    pub started_at: i64,
    /// What the containers held outside of their stores before the first client. None: nobody knows, because it was not
    /// looked at or another daemon made them.
    pub pristine: Option<Arc<Traces>>,
}

impl Incarnation {
    /// Where a service listens.
    pub fn socket(&self, service: &ServiceName, port: u16) -> Option<SocketAddr> {
        self.addresses.get(service).map(|address| SocketAddr::new(*address, port))
    }
}

impl Blueprint<'_> {
    fn name(&self, part: Option<&str>) -> String {
        self.id.resource_name(self.ownership.generation, part, &self.ownership.installation)
    }

    fn container_name(&self, service: &ServiceName) -> String {
        let part = (self.site.services.len() > 1).then(|| service.as_str());
        let name = self.name(part);
        if self.ownership.role == labels::ROLE_BUILDER { format!("{name}-builder") } else { name }
    }

    /// Creates network, volumes and containers; starts nothing.
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

/// Asks the engine where the services of a running incarnation are.
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
            // A one-shot service that has done its work needs no address.
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
                return Err(failed(format!("ended with code {code}")));
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

/// Which of an instance's things to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remains<'a> {
    /// The installation they belong to.
    pub installation: &'a str,
    /// The instance they belong to.
    pub instance: &'a InstanceId,
    /// The role that they have.
    pub role: &'static str,
    /// Of which generations.
    pub which: Which<'a>,
}

/// Which generations are meant, by the labels of their containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    /// All.
    All,
    /// This one alone.
    Only(u64),
    /// All but these.
    Except(&'a [u64]),
}

impl Which<'_> {
    fn means(self, generation: u64) -> bool {
        match self {
            Self::All => true,
            Self::Only(meant) => generation == meant,
            Self::Except(kept) => !kept.contains(&generation),
        }
    }

    /// A label that is no number belongs to no generation that anyone could want.
    fn covers(self, label: Option<&String>) -> bool {
        match label.and_then(|label| label.parse().ok()) {
            Some(generation) => self.means(generation),
            None => !matches!(self, Self::Only(_)),
        }
    }
}

impl Remains<'_> {
    fn covers(&self, found: &BTreeMap<String, String>) -> bool {
        let is = |label: &str, value: &str| found.get(label).is_some_and(|found| found == value);
        is(labels::INSTALLATION, self.installation)
            && is(labels::INSTANCE, &self.instance.to_string())
            && is(labels::ROLE, self.role)
            && self.which.covers(found.get(labels::GENERATION))
    }
}

/// Why something of an instance could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The engine refused or is gone.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The state root refused something.
    #[error(transparent)]
    State(#[from] StorageError),
}

/// Removes containers, then networks, volumes and state. What is gone already is fine; the first other failure is returned
/// after everything has been tried.
pub async fn remove(engine: &dyn Engine, storage: Option<&Storage>, remains: Remains<'_>) -> Result<(), RemoveError> {
    let instance = remains.instance.to_string();
    let containers = engine.containers(labels::INSTANCE, &instance).await?;
    let ours = containers.iter().filter(|found| remains.covers(&found.labels));
    let mut outcome = first_error(futures_util::future::join_all(ours.map(|found| engine.remove(&found.handle))).await);
    for network in engine.networks(labels::INSTANCE, &instance).await? {
        if remains.covers(&network.labels) {
            outcome = outcome.and(engine.remove_network(&network.name).await);
        }
    }
    for volume in engine.volumes(labels::INSTANCE, &instance).await? {
        if remains.covers(&volume.labels) {
            outcome = outcome.and(engine.remove_volume(&volume.name).await);
        }
    }
    outcome?;
    if let Some(storage) = storage.filter(|_| remains.role == labels::ROLE_INSTANCE) {
        state::discard(storage, remains.instance, remains.which).await?;
    }
    Ok(())
}

fn first_error(results: Vec<Result<(), EngineError>>) -> Result<(), EngineError> {
    results.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}

/// Finds the containers that were made for a generation and run; `None` unless every service has one.
///
/// Used after a restart of the daemon, to take up what it finds rather than make it anew.
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

/// The same whatever they are doing, and without their addresses: those that are frozen can be let go on.
pub async fn find_containers(
    engine: &dyn Engine,
    site: &Site,
    installation: &str,
    instance: &InstanceId,
    made: u64,
) -> Result<Option<Incarnation>, LaunchError> {
    let remains = Remains { installation, instance, role: labels::ROLE_INSTANCE, which: Which::Only(made) };
    let found = engine.containers(labels::INSTANCE, &remains.instance.to_string()).await?;
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
