//! The life cycle of containers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::time::Duration;

use bytes::Bytes;

use super::errors::{conflict, not_found, refused};
use super::files::{ContainerMount, FileTree, View, below_of, put};
use super::program::{CommandOutcome, ContainerLog, ProcessLife, Termination};
use super::script::Death;
use super::world::{EngineWorld, FakeContainer, ProcessState, Volume};
use arenad_engine::{
    ContainerHealth, ContainerSpec, ContainerState, ContainerStatus, CpuWeight, EngineError, EngineHandle,
    FoundContainer, labels,
};
use arenad_model::service::{MountSpec, ServiceSpec};

/// Exit code of a process that was ended by SIGKILL.
pub(super) const KILLED: i64 = 137;

/// The owned description of a container that is to be created.
pub(super) struct Creation {
    name: String,
    image: String,
    service: ServiceSpec,
    labels: BTreeMap<String, String>,
    networks: Vec<String>,
    volumes: BTreeMap<String, (String, bool)>,
    binds: BTreeMap<String, std::path::PathBuf>,
    environment: BTreeMap<String, String>,
    weight: CpuWeight,
    keeps_stores_in_layer: bool,
}

impl Creation {
    pub(super) fn of(spec: &ContainerSpec<'_>) -> Self {
        Self {
            name: spec.name.clone(),
            image: spec.image.clone(),
            service: spec.service.clone(),
            labels: spec.labels.clone(),
            networks: std::iter::once(&spec.network).chain(&spec.outward).cloned().collect(),
            volumes: spec.volumes.clone(),
            binds: spec.binds.clone(),
            environment: spec.environment.clone(),
            weight: spec.weight,
            keeps_stores_in_layer: spec.keeps_stores_in_layer,
        }
    }

    /// Returns the mounts of the Compose file and of the caller, by path.
    fn mounts(&self) -> BTreeMap<String, ContainerMount> {
        let path = super::files::normal;
        let volumes = self.volumes.iter().map(|(target, (name, read_only))| {
            (path(target), ContainerMount::Volume { name: name.clone(), read_only: *read_only })
        });
        let host = |source: &std::path::Path, read_only| ContainerMount::Host {
            path: source.to_owned(),
            held: None,
            read_only,
        };
        let others = self.service.mounts.iter().filter_map(|mount| match mount {
            MountSpec::Volume { .. } => None,
            MountSpec::Bind { source, target } => Some((path(target), host(source, true))),
            MountSpec::Data { source, target, read_only } => Some((path(target), host(source, *read_only))),
            MountSpec::Tmpfs { target, .. } => Some((path(target), ContainerMount::Memory(FileTree::new()))),
        });
        let binds = self.binds.iter().map(|(target, source)| (path(target), host(source, false)));
        volumes.chain(others).chain(binds).collect()
    }
}

fn missing(doing: &str, handle: &str) -> EngineError {
    not_found(doing, format!("No such container: {handle}"))
}

impl EngineWorld {
    /// Returns the ID of the container that a handle refers to.
    pub(super) fn find(&self, doing: &str, handle: &str) -> Result<String, EngineError> {
        self.container_id(handle).ok_or_else(|| missing(doing, handle))
    }

    pub(super) fn container(&self, doing: &str, handle: &str) -> Result<&FakeContainer, EngineError> {
        let id = self.find(doing, handle)?;
        self.holdings.containers.get(&id).ok_or_else(|| missing(doing, handle))
    }

    pub(super) fn create(&mut self, doing: &str, creation: Creation) -> Result<EngineHandle, EngineError> {
        let mut containers = self.holdings.containers.iter();
        let owner = containers.find(|(_, found)| found.name == creation.name).map(|(id, _)| id.as_str());
        if owner.is_some() || self.reserved.contains(&creation.name) {
            let message = format!(
                "Conflict. The container name \"/{}\" is already in use by container \"{}\".",
                creation.name,
                owner.unwrap_or_default()
            );
            return Err(conflict(doing, message));
        }
        let Some((image_id, image)) = self.find_image(&creation.image) else {
            return Err(not_found(doing, format!("No such image: {}", creation.image)));
        };
        let mut mounts = creation.mounts();
        for mount in mounts.values() {
            if let ContainerMount::Host { path, .. } = mount
                && !path.exists()
            {
                let message = format!(
                    "invalid mount config for type \"bind\": bind source path does not exist: {}",
                    path.display()
                );
                return Err(refused(doing, 400, message));
            }
        }
        let program = match self.programs.get(&image.program) {
            Some(make) => make(),
            None => super::idle::maker()(),
        };
        // Named volumes are initialized with the image's files only for builders; anonymous volumes always are.
        let is_builder = creation.labels.get(labels::ROLE).is_some_and(|role| role == labels::ROLE_BUILDER);
        for (target, mount) in &mounts {
            if let ContainerMount::Volume { name, .. } = mount {
                let volume = self.holdings.volumes.entry(name.clone()).or_default();
                if is_builder && volume.files.is_empty() {
                    volume.files = subtree(&image.files, target);
                }
            }
        }
        for target in image.volumes.iter().map(|path| super::files::normal(path)) {
            if let Entry::Vacant(place) = mounts.entry(target) {
                let name = self.fresh_id("volume");
                let files = subtree(&image.files, place.key());
                self.holdings.volumes.insert(name.clone(), Volume { files, is_anonymous: true, ..Volume::default() });
                place.insert(ContainerMount::Volume { name, read_only: false });
            }
        }
        let service = &creation.service;
        let mut all_labels = image.labels.clone();
        all_labels.extend(creation.labels);
        let mut environment = image.environment.clone();
        environment.extend(service.environment.clone());
        environment.extend(creation.environment);
        let given = service.entrypoint.iter().chain(&service.command).flatten().cloned().collect::<Vec<_>>();
        let id = self.fresh_id("container");
        let container = FakeContainer {
            name: creation.name,
            labels: all_labels,
            image: image_id,
            files: image.files,
            layer: BTreeMap::new(),
            mounts,
            networks: creation.networks,
            addresses: BTreeMap::new(),
            program,
            command: if given.is_empty() { image.command } else { given },
            environment,
            process: ProcessState::Never,
            oom_killed: false,
            pid: 0,
            run: 0,
            started: Duration::ZERO,
            frozen: Duration::ZERO,
            created: self.now,
            log: ContainerLog::default(),
            has_health_check: service
                .health_check
                .as_ref()
                .is_some_and(|check| check.test.first().is_none_or(|word| word != "NONE")),
            weight: creation.weight,
            read_only: service.read_only && !creation.keeps_stores_in_layer,
        };
        self.holdings.containers.insert(id.clone(), container);
        self.emit(&id, "create", &[]);
        Ok(EngineHandle(id))
    }

    pub(super) fn start(&mut self, doing: &str, handle: &str) -> Result<(), EngineError> {
        let id = self.find(doing, handle)?;
        let container = self.container(doing, &id)?;
        match container.process {
            ProcessState::Runs => return Ok(()),
            ProcessState::Frozen(_) => {
                return Err(conflict(doing, "cannot start a paused container, try unpause instead"));
            }
            ProcessState::Never | ProcessState::Ended(_) => {}
        }
        let mut addresses = BTreeMap::new();
        for network in container.networks.clone() {
            let address = self.free_address(doing, &network)?;
            addresses.insert(network, address);
        }
        let (pid, now, disk_full) = (self.fresh_pid(), self.now, self.disk_full);
        let Some(container) = self.holdings.containers.get_mut(&id) else { return Err(missing(doing, handle)) };
        container.addresses = addresses;
        container.pid = pid;
        container.run += 1;
        container.started = now;
        container.frozen = Duration::ZERO;
        container.oom_killed = false;
        container.process = ProcessState::Runs;
        for mount in container.mounts.values_mut() {
            match mount {
                ContainerMount::Memory(files) => files.clear(),
                ContainerMount::Host { path, held, .. } => *held = File::open(path).ok(),
                ContainerMount::Volume { .. } => {}
            }
        }
        let run = container.run;
        let (program, mut inside) = container.inside(&mut self.holdings.volumes, disk_full, now);
        let life = program.start(&mut inside);
        self.emit(&id, "start", &[]);
        if let ProcessLife::Ends { after, code } = life {
            self.end_later(&id, run, after, code, false);
        }
        Ok(())
    }

    /// Ends the current run of a container after a while, unless it has ended before.
    fn end_later(&mut self, id: &str, run: u64, after: Duration, code: i64, is_oom: bool) {
        let id = id.to_owned();
        self.defer(
            after,
            Box::new(move |world| {
                if world.holdings.containers.get(&id).is_some_and(|container| container.run == run) {
                    world.end(&id, code, is_oom);
                }
            }),
        );
    }

    /// Schedules the end of a container, as a script decided after a call.
    pub(super) fn die_later(&mut self, handle: &str, death: Death) {
        let Some(id) = self.container_id(handle) else { return };
        let run = self.holdings.containers.get(&id).map_or(0, |container| container.run);
        // The end applies to the first run of a container that has not been started yet.
        let run = if run == 0 { 1 } else { run };
        self.end_later(&id, run, death.after, death.code, death.is_oom);
    }

    /// Ends a container's process now, if it has one.
    pub(super) fn end(&mut self, id: &str, code: i64, is_oom: bool) {
        let Some(container) = self.holdings.containers.get_mut(id).filter(|container| container.is_alive()) else {
            return;
        };
        container.process = ProcessState::Ended(code);
        container.log.cut(self.now);
        container.oom_killed = is_oom;
        container.addresses.clear();
        for mount in container.mounts.values_mut() {
            if let ContainerMount::Host { held, .. } = mount {
                *held = None;
            }
        }
        if is_oom {
            self.emit(id, "oom", &[]);
        }
        self.emit(id, "die", &[("exitCode", code.to_string())]);
        self.is_news = true;
    }

    /// Asks a container to stop, and returns the time at which it will have ended.
    pub(super) fn stop(&mut self, doing: &str, handle: &str, grace: Duration) -> Result<Duration, EngineError> {
        let id = self.find(doing, handle)?;
        let (now, disk_full) = (self.now, self.disk_full);
        let Some(container) = self.holdings.containers.get_mut(&id) else { return Err(missing(doing, handle)) };
        if !container.is_alive() {
            return Ok(now);
        }
        // A paused process receives the signal only when it is resumed, so the engine resumes it.
        if let ProcessState::Frozen(since) = container.process {
            container.frozen += now.saturating_sub(since);
            container.process = ProcessState::Runs;
        }
        let run = container.run;
        let (program, mut inside) = container.inside(&mut self.holdings.volumes, disk_full, now);
        let termination = program.terminate(&mut inside);
        self.emit(&id, "kill", &[("signal", "15".to_owned())]);
        let (after, code) = match termination {
            Termination::Exits { after, code } if after <= grace => (after, code),
            Termination::Exits { .. } | Termination::Ignored => (grace, KILLED),
        };
        let effect = move |world: &mut Self| {
            if world.holdings.containers.get(&id).is_some_and(|found| found.run == run && found.is_alive()) {
                if code == KILLED {
                    world.emit(&id, "kill", &[("signal", "9".to_owned())]);
                }
                world.end(&id, code, false);
                world.emit(&id, "stop", &[]);
            }
        };
        if after.is_zero() {
            effect(self);
            return Ok(now);
        }
        Ok(self.defer(after, Box::new(effect)))
    }

    pub(super) fn freeze(&mut self, doing: &str, handle: &str) -> Result<(), EngineError> {
        let id = self.find(doing, handle)?;
        let now = self.now;
        let Some(container) = self.holdings.containers.get_mut(&id) else { return Err(missing(doing, handle)) };
        match container.process {
            ProcessState::Runs => container.process = ProcessState::Frozen(now),
            ProcessState::Frozen(_) => {
                return Err(conflict(doing, format!("Container {handle} is already paused")));
            }
            ProcessState::Never | ProcessState::Ended(_) => {
                return Err(conflict(doing, format!("Container {handle} is not running")));
            }
        }
        self.emit(&id, "pause", &[]);
        Ok(())
    }

    pub(super) fn thaw(&mut self, doing: &str, handle: &str) -> Result<(), EngineError> {
        let id = self.find(doing, handle)?;
        let now = self.now;
        let Some(container) = self.holdings.containers.get_mut(&id) else { return Err(missing(doing, handle)) };
        let ProcessState::Frozen(since) = container.process else {
            return Err(refused(doing, 500, format!("Container {handle} is not paused")));
        };
        container.frozen += now.saturating_sub(since);
        container.process = ProcessState::Runs;
        self.emit(&id, "unpause", &[]);
        Ok(())
    }

    pub(super) fn remove_container(&mut self, handle: &str) {
        let Some(id) = self.container_id(handle) else { return };
        if self.holdings.containers.get(&id).is_some_and(FakeContainer::is_alive) {
            self.emit(&id, "kill", &[("signal", "9".to_owned())]);
            self.end(&id, KILLED, false);
        }
        self.emit(&id, "destroy", &[]);
        let Some(container) = self.holdings.containers.remove(&id) else { return };
        for mount in container.mounts.into_values() {
            if let ContainerMount::Volume { name, .. } = mount
                && self.holdings.volumes.get(&name).is_some_and(|volume| volume.is_anonymous)
            {
                self.holdings.volumes.remove(&name);
            }
        }
    }

    pub(super) fn status(&self, doing: &str, handle: &str) -> Result<ContainerStatus, EngineError> {
        let id = self.find(doing, handle)?;
        let container = self.container(doing, &id)?;
        let uptime = container.uptime(self.now);
        let volumes = container.mounts.iter().filter_map(|(target, mount)| match mount {
            ContainerMount::Volume { name, .. } => Some((target.clone(), name.clone())),
            ContainerMount::Host { .. } | ContainerMount::Memory(_) => None,
        });
        Ok(ContainerStatus {
            handle: EngineHandle(id),
            state: match container.process {
                ProcessState::Never => ContainerState::Created,
                ProcessState::Runs => ContainerState::Running,
                ProcessState::Frozen(_) => ContainerState::Paused,
                ProcessState::Ended(code) => ContainerState::Exited(code),
            },
            oom_killed: container.oom_killed,
            health: match container.process {
                _ if !container.has_health_check => ContainerHealth::None,
                ProcessState::Runs | ProcessState::Frozen(_) if container.program.is_healthy(uptime) => {
                    ContainerHealth::Healthy
                }
                ProcessState::Runs | ProcessState::Frozen(_) | ProcessState::Never => ContainerHealth::Starting,
                ProcessState::Ended(_) => ContainerHealth::Unhealthy,
            },
            address: container.address(),
            pid: container.is_alive().then_some(container.pid),
            volumes: volumes.collect(),
        })
    }

    /// Returns the containers that match a predicate, the newest first.
    pub(super) fn list(&self, is_meant: impl Fn(&FakeContainer) -> bool) -> Vec<FoundContainer> {
        let mut found: Vec<(&String, &FakeContainer)> =
            self.holdings.containers.iter().filter(|(_, container)| is_meant(container)).collect();
        found.sort_by(|one, other| (other.1.created, one.0).cmp(&(one.1.created, other.0)));
        let read = |(id, container): (&String, &FakeContainer)| FoundContainer {
            handle: EngineHandle(id.clone()),
            name: container.name.clone(),
            labels: container.labels.clone(),
            image: container.image.clone(),
            running: container.is_alive(),
            created: self.clock.at(container.created),
            ports: Vec::new(),
        };
        found.into_iter().map(read).collect()
    }

    pub(super) fn exec(
        &mut self,
        doing: &str,
        handle: &str,
        command: &[String],
        user: Option<&str>,
        input: Bytes,
    ) -> Result<CommandOutcome, EngineError> {
        let id = self.find(doing, handle)?;
        let (now, disk_full) = (self.now, self.disk_full);
        let Some(container) = self.holdings.containers.get_mut(&id) else { return Err(missing(doing, handle)) };
        match container.process {
            ProcessState::Runs => {}
            ProcessState::Frozen(_) => {
                let message = format!("Container {handle} is paused, unpause the container before exec");
                return Err(conflict(doing, message));
            }
            ProcessState::Never | ProcessState::Ended(_) => {
                return Err(conflict(doing, format!("Container {handle} is not running")));
            }
        }
        let (program, mut inside) = container.inside(&mut self.holdings.volumes, disk_full, now);
        inside.input = input;
        let outcome = program.run(command, user, &mut inside);
        self.is_news = true;
        Ok(outcome)
    }

    /// Returns the current run of a container's process, or `None` if it does not run.
    pub(super) fn run_of(&self, handle: &str) -> Option<u64> {
        let container = self.holdings.containers.get(&self.container_id(handle)?)?;
        container.is_alive().then_some(container.run)
    }

    pub(super) fn weigh(&mut self, doing: &str, handle: &str, weight: CpuWeight) -> Result<(), EngineError> {
        let id = self.find(doing, handle)?;
        if let Some(container) = self.holdings.containers.get_mut(&id) {
            container.weight = weight;
        }
        self.emit(&id, "update", &[]);
        Ok(())
    }

    /// Returns the view of a container's files.
    pub(super) fn view(&mut self, doing: &str, handle: &str) -> Result<View<'_>, EngineError> {
        let id = self.find(doing, handle)?;
        let disk_full = self.disk_full;
        let volumes = &mut self.holdings.volumes;
        let container = self.holdings.containers.get_mut(&id).ok_or_else(|| missing(doing, handle))?;
        let read_only = container.read_only;
        let (files, layer, mounts) = (&container.files, &mut container.layer, &mut container.mounts);
        Ok(View { image: files, layer, mounts, volumes, disk_full, read_only })
    }
}

/// Returns the files below a folder, with paths relative to the folder.
fn subtree(files: &FileTree, folder: &str) -> FileTree {
    let mut found = FileTree::new();
    for (path, node) in files {
        if let Some(rest) = below_of(path, folder).filter(|rest| !rest.is_empty()) {
            put(&mut found, rest, node.clone());
        }
    }
    found
}
