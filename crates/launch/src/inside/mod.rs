//! Looking into running containers from their host: what they can write to outside of the stores, what lies there, and which
//! processes hold the stores open.
//!
//! Everything is read through `/proc` of the host, which takes root's rights there and costs a few milliseconds: the
//! engine's own list of changes walks every layer of the image, which costs a second, and is asked only where the kernel does
//! not say where the writable layer lies. A container's content is hostile: no link of its is followed, and what is read is
//! bounded.
//!
//! Nothing here decides whether a difference matters; `domain::coverage` does.

mod entries;
mod mounts;
mod processes;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use futures_util::future::try_join_all;
use rustix::io::Errno;

use self::entries::Walk;
use self::mounts::{Layer, Mounts};
use super::Incarnation;
use arenad_engine::{ContainerState, Engine, EngineError, EngineHandle, LayerChange};
use arenad_model::cause::Cause;
use arenad_model::coverage::{Gap, ScratchRules, ServiceTraces, Traces, strangers};
use arenad_model::ids::ServiceName;
use arenad_model::site::Site;

/// How long processes that did not run before may take to end: the engine's own health checks come and go.
const STRANGERS_END_WITHIN: Duration = Duration::from_millis(300);
/// The pause between two looks at them.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why a container could not be looked into.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    /// The engine refused or is gone.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It does not run.
    #[error("look into {0}: its container does not run")]
    NotRunning(ServiceName),
    /// The system refused.
    #[error("look into {service}: {doing}")]
    System {
        /// The service.
        service: ServiceName,
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// What it held before the first client is not known.
    #[error("nobody knows what its containers held outside of the stores before the first client")]
    NotNoted,
    /// There is more than is ever compared.
    #[error("look into {service}: more than {limit} outside of its stores")]
    TooMuch {
        /// The service.
        service: ServiceName,
        /// The limit.
        limit: &'static str,
    },
}

impl InsideError {
    /// Returns the cause, if a person can do something specific about it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Engine(error) => error.cause(),
            Self::System { cause, .. } => Cause::of_io(cause),
            Self::NotRunning(_) | Self::NotNoted | Self::TooMuch { .. } => None,
        }
    }
}

/// What went wrong below a service, to be named with it.
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

/// The running containers of an incarnation, to be looked into. Holds as long as none of them is started anew.
pub struct Inside {
    containers: Vec<Container>,
}

impl Inside {
    /// Asks the engine for the containers' first processes. A one-shot service that has done its work has nothing that anyone
    /// could change.
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
                        Ok(Some(Container {
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

    /// The first process of a service's container, as this host counts; none where it is no process of this host.
    pub fn pid(&self, service: &ServiceName) -> Option<u32> {
        self.on_this_host().find(|container| container.service == *service).map(|container| container.pid)
    }

    /// What the containers hold outside of their stores. What is scratch is not looked at.
    ///
    /// Cancellation: safe at any point; nothing is changed.
    pub async fn traces(&self, engine: &dyn Engine) -> Result<Traces, InsideError> {
        let looks = self.containers.iter().map(|container| async move {
            if container.is_told {
                let entries = engine.written(&container.handle).await?.unwrap_or_default();
                return Ok((container.service.clone(), ServiceTraces { entries, ..ServiceTraces::default() }));
            }
            let found = match container.blocking(|container| container.traces(None)).await? {
                Some(found) => found,
                // Only the engine knows what has changed.
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

    fn on_this_host(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(|container| !container.is_told)
    }

    /// Looks whether the writers are at rest: which processes hold a file or folder of a store open, and which run that did
    /// not `before` the first client. Those get a moment to end.
    ///
    /// Cancellation: safe at any point; nothing is changed.
    pub async fn processes(&self, before: &Traces) -> Result<Vec<Gap>, InsideError> {
        let looks = self.on_this_host().map(|container| async move {
            let deadline = tokio::time::Instant::now() + STRANGERS_END_WITHIN;
            loop {
                let list = |container: &Container| processes::list(container.pid, &container.mounts()?, true);
                let found = container.blocking(list).await?;
                let service = &container.service;
                let commands: BTreeSet<String> = found.iter().map(|process| process.command.clone()).collect();
                let mut gaps = strangers(service, before, &commands);
                gaps.extend(found.into_iter().filter_map(|process| {
                    let holds = Some(process.holds?);
                    Some(Gap::Process { service: service.clone(), command: process.command, holds })
                }));
                if gaps.is_empty() || tokio::time::Instant::now() >= deadline {
                    // A process that holds something says more than one that merely runs.
                    gaps.sort_by_key(|gap| matches!(gap, Gap::Process { holds: None, .. }));
                    return Ok::<_, InsideError>(gaps);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        Ok(try_join_all(looks).await?.into_iter().flatten().collect())
    }

    /// Empties the folders that the definition wants emptied. Their writers are at rest.
    pub async fn empty_scratch(&self) -> Result<(), InsideError> {
        for container in self.on_this_host().filter(|container| !container.rules.emptied().is_empty()) {
            let empty = |container: &Container| {
                container.rules.emptied().iter().try_for_each(|folder| entries::empty(container.pid, folder))
            };
            container.blocking(empty).await?;
        }
        Ok(())
    }
}

/// A running container of a service.
#[derive(Clone)]
struct Container {
    service: ServiceName,
    handle: EngineHandle,
    /// Its first process, as this host counts.
    pid: u32,
    /// Whether the engine tells what it has written: then it is no process of this host.
    is_told: bool,
    /// The paths at which its stores are mounted.
    stores: BTreeSet<String>,
    rules: ScratchRules,
}

impl Container {
    fn mounts(&self) -> Result<Mounts, Failed> {
        Mounts::of(self.pid, &self.stores)
    }

    /// None: where its writable layer lies is not known, and neither are its `changes`.
    fn traces(&self, changes: Option<&[LayerChange]>) -> Result<Option<ServiceTraces>, Failed> {
        let mounts = self.mounts()?;
        if mounts.layer == Layer::Unknown && changes.is_none() {
            return Ok(None);
        }
        let mut walk = Walk::begin(self.pid, &mounts, &self.rules)?;
        match (&mounts.layer, changes) {
            (Layer::ReadOnly, _) => {}
            (Layer::Overlay { upper, lower }, _) => walk.overlay(upper, lower)?,
            (Layer::Unknown, changes) => walk.changes(changes.unwrap_or_default())?,
        }
        for path in &mounts.memory {
            walk.mount(path)?;
        }
        let commands = processes::list(self.pid, &mounts, false)?.into_iter().map(|process| process.command).collect();
        Ok(Some(ServiceTraces { entries: walk.end(), commands, places: mounts.others }))
    }

    /// Work on files, away from the threads that serve.
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
