//! The environments that are up: their definitions, and the drivers of their instances.
//!
//! One lock serializes bringing up, taking down and restoring. Resets and status queries do not take it.
//!
//! A site that comes up is offered to episodes, and one that is taken down is withdrawn from them first: its episodes are
//! void. Anything else that would change the instance of an episode is refused while the episode lasts.

mod down;
mod episodes;
mod error;
mod further;
mod ports;
mod purge;
mod restore;
mod up;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use super::reconcile::{self, Hands};
use super::slot_ports::SlotPortBoard;
use super::slots::{DaemonSlots, SlotView};
use super::stranded::{AllStranded, Stranded};
use arenad_definition::{self as definition, DefinitionSources, Diagnostics, SourceFile};
use arenad_engine::{EngineEvent, labels};
use arenad_episodes::EpisodeHandle;
use arenad_instance::shared::SharedParts;
use arenad_instance::{InstanceHandle, SitePools};
use arenad_model::ids::SiteName;
use arenad_model::instance::{InstanceId, InstanceStatus};
use arenad_model::site::{Environment, Site};
use arenad_model::slot_name::SlotName;
use arenad_store::StoredEnvironment;

pub(crate) use error::EnvironmentError;
pub(crate) use up::UpOptions;

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
    slots: Arc<DaemonSlots>,
    /// The standbys of the sites.
    pools: SitePools,
    episodes: EpisodeHandle,
    running: RwLock<BTreeMap<String, RunningEnvironment>>,
    /// Signalled after each change of `running`, and when a further slot is made.
    changed: tokio::sync::watch::Sender<()>,
    slot_ports: SlotPortBoard,
    stranded: AllStranded,
    change: tokio::sync::Mutex<()>,
    reconciled: tokio::sync::Mutex<reconcile::Memory>,
}

impl EnvironmentRegistry {
    /// Returns a registry without environments.
    pub fn new(shared: Arc<SharedParts>, slots: Arc<DaemonSlots>, episodes: EpisodeHandle) -> Self {
        let slot_ports = SlotPortBoard::new(shared.clone(), slots.clone(), episodes.clone());
        Self {
            shared,
            slots,
            pools: SitePools::default(),
            episodes,
            slot_ports,
            running: RwLock::default(),
            changed: tokio::sync::watch::Sender::default(),
            stranded: AllStranded::default(),
            change: tokio::sync::Mutex::default(),
            reconciled: tokio::sync::Mutex::default(),
        }
    }

    /// Sets the address of the episode proxy, which the own ports of slots name in explanations.
    pub(crate) fn set_proxy(&self, server: &str) {
        self.slot_ports.set_proxy(server);
    }

    fn read<T>(&self, look: impl FnOnce(&BTreeMap<String, RunningEnvironment>) -> T) -> T {
        // A panic while the lock is held leaves a consistent map, because every change is a single insertion or
        // removal.
        look(&self.running.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut BTreeMap<String, RunningEnvironment>) -> T) -> T {
        let changed = change(&mut self.running.write().unwrap_or_else(std::sync::PoisonError::into_inner));
        self.changed.send_replace(());
        changed
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

    /// Reads the definition with which an environment was brought up. `look` must not block. Returns `None` if the
    /// environment is not up.
    pub(crate) fn with_definition<T>(&self, name: &str, look: impl FnOnce(&Environment) -> T) -> Option<T> {
        self.read(|running| running.get(name).map(|running| look(&running.definition)))
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

    /// Returns the instances of the named slots of an environment, or slot 1 of each of its sites if none is named. The
    /// name of a site means its slot 1.
    pub(crate) fn choose_slots(&self, name: &str, slots: &[String]) -> Result<Vec<InstanceHandle>, EnvironmentError> {
        if slots.is_empty() {
            return self.choose(name, &[]);
        }
        slots.iter().map(|slot| self.choose_slot(name, slot)).collect()
    }

    /// Returns the instance of a slot, `SITE:NUMBER`, or of slot 1, `SITE`.
    pub(crate) fn choose_slot(&self, environment: &str, name: &str) -> Result<InstanceHandle, EnvironmentError> {
        let SlotName { site, number } = SlotName::parse(name)?;
        let Some(first) = self.choose(environment, &[site.to_owned()])?.into_iter().next() else {
            // Unreachable: one name is one instance or an error.
            let (environment, name) = (environment.to_owned(), site.to_owned());
            return Err(EnvironmentError::UnknownSite { environment, name, known: Vec::new() });
        };
        number.map_or(Ok(first.clone()), |number| self.numbered(&first, number))
    }

    /// Returns the instance of a slot of the site that an instance belongs to.
    pub(crate) fn numbered(&self, first: &InstanceHandle, number: u32) -> Result<InstanceHandle, EnvironmentError> {
        let slots = self.slots.of_site(&first.id.site_id());
        let found = slots.iter().find(|slot| slot.instance.id.number == number).map(|slot| slot.instance.clone());
        found.ok_or_else(|| EnvironmentError::UnknownSlot {
            site: first.id.site.to_string(),
            number,
            known: slots.iter().map(|slot| slot.instance.id.number).collect(),
        })
    }

    /// Locks bringing up and taking down, and returns the objects that the drivers work with.
    pub(crate) async fn in_turn(&self) -> (tokio::sync::MutexGuard<'_, ()>, Hands) {
        let turn = self.change.lock().await;
        (turn, self.hands())
    }

    /// Returns the objects that the drivers work with.
    fn hands(&self) -> Hands {
        let mut hands = Hands::default();
        for handle in self.slots.instances() {
            let id = handle.id.clone();
            hands.generations.entry(id.owner()).or_default().extend(handle.pool().generations());
            handle.with_report(|report| {
                let works = matches!(
                    report.state.status(),
                    InstanceStatus::Preparing
                        | InstanceStatus::Starting
                        | InstanceStatus::Resetting
                        | InstanceStatus::Stopping
                );
                if let Some(incarnation) = &report.incarnation {
                    hands.generations.entry(id.owner()).or_default().insert(incarnation.made);
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

    fn read_definition(&self, stored: &StoredEnvironment) -> Result<Environment, EnvironmentError> {
        (self.shared.read_definition)(stored).map_err(EnvironmentError::Definition)
    }

    /// Forwards an event of the engine to the pool and to the instance that it concerns.
    pub(crate) fn tell(&self, event: &EngineEvent) {
        let Some(id) = event.labels.get(labels::INSTANCE) else {
            return;
        };
        let Some(site) = id.parse().ok().map(|id: InstanceId| id.site_id()) else { return };
        let slots = self.slots.of_site(&site);
        if let Some(slot) = slots.first() {
            slot.instance.tell_pool(event);
        }
        let serves = |slot: &SlotView| {
            slot.instance.with_report(|report| report.containers.values().any(|(id, _)| *id == event.handle.0))
        };
        // The container may be about to serve in any slot.
        let is_known = slots.iter().any(serves);
        for slot in slots.into_iter().filter(|slot| !is_known || serves(slot)) {
            slot.instance.tell(event.clone());
        }
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
