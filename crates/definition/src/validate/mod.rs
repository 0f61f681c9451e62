//! From what the files say to what is believed: every cross check, with the place of everything that fails one.

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
mod steps;
mod stores;
mod support;
mod tasks;
mod watch;

use std::net::IpAddr;
use std::path::Path;

use super::scope::Scope;
use super::variables::Variables;
use arenad_model::archive::DataSource;

pub(crate) use environment::environment;
pub(crate) use images::data;
pub(crate) use paths::data_folder;
pub(crate) use tasks::task;

/// The context that all checks of an environment share.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The folder that no path leaves, with symbolic links resolved.
    pub(crate) root: &'a Path,
    /// The folder of the Compose file, against which its paths are resolved.
    pub(crate) compose_folder: &'a Path,
    /// The folder of the host that holds what is too large for snapshots.
    pub(crate) data_folder: Option<&'a Path>,
    /// The profiles whose services are started.
    pub(crate) profiles: &'a [String],
    /// Name of the environment.
    pub(crate) name: &'a str,
    /// The address that public ports listen on.
    pub(crate) listen: IpAddr,
    /// Scope of the environment file.
    pub(crate) environment: Scope<'a>,
    /// Scope of the Compose file.
    pub(crate) compose: Scope<'a>,
    /// The data that services mount, whether it is there yet or not.
    pub(crate) data: &'a [DataSource],
    /// The variables that values may use.
    pub(crate) variables: &'a Variables<'a>,
}
