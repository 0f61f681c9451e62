//! The facts about a host, as plain values: tests construct them, and [`super::gather`] reads them from the real host.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use jiff::Timestamp;

use arenad_engine::EngineDetails;
use arenad_model::subnet::Subnet;

/// All facts about a host.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The state of the engine.
    pub engine: EngineState,
    /// The state of arenad's own daemon.
    pub daemon: DaemonState,
    /// The daemon's state directory.
    pub state_dir: FolderFacts,
    /// The folder below the state directory that holds the copies of sites' state.
    pub stores: FolderFacts,
    /// The memory and the processors.
    pub machine: MachineFacts,
    /// The kernel and its limits.
    pub system: System,
    /// The addresses, routes and packet filters.
    pub network: NetworkFacts,
    /// The clock and its synchronisation.
    pub clock: ClockFacts,
    /// The state of the headless browser.
    pub browser: BrowserState,
    /// The requirements of the environment, if one was named.
    pub environment: Option<EnvironmentRequirements>,
}

/// The state of the engine.
#[derive(Debug, Clone)]
pub enum EngineState {
    /// The engine answers requests.
    Answers(Box<AnsweringEngine>),
    /// The engine's API is too old.
    TooOld {
        /// The address of the engine.
        endpoint: String,
        /// The API version that the engine supports.
        api: String,
    },
    /// The engine does not answer.
    Away {
        /// The address at which the engine is expected.
        endpoint: String,
        /// The reason why it does not answer.
        why: Absence,
    },
}

/// The facts about an engine that answers.
#[derive(Debug, Clone)]
pub struct AnsweringEngine {
    /// The address of the engine.
    pub endpoint: String,
    /// The engine's description of itself.
    pub details: EngineDetails,
    /// The folder of the engine's data, as seen from this process.
    pub data_root: FolderFacts,
    /// The speed of copying a file there and syncing it, in bytes per second; measured only if files cannot share their
    /// blocks.
    pub copy_speed: Option<u64>,
    /// The address ranges of all its networks.
    pub subnets: Vec<Subnet>,
}

/// The reason why an engine does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// The socket does not exist.
    NoSocket,
    /// This user may not open the socket.
    Denied {
        /// The group that may open it.
        group: Option<String>,
    },
    /// The socket exists, but no process listens on it.
    NobodyListens,
    /// Another reason, as the system states it.
    Other(String),
}

/// The state of the daemon of this state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonState {
    /// No daemon is running.
    None,
    /// A daemon runs and answers.
    Answers {
        /// The id of its process.
        pid: u32,
        /// The address of the engine that it uses.
        engine: String,
        /// The address of its episode proxy, if it offers one.
        proxy: Option<String>,
        /// The address of its reset server for harnesses, if it offers one.
        compat: Option<String>,
    },
    /// The daemon could not be asked: its state directory belongs to another user, or another program answers at its
    /// address.
    Hidden {
        /// The reason why it could not be asked.
        why: String,
    },
    /// A daemon holds the lock, but does not answer.
    Silent {
        /// The id of its process, according to its lock.
        pid: Option<u32>,
    },
}

/// A folder and its file system.
#[derive(Debug, Clone)]
pub struct FolderFacts {
    /// The path of the folder that was examined.
    pub path: PathBuf,
    /// Whether the folder exists. If not, the other fields describe the nearest existing folder above it.
    pub exists: bool,
    /// Whether this user can write to it.
    pub access: Access,
    /// The type of the file system, such as `ext4`.
    pub kind: String,
    /// The space of the file system.
    pub room: FileSystemRoom,
    /// Whether files can share their blocks; `None` if that could not be tested.
    pub reflinks: Option<bool>,
    /// Whether the owner of files can be changed; `None` if that could not be tested.
    pub gives_away: Option<bool>,
    /// Whether quotas of the file system limit the size of a site's stores.
    pub limits_stores: bool,
}

/// Whether a folder is writable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The folder is writable.
    Writable,
    /// The file system is mounted read-only.
    ReadOnly,
    /// The folder's mode denies this user write access.
    Denied,
    /// Another reason, as the system states it.
    Failed(String),
}

/// The capacity and the free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemRoom {
    /// The number of bytes that this user may still write.
    pub free_bytes: u64,
    /// The capacity in bytes.
    pub total_bytes: u64,
    /// The number of files that may still be created; `None` if the file system has no such limit.
    pub free_files: Option<u64>,
    /// The device number, which identifies the file system.
    pub device: u64,
}

/// The memory and the processors of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineFacts {
    /// The total memory, in bytes.
    pub memory_bytes: u64,
    /// The memory that is available to new processes without swapping, in bytes.
    pub available_bytes: u64,
    /// The number of processors.
    pub processors: usize,
}

/// The kernel, and its limits for this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// The soft and the hard limit of open files per process; `None` means unlimited.
    pub open_files: (Option<u64>, Option<u64>),
    /// The value of `fs.inotify.max_user_instances`.
    pub inotify_instances: Option<u64>,
    /// The value of `fs.inotify.max_user_watches`.
    pub inotify_watches: Option<u64>,
    /// The version of the cgroups, 1 or 2; `None` if none are mounted.
    pub cgroup_version: Option<u8>,
    /// Whether cgroups can be frozen.
    pub has_freezer: bool,
    /// Whether the kernel has IPVS or can load it.
    pub has_ipvs: bool,
}

/// Addresses, routes and packet filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkFacts {
    /// The block from which instance networks are allocated.
    pub block: Subnet,
    /// The host's routes except the default ones: range and interface.
    pub routes: Vec<(Subnet, String)>,
    /// Whether the engine's filter chains exist; `None` if that cannot be determined.
    pub filters: Option<bool>,
}

/// The clock and its synchronisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockFacts {
    /// The current time of this host.
    pub now: Timestamp,
    /// The newest of the daemon's files; a modification time in the future shows that the clock was set back after the
    /// file was written.
    pub newest_file: Option<(PathBuf, Timestamp)>,
    /// Whether a service synchronises the clock; `None` if that cannot be determined.
    pub is_synchronised: Option<bool>,
}

/// The state of the headless browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrowserState {
    /// No browser is installed.
    Missing,
    /// The browser renders a page.
    Works {
        /// The path of the program.
        path: PathBuf,
        /// The version that it reports.
        version: String,
    },
    /// The browser fails to render a page.
    Fails {
        /// The path of the program.
        path: PathBuf,
        /// The error that it reported.
        reason: String,
    },
}

/// The requirements of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentRequirements {
    /// The name of the environment.
    pub name: String,
    /// The public ports of its sites.
    pub ports: Vec<PublicPort>,
    /// The own ports of its sites' slots.
    pub slot_ports: Vec<SlotPortRange>,
    /// The requirements of those of its sites that are not up yet.
    pub needs: Needs,
    /// The folder that its data is downloaded to.
    pub root: PathBuf,
    /// The space of that folder; `None` if the folder cannot be examined.
    pub root_room: Option<FileSystemRoom>,
    /// The base images of builds that remain to be done, each with whether it is present.
    pub bases: BTreeMap<String, bool>,
    /// Whether a base image can be built from Debian packages, because mmdebstrap is present or can be installed.
    pub can_make_base: bool,
    /// The sites that declare writers but are never rewound, with the reason.
    pub never_rewound: Vec<(String, String)>,
}

/// A public port of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicPort {
    /// The name of the site that needs the port.
    pub site: String,
    /// The address to listen on.
    pub address: SocketAddr,
    /// Whether the port is available.
    pub state: PortState,
}

/// The own ports of a site's slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotPortRange {
    /// The name of the site that needs the ports.
    pub site: String,
    /// The address of each slot to listen on, in the order of their numbers from 1, and whether it is available.
    pub ports: Vec<(SocketAddr, PortState)>,
}

/// The availability of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortState {
    /// No process uses the port.
    Free,
    /// The port belongs to arenad's own daemon.
    Ours,
    /// The daemon uses the port for something else.
    OfDaemon {
        /// The use, such as `the episode proxy`.
        purpose: String,
    },
    /// Another program listens on the port.
    Held {
        /// A description of that program.
        owner: String,
    },
    /// This user may not listen on the port.
    Denied,
    /// Another reason, as the system states it.
    Failed(String),
}

/// The host resources that sites need in order to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// The requirements of each site.
    pub sites: Vec<SiteNeeds>,
    /// The images that are not present yet.
    pub missing_images: Vec<MissingImage>,
    /// The data files and folders that are not present yet.
    pub missing_data: Vec<MissingData>,
}

/// The requirements of one site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteNeeds {
    /// The name of the site.
    pub site: String,
    /// The sum of its services' `mem_reservation`, in bytes.
    pub reserved_bytes: u64,
    /// The sum of its services' `mem_limit`, in bytes.
    pub limit_bytes: u64,
    /// The largest `cpus` of its services, in thousandths.
    pub most_milli_cpus: u64,
    /// The number of slots that always exist; 1 for a site that all episodes share.
    pub least_slots: u32,
    /// The largest number of slots.
    pub most_slots: u32,
    /// The memory that each slot above the first is expected to use, in bytes.
    pub slot_bytes: u64,
}

/// An image that remains to be built or fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingImage {
    /// The reference of the image.
    pub reference: String,
    /// The origin of the image.
    pub from: ImageOrigin,
    /// The approximate size in the engine, in bytes, if the definition states one.
    pub size_bytes: Option<u64>,
}

/// The origin of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageOrigin {
    /// The image is built on this host.
    Build,
    /// The image is pulled from a registry.
    Registry,
    /// The image is loaded from an archive.
    Archive,
}

/// Data that services mount and that remains to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingData {
    /// The name of the data in the environment file.
    pub name: String,
    /// The approximate size of its archive, in bytes, if the definition states one.
    pub size_bytes: Option<u64>,
}
