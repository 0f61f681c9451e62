//! `arenad up --dry-run --json`: the steps of bringing an environment up, in order.
//!
//! Lists are in the order in which the steps happen; sites come up in parallel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The steps that `arenad up` would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpPlan {
    /// The name of the environment.
    pub environment: String,
    /// The engine's address, if the engine answers; without it, the presence of images is unknown.
    pub engine: Option<String>,
    /// The images, which come first.
    pub images: Vec<PlannedImage>,
    /// The folders of the host that services mount.
    pub data: Vec<PlannedData>,
    /// The sites, which come up after the images are present.
    pub sites: Vec<PlannedSite>,
}

/// An image that services need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedImage {
    /// The image's reference in the Compose file.
    pub reference: String,
    /// The action that makes the image available.
    pub action: ImageAction,
    /// The archive that the image is loaded from, or the folder that it is built from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The approximate size of the image in the engine, if the definition states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The names of the sites that need the image.
    pub sites: Vec<String>,
}

/// The action that makes an image available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageAction {
    /// No action: the image is present.
    Present,
    /// The image is built from its context.
    Build,
    /// The image is pulled from a registry.
    Pull,
    /// The image must be loaded from its archive beforehand.
    Load,
}

/// A folder of the host that a service mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedData {
    /// The folder's absolute path.
    pub path: String,
    /// Whether the folder exists; the site cannot come up without it.
    pub exists: bool,
    /// Whether the service writes to the folder.
    pub is_written: bool,
    /// The name of the service.
    pub service: String,
    /// The name of the service's site.
    pub site: String,
}

/// The steps for one site. Network, volumes and containers are created twice: for the baseline, and from its snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedSite {
    /// The name of the site.
    pub name: String,
    /// The URL at which browsers reach the site.
    pub url: String,
    /// The site's own network.
    pub network: PlannedNetwork,
    /// The named volumes that belong to the site alone.
    pub volumes: Vec<String>,
    /// The containers, in the order in which they start.
    pub containers: Vec<PlannedContainer>,
    /// The configuration steps of the baseline.
    pub configure: Vec<PlannedStep>,
    /// The start-up probes, which must pass.
    pub ready: Vec<String>,
    /// The requests that fill the site's caches.
    pub warm: Vec<String>,
    /// The commands that quiesce the writers before the snapshot is taken.
    pub quiesce: Vec<String>,
}

/// The network of a planned site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedNetwork {
    /// The services that reach outside hosts through a network of their own.
    pub egress: Vec<String>,
}

/// A container that is to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedContainer {
    /// The name of the service.
    pub service: String,
    /// The reference of the image.
    pub image: String,
    /// The command, if it replaces the image's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The memory limit, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The mounts, as `source:target`, with `:ro` for read-only ones.
    pub mounts: Vec<String>,
}

/// One step of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedStep {
    /// The display name of the step.
    pub name: String,
    /// The name of the service that the step configures.
    pub service: String,
    /// The command line, the request or the statement.
    pub run: String,
    /// The probe whose success makes the step unnecessary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
}
