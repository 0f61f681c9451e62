//! Probes: single observations of an instance. This module defines their kinds and the expected results;
//! `arenad_probes` runs them.

use std::time::Duration;

use super::ids::ServiceName;

/// One observation, and the result with which it passes.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The name that messages show: given in the definition or derived from the kind, such as `http /healthz`.
    pub name: String,
    /// The kind of the observation, with the expected result.
    pub kind: ProbeKind,
    /// The time limit of one attempt.
    pub timeout: Duration,
}

/// The kinds of probes.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeKind {
    /// One HTTP exchange with a service of the site.
    Http(HttpProbe),
    /// A TCP connection, which must be accepted.
    Tcp {
        /// The service to which the connection is made.
        service: ServiceName,
        /// The port inside the container.
        port: u16,
    },
    /// A query on one of the site's declared databases.
    Sql {
        /// The key in [`super::site::Site::databases`].
        database: String,
        /// The statement. The first column of its first row is compared.
        query: String,
        /// The expected value, as text. `None` means that the query must only return a row.
        equals: Option<String>,
    },
    /// A command in a container. It must exit with 0.
    Exec {
        /// The service whose container runs the command.
        service: ServiceName,
        /// The argument vector. No shell is involved unless the vector names one.
        command: Vec<String>,
        /// A text that the standard output must contain.
        contains: Option<String>,
    },
    /// A line that must appear in the container's log after its start.
    Log {
        /// The service whose log is read.
        service: ServiceName,
        /// The regular expression for the line, known to compile.
        pattern: String,
    },
    /// The result of the health check that the image or the Compose file declares.
    DockerHealth {
        /// The service whose health check is evaluated.
        service: ServiceName,
    },
}

/// An HTTP exchange and the expected response. Redirects are never followed; an expected one must be declared.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpProbe {
    /// The service that answers.
    pub service: ServiceName,
    /// The port inside the container.
    pub port: u16,
    /// The method: `GET`, `HEAD` or `POST`.
    pub method: String,
    /// The path and the query, beginning with `/`.
    pub path: String,
    /// The request headers, in file order.
    pub headers: Vec<(String, String)>,
    /// The status codes with which the probe passes.
    pub status: Vec<u16>,
    /// The text with which the `Location` header must end, if a ready site answers with a redirect.
    pub redirect: Option<String>,
    /// The texts that the body must contain.
    pub contains: Vec<String>,
    /// The minimum size of the body, in bytes. It distinguishes, for example, a map tile from an empty one.
    pub bytes_at_least: Option<u64>,
    /// The values that the JSON body must have, by JSON pointer (RFC 6901).
    pub json: Vec<(String, JsonExpectation)>,
}

/// The expectation for a value inside a JSON body.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonExpectation {
    /// The value equals this one, given as compact JSON text.
    Equals(String),
    /// The value is a number that is not below this one.
    AtLeast(f64),
    /// The value is a number between these two, which are included.
    Between(f64, f64),
}
