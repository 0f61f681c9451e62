//! Bringing sites up: what speaks against it, the ports, and the drivers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use super::{EnvironmentError, EnvironmentRegistry, RunningEnvironment, choose_sites};
use arenad_doctor::judge::capacity;
use arenad_doctor::{Finding, Level, gather};
use arenad_gateway::Route;
use arenad_instance::{AskError, InstanceHandle, Ticket};
use arenad_model::ids::SiteName;
use arenad_model::instance::{InstanceId, InstanceState};
use arenad_model::request_queue::{InstanceRequest, Purpose, Want};
use arenad_model::site::{Environment, Site};
use arenad_store::StoredEnvironment;

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

impl EnvironmentRegistry {
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
    pub(super) async fn up_in_turn(
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
        self.insist_on_no_lease(&changed)?;
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
        let mut opened = Vec::new();
        let begun = async {
            self.retire(changed).await?;
            routes.extend(self.open_ports(&definition, &later).await?);
            opened = self.open_slot_ports(&definition, &chosen).await?;
            self.install(&stored, &definition, &chosen, &new, &mut routes).await
        };
        let handles = match begun.await {
            Ok(handles) => handles,
            Err(error) => {
                self.slot_ports.close(&opened).await;
                for route in routes.into_values() {
                    route.close().await;
                }
                return Err(error);
            }
        };
        let mut begun = Vec::new();
        for handle in handles {
            let had_driver = !new.iter().any(|site| site.name == handle.site.name);
            let ticket = match handle.ask_for(InstanceRequest { want: Want::Up, purpose }).await {
                // An episode has the slot, so it is up, and stays as it is until the episode ends.
                Err(AskError::Leased { .. }) if had_driver => None,
                // An episode has it since before a restart, after which it could not be restored. The episode goes on if
                // its containers are here, and is void if others take their place.
                Err(AskError::Leased { .. }) => {
                    Some(handle.ask_for(InstanceRequest { want: Want::Up, purpose: Purpose::Restore }).await?)
                }
                asked => Some(asked?),
            };
            if let Some(site) = chosen.iter().find(|site| site.name == handle.site.name) {
                self.offer(&handle, site).await;
            }
            begun.extend(ticket.map(|ticket| (handle, ticket)));
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
                let handle = self.spawn(id(site), Arc::new((*site).clone()), route, row);
                instances.insert(site.name.clone(), handle);
            }
        }
        let handles = chosen.iter().filter_map(|site| instances.get(&site.name).cloned()).collect();
        self.stranded.forget(definition.name.as_str());
        self.slot_ports.define(definition);
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
            // The number of slots, and their own ports, can change while the site is up.
            let is_other =
                |site: &Site| *site != Site { slots: site.slots, ports: site.ports, ..handle.site.as_ref().clone() };
            is_gone || now.is_some_and(|site| is_other(site))
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
    async fn retire(&self, changed: BTreeMap<SiteName, InstanceHandle>) -> Result<(), EnvironmentError> {
        for (name, handle) in changed {
            if let Some((_, trouble)) = self.take_down(vec![handle]).await?.left.into_iter().next() {
                return Err(EnvironmentError::NotDown(vec![(name.to_string(), trouble)]));
            }
        }
        Ok(())
    }
}
