//! The reasons why an environment is not brought up, taken down or found.

use std::net::SocketAddr;

use arenad_baseline::BaselineError;
use arenad_definition::Diagnostics;
use arenad_doctor::Finding;
use arenad_instance::AskError;
use arenad_launch::RemoveError;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::instance::{InstanceFailure, InstanceId};
use arenad_model::slot_name::InvalidSlotName;
use arenad_store::StoreError;

/// The reason why an environment could not be brought up, taken down or found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    /// The definition is invalid.
    #[error("understand the definition:\n{0}")]
    Definition(Diagnostics),
    /// No environment of that name is up.
    #[error("find environment {name}: {}", if known.is_empty() { "none is up".to_owned() } else { format!("up are {}", known.join(", ")) })]
    UnknownEnvironment {
        /// The name that the request gave.
        name: String,
        /// The names of the environments that are up.
        known: Vec<String>,
    },
    /// The environment has no site of that name.
    #[error("find site {name} in {environment}: it has {}", known.join(", "))]
    UnknownSite {
        /// The name of the environment.
        environment: String,
        /// The name that the request gave.
        name: String,
        /// The names of the environment's sites.
        known: Vec<String>,
    },
    /// The site has no slot of that number now.
    #[error("find slot {number} of {site}: it has {}", known.iter().map(|known| format!("{site}:{known}")).collect::<Vec<_>>().join(", "))]
    UnknownSlot {
        /// The name of the site.
        site: String,
        /// The number that the request gave.
        number: u32,
        /// The numbers of the slots that exist.
        known: Vec<u32>,
    },
    /// The name of a slot has no number.
    #[error(transparent)]
    InvalidSlotName(#[from] InvalidSlotName),
    /// Public ports of the sites are taken.
    #[error("open the public ports: {}", list_taken(.0))]
    PortsTaken(Vec<TakenPort>),
    /// The host has too little memory, disk space or processors for the sites.
    #[error("start the sites: {}", .0.iter().map(|finding| finding.seen.as_str()).collect::<Vec<_>>().join("; "))]
    DoesNotFit(Vec<Finding>),
    /// A purge was requested while environments are up.
    #[error("purge: {} is up", .0.join(", "))]
    StillUp(Vec<String>),
    /// The driver of an instance refused the request.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// An operation of the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A snapshot or image could not be removed.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// The engine reported an error.
    #[error(transparent)]
    Engine(#[from] arenad_engine::EngineError),
    /// The remains of a site could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// A new daemon could not restore the environment.
    #[error("use environment {name}, which could not be restored: {}", .trouble.reason)]
    Stranded {
        /// The name of the environment.
        name: String,
        /// The reason why it could not be restored.
        trouble: InstanceFailure,
    },
    /// Sites that are up would be recreated, because variables with which they were brought up are not set now.
    #[error(
        "{} of {environment} would be made anew and lose what was written: {} set when it came up, and {} not set now",
        sites.join(", "), list_variables(variables), if variables.len() == 1 { "is" } else { "are" }
    )]
    OtherVariables {
        /// The name of the environment.
        environment: String,
        /// The names of the sites that would be recreated.
        sites: Vec<String>,
        /// The names of the missing variables.
        variables: Vec<String>,
    },
    /// A site would be made anew while an episode has it.
    #[error("make {instance} anew: it belongs to episode {episode}")]
    Leased {
        /// The instance of the site.
        instance: InstanceId,
        /// The episode that has it, or that it is being prepared for.
        episode: EpisodeId,
    },
    /// Sites could not be taken down.
    #[error("take down {}", .0.iter().map(|(site, trouble)| format!("{site}: {}", trouble.reason)).collect::<Vec<_>>().join("; "))]
    NotDown(Vec<(String, InstanceFailure)>),
}

/// A public port on which another process listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenPort {
    /// The site whose port it is.
    pub site: String,
    /// The address of the port.
    pub address: SocketAddr,
    /// The process that holds the port, or another reason why it could not be opened.
    pub owner: String,
}

fn list_taken(taken: &[TakenPort]) -> String {
    let shown: Vec<String> =
        taken.iter().map(|port| format!("{} (for {}) is held by {}", port.address, port.site, port.owner)).collect();
    shown.join("; ")
}

fn list_variables(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "was" } else { "were" })
}
