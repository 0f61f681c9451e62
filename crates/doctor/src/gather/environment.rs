//! Determines the requirements of an environment, and how far the host meets them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use super::{DaemonPorts, folder, program, system};
use crate::facts::{
    EnvironmentRequirements, ImageOrigin, MissingData, MissingImage, Needs, PortState, PublicPort, SiteNeeds,
    SlotPortRange,
};
use crate::judge::capacity::{Holds, HostFileSystem, Resources};
use crate::ports::{self, PortOwner};
use arenad_engine::Engine;
use arenad_model::archive::{DataSource, ImageProvenance};
use arenad_model::coverage;
use arenad_model::ids::SiteName;
use arenad_model::service::ServiceSpec;
use arenad_model::site::{self, Site};

/// The prefix of the build arguments that select the base image in the Dockerfiles shipped with arenad.
const BASE_ARGUMENT: &str = "BASE_IMAGE";

/// The daemon, as the process that may listen on a port.
#[derive(Clone, Copy)]
pub(super) struct DaemonListener<'a> {
    /// The id of its process, if it runs.
    pub(super) pid: Option<u32>,
    /// The ports that the daemon listens on, or would listen on.
    pub(super) ports: &'a DaemonPorts,
}

/// Examines an environment. `engine` must be one that answers: with any other, each query would wait for its time-out.
pub(super) async fn look(
    engine: Option<&dyn Engine>,
    wanted: &site::Environment,
    running: &BTreeSet<String>,
    daemon: DaemonListener<'_>,
) -> EnvironmentRequirements {
    let (mut public, mut slot_ports) = (Vec::new(), Vec::new());
    for site in &wanted.sites {
        let address = SocketAddr::new(wanted.listen, site.public.port);
        let state = port(engine, address, daemon).await;
        public.push(PublicPort { site: site.name.to_string(), address, state });
        let Some(own) = site.ports else { continue };
        let mut ports = Vec::new();
        for number in (1..=site.slots.max).filter_map(|slot| own.of(slot)) {
            let address = SocketAddr::new(wanted.listen, number);
            ports.push((address, port(engine, address, daemon).await));
        }
        slot_ports.push(SlotPortRange { site: site.name.to_string(), ports });
    }
    let new: Vec<&Site> = wanted.sites.iter().filter(|site| !running.contains(site.name.as_str())).collect();
    let needs = needs(engine, wanted, &new).await;
    let bases = bases(engine, &new, &needs).await;
    let has_tools = program("mmdebstrap").is_some() || program("apt-get").is_some();
    EnvironmentRequirements {
        name: wanted.name.to_string(),
        ports: public,
        slot_ports,
        needs,
        root: wanted.root.clone(),
        root_room: folder::room(&wanted.root),
        bases,
        can_make_base: rustix::process::geteuid().is_root() && has_tools,
        never_rewound: never_rewound(engine, wanted).await,
    }
}

/// Returns the sites that declare writers and have a writable path that no rewind restores. The volumes that an image
/// declares are known only once the image is present.
async fn never_rewound(engine: Option<&dyn Engine>, wanted: &site::Environment) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for site in wanted.sites.iter().filter(|site| site.rewinds().is_some()) {
        let mut volumes = Vec::new();
        for service in &site.services {
            let Some(engine) = engine else { break };
            if let Ok(Some(image)) = engine.image(&service.image).await {
                volumes.extend(image.volumes.into_iter().map(|path| (service.name.to_string(), path)));
            }
        }
        let volumes = volumes.iter().map(|(service, path)| (service.as_str(), path.as_str()));
        let gaps = coverage::declared_gaps(site, volumes);
        if !gaps.is_empty() {
            found.push((site.name.to_string(), coverage::told(&gaps)));
        }
    }
    found
}

/// Tests whether the gateway could listen on an address, by listening for an instant.
async fn port(engine: Option<&dyn Engine>, address: SocketAddr, daemon: DaemonListener<'_>) -> PortState {
    let other =
        daemon.ports.others.get(&address.port()).map(|purpose| PortState::OfDaemon { purpose: purpose.clone() });
    let error = match TcpListener::bind(address) {
        Ok(_) => return other.unwrap_or(PortState::Free),
        Err(error) if error.kind() == ErrorKind::AddrInUse => match ports::owner(engine, address).await {
            PortOwner::Process { pid, .. } if daemon.pid == u32::try_from(pid).ok() => {
                let unknown = || PortState::OfDaemon { purpose: "its API or another environment".to_owned() };
                return other.unwrap_or_else(|| if daemon.ports.is_up { PortState::Ours } else { unknown() });
            }
            owner => return PortState::Held { owner: owner.to_string() },
        },
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::PermissionDenied => PortState::Denied,
        _ => PortState::Failed(error.to_string()),
    }
}

/// Returns the host resources that sites need in order to start. Without an engine, images are left out.
pub async fn needs(engine: Option<&dyn Engine>, environment: &site::Environment, sites: &[&Site]) -> Needs {
    let is_wanted = |name: &SiteName| sites.iter().any(|site| site.name == *name);
    let mut missing_images = Vec::new();
    for image in environment.needed_images().into_iter().filter(|image| image.sites.iter().any(is_wanted)) {
        let Some(engine) = engine else { break };
        // If the engine fails here, the image is left out; starting the sites reports the error.
        if matches!(engine.image(&image.reference).await, Ok(None)) {
            let from = match image.origin {
                ImageProvenance::Built => ImageOrigin::Build,
                ImageProvenance::Registry => ImageOrigin::Registry,
                ImageProvenance::Archive(_) => ImageOrigin::Archive,
            };
            missing_images.push(MissingImage { reference: image.reference, from, size_bytes: image.loaded_bytes });
        }
    }
    let is_missing = |data: &&DataSource| {
        let is_used = environment.users_of(data).iter().any(|(site, _)| is_wanted(site));
        is_used && !data.results().iter().all(|result| result.exists())
    };
    let missing_data = environment.data.iter().filter(is_missing);
    Needs {
        sites: sites.iter().map(|site| site_needs(site)).collect(),
        missing_images,
        missing_data: missing_data
            .map(|data| MissingData { name: data.name.clone(), size_bytes: data.archive.size_bytes })
            .collect(),
    }
}

fn site_needs(site: &Site) -> SiteNeeds {
    let sum = |of: fn(&ServiceSpec) -> Option<u64>| site.services.iter().filter_map(of).sum();
    let cpus = site.services.iter().filter_map(|service| service.limits.cpus);
    SiteNeeds {
        site: site.name.to_string(),
        reserved_bytes: sum(|service| service.limits.reserved_memory_bytes),
        limit_bytes: sum(|service| service.limits.memory_bytes),
        most_milli_cpus: cpus.map(|cpus| (cpus * 1000.0) as u64).max().unwrap_or(0),
        least_slots: if site.is_shared() { 1 } else { site.slots.min },
        most_slots: if site.is_shared() { 1 } else { site.slots.max },
        slot_bytes: site.slot_memory(),
    }
}

/// Returns the base images of the builds that remain to be done, each with whether it is present.
async fn bases(engine: Option<&dyn Engine>, sites: &[&Site], needs: &Needs) -> BTreeMap<String, bool> {
    let is_missing = |service: &&ServiceSpec| needs.missing_images.iter().any(|image| image.reference == service.image);
    let services = sites.iter().flat_map(|site| &site.services).filter(is_missing);
    let args = services.filter_map(|service| service.build.as_ref()).flat_map(|build| &build.args);
    let mut found = BTreeMap::new();
    let Some(engine) = engine else { return found };
    for (_, reference) in args.filter(|(name, _)| name.starts_with(BASE_ARGUMENT)) {
        if !found.contains_key(reference) {
            let is_here = matches!(engine.image(reference).await, Ok(Some(_)));
            found.insert(reference.clone(), is_here);
        }
    }
    found
}

/// Returns the resources for sites of an environment. The check precedes their start, so it takes no slow measurements.
/// A folder that cannot be examined is left out.
pub fn resources(engine_root: &Path, state_dir: &Path, environment: &site::Environment) -> Resources {
    let folders = [(engine_root, Holds::Images), (&environment.root, Holds::Data), (state_dir, Holds::State)];
    let disk = |(path, holds): (&Path, Holds)| {
        Some(HostFileSystem { path: path.to_owned(), room: folder::room(path)?, holds })
    };
    Resources { machine: system::machine(), disks: folders.into_iter().filter_map(disk).collect() }
}
