//! Probes: single observations of an instance. The kinds and what each expects; running them is the daemon's work.

use std::time::Duration;

use super::ids::ServiceName;

/// One observation and what it must show for the probe to pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The name shown to people: given in the definition or derived from the kind, such as `http /healthz`.
    pub name: String,
    /// What is observed.
    pub kind: ProbeKind,
    /// The longest one attempt may take.
    pub timeout: Duration,
}

/// The kinds of probes.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeKind {
    /// One HTTP exchange with a service of the site.
    Http(HttpProbe),
    /// A TCP connection that is accepted.
    Tcp {
        /// The service to connect to.
        service: ServiceName,
        /// The port inside the container.
        port: u16,
    },
    /// A query on one of the site's declared databases.
    Sql {
        /// The key in [`super::site::Site::databases`].
        database: String,
        /// The statement; its first column of its first row is what is compared.
        query: String,
        /// What the value must be, as text. `None`: the query must merely yield a row.
        equals: Option<String>,
    },
    /// A command run in a container; it must exit with 0.
    Exec {
        /// The service whose container runs it.
        service: ServiceName,
        /// The argument vector; no shell is involved unless it names one.
        command: Vec<String>,
        /// Text that standard output must contain.
        contains: Option<String>,
    },
    /// A line of the container's log, since its start, that matches.
    Log {
        /// The service whose log is read.
        service: ServiceName,
        /// The regular expression, known to compile.
        pattern: String,
    },
    /// The verdict of the image's or Compose file's own health check.
    DockerHealth {
        /// The service whose health is asked for.
        service: ServiceName,
    },
}

/// An HTTP exchange and what must come back. Redirects are never followed: a declared one is expected by name.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpProbe {
    /// The service that answers.
    pub service: ServiceName,
    /// The port inside the container.
    pub port: u16,
    /// `GET`, `HEAD`, `POST`.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Request headers, in file order.
    pub headers: Vec<(String, String)>,
    /// The status codes that pass.
    pub status: Vec<u16>,
    /// What the `Location` header must end with, when a redirect is what a ready site answers.
    pub redirect: Option<String>,
    /// Texts that the body must contain.
    pub contains: Vec<String>,
    /// How many bytes the body must have at least; an empty map tile is a picture too.
    pub bytes_at_least: Option<u64>,
    /// JSON pointers (RFC 6901) and what the body's value there must be, in canonical JSON text.
    pub json: Vec<(String, JsonExpectation)>,
}

/// What a value inside a JSON body must be.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonExpectation {
    /// Equal to this value, given as compact JSON text.
    Equals(String),
    /// A number of at least this.
    AtLeast(f64),
    /// A number from the first to the second, both included.
    Between(f64, f64),
}
