//! Validates the raw content of the files: makes all cross-checks, and reports every failure with its place.

mod addresses;
mod clock;
mod databases;
mod environment;
mod graph;
mod health;
mod helpers;
mod images;
mod limits;
mod login;
mod mounts;
mod pairs;
mod paths;
mod ports;
mod probes;
mod scratch;
mod security;
mod service;
mod site;
mod site_context;
mod slot_ports;
mod slots;
mod steps;
mod stores;
mod support;
mod tasks;
mod watch;

use std::net::IpAddr;
use std::path::Path;

use super::scope::Scope;
use super::variables::DefinitionVariables;
use arenad_model::archive::DataSource;

pub(crate) use addresses::egress;
pub(crate) use environment::environment;
pub(crate) use images::data;
pub(crate) use paths::data_folder;
pub(crate) use tasks::task;

/// The context that all checks of an environment share.
#[derive(Clone, Copy)]
pub(crate) struct ValidationContext<'a> {
    /// Folder that no path may leave, with symbolic links resolved.
    pub(crate) root: &'a Path,
    /// Folder of the Compose file, against which its paths are resolved.
    pub(crate) compose_folder: &'a Path,
    /// Folder of the host for data that is too large for snapshots.
    pub(crate) data_folder: Option<&'a Path>,
    /// Profiles whose services are started.
    pub(crate) profiles: &'a [String],
    /// Name of the environment.
    pub(crate) name: &'a str,
    /// Address that public ports listen on.
    pub(crate) listen: IpAddr,
    /// The port of the reset server of harnesses.
    pub(crate) reset_port: u16,
    /// Scope of the environment file.
    pub(crate) environment: Scope<'a>,
    /// Scope of the Compose file.
    pub(crate) compose: Scope<'a>,
    /// Data that services mount, even if it has not been fetched yet.
    pub(crate) data: &'a [DataSource],
    /// Variables that values may use.
    pub(crate) variables: &'a DefinitionVariables<'a>,
}
