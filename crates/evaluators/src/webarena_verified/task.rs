//! The tasks in `webarena-verified.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::sites::{self, Environments, SiteUrls};

/// A task as the benchmark publishes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifiedTask {
    /// Number of the task.
    pub task_id: u32,
    /// Number of the template from which the task was made.
    pub intent_template_id: i64,
    /// Names of the sites that the task needs.
    pub sites: Vec<String>,
    /// URLs on which the agent starts, with placeholders such as `__GITLAB__`.
    pub start_urls: Vec<String>,
    /// Instruction that the agent is given.
    pub intent: String,
    /// Template of the instruction.
    pub intent_template: String,
    /// Values that were inserted into the template.
    pub instantiation_dict: Map<String, Value>,
    /// Evaluators that judge the task.
    pub eval: Vec<Evaluator>,
    /// Number of the revision, counted from 1.
    pub revision: u32,
    /// URLs of the task's sites.
    #[serde(skip)]
    pub environments: Environments,
}

/// An evaluator of a task, with its configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "evaluator")]
pub enum Evaluator {
    /// Judges the answer of the agent.
    #[serde(rename = "AgentResponseEvaluator")]
    AgentResponse(AgentResponse),
    /// Judges the requests of the browser.
    #[serde(rename = "NetworkEventEvaluator")]
    NetworkEvent(Box<NetworkEvent>),
}

/// The expected answer of the agent, and the way to compare it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentResponse {
    /// The expected answer itself.
    pub expected: ExpectedResponse,
    /// Whether the order of the retrieved data counts.
    #[serde(default)]
    pub ordered: bool,
    /// Schema of the retrieved data.
    pub results_schema: Value,
}

/// An answer in the benchmark's format.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedResponse {
    /// `retrieve`, `mutate` or `navigate`.
    #[serde(alias = "performed_operation")]
    pub task_type: String,
    /// `SUCCESS`, `NOT_FOUND_ERROR` and the like.
    pub status: String,
    /// The data; `None` if the task does not mention data, `null` if there may be none.
    #[serde(default, deserialize_with = "given")]
    pub retrieved_data: Option<Value>,
}

impl ExpectedResponse {
    /// Whether the task has this type.
    pub(super) fn is_type(&self, name: &str) -> bool {
        self.task_type.eq_ignore_ascii_case(name)
    }
}

/// A request that must have been made, or must not have been made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkEvent {
    /// The expected request with its answer.
    pub expected: ExpectedEvent,
    /// Whether only the last matching request counts, or any.
    #[serde(default = "yes")]
    pub last_event_only: bool,
    /// Names of query parameters that are ignored.
    #[serde(default)]
    pub ignored_query_params: Vec<String>,
    /// Patterns of query parameters that are ignored.
    #[serde(default)]
    pub ignored_query_params_patterns: Vec<String>,
    /// Whether segments of the path may be queries in Base64.
    #[serde(default)]
    pub decode_base64_query: bool,
    /// Schema of the query's values.
    #[serde(default)]
    pub query_params_schema: Option<Value>,
    /// Schema of the body's values.
    #[serde(default)]
    pub post_data_schema: Option<Value>,
    /// Patterns of fields of the body that are ignored.
    #[serde(default)]
    pub ignored_post_data_params_patterns: Vec<String>,
    /// Whether such a request must not exist.
    #[serde(default)]
    pub should_not_exist: bool,
}

/// A request with its answer.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ExpectedEvent {
    /// The URL, or a list of alternatives.
    pub url: Value,
    /// Expected headers of the request.
    #[serde(default)]
    pub headers: Option<Map<String, Value>>,
    /// The query, in place of the URL's own.
    #[serde(default)]
    pub query_params: Option<Value>,
    /// Fields of the body; names that begin with `$` are JSONPath.
    #[serde(default)]
    pub post_data: Option<Map<String, Value>>,
    /// Expected fields of the answer's body.
    #[serde(default)]
    pub response_content: Option<Map<String, Value>>,
    /// HTTP status of the answer.
    #[serde(default = "ok")]
    pub response_status: i64,
    /// HTTP method of the request.
    #[serde(default = "get")]
    pub http_method: String,
    /// Cookies that the answer sets.
    #[serde(default)]
    pub response_cookies: Option<Map<String, Value>>,
}

impl ExpectedEvent {
    /// Returns the expected event with the defaults filled in, for a report.
    pub(super) fn to_json(&self) -> Value {
        match serde_json::to_value(self) {
            Ok(Value::Object(entries)) => entries.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            _ => Value::Null,
        }
    }
}

fn yes() -> bool {
    true
}

fn ok() -> i64 {
    200
}

fn get() -> String {
    "GET".to_owned()
}

/// Keeps a `null` that is present apart from an absent value.
fn given<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(Some)
}

/// The reason why a task file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum VerifiedFileError {
    /// The file is not a list of tasks.
    #[error("the file is not a list of tasks")]
    Form(#[source] serde_json::Error),
    /// One task does not have the form of WebArena-Verified's tasks.
    #[error("task {number}")]
    Task {
        /// The number of the task, or its index in the file if it has no number.
        number: u64,
        /// The error of the JSON parser.
        #[source]
        cause: serde_json::Error,
    },
    /// The benchmark does not have a site that a task needs.
    #[error("task {number} needs {site:?}, which is not a site of WebArena-Verified")]
    Site {
        /// The number of the task.
        number: u32,
        /// The name of the site.
        site: String,
    },
    /// A task has no expected answer.
    #[error("task {0} does not say what the agent has to answer")]
    Response(u32),
}

/// Reads a task file. `urls` maps the placeholders of the sites, such as `__SHOPPING__`, to their addresses. The first
/// address is the site's current one; the others are addresses that it may have had when the traffic was recorded.
///
/// If a site has no address here, the addresses of the task's sites are taken from the traffic, as in the benchmark.
///
/// # Errors
///
/// Returns an error if a task does not have the form of WebArena-Verified's tasks.
pub fn read(text: &str, urls: &BTreeMap<String, Vec<String>>) -> Result<Vec<VerifiedTask>, VerifiedFileError> {
    let raw: Vec<Value> = serde_json::from_str(text).map_err(VerifiedFileError::Form)?;
    raw.into_iter().enumerate().map(|(index, task)| task_of(index, task, urls)).collect()
}

/// Reads one task of a task file; `urls` is that of [`read`].
///
/// # Errors
///
/// Returns an error if it does not have the form of WebArena-Verified's tasks.
pub fn read_one(raw: Value, urls: &BTreeMap<String, Vec<String>>) -> Result<VerifiedTask, VerifiedFileError> {
    task_of(0, raw, urls)
}

fn task_of(index: usize, raw: Value, urls: &BTreeMap<String, Vec<String>>) -> Result<VerifiedTask, VerifiedFileError> {
    let number = raw["task_id"].as_u64().unwrap_or(index as u64);
    let mut task: VerifiedTask =
        serde_json::from_value(raw).map_err(|cause| VerifiedFileError::Task { number, cause })?;
    let number = task.task_id;
    let environment = |site: &String| {
        let placeholder =
            sites::placeholder(site).ok_or_else(|| VerifiedFileError::Site { number, site: site.clone() })?;
        let urls = urls.get(&placeholder).cloned().unwrap_or_default();
        Ok(SiteUrls::new(&placeholder, urls))
    };
    task.environments = Environments::new(task.sites.iter().map(environment).collect::<Result<_, _>>()?);
    task.response().ok_or(VerifiedFileError::Response(number))?;
    Ok(task)
}

impl VerifiedTask {
    /// Returns the expected answer.
    pub(super) fn response(&self) -> Option<&ExpectedResponse> {
        self.eval.iter().find_map(|evaluator| match evaluator {
            Evaluator::AgentResponse(response) => Some(&response.expected),
            Evaluator::NetworkEvent(_) => None,
        })
    }

    /// Whether the agent has to retrieve data.
    pub(super) fn is_retrieval(&self) -> bool {
        self.response().is_some_and(|response| response.is_type("retrieve"))
    }

    /// Whether the agent has to end on a page.
    pub(super) fn is_navigation(&self) -> bool {
        self.response().is_some_and(|response| response.is_type("navigate"))
    }
}
