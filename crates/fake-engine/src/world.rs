//! The state of a simulated engine, and the effects that are still pending.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::clock::FakeClock;
use super::events::Subscriber;
use super::files::{ContainerMount, FileTree, Layer, View};
use super::program::{ContainerLog, ContainerView, Program, ProgramMaker};
use super::script::EngineMethod;
use arenad_engine::{CpuWeight, EngineEvent, EngineHandle};
use arenad_model::hex::hex;
use arenad_model::subnet::Subnet;

/// A change to the world that takes place at its due time.
pub(super) type Effect = Box<dyn FnOnce(&mut EngineWorld) + Send>;

/// First process ID: above the range that Linux assigns, so that no process of the host has such an ID.
const FIRST_PID: u32 = 5_000_000;

/// The engine and its environment.
pub(super) struct EngineWorld {
    pub(super) clock: FakeClock,
    /// Time of the effect that is being applied.
    pub(super) now: Duration,
    /// Pending effects by due time and order of arrival.
    pending: BTreeMap<(Duration, u64), Effect>,
    /// Counter for generated names and for the order of effects.
    counter: u64,
    /// Number of times that all connections between callers and the engine were cut.
    pub(super) session: u64,
    pub(super) is_up: bool,
    pub(super) disk_full: bool,
    pub(super) drops_events: bool,
    pub(super) holdings: Holdings,
    pub(super) subscribers: BTreeMap<u64, Subscriber>,
    /// Names of containers that are being created.
    pub(super) reserved: BTreeSet<String>,
    pub(super) programs: BTreeMap<String, ProgramMaker>,
    /// Images in the registry, by reference.
    pub(super) registry: BTreeMap<String, super::images::FakeImage>,
    pub(super) calls: BTreeMap<EngineMethod, u64>,
    /// Whether something has changed that waiting callers may depend on.
    pub(super) is_news: bool,
}

/// The state that is exchanged when another engine takes the place of this one.
#[derive(Default)]
pub(super) struct Holdings {
    pub(super) id: String,
    pub(super) images: BTreeMap<String, StoredImage>,
    /// Image IDs by name.
    pub(super) tags: BTreeMap<String, String>,
    pub(super) networks: Vec<Network>,
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) containers: BTreeMap<String, FakeContainer>,
}

#[derive(Debug, Clone)]
pub(super) struct StoredImage {
    pub(super) parent: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) layers: Vec<String>,
    /// Changes of each layer, lowest first.
    pub(super) contents: Vec<Arc<Layer>>,
    /// Files of all layers combined.
    pub(super) files: Arc<FileTree>,
    pub(super) volumes: Vec<String>,
    pub(super) program: String,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) command: Vec<String>,
    /// Container that the image was committed from, with the number of the commit.
    pub(super) container: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Network {
    pub(super) name: String,
    pub(super) subnet: Subnet,
    pub(super) labels: BTreeMap<String, String>,
    /// Addresses of endpoints that are not containers of this engine, by the endpoint's name.
    pub(super) foreign: BTreeMap<String, Ipv4Addr>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Volume {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) files: FileTree,
    pub(super) is_anonymous: bool,
}

/// The state of a container's first process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessState {
    Never,
    Runs,
    /// Paused since this time.
    Frozen(Duration),
    Ended(i64),
}

pub(super) struct FakeContainer {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) image: String,
    pub(super) files: Arc<FileTree>,
    pub(super) layer: Layer,
    pub(super) mounts: BTreeMap<String, ContainerMount>,
    /// Networks that the container joins; the first one determines its address.
    pub(super) networks: Vec<String>,
    /// Addresses by network, while the container runs.
    pub(super) addresses: BTreeMap<String, Ipv4Addr>,
    pub(super) program: Box<dyn Program>,
    pub(super) command: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) process: ProcessState,
    pub(super) oom_killed: bool,
    pub(super) pid: u32,
    /// Number of starts so far.
    pub(super) run: u64,
    pub(super) started: Duration,
    /// Total time for which this run was paused.
    pub(super) frozen: Duration,
    pub(super) created: Duration,
    pub(super) log: ContainerLog,
    pub(super) has_health_check: bool,
    /// Whether the container's own layer is read-only.
    pub(super) read_only: bool,
    pub(super) weight: CpuWeight,
}

impl FakeContainer {
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.process, ProcessState::Runs | ProcessState::Frozen(_))
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        let first = self.networks.first().and_then(|network| self.addresses.get(network));
        first.or_else(|| self.addresses.values().next()).copied().map(IpAddr::V4)
    }

    /// Returns the time that the process has run, without pauses.
    pub(super) fn uptime(&self, now: Duration) -> Duration {
        let until = match self.process {
            ProcessState::Frozen(since) => since,
            _ => now,
        };
        until.saturating_sub(self.started).saturating_sub(self.frozen)
    }

    /// Returns the container's program and the view that the program has of the container.
    pub(super) fn inside<'a>(
        &'a mut self,
        volumes: &'a mut BTreeMap<String, Volume>,
        disk_full: bool,
        now: Duration,
    ) -> (&'a mut dyn Program, ContainerView<'a>) {
        let uptime = self.uptime(now);
        let files = View {
            image: &self.files,
            layer: &mut self.layer,
            mounts: &mut self.mounts,
            volumes,
            disk_full,
            read_only: self.read_only,
        };
        let inside = ContainerView {
            files,
            log: &mut self.log,
            at: now,
            uptime,
            command: &self.command,
            environment: &self.environment,
            input: Bytes::new(),
        };
        (self.program.as_mut(), inside)
    }
}

impl EngineWorld {
    pub(super) fn new(clock: FakeClock) -> Self {
        let mut world = Self {
            clock,
            now: Duration::ZERO,
            pending: BTreeMap::new(),
            counter: 0,
            session: 0,
            is_up: true,
            disk_full: false,
            drops_events: false,
            holdings: Holdings::default(),
            subscribers: BTreeMap::new(),
            reserved: BTreeSet::new(),
            programs: BTreeMap::new(),
            registry: BTreeMap::new(),
            calls: BTreeMap::new(),
            is_news: false,
        };
        world.holdings.id = world.engine_id();
        world
    }

    pub(super) fn engine_id(&mut self) -> String {
        let id = self.fresh_id("engine").to_uppercase();
        let groups: Vec<&str> = (0..12).filter_map(|group| id.get(group * 4..group * 4 + 4)).collect();
        groups.join(":")
    }

    pub(super) fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Returns a new unique ID of 64 hexadecimal digits.
    pub(super) fn fresh_id(&mut self, kind: &str) -> String {
        let number = self.count();
        hex(&Sha256::digest(format!("{kind} {number}")))
    }

    pub(super) fn fresh_pid(&mut self) -> u32 {
        FIRST_PID.saturating_add(u32::try_from(self.count()).unwrap_or_default())
    }

    /// Applies all effects that are due.
    pub(super) fn settle(&mut self) {
        let until = self.clock.now();
        while let Some(entry) = self.pending.first_entry().filter(|entry| entry.key().0 <= until) {
            self.now = self.now.max(entry.key().0);
            let effect = entry.remove();
            self.is_news = true;
            effect(self);
        }
        self.now = self.now.max(until);
    }

    /// Schedules an effect and returns its due time.
    pub(super) fn defer(&mut self, after: Duration, effect: Effect) -> Duration {
        let due = self.now.saturating_add(after);
        let number = self.count();
        self.pending.insert((due, number), effect);
        self.is_news = true;
        due
    }

    pub(super) fn next_due(&self) -> Option<Duration> {
        self.pending.keys().next().map(|(due, _)| *due)
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Discards pending effects, because calls in transit are lost when the engine goes down.
    pub(super) fn forget_pending(&mut self) {
        self.pending.clear();
        self.reserved.clear();
    }

    /// Finds a container by its ID, a prefix of the ID, or its name.
    pub(super) fn container_id(&self, handle: &str) -> Option<String> {
        let containers = &self.holdings.containers;
        if containers.contains_key(handle) {
            return Some(handle.to_owned());
        }
        let named = containers.iter().find(|(_, container)| container.name == handle).map(|(id, _)| id);
        let shortened = || {
            let mut found = containers.keys().filter(|id| handle.len() >= 4 && id.starts_with(handle));
            found.next().filter(|_| found.next().is_none())
        };
        named.or_else(shortened).cloned()
    }

    /// Returns a container's name, for messages and scripts.
    pub(super) fn container_name(&self, handle: &str) -> String {
        let known = self.container_id(handle).and_then(|id| self.holdings.containers.get(&id));
        known.map_or_else(|| handle.to_owned(), |container| container.name.clone())
    }

    /// Sends an event about a container to all subscribers.
    pub(super) fn emit(&mut self, id: &str, action: &str, attributes: &[(&str, String)]) {
        let Some(container) = self.holdings.containers.get(id) else { return };
        let mut labels = container.labels.clone();
        labels.insert("name".to_owned(), container.name.clone());
        labels.insert("image".to_owned(), container.image.clone());
        labels.extend(attributes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        if self.drops_events {
            return;
        }
        let event = EngineEvent { handle: EngineHandle(id.to_owned()), action: action.to_owned(), labels };
        for subscriber in self.subscribers.values_mut() {
            subscriber.tell(&event);
        }
        self.is_news = true;
    }
}
