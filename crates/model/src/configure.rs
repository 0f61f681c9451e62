//! The way to a site's baseline: the steps that configure it.

use std::path::PathBuf;
use std::time::Duration;

use super::ids::ServiceName;
use super::probe::Probe;

/// The steps that run once, before the snapshot is taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BaselineSpec {
    /// The steps that change the site, in order.
    pub configure: Vec<ConfigureStep>,
    /// Requests that fill the caches, in order. They are sent when the site is ready.
    pub warm: Vec<HttpStep>,
    /// Commands that stop the writers before the containers are stopped.
    pub quiesce: Vec<ExecStep>,
}

/// One step of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigureStep {
    /// The name that messages show.
    pub name: String,
    /// The action of the step.
    pub action: ConfigureAction,
    /// The time for which a failing step is repeated, because services take different times to start.
    pub retry_for: Duration,
    /// The condition under which the step is not necessary.
    pub unless: Option<Unless>,
    /// The folder whose content a command gets. Only steps with a command have one.
    pub input: Option<StepInput>,
}

/// A folder of the host whose content a command gets on its standard input, as a tar archive.
///
/// The content is part of what a baseline is made from, as that of a build context is: a change makes a new baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepInput {
    /// The absolute path of the folder.
    pub folder: PathBuf,
    /// The path as the definition writes it, relative to its root folder.
    pub written: String,
}

/// A condition under which a step is not necessary: a probe passes in time. It is meant for workarounds that only some
/// machines need.
#[derive(Debug, Clone, PartialEq)]
pub struct Unless {
    /// The probe that shows whether the step is necessary.
    pub probe: Probe,
    /// The time within which the probe must pass.
    pub within: Duration,
}

/// The kinds of configuration steps.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigureAction {
    /// A command in a container.
    Exec(ExecStep),
    /// A request to a service.
    Http(HttpStep),
    /// A statement on a declared database.
    Sql {
        /// The key in [`Site::databases`].
        database: String,
        /// The statement, which arenad does not interpret.
        statement: String,
    },
}

/// A command in a container. It must exit with 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecStep {
    /// The service whose container runs the command.
    pub service: ServiceName,
    /// The argument vector, beginning with the program.
    pub command: Vec<String>,
    /// The user inside the container. `None` means the user of the image.
    pub user: Option<String>,
    /// The time limit of the command.
    pub timeout: Duration,
}

/// A request to a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpStep {
    /// The service that answers.
    pub service: ServiceName,
    /// The port inside the container.
    pub port: u16,
    /// The method, in capitals.
    pub method: String,
    /// The path and the query, beginning with `/`.
    pub path: String,
    /// The request headers, in file order.
    pub headers: Vec<(String, String)>,
    /// The body, which is sent unchanged.
    pub body: Option<String>,
    /// The status codes that count as success.
    pub status: Vec<u16>,
    /// The time limit of the request.
    pub timeout: Duration,
}
