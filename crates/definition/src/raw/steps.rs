//! Probes, requests and commands of an environment file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

use super::values::{Entries, FilePart, OneOrMany, Period, Port, Statuses, TextOrNumber};

/// One observation and its expected result. Exactly one of `http`, `tcp`, `sql`, `exec`, `log` and `docker_health` is
/// given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProbe {
    /// The name shown to people. Default: derived from the kind, such as `http /healthz`.
    pub(crate) name: Option<String>,
    /// The timeout of one attempt. Default: `5s`.
    pub(crate) timeout: Option<Period>,
    /// One HTTP exchange. Redirects are never followed: expect them with `status` and `redirect`.
    pub(crate) http: Option<RawHttpProbe>,
    /// A TCP connection that must be accepted.
    pub(crate) tcp: Option<RawTcpProbe>,
    /// A query on one of the site's databases.
    pub(crate) sql: Option<RawSqlProbe>,
    /// A command in a container; it must exit with 0.
    pub(crate) exec: Option<RawExecProbe>,
    /// A line of the container's log since its start.
    pub(crate) log: Option<RawLogProbe>,
    /// The result of the image's or Compose file's own health check; `{}` selects the entry's service.
    pub(crate) docker_health: Option<RawDockerHealth>,
}

/// One HTTP exchange and the expected response.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHttpProbe {
    /// Path and query, beginning with `/`.
    pub(crate) path: String,
    /// The service that answers. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The port inside the container. Default: the entry's, if the service is the entry's.
    pub(crate) port: Option<Port>,
    /// The HTTP method. Default: `GET`.
    pub(crate) method: Option<RawProbeMethod>,
    /// The headers of the request.
    pub(crate) headers: Option<Entries<String>>,
    /// The status codes that pass. Default: 200; with `redirect`: 301, 302, 303, 307 and 308.
    pub(crate) status: Option<Statuses>,
    /// The end of the expected `Location` header, for a ready site that answers with a redirect.
    pub(crate) redirect: Option<String>,
    /// One or several texts that the body must contain.
    pub(crate) contains: Option<OneOrMany>,
    /// JSON pointers (RFC 6901, such as `/products`) with the expected value in the body: a plain value for equality,
    /// `{ at_least: 200 }` or `{ between: [8000, 9000] }` for a number, `{ equals: [1, 2] }` for any JSON value.
    pub(crate) json: Option<Entries<FilePart<RawJsonExpectation>>>,
    /// The minimum size of the body in bytes.
    pub(crate) bytes_at_least: Option<u32>,
}

/// The HTTP method of a probe.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(crate) enum RawProbeMethod {
    /// `GET`.
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
}

/// The expected value at a JSON pointer.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(
    inline,
    title = "a plain value, `{ at_least: number }`, `{ between: [number, number] }` or `{ equals: value }`"
)]
pub(crate) enum RawJsonExpectation {
    /// A comparison with a keyword.
    Comparison(RawComparison),
    /// Equality with a plain value.
    Plain(super::values::Scalar),
}

/// A comparison: exactly one of the keys is given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawComparison {
    /// The minimum of the number.
    pub(crate) at_least: Option<f64>,
    /// The minimum and maximum of the number.
    pub(crate) between: Option<Vec<f64>>,
    /// The value must equal this one.
    pub(crate) equals: Option<Json>,
}

/// A TCP connection that must be accepted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTcpProbe {
    /// The service to connect to. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The port inside the container.
    pub(crate) port: Port,
}

/// A query on one of the site's databases.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSqlProbe {
    /// The name under `databases`. Default: the site's only one.
    pub(crate) database: Option<String>,
    /// The statement; the first column of its first row is compared.
    pub(crate) query: String,
    /// The expected value, as text. Default: the query must yield a row.
    pub(crate) equals: Option<TextOrNumber>,
}

/// A command in a container; it must exit with 0.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawExecProbe {
    /// The service whose container runs it. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The program and its arguments. No shell is involved unless it is the program.
    #[schemars(length(min = 1))]
    pub(crate) command: Vec<String>,
    /// Text that standard output must contain.
    pub(crate) contains: Option<String>,
}

/// A line of the container's log since its start.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLogProbe {
    /// The service whose log is read. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The regular expression that a line must match. A dollar sign is written `$$`.
    pub(crate) pattern: String,
}

/// The result of the container's own health check.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "a mapping: `{}` for the entry's service, or `{ service: name }`")]
pub(crate) struct RawDockerHealth {
    /// The service whose health check is queried. Default: the entry's.
    pub(crate) service: Option<String>,
}

/// One step of the configuration. Exactly one of `exec`, `http` and `sql` is given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStep {
    /// The name shown to people. Default: derived from the kind.
    pub(crate) name: Option<String>,
    /// The period in which a failing step is tried again, because services need time to start. Default: `60s`.
    pub(crate) retry_for: Option<Period>,
    /// The condition under which the step is skipped.
    pub(crate) unless: Option<RawUnless>,
    /// A command in a container.
    pub(crate) exec: Option<RawExec>,
    /// With `exec`: a folder whose content the command gets on its standard input, as a tar archive. The path is relative
    /// to the folder that holds `environments/` and `compose/`. A change of the content makes a new baseline.
    pub(crate) input: Option<String>,
    /// A request to a service.
    pub(crate) http: Option<RawHttp>,
    /// A statement on a database.
    pub(crate) sql: Option<RawSql>,
}

/// The condition under which a step is skipped.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUnless {
    /// The probe that is checked; the step is skipped if it passes.
    pub(crate) probe: Box<RawProbe>,
    /// The period in which the probe may pass. Default: one attempt.
    pub(crate) within: Option<Period>,
}

/// A command in a container; it must exit with 0.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawExec {
    /// The service whose container runs it. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The program and its arguments. No shell is involved unless it is the program.
    #[schemars(length(min = 1))]
    pub(crate) command: Vec<String>,
    /// The user inside the container. Default: the image's.
    pub(crate) user: Option<String>,
    /// The timeout of the command. Default: `60s`.
    pub(crate) timeout: Option<Period>,
}

/// A request to a service.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHttp {
    /// Path and query, beginning with `/`.
    pub(crate) path: String,
    /// The service that answers. Default: the entry's.
    pub(crate) service: Option<String>,
    /// The port inside the container. Default: the entry's, if the service is the entry's.
    pub(crate) port: Option<Port>,
    /// The HTTP method. Default: `GET`.
    pub(crate) method: Option<RawMethod>,
    /// The headers of the request.
    pub(crate) headers: Option<Entries<String>>,
    /// The body, sent as it is.
    pub(crate) body: Option<String>,
    /// The status codes that count as success. Default: 200.
    pub(crate) status: Option<Statuses>,
    /// The timeout of the request. Default: `30s`.
    pub(crate) timeout: Option<Period>,
}

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(crate) enum RawMethod {
    /// `GET`.
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

/// A statement on a database.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSql {
    /// The name under `databases`. Default: the site's only one.
    pub(crate) database: Option<String>,
    /// The SQL statement to run.
    pub(crate) statement: String,
}

/// A request that fills caches: a path, or a mapping.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a path such as `/search?q=lamp`, or a request with `path`, `status` and so on")]
pub(crate) enum RawWarm {
    /// The path of a `GET` that must answer 200.
    Path(String),
    /// A request with its own options.
    Request(Box<RawHttp>),
}
