//! Inspects running containers from their host: the places outside the stores that they can write to, the content of
//! these places, and the processes that hold the stores open.
//!
//! All of this is read through `/proc` of the host, which requires root privileges and takes a few milliseconds. The
//! engine's own list of changes takes a second, because it compares every layer of the image, and is used only if the
//! kernel does not reveal the location of the writable layer. The content of a container is hostile: its links are
//! never followed, and the amount of data that is read is bounded.
//!
//! This module does not decide whether a difference matters; `arenad_model::coverage` does.

mod entries;
mod mounts;
mod processes;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use futures_util::future::try_join_all;
use rustix::io::Errno;

use self::entries::ContainerWalk;
use self::mounts::{Mounts, WritableLayer};
use super::Incarnation;
use arenad_engine::{ContainerState, Engine, EngineError, EngineHandle, LayerChange};
use arenad_model::cause::Cause;
use arenad_model::coverage::{Gap, ScratchRules, ServiceTraces, Traces, strangers};
use arenad_model::ids::ServiceName;
use arenad_model::site::Site;

/// The time within which processes that did not run before must end. The engine's own health checks start such
/// processes.
const STRANGERS_END_WITHIN: Duration = Duration::from_millis(300);
/// The pause between two listings of those processes.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The reason why a container could not be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    /// The engine refused a request or is unreachable.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The container of the service does not run.
    #[error("look into {0}: its container does not run")]
    NotRunning(ServiceName),
    /// An operation of the system failed.
    #[error("look into {service}: {doing}")]
    System {
        /// The service whose container was inspected.
        service: ServiceName,
        /// The failed action, as an imperative phrase.
        doing: String,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The content of the containers before the first client is unknown.
    #[error("the content of its containers outside of the stores before the first client is unknown")]
    NotNoted,
    /// The container has more content than is ever compared.
    #[error("look into {service}: more than {limit} outside of its stores")]
    TooMuch {
        /// The service whose container was inspected.
        service: ServiceName,
        /// The limit that was exceeded, with its unit.
        limit: &'static str,
    },
}

impl InsideError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Engine(error) => error.cause(),
            Self::System { cause, .. } => Cause::of_io(cause),
            Self::NotRunning(_) | Self::NotNoted | Self::TooMuch { .. } => None,
        }
    }
}

/// A failure without the service, which the caller adds.
#[derive(Debug)]
enum Failed {
    System { doing: String, cause: io::Error },
    TooMuch(&'static str),
}

impl Failed {
    fn at(doing: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let doing = doing.into();
        move |cause| Self::System { doing, cause: cause.into() }
    }

    fn of(self, service: &ServiceName) -> InsideError {
        let service = service.clone();
        match self {
            Self::System { doing, cause } => InsideError::System { service, doing, cause },
            Self::TooMuch(limit) => InsideError::TooMuch { service, limit },
        }
    }
}

/// The running containers of an incarnation, for inspection. The value is valid until one of them is restarted.
pub struct InspectedContainers {
    containers: Vec<RunningContainer>,
}

impl InspectedContainers {
    /// Reads the first processes of the containers from the engine. A one-shot service that has finished is left out,
    /// because its content can no longer change.
    pub async fn of(engine: &dyn Engine, site: &Site, incarnation: &Incarnation) -> Result<Self, InsideError> {
        let mut stores: BTreeMap<ServiceName, BTreeSet<String>> = BTreeMap::new();
        for (service, path) in site.state_mounts() {
            stores.entry(service).or_default().insert(path);
        }
        let looks = incarnation.containers.iter().map(|(service, handle)| {
            let stores = stores.remove(service).unwrap_or_default();
            async move {
                let status = engine.inspect(handle).await?;
                match (status.pid, status.state) {
                    (Some(pid), ContainerState::Running) => {
                        let is_told = engine.written(handle).await?.is_some();
                        let rules = ScratchRules::of(&site.scratch, service);
                        Ok(Some(RunningContainer {
                            service: service.clone(),
                            handle: handle.clone(),
                            pid,
                            is_told,
                            stores,
                            rules,
                        }))
                    }
                    (_, ContainerState::Exited(0)) if !incarnation.addresses.contains_key(service) => Ok(None),
                    _ => Err(InsideError::NotRunning(service.clone())),
                }
            }
        });
        let containers = try_join_all(looks.collect::<Vec<_>>()).await?.into_iter().flatten().collect();
        Ok(Self { containers })
    }

    /// Returns the first process of a service's container by its id on this host. `None` if the container's processes
    /// do not run on this host.
    pub fn pid(&self, service: &ServiceName) -> Option<u32> {
        self.on_this_host().find(|container| container.service == *service).map(|container| container.pid)
    }

    /// Returns the content of the containers outside their stores. Scratch is left out.
    ///
    /// Cancellation: safe at any point, because nothing is changed.
    pub async fn traces(&self, engine: &dyn Engine) -> Result<Traces, InsideError> {
        let looks = self.containers.iter().map(|container| async move {
            if container.is_told {
                let entries = engine.written(&container.handle).await?.unwrap_or_default();
                return Ok((container.service.clone(), ServiceTraces { entries, ..ServiceTraces::default() }));
            }
            let found = match container.blocking(|container| container.traces(None)).await? {
                Some(found) => found,
                // The location of the writable layer is known only to the engine, which then lists the changes.
                None => {
                    let changes = engine.changes(&container.handle).await?;
                    let found = container.blocking(move |container| container.traces(Some(&changes))).await?;
                    found.unwrap_or_default()
                }
            };
            Ok::<_, InsideError>((container.service.clone(), found))
        });
        Ok(try_join_all(looks).await?.into_iter().collect())
    }

    fn on_this_host(&self) -> impl Iterator<Item = &RunningContainer> {
        self.containers.iter().filter(|container| !container.is_told)
    }

    /// Checks whether the writers are stopped. Returns the processes that hold a file or folder of a store open, and
    /// those that did not run `before` the first client. The latter get a short time to end.
    ///
    /// Cancellation: safe at any point, because nothing is changed.
    pub async fn processes(&self, before: &Traces) -> Result<Vec<Gap>, InsideError> {
        let looks = self.on_this_host().map(|container| async move {
            let deadline = tokio::time::Instant::now() + STRANGERS_END_WITHIN;
            loop {
                let list = |container: &RunningContainer| processes::list(container.pid, &container.mounts()?, true);
                let found = container.blocking(list).await?;
                let service = &container.service;
                let commands: BTreeSet<String> = found.iter().map(|process| process.command.clone()).collect();
                let mut gaps = strangers(service, before, &commands);
                gaps.extend(found.into_iter().filter_map(|process| {
                    let holds = Some(process.holds?);
                    Some(Gap::Process { service: service.clone(), command: process.command, holds })
                }));
                if gaps.is_empty() || tokio::time::Instant::now() >= deadline {
                    // A process that holds a store open is more informative than one that merely runs.
                    gaps.sort_by_key(|gap| matches!(gap, Gap::Process { holds: None, .. }));
                    return Ok::<_, InsideError>(gaps);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        Ok(try_join_all(looks).await?.into_iter().flatten().collect())
    }

    /// Empties the folders that the definition declares as emptied. Their writers must be stopped.
    pub async fn empty_scratch(&self) -> Result<(), InsideError> {
        for container in self.on_this_host().filter(|container| !container.rules.emptied().is_empty()) {
            let empty = |container: &RunningContainer| {
                container.rules.emptied().iter().try_for_each(|folder| entries::empty(container.pid, folder))
            };
            container.blocking(empty).await?;
        }
        Ok(())
    }
}

/// A running container of a service.
#[derive(Clone)]
struct RunningContainer {
    service: ServiceName,
    handle: EngineHandle,
    /// The id of the container's first process on this host.
    pid: u32,
    /// Whether the engine itself reports the content that the container has written. Its processes then do not run on
    /// this host.
    is_told: bool,
    /// The paths at which the container's stores are mounted.
    stores: BTreeSet<String>,
    rules: ScratchRules,
}

impl RunningContainer {
    fn mounts(&self) -> Result<Mounts, Failed> {
        Mounts::of(self.pid, &self.stores)
    }

    /// Returns the content of the container. `None` if the location of its writable layer is unknown and `changes` is
    /// not given.
    fn traces(&self, changes: Option<&[LayerChange]>) -> Result<Option<ServiceTraces>, Failed> {
        let mounts = self.mounts()?;
        if mounts.layer == WritableLayer::Unknown && changes.is_none() {
            return Ok(None);
        }
        let mut walk = ContainerWalk::begin(self.pid, &mounts, &self.rules)?;
        match (&mounts.layer, changes) {
            (WritableLayer::ReadOnly, _) => {}
            (WritableLayer::Overlay { upper, lower }, _) => walk.overlay(upper, lower)?,
            (WritableLayer::Unknown, changes) => walk.changes(changes.unwrap_or_default())?,
        }
        for path in &mounts.memory {
            walk.mount(path)?;
        }
        let commands = processes::list(self.pid, &mounts, false)?.into_iter().map(|process| process.command).collect();
        Ok(Some(ServiceTraces { entries: walk.end(), commands, places: mounts.others }))
    }

    /// Runs blocking work on files through [`arenad_seams::inline::blocking`].
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, InsideError> {
        let container = self.clone();
        let done = arenad_seams::inline::blocking(move || work(&container)).await;
        let done = done.unwrap_or_else(|error| {
            Err(Failed::System { doing: "work on its files".to_owned(), cause: io::Error::other(error) })
        });
        done.map_err(|failed| failed.of(&self.service))
    }
}
