//! `arenad up --dry-run --json`: what bringing an environment up would do, in order.
//!
//! Lists are in the order in which things happen; sites come up beside one another.

use serde::{Deserialize, Serialize};

/// What `arenad up` would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The environment.
    pub environment: String,
    /// The engine's address, if it answers; otherwise nobody can say which images are there.
    pub engine: Option<String>,
    /// First of all: the images.
    pub images: Vec<PlannedImage>,
    /// Folders of the host that services mount.
    pub data: Vec<PlannedData>,
    /// Then the sites.
    pub sites: Vec<PlannedSite>,
}

/// An image that services need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedImage {
    /// What the Compose file calls it.
    pub reference: String,
    /// What happens to it.
    pub action: ImageAction,
    /// The archive that it is loaded from, or the folder that it is built from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// About how large it is in the engine, where someone has said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The sites that need it.
    pub sites: Vec<String>,
}

/// What happens to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageAction {
    /// Nothing: it is there.
    Present,
    /// It is built.
    Build,
    /// It is fetched from a registry.
    Pull,
    /// It must be loaded from its archive first.
    Load,
}

/// A folder of the host that a service mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedData {
    /// Its absolute path.
    pub path: String,
    /// Whether it is there; the site cannot come up without it.
    pub exists: bool,
    /// Whether the service writes to it.
    pub is_written: bool,
    /// The service.
    pub service: String,
    /// Its site.
    pub site: String,
}

/// What is done for one site. Network, volumes and containers are made twice: for the baseline, and from its snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSite {
    /// Its name.
    pub name: String,
    /// Where browsers find it.
    pub url: String,
    /// Its network.
    pub network: PlannedNetwork,
    /// The named volumes of its own.
    pub volumes: Vec<String>,
    /// The containers, in the order of their start.
    pub containers: Vec<PlannedContainer>,
    /// The configuration of the baseline.
    pub configure: Vec<PlannedStep>,
    /// The probes that must pass.
    pub ready: Vec<String>,
    /// The requests that fill the caches.
    pub warm: Vec<String>,
    /// The commands that bring the writers to rest before the snapshot.
    pub quiesce: Vec<String>,
}

/// A site's network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedNetwork {
    /// The services that reach the world by a network of their own.
    pub egress: Vec<String>,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedContainer {
    /// The service.
    pub service: String,
    /// The image.
    pub image: String,
    /// The command, where it is not the image's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The memory limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// What is mounted, as `source:target` with `:ro` where it is only read.
    pub mounts: Vec<String>,
}

/// One step of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// What people call it.
    pub name: String,
    /// The service that it is done to.
    pub service: String,
    /// The command line, the request or the statement.
    pub run: String,
    /// The probe that makes it unnecessary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
}
