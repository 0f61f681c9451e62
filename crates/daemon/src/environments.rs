//! The environments that are up: their definitions, and the drivers of their instances.
//!
//! One lock serializes bringing up, taking down and restoring. Resets and status queries do not take it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};

use globset::{GlobBuilder, GlobSetBuilder};

use super::imports;
use super::reconcile::{self, Hands};
use super::stranded::{AllStranded, Stranded};
use arenad_baseline::{BaselineError, snapshot};
use arenad_definition::{self as definition, DefinitionSources, Diagnostics, SourceFile};
use arenad_doctor::judge::capacity;
use arenad_doctor::{Finding, Level, gather};
use arenad_engine::{EngineEvent, Image, labels};
use arenad_gateway::{HoldLimits, OpenError, RecordingFilter, Route, WriteRules};
use arenad_instance::shared::SharedParts;
use arenad_instance::{self as instance, AskError, InstanceHandle, OperationOutcome, Ticket};
use arenad_launch::{GenerationSelector, Remains, RemoveError};
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::ids::SiteName;
use arenad_model::instance::{InstanceFailure, InstanceId, InstanceState, InstanceStatus};
use arenad_model::request_queue::{InstanceRequest, Purpose, Want};
use arenad_model::site::{Environment, RecordedRequests, Site};
use arenad_store::{StoreError, StoredEnvironment};

/// The reason why an environment could not be brought up, taken down or found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    /// The definition is invalid.
    #[error("understand the definition:\n{0}")]
    Definition(Diagnostics),
    /// No environment of that name is up.
    #[error("find environment {name}: {}", if known.is_empty() { "none is up".to_owned() } else { format!("up are {}", known.join(", ")) })]
    UnknownEnvironment {
        /// The name that the request gave.
        name: String,
        /// The names of the environments that are up.
        known: Vec<String>,
    },
    /// The environment has no site of that name.
    #[error("find site {name} in {environment}: it has {}", known.join(", "))]
    UnknownSite {
        /// The name of the environment.
        environment: String,
        /// The name that the request gave.
        name: String,
        /// The names of the environment's sites.
        known: Vec<String>,
    },
    /// Public ports of the sites are taken.
    #[error("open the public ports: {}", list_taken(.0))]
    PortsTaken(Vec<TakenPort>),
    /// The host has too little memory, disk space or processors for the sites.
    #[error("start the sites: {}", .0.iter().map(|finding| finding.seen.as_str()).collect::<Vec<_>>().join("; "))]
    DoesNotFit(Vec<Finding>),
    /// A purge was requested while environments are up.
    #[error("purge: {} is up", .0.join(", "))]
    StillUp(Vec<String>),
    /// The driver of an instance refused the request.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// An operation of the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A snapshot or image could not be removed.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// The engine reported an error.
    #[error(transparent)]
    Engine(#[from] arenad_engine::EngineError),
    /// The remains of a site could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// A new daemon could not restore the environment.
    #[error("use environment {name}, which could not be restored: {}", .trouble.reason)]
    Stranded {
        /// The name of the environment.
        name: String,
        /// The reason why it could not be restored.
        trouble: InstanceFailure,
    },
    /// Sites that are up would be recreated, because variables with which they were brought up are not set now.
    #[error(
        "{} of {environment} would be made anew and lose what was written: {} set when it came up, and {} not set now",
        sites.join(", "), list_variables(variables), if variables.len() == 1 { "is" } else { "are" }
    )]
    OtherVariables {
        /// The name of the environment.
        environment: String,
        /// The names of the sites that would be recreated.
        sites: Vec<String>,
        /// The names of the missing variables.
        variables: Vec<String>,
    },
    /// Sites could not be taken down.
    #[error("take down {}", .0.iter().map(|(site, trouble)| format!("{site}: {}", trouble.reason)).collect::<Vec<_>>().join("; "))]
    NotDown(Vec<(String, InstanceFailure)>),
}

/// A public port on which another process listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenPort {
    /// The site whose port it is.
    pub site: String,
    /// The address of the port.
    pub address: SocketAddr,
    /// The process that holds the port, or another reason why it could not be opened.
    pub owner: String,
}

fn list_taken(taken: &[TakenPort]) -> String {
    let shown: Vec<String> =
        taken.iter().map(|port| format!("{} (for {}) is held by {}", port.address, port.site, port.owner)).collect();
    shown.join("; ")
}

fn list_variables(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "was" } else { "were" })
}

/// Options of bringing sites up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UpOptions {
    /// Whether to start the sites even if memory, disk space or processors do not suffice.
    pub force: bool,
    /// Whether to recreate sites that are up with variables that are not given now.
    pub recreate: bool,
    /// Whether to keep the containers of a baseline that cannot be made.
    pub keep_failed: bool,
}

/// The operations that `up` has begun.
pub(crate) struct StartedOperations {
    /// Each site, with a ticket for the end of its operation.
    pub operations: Vec<(InstanceHandle, Ticket)>,
    /// Findings about the host's resources that may make the operations fail.
    pub warnings: Vec<Finding>,
}

struct RunningEnvironment {
    definition: Environment,
    instances: BTreeMap<SiteName, InstanceHandle>,
}

impl RunningEnvironment {
    /// Returns the handles of its sites, in the definition's order.
    fn handles(&self) -> Vec<InstanceHandle> {
        self.definition.sites.iter().filter_map(|site| self.instances.get(&site.name).cloned()).collect()
    }
}

/// The registry of the environments that are up, and the lock under which they change.
pub struct EnvironmentRegistry {
    shared: Arc<SharedParts>,
    running: RwLock<BTreeMap<String, RunningEnvironment>>,
    stranded: AllStranded,
    change: tokio::sync::Mutex<()>,
    reconciled: tokio::sync::Mutex<reconcile::Memory>,
}

impl EnvironmentRegistry {
    /// Returns a registry without environments.
    pub fn new(shared: Arc<SharedParts>) -> Self {
        Self {
            shared,
            running: RwLock::default(),
            stranded: AllStranded::default(),
            change: tokio::sync::Mutex::default(),
            reconciled: tokio::sync::Mutex::default(),
        }
    }

    fn read<T>(&self, look: impl FnOnce(&BTreeMap<String, RunningEnvironment>) -> T) -> T {
        // A panic while the lock is held leaves a consistent map, because every change is a single insertion or
        // removal.
        look(&self.running.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut BTreeMap<String, RunningEnvironment>) -> T) -> T {
        change(&mut self.running.write().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Returns each environment with the handles of its sites, in the definition's order.
    pub(crate) fn list(&self) -> Vec<(Environment, Vec<InstanceHandle>)> {
        self.read(|running| {
            running.values().map(|environment| (environment.definition.clone(), environment.handles())).collect()
        })
    }

    /// Returns the host name in an environment's public URLs.
    pub(crate) fn host(&self, name: &str) -> Option<String> {
        self.read(|running| running.get(name).map(|running| running.definition.host.clone()))
    }

    /// Returns the definition with which an environment was brought up.
    pub(crate) fn definition(&self, name: &str) -> Option<Environment> {
        self.read(|running| running.get(name).map(|running| running.definition.clone()))
    }

    /// Returns the environments that could not be restored.
    pub(crate) fn stranded(&self) -> Vec<Stranded> {
        self.stranded.list()
    }

    /// Returns the handle of one site of an environment that is up.
    pub fn handle(&self, environment: &str, site: &str) -> Option<InstanceHandle> {
        self.read(|running| {
            let mut instances = running.get(environment)?.instances.iter();
            instances.find(|(name, _)| name.as_str() == site).map(|(_, handle)| handle.clone())
        })
    }

    /// Returns the handles of the named sites of an environment, or of all its sites if none is named.
    pub(crate) fn choose(&self, name: &str, sites: &[String]) -> Result<Vec<InstanceHandle>, EnvironmentError> {
        let found = self.read(|running| running.get(name).map(RunningEnvironment::handles));
        let Some(handles) = found else {
            if let Some(stranded) = self.stranded.get(name) {
                return Err(EnvironmentError::Stranded { name: name.to_owned(), trouble: stranded.trouble });
            }
            let known =
                self.read(|running| running.values().map(|running| running.definition.name.to_string()).collect());
            return Err(EnvironmentError::UnknownEnvironment { name: name.to_owned(), known });
        };
        if sites.is_empty() {
            return Ok(handles);
        }
        sites
            .iter()
            .map(|site| {
                handles.iter().find(|handle| handle.site.name.as_str() == site).cloned().ok_or_else(|| {
                    EnvironmentError::UnknownSite {
                        environment: name.to_owned(),
                        name: site.clone(),
                        known: handles.iter().map(|handle| handle.site.name.to_string()).collect(),
                    }
                })
            })
            .collect()
    }

    /// Locks bringing up and taking down, and returns the objects that the drivers work with.
    pub(crate) async fn in_turn(&self) -> (tokio::sync::MutexGuard<'_, ()>, Hands) {
        let turn = self.change.lock().await;
        (turn, self.hands())
    }

    /// Returns the objects that the drivers work with.
    fn hands(&self) -> Hands {
        let mut hands = Hands::default();
        for handle in self.read(|running| running.values().flat_map(RunningEnvironment::handles).collect::<Vec<_>>()) {
            let id = handle.id.clone();
            handle.with_report(|report| {
                let works = matches!(
                    report.state.status(),
                    InstanceStatus::Preparing
                        | InstanceStatus::Starting
                        | InstanceStatus::Resetting
                        | InstanceStatus::Stopping
                );
                hands.standbys.insert(id.clone(), report.standbys.members.iter().map(|(made, _)| *made).collect());
                if let Some(incarnation) = &report.incarnation {
                    hands.serving.insert(id.clone(), incarnation.made);
                }
                if works || report.stage.is_some() {
                    hands.busy.insert(id);
                }
            });
        }
        hands
    }

    /// Removes orphans from the engine: immediately at a daemon's start, later after a grace period.
    pub(crate) async fn reconcile(&self, at_start: bool) {
        let _turn = self.change.lock().await;
        let mut memory = self.reconciled.lock().await;
        reconcile::pass(&self.shared, || self.hands(), &mut memory, at_start).await;
    }

    /// Brings the named sites up, or all if none is named; returns when the work has begun. Sites that do not fit on
    /// the host are refused, unless `options` forces them.
    pub(crate) async fn up(
        &self,
        stored: StoredEnvironment,
        sites: &[String],
        options: UpOptions,
    ) -> Result<StartedOperations, EnvironmentError> {
        let _turn = self.change.lock().await;
        let definition = self.read_definition(&stored)?;
        if !options.recreate {
            self.insist_on_variables(&stored, &definition, &choose_sites(&definition, sites)?).await?;
        }
        for site in choose_sites(&definition, sites)? {
            let id = InstanceId::serving(&definition.name, &site.name);
            self.shared.baselines.kept_builds.wish(&id, options.keep_failed);
        }
        let doubts = self.doubts(&definition, &choose_sites(&definition, sites)?).await;
        let (problems, mut warnings): (Vec<Finding>, _) =
            doubts.into_iter().partition(|finding| finding.level == Level::Problem);
        if options.force {
            warnings.extend(problems);
        } else if !problems.is_empty() {
            return Err(EnvironmentError::DoesNotFit(problems));
        }
        Ok(StartedOperations {
            operations: self.up_in_turn(stored, definition, sites, Purpose::Client).await?,
            warnings,
        })
    }

    /// Refuses to recreate serving sites if the files are unchanged and the only difference is that a variable of the
    /// earlier shell is missing in this one: not repeating a choice does not revoke it.
    async fn insist_on_variables(
        &self,
        stored: &StoredEnvironment,
        definition: &Environment,
        chosen: &[&Site],
    ) -> Result<(), EnvironmentError> {
        let name = definition.name.as_str();
        let known = self.shared.store.environments().await?;
        let Some(before) = known.into_iter().find(|known| known.name == name) else { return Ok(()) };
        let is_same = before.environment == stored.environment
            && before.compose == stored.compose
            && before.dotenv == stored.dotenv;
        let missing: Vec<String> =
            before.variables.keys().filter(|name| !stored.variables.contains_key(*name)).cloned().collect();
        if !is_same || missing.is_empty() {
            return Ok(());
        }
        let changed = self.changed(definition, chosen).into_iter().filter(|(_, handle)| handle.report().state.serves());
        let sites: Vec<String> = changed.map(|(site, _)| site.to_string()).collect();
        if sites.is_empty() {
            return Ok(());
        }
        Err(EnvironmentError::OtherVariables { environment: name.to_owned(), sites, variables: missing })
    }

    fn read_definition(&self, stored: &StoredEnvironment) -> Result<Environment, EnvironmentError> {
        (self.shared.read_definition)(stored).map_err(EnvironmentError::Definition)
    }

    /// Returns the findings that speak against starting those of the sites that are not up.
    async fn doubts(&self, definition: &Environment, chosen: &[&Site]) -> Vec<Finding> {
        let is_up = |site: &Site| {
            self.read(|running| {
                let handle = running.get(definition.name.as_str()).and_then(|found| found.instances.get(&site.name));
                handle.is_some_and(|handle| {
                    !handle.with_report(|report| matches!(report.state, InstanceState::Down | InstanceState::Failed(_)))
                })
            })
        };
        let new: Vec<&Site> = chosen.iter().copied().filter(|site| !is_up(site)).collect();
        if new.is_empty() {
            return Vec::new();
        }
        let engine = self.shared.engine.as_ref();
        // If the engine does not answer, the drivers report it.
        let Ok(version) = engine.version().await else { return Vec::new() };
        let needs = gather::needs(Some(engine), definition, &new).await;
        let resources = self.shared.machine.resources(&version.root, self.shared.state_dir.path(), definition);
        let findings = capacity::judge(&needs, &resources);
        findings.into_iter().filter(|finding| finding.level >= Level::Warning).collect()
    }

    /// Brings sites up; the caller holds the lock. Nothing that runs is touched before the ports of all chosen sites
    /// are open, except for ports that become free only when a changed site is taken down.
    async fn up_in_turn(
        &self,
        mut stored: StoredEnvironment,
        definition: Environment,
        sites: &[String],
        purpose: Purpose,
    ) -> Result<Vec<(InstanceHandle, Ticket)>, EnvironmentError> {
        // The name in the file counts, not the one in the request's URL.
        stored.name = definition.name.to_string();
        let chosen = choose_sites(&definition, sites)?;
        let changed = self.changed(&definition, &chosen);
        let held: BTreeSet<SocketAddr> = self.addresses(definition.name.as_str());
        let is_new = |site: &Site| {
            let is_present = self.read(|running| {
                running.get(definition.name.as_str()).is_some_and(|found| found.instances.contains_key(&site.name))
            });
            !is_present || changed.contains_key(&site.name)
        };
        let new: Vec<&Site> = chosen.iter().copied().filter(|site| is_new(site)).collect();
        let address = |site: &Site| SocketAddr::new(definition.listen, site.public.port);
        let (later, now): (Vec<&Site>, _) = new.iter().copied().partition(|site| held.contains(&address(site)));
        let mut routes = self.open_ports(&definition, &now).await?;
        let begun = async {
            self.retire(definition.name.as_str(), changed).await?;
            routes.extend(self.open_ports(&definition, &later).await?);
            self.install(&stored, &definition, &chosen, &new, &mut routes).await
        };
        let handles = match begun.await {
            Ok(handles) => handles,
            Err(error) => {
                for route in routes.into_values() {
                    route.close().await;
                }
                return Err(error);
            }
        };
        let mut begun = Vec::new();
        for handle in handles {
            let ticket = handle.ask_for(InstanceRequest { want: Want::Up, purpose }).await?;
            begun.push((handle, ticket));
        }
        Ok(begun)
    }

    /// Creates drivers for the new sites, and returns the handles of the chosen ones.
    async fn install(
        &self,
        stored: &StoredEnvironment,
        definition: &Environment,
        chosen: &[&Site],
        new: &[&Site],
        routes: &mut BTreeMap<SiteName, Route>,
    ) -> Result<Vec<InstanceHandle>, EnvironmentError> {
        let id = |site: &Site| InstanceId::serving(&definition.name, &site.name);
        let wanted: Vec<InstanceId> = chosen.iter().map(|site| id(site)).collect();
        self.shared.store.save_environment(stored, &wanted).await?;
        let mut rows = BTreeMap::new();
        for site in new {
            rows.insert(site.name.clone(), self.shared.store.instance(&id(site)).await?);
        }
        // Nothing fails from here on, so every route gets a driver.
        let mut instances = self.read(|running| {
            running.get(definition.name.as_str()).map(|running| running.instances.clone()).unwrap_or_default()
        });
        for site in new {
            if let Some(route) = routes.remove(&site.name) {
                let row = rows.remove(&site.name).flatten();
                let handle = instance::spawn(&self.shared, id(site), Arc::new((*site).clone()), route, row);
                instances.insert(site.name.clone(), handle);
            }
        }
        let handles = chosen.iter().filter_map(|site| instances.get(&site.name).cloned()).collect();
        self.stranded.forget(definition.name.as_str());
        let running = RunningEnvironment { definition: definition.clone(), instances };
        self.write(|environments| environments.insert(definition.name.to_string(), running));
        Ok(handles)
    }

    /// Returns the sites that have a driver and whose definition has changed or is gone.
    fn changed(&self, definition: &Environment, chosen: &[&Site]) -> BTreeMap<SiteName, InstanceHandle> {
        let mut present = self.read(|running| {
            running.get(definition.name.as_str()).map(|running| running.instances.clone()).unwrap_or_default()
        });
        present.retain(|_, handle| {
            let now = chosen.iter().find(|site| site.name == handle.site.name);
            let is_gone = !definition.sites.iter().any(|site| site.name == handle.site.name);
            is_gone || now.is_some_and(|site| **site != *handle.site)
        });
        present
    }

    /// Returns the public addresses that the sites of an environment hold.
    fn addresses(&self, environment: &str) -> BTreeSet<SocketAddr> {
        self.read(|running| {
            let Some(RunningEnvironment { definition, instances }) = running.get(environment) else {
                return BTreeSet::new();
            };
            instances.values().map(|handle| SocketAddr::new(definition.listen, handle.site.public.port)).collect()
        })
    }

    /// Takes down sites whose definition has changed; the caller brings them up again with the new one.
    async fn retire(
        &self,
        environment: &str,
        changed: BTreeMap<SiteName, InstanceHandle>,
    ) -> Result<(), EnvironmentError> {
        for (name, handle) in changed {
            let ticket = handle.ask(Want::Down).await?;
            if let Some(trouble) = not_done(ticket.wait().await) {
                return Err(EnvironmentError::NotDown(vec![(name.to_string(), trouble)]));
            }
            self.dismiss(environment, &name, handle).await;
        }
        Ok(())
    }

    /// Drops the handle of a driver, and waits until the driver has ended and its port is free.
    async fn dismiss(&self, environment: &str, site: &SiteName, handle: InstanceHandle) {
        self.write(|running| running.get_mut(environment).and_then(|running| running.instances.remove(site)));
        let mut changes = handle.changes();
        drop(handle);
        while changes.changed().await.is_ok() {}
    }

    /// Opens the public ports of all the sites, or of none if one fails, before any container of them is started.
    async fn open_ports(
        &self,
        definition: &Environment,
        sites: &[&Site],
    ) -> Result<BTreeMap<SiteName, Route>, EnvironmentError> {
        let mut routes = BTreeMap::new();
        let mut taken = Vec::new();
        for site in sites {
            let address = SocketAddr::new(definition.listen, site.public.port);
            let hold = HoldLimits { requests: site.reset.hold_requests, timeout: site.reset.hold_timeout };
            let (rules, record) = (write_rules(site), record(site));
            match self.shared.gateway.open(address, hold, rules, record, site.name.as_str()) {
                Ok(route) => {
                    routes.insert(site.name.clone(), route);
                }
                Err(error) => {
                    let owner = match error {
                        OpenError::PortTaken { .. } => {
                            self.shared.machine.port_owner(self.shared.engine.as_ref(), address).await
                        }
                        error => describe(&error),
                    };
                    taken.push(TakenPort { site: site.name.to_string(), address, owner });
                }
            }
        }
        if taken.is_empty() {
            return Ok(routes);
        }
        for route in routes.into_values() {
            route.close().await;
        }
        Err(EnvironmentError::PortsTaken(taken))
    }

    /// Takes the named sites down, or all if none is named, and waits for the end. With `purge`, it also removes their
    /// snapshots and the images built for them.
    pub(crate) async fn down(&self, name: &str, sites: &[String], purge: bool) -> Result<(), EnvironmentError> {
        let _turn = self.change.lock().await;
        if let Some(stranded) = self.stranded.get(name) {
            return self.remove_stranded(&stranded, sites, purge).await;
        }
        let handles = self.choose(name, sites)?;
        let mut tickets = Vec::new();
        for handle in handles {
            self.shared.store.unwant_instance(&handle.id).await?;
            let ticket = handle.ask(Want::Down).await?;
            tickets.push((handle, ticket));
        }
        let mut troubled = Vec::new();
        let mut gone = Vec::new();
        for (handle, ticket) in tickets {
            match not_done(ticket.wait().await) {
                Some(trouble) => troubled.push((handle.site.name.to_string(), trouble)),
                None => {
                    gone.push(handle.site.clone());
                    let site = handle.site.name.clone();
                    self.dismiss(name, &site, handle).await;
                }
            }
        }
        if purge {
            self.purge(name, &gone).await?;
        }
        let is_empty = self.read(|running| running.get(name).is_none_or(|running| running.instances.is_empty()));
        if is_empty {
            self.shared.store.forget_environment(name).await?;
            self.write(|running| running.remove(name));
            let message = format!("environment {name} is down");
            self.shared.events.note(EventKind::EnvironmentDown, None, &message).await;
        }
        if troubled.is_empty() { Ok(()) } else { Err(EnvironmentError::NotDown(troubled)) }
    }

    async fn purge(&self, environment: &str, sites: &[Arc<Site>]) -> Result<(), EnvironmentError> {
        let engine = self.shared.engine.as_ref();
        for stored in self.shared.store.snapshots().await? {
            if sites.iter().any(|site| stored.is_of(environment, site.name.as_str())) {
                snapshot::remove(&self.shared.baselines, &stored).await?;
            }
        }
        let still_needed: BTreeSet<String> = self.read(|running| {
            let handles = running.values().flat_map(|running| running.instances.values());
            handles.flat_map(|handle| handle.site.services.iter().map(|service| service.image.clone())).collect()
        });
        let built = sites.iter().flat_map(|site| &site.services).filter(|service| service.build.is_some());
        let mut tags: BTreeSet<String> = built.map(|service| service.image.clone()).collect();
        tags.retain(|tag| !still_needed.contains(tag));
        // An installation with snapshots may come up again and need its images. An installation without snapshots no
        // longer exists.
        let snapshots = engine.images(labels::ROLE, Some(labels::ROLE_SNAPSHOT)).await?;
        let others: BTreeSet<String> =
            snapshots.iter().filter_map(owner).filter(|owner| *owner != self.shared.installation).collect();
        for tag in tags {
            if let Some(image) = engine.image(&tag).await?
                && owner(&image).is_none_or(|owner| !others.contains(&owner))
            {
                remove_unused(engine, &image.id).await?;
            }
        }
        if still_needed.is_empty() { self.purge_images().await } else { Ok(()) }
    }

    /// Removes all snapshots and all images that were built here; refused while any environment is up.
    pub(crate) async fn purge_all(&self) -> Result<(), EnvironmentError> {
        let turn = self.change.lock().await;
        let up: Vec<String> = self.read(|running| running.keys().cloned().collect());
        if !up.is_empty() {
            return Err(EnvironmentError::StillUp(up));
        }
        for stored in self.shared.store.snapshots().await? {
            snapshot::remove(&self.shared.baselines, &stored).await?;
        }
        imports::give_up_all(&self.shared).await?;
        self.purge_images().await?;
        drop(turn);
        // Images on which later snapshots were based have become orphans now.
        self.reconcile(true).await;
        Ok(())
    }

    /// Removes the images that this installation built, once no environment that needs them is up.
    async fn purge_images(&self) -> Result<(), EnvironmentError> {
        let engine = self.shared.engine.as_ref();
        let ours = &self.shared.installation;
        // Snapshots inherit the labels of the image they were taken from, but have rows of their own.
        for image in engine.images(labels::INSTALLATION, Some(ours)).await? {
            let is_built = image.labels.contains_key(labels::BUILD_INPUTS) && !image.labels.contains_key(labels::ROLE);
            if is_built {
                remove_unused(engine, &image.id).await?;
            }
        }
        // Stages of multi-stage builds belong to no installation: they stay as long as another installation may build
        // on them. The base image under all stages is not arenad's: scripts/base-image.sh made it.
        let all = engine.images(labels::INSTALLATION, None).await?;
        if all.iter().filter_map(owner).any(|owner| owner != *ours) {
            return Ok(());
        }
        for image in engine.images(labels::BUILD_STAGE, None).await? {
            remove_unused(engine, &image.id).await?;
        }
        Ok(())
    }

    /// Removes the remains of sites that have no driver.
    async fn remove_stranded(
        &self,
        stranded: &Stranded,
        sites: &[String],
        purge: bool,
    ) -> Result<(), EnvironmentError> {
        let is_meant = |site: &str| sites.is_empty() || sites.iter().any(|named| named == site);
        let meant = stranded.instances.iter().map(|row| &row.id).filter(|id| is_meant(id.site.as_str()));
        for id in meant {
            self.shared.store.unwant_instance(id).await?;
            for role in [labels::ROLE_BUILDER, labels::ROLE_INSTANCE] {
                let remains = Remains {
                    installation: &self.shared.installation,
                    instance: id,
                    role,
                    which: GenerationSelector::All,
                };
                self.shared.remove(remains).await?;
            }
        }
        if purge {
            let defined = stranded.definition.iter().flat_map(|definition| &definition.sites);
            let gone: Vec<Arc<Site>> =
                defined.filter(|site| is_meant(site.name.as_str())).map(|site| Arc::new(site.clone())).collect();
            self.purge(&stranded.name, &gone).await?;
        }
        if stranded.instances.iter().all(|row| is_meant(row.id.site.as_str())) {
            self.shared.store.forget_environment(&stranded.name).await?;
            self.stranded.forget(&stranded.name);
        } else {
            let mut rest = stranded.clone();
            rest.instances.retain(|row| !is_meant(row.id.site.as_str()));
            self.stranded.forget(&stranded.name);
            self.stranded.keep(rest);
        }
        Ok(())
    }

    /// Restores the environments of an earlier daemon. It is repeated every minute for environments that could not be
    /// restored.
    pub(crate) async fn restore(&self) -> Result<(), StoreError> {
        let _turn = self.change.lock().await;
        for stored in self.shared.store.environments().await? {
            let name = stored.name.clone();
            let mut rows = self.shared.store.instances(&name).await?;
            rows.retain(|row| row.desired_up);
            // Some of the environment's sites may be up already: the others were on an engine that did not answer when
            // these came up.
            let is_up = self.read(|running| running.contains_key(&name));
            rows.retain(|row| !self.has_driver(&row.id));
            if rows.is_empty() {
                if !is_up {
                    self.shared.store.forget_environment(&name).await?;
                }
                continue;
            }
            let definition = self.read_definition(&stored);
            // Sites on this engine are restored, regardless of the sites on other engines.
            let (mut wanted, mut elsewhere, mut other) = (Vec::new(), Vec::new(), None);
            for row in &rows {
                match self.shared.store.other_engine_of(&row.id).await? {
                    None => wanted.push(row.id.site.to_string()),
                    Some(engine) => {
                        elsewhere.push(row.id.site.as_str());
                        other = Some(engine);
                    }
                }
            }
            if is_up && wanted.is_empty() {
                continue;
            }
            if let Some(other) = other {
                if wanted.is_empty() {
                    let stranded = Stranded::on_other_engine(&name, definition.ok(), rows, &other.endpoint);
                    let message = format!("environment {name} was not restored: {}", stranded.trouble.reason);
                    if self.stranded.keep(stranded) {
                        self.shared.events.note(EventKind::EnvironmentElsewhere, None, &message).await;
                    }
                    continue;
                }
                let message = format!(
                    "{} of environment {name} was not restored: the containers are on another engine, which was at {}",
                    elsewhere.join(", "),
                    other.endpoint
                );
                self.shared.events.note(EventKind::EnvironmentElsewhere, None, &message).await;
            }
            let known = definition.as_ref().ok().cloned();
            let begun = match definition {
                Ok(definition) => self.up_in_turn(stored, definition, &wanted, Purpose::Restore).await,
                Err(error) => Err(error),
            };
            if let Err(error) = begun {
                if is_up {
                    tracing::warn!("{} of {name} cannot be restored: {}", wanted.join(", "), describe(&error));
                    continue;
                }
                let stranded = Stranded::new(&name, known, rows, &error);
                let message = format!("environment {name} could not be restored: {}", describe(&error));
                if self.stranded.keep(stranded) {
                    self.shared.events.note(EventKind::EnvironmentFailed, None, &message).await;
                }
            }
        }
        Ok(())
    }

    fn has_driver(&self, id: &InstanceId) -> bool {
        self.read(|running| {
            running.get(id.environment.as_str()).is_some_and(|found| found.instances.contains_key(&id.site))
        })
    }

    /// Forwards an event of the engine to the instance that it concerns.
    pub(crate) fn tell(&self, event: &EngineEvent) {
        let Some(id) = event.labels.get(labels::INSTANCE) else {
            return;
        };
        self.read(|running| {
            let mut handles = running.values().flat_map(|running| running.instances.values());
            if let Some(handle) = handles.find(|handle| handle.id.to_string() == *id) {
                handle.tell(event.clone());
            }
        });
    }
}

/// Returns the reason why a site is not down; `None` only if the `down` operation completed.
fn not_done(outcome: OperationOutcome) -> Option<InstanceFailure> {
    let hint = "`arenad down` again takes down what is left".to_owned();
    match outcome {
        OperationOutcome::Done { .. } => None,
        OperationOutcome::Failed(trouble) => Some(trouble),
        OperationOutcome::Superseded => {
            Some(InstanceFailure { reason: "something else was asked for".to_owned(), hint })
        }
        OperationOutcome::Stopped => {
            Some(InstanceFailure { reason: "the daemon ended before it was done".to_owned(), hint })
        }
    }
}

/// Returns the gateway's rules for requests that may write to a site.
fn write_rules(site: &Site) -> WriteRules {
    let mut reads = GlobSetBuilder::new();
    // Validation has compiled each pattern; a pattern that did not compile would count as a write.
    for pattern in &site.public.reads {
        if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() {
            reads.add(glob);
        }
    }
    WriteRules { is_refused: site.public.refuses_writes, reads: reads.build().unwrap_or_default() }
}

fn record(site: &Site) -> RecordingFilter {
    match site.public.recorded {
        RecordedRequests::Nothing => RecordingFilter::Nothing,
        RecordedRequests::Writes => RecordingFilter::Writes,
        RecordedRequests::All => RecordingFilter::All,
    }
}

/// Returns the id of the installation that an image belongs to.
fn owner(image: &Image) -> Option<String> {
    image.labels.get(labels::INSTALLATION).cloned()
}

async fn remove_unused(engine: &dyn arenad_engine::Engine, id: &str) -> Result<(), arenad_engine::EngineError> {
    match engine.remove_image(id).await {
        // Another program's container or image needs it, so it is not removed.
        Err(arenad_engine::EngineError::Conflict { .. }) => Ok(()),
        result => result,
    }
}

/// Parses the definition that is stored with an environment.
pub fn read_definition(stored: &StoredEnvironment) -> Result<Environment, Diagnostics> {
    let file = |(path, text): &(String, String)| SourceFile::new(path.clone(), text.clone());
    let sources = DefinitionSources {
        root: stored.root.clone().into(),
        environment: file(&stored.environment),
        compose: file(&stored.compose),
        dotenv: stored.dotenv.as_ref().map(file),
    };
    definition::load(&sources, &stored.variables).map(|loaded| loaded.environment)
}

fn choose_sites<'a>(definition: &'a Environment, names: &[String]) -> Result<Vec<&'a Site>, EnvironmentError> {
    if names.is_empty() {
        return Ok(definition.sites.iter().collect());
    }
    let find = |name: &String| {
        definition.sites.iter().find(|site| site.name.as_str() == name).ok_or_else(|| EnvironmentError::UnknownSite {
            environment: definition.name.to_string(),
            name: name.clone(),
            known: definition.sites.iter().map(|site| site.name.to_string()).collect(),
        })
    };
    names.iter().map(find).collect()
}
