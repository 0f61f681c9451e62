//! What was seen of a host. Values only: tests prepare them, [`super::gather`] fills them from the real thing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use jiff::Timestamp;

use arenad_engine::EngineDetails;
use arenad_model::subnet::Subnet;

/// Everything that was looked at.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The engine.
    pub engine: Engine,
    /// arenad's own daemon.
    pub daemon: Daemon,
    /// The daemon's state directory.
    pub state_dir: Folder,
    /// Where copies of sites' state are kept, below it.
    pub stores: Folder,
    /// Memory and processors.
    pub machine: Machine,
    /// The kernel and its limits.
    pub system: System,
    /// Addresses.
    pub network: Network,
    /// The time.
    pub clock: Clock,
    /// The headless browser.
    pub browser: Browser,
    /// What the environment wants, where one was named.
    pub environment: Option<Environment>,
}

/// The engine, as far as it answers.
#[derive(Debug, Clone)]
pub enum Engine {
    /// It does.
    Answers(Box<AnsweringEngine>),
    /// It speaks an API that is too old.
    TooOld {
        /// Where.
        endpoint: String,
        /// What it speaks.
        api: String,
    },
    /// It does not.
    Away {
        /// Where it should be.
        endpoint: String,
        /// Why not.
        why: Absence,
    },
}

/// An engine that answers.
#[derive(Debug, Clone)]
pub struct AnsweringEngine {
    /// Where.
    pub endpoint: String,
    /// What it says of itself.
    pub details: EngineDetails,
    /// The folder of its data, as it is seen from here.
    pub data_root: Folder,
    /// How fast a file is copied there and written down, in bytes per second, where it must be copied to be shared.
    pub copy_speed: Option<u64>,
    /// The ranges of all its networks.
    pub subnets: Vec<Subnet>,
}

/// Why an engine does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// There is no such socket.
    NoSocket,
    /// The socket may not be opened by this user.
    Denied {
        /// The group that may.
        group: Option<String>,
    },
    /// The socket is there, but nobody listens.
    NobodyListens,
    /// Anything else, in the system's words.
    Other(String),
}

/// The daemon of this state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Daemon {
    /// None runs.
    None,
    /// One answers.
    Answers {
        /// Its process.
        pid: u32,
        /// The engine that it uses.
        engine: String,
    },
    /// It could not be asked: its state directory is another user's, or something else answers at its address.
    Hidden {
        /// What is in the way.
        why: String,
    },
    /// One holds the lock, but does not answer.
    Silent {
        /// Its process, as its lock says.
        pid: Option<u32>,
    },
}

/// A folder and the file system below it.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The folder that was asked about.
    pub path: PathBuf,
    /// Whether it is there. If not, the rest is about the nearest folder above it that is.
    pub exists: bool,
    /// Whether this user can write to it.
    pub access: Access,
    /// The file system's kind, such as `ext4`.
    pub kind: String,
    /// Its room.
    pub room: Room,
    /// Whether files can share their blocks; `None` where that could not be tried.
    pub reflinks: Option<bool>,
    /// Whether files can be given to other owners; `None` where that could not be tried.
    pub gives_away: Option<bool>,
    /// Whether what a site writes there is limited, by quotas of its file system.
    pub limits_stores: bool,
}

/// Whether a folder can be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// It can.
    Writable,
    /// Its file system is mounted read-only.
    ReadOnly,
    /// Its mode does not let this user.
    Denied,
    /// Anything else, in the system's words.
    Failed(String),
}

/// The room of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that this user may still write.
    pub free_bytes: u64,
    /// Bytes altogether.
    pub total_bytes: u64,
    /// Files that may still be made; `None` where the file system has no such limit.
    pub free_files: Option<u64>,
    /// What tells two file systems apart.
    pub device: u64,
}

/// Memory and processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Memory altogether, in bytes.
    pub memory_bytes: u64,
    /// Memory that new processes can have without swapping, in bytes.
    pub available_bytes: u64,
    /// Processors.
    pub processors: usize,
}

/// The kernel and what it allows this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// How many files a process may have open: the soft and the hard limit; `None` is any number.
    pub open_files: (Option<u64>, Option<u64>),
    /// `fs.inotify.max_user_instances`.
    pub inotify_instances: Option<u64>,
    /// `fs.inotify.max_user_watches`.
    pub inotify_watches: Option<u64>,
    /// 1 or 2; `None` where no cgroups are mounted.
    pub cgroup_version: Option<u8>,
    /// Whether cgroups can be frozen.
    pub has_freezer: bool,
    /// Whether the kernel has IPVS, or can load it.
    pub has_ipvs: bool,
}

/// Addresses and what filters packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The block that instance networks are cut from.
    pub block: Subnet,
    /// The host's routes, without the default ones: range and interface.
    pub routes: Vec<(Subnet, String)>,
    /// Whether the engine's filter chains are there; `None` where that cannot be seen.
    pub filters: Option<bool>,
}

/// The time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// Now.
    pub now: Timestamp,
    /// The newest of the daemon's files: one of the future was written before the clock was set back.
    pub newest_file: Option<(PathBuf, Timestamp)>,
    /// Whether something keeps the clock right; `None` where that cannot be told.
    pub is_synchronised: Option<bool>,
}

/// The headless browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Browser {
    /// There is none.
    Missing,
    /// It shows a page.
    Works {
        /// Where.
        path: PathBuf,
        /// What it calls itself.
        version: String,
    },
    /// It does not.
    Fails {
        /// Where.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
}

/// What an environment wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Its name.
    pub name: String,
    /// The public ports of its sites.
    pub ports: Vec<PublicPort>,
    /// What those of its sites want that are not up yet.
    pub needs: Needs,
    /// Where its data goes.
    pub root: PathBuf,
    /// The room there; `None` where it cannot be looked at.
    pub root_room: Option<Room>,
    /// The base images of builds that are still to be made: whether each is there.
    pub bases: BTreeMap<String, bool>,
    /// Whether a base image can be made from Debian packages: mmdebstrap is there or can be installed.
    pub can_make_base: bool,
    /// The sites that declare writers and are never rewound all the same, with the reason.
    pub never_rewound: Vec<(String, String)>,
}

/// A public port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicPort {
    /// The site that wants it.
    pub site: String,
    /// Where.
    pub address: SocketAddr,
    /// Whether it can be had.
    pub state: PortState,
}

/// Whether a port can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortState {
    /// Nobody has it.
    Free,
    /// arenad's own daemon has it.
    Ours,
    /// Something else listens on it.
    Held {
        /// Who.
        owner: String,
    },
    /// This user may not have it.
    Denied,
    /// Anything else, in the system's words.
    Failed(String),
}

/// What sites want of the host that are to be started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Each of the sites.
    pub sites: Vec<SiteNeeds>,
    /// The images that are not there yet.
    pub missing_images: Vec<MissingImage>,
    /// The data files and folders that are not there yet.
    pub missing_data: Vec<MissingData>,
}

/// What one site wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteNeeds {
    /// Its name.
    pub site: String,
    /// The sum of its services' `mem_reservation`, in bytes.
    pub reserved_bytes: u64,
    /// The sum of its services' `mem_limit`, in bytes.
    pub limit_bytes: u64,
    /// The largest `cpus` of its services, in thousandths.
    pub most_milli_cpus: u64,
}

/// An image that is still to be made or fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingImage {
    /// Its reference.
    pub reference: String,
    /// Where it comes from.
    pub from: ImageOrigin,
    /// About how large it is in the engine, in bytes, where the definition says so.
    pub size_bytes: Option<u64>,
}

/// Where an image comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageOrigin {
    /// It is built here.
    Build,
    /// A registry has it.
    Registry,
    /// It is loaded from an archive.
    Archive,
}

/// Data that services mount and that is still to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingData {
    /// Its name in the environment file.
    pub name: String,
    /// About how large its archive is, in bytes, where the definition says so.
    pub size_bytes: Option<u64>,
}
