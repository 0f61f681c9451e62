//! WebArena-Verified's evaluators: `AgentResponseEvaluator` and `NetworkEventEvaluator` of version 1.2.3.
//!
//! They need no access to the sites: the answer and the recorded traffic are sufficient.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use arenad_verdict::{Profile, Verdict};
//! use arenad_evaluators::webarena_verified::{Submission, evaluate, read};
//!
//! # let tasks = r#"[{"sites": ["shopping"], "task_id": 1, "intent_template_id": 1, "start_urls": ["__SHOPPING__"],
//! #   "intent": "How much?", "intent_template": "How much?", "instantiation_dict": {}, "revision": 1, "eval": [
//! #   {"evaluator": "AgentResponseEvaluator", "expected": {"task_type": "retrieve", "status": "SUCCESS",
//! #   "retrieved_data": [10.5]}, "results_schema": {"type": "array", "items": {"type": "number", "format": "currency"}}}]}]"#;
//! # let answer = r#"{"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["$10.50"]}"#;
//! # let har = br#"{"log": {"entries": [{"request": {"method": "GET", "url": "http://localhost:7770/"}, "response": {"status": 200}}]}}"#;
//! let urls = BTreeMap::from([("__SHOPPING__".to_owned(), vec!["http://localhost:7770".to_owned()])]);
//! let tasks = read(tasks, &urls)?; // webarena-verified.json
//! let submission = Submission::read(answer, har); // agent_response.json, network.har or trace.zip
//! for profile in [Profile::Compat, Profile::Strict] {
//!     let report = evaluate(&tasks[0], &submission, profile);
//!     assert_eq!(report.verdict, Verdict::Passed);
//! }
//! # Ok::<(), arenad_evaluators::webarena_verified::VerifiedFileError>(())
//! ```
//!
//! `compat` reproduces the benchmark's scores. If the benchmark's code ends in an error and a score of 0, a check fails
//! and its reason describes the error. The page `docs/reference/evaluators.md` lists the
//! differences of `strict`.

mod agent_response;
mod compare;
mod failure;
mod jsonpath;
mod network_event;
mod node;
mod reading;
mod schema;
mod sites;
mod submission;
mod task;
mod trace;
mod values;

use serde_json::{Map, Value, json as object};

pub use super::text::dates::{Day, today};
pub use agent_response::retrieved_data;
pub use compare::ValueMismatch;
pub use failure::ReadingFailure;
pub use reading::{ReadingOptions, UrlOptions, ValueOrigin};
pub use sites::{Environments, SiteUrls, placeholder};
pub use submission::{Submission, SubmittedAnswer};
pub use task::{
    AgentResponse, Evaluator, ExpectedEvent, ExpectedResponse, NetworkEvent, VerifiedFileError, VerifiedTask, read,
    read_one,
};
pub use trace::{Trace, TraceError};
pub use values::{TypedValue, ValueKind};

use super::strict::leniency::Leniency;
use super::strict::verified::tidied;
use super::text::json;
use super::text::patterns::Patterns;
use super::text::urls;
use arenad_verdict::{Check, Profile, Report, Verdict};

/// Removes the segments of a URL's path that are queries in Base64. Returns the remaining path and the queries.
#[must_use]
pub fn extract_base64_query(path: &str) -> (String, Vec<String>) {
    values::url::extract_base64_query(path)
}

/// Parses JSON as Python does; returns `None` if the text is not JSON.
///
/// # Errors
///
/// Returns an error if Python raises any other error than a syntax error.
pub fn parse_json(text: &str) -> Result<Option<Value>, ReadingFailure> {
    Ok(json::parse(text)?)
}

/// Returns the values of a URL's query by name, sorted.
#[must_use]
pub fn normalize_query(query: &str) -> Map<String, Value> {
    values::url::normalize_query(query)
}

/// Judges a task: every one of its evaluators has to pass.
#[must_use]
pub fn evaluate(task: &VerifiedTask, submission: &Submission, profile: Profile) -> Report {
    let trace = match &submission.trace {
        Ok(trace) => trace,
        Err(error) if profile == Profile::Compat => {
            let reason = format!("the benchmark's code fails without traffic: {error}");
            let checks = task.eval.iter().map(|evaluator| failed(evaluator, submission, reason.clone())).collect();
            return Report::of(profile, checks);
        }
        Err(_) => &Trace::default(),
    };
    let environments = match environments(task, trace) {
        Ok(environments) => environments,
        // Without traffic, no check of the traffic takes place, and checks of the answer need no addresses.
        Err(_) if submission.trace.is_err() => task.environments.clone(),
        Err(failure) => {
            let checks = task.eval.iter().map(|evaluator| undecided(evaluator, submission, &failure)).collect();
            return Report::of(profile, checks);
        }
    };
    let patterns = Patterns::default();
    let reading = ReadingOptions {
        sites: Some(&environments),
        rendered: Some(&environments),
        today: submission.today,
        ..ReadingOptions::new(ValueOrigin::Expected, profile, &patterns)
    };
    // The expected request may be among the unrecorded ones. The published code ignores this.
    let lacks = trace.lacks(&task.sites).filter(|_| profile == Profile::Strict);
    let mut checks = Vec::new();
    for evaluator in &task.eval {
        let judged = match (evaluator, &submission.trace) {
            (Evaluator::AgentResponse(config), _) => response_checks(task, config, submission, &reading),
            (Evaluator::NetworkEvent(_), Err(error)) => {
                Err(ReadingFailure::Unseen(format!("the traffic cannot be read: {error}")))
            }
            (Evaluator::NetworkEvent(_), Ok(_)) if let Some(lacks) = &lacks => {
                Err(ReadingFailure::Unseen(format!("the recording is not whole: {lacks}")))
            }
            (Evaluator::NetworkEvent(config), Ok(_)) => {
                event_check(task, config, trace, &reading).map(|check| vec![check])
            }
        };
        match judged {
            Ok(judged) => checks.extend(judged),
            // If the task itself can be read, unreadable output of the agent counts as a failure instead of leaving the
            // verdict open.
            Err(ReadingFailure::Unsupported(reason))
                if profile == Profile::Strict && is_understood(evaluator, &reading) =>
            {
                checks.push(failed(evaluator, submission, format!("what the agent left cannot be read: {reason}")));
            }
            Err(failure) => checks.push(undecided(evaluator, submission, &failure)),
        }
    }
    Report::of(profile, checks)
}

/// Whether the task's own values can be read. If so, any unreadable value comes from the agent.
fn is_understood(evaluator: &Evaluator, reading: &ReadingOptions<'_>) -> bool {
    match evaluator {
        Evaluator::AgentResponse(config) => agent_response::expected(config, reading).is_ok(),
        Evaluator::NetworkEvent(config) => network_event::is_understood(config, reading),
    }
}

/// Returns the addresses of the task's sites. If one of them is unknown, the addresses are taken from the first
/// requests, one request for each site.
fn environments(task: &VerifiedTask, trace: &Trace) -> Result<Environments, ReadingFailure> {
    if task.environments.is_complete() {
        return Ok(task.environments.clone());
    }
    let events = trace.relevant()?;
    let last = events.len().checked_sub(1);
    let last =
        last.ok_or_else(|| ReadingFailure::raised("the addresses of the sites are unknown, and there is no traffic"))?;
    let environment = |(index, placeholder): (usize, &str)| {
        let split = urls::urlsplit(events[index.min(last)].url()?)?;
        let path = if placeholder == "__SHOPPING_ADMIN__" { "/admin" } else { "" };
        Ok(SiteUrls::new(placeholder, vec![format!("{}://{}{path}", split.scheme, split.netloc)]))
    };
    task.environments.placeholders().enumerate().map(environment).collect::<Result<_, _>>().map(Environments::new)
}

const RESPONSE: &str = "agent_response";
const EVENT: &str = "network_event";

/// Judges the answer; one check for each part of it.
fn response_checks(
    task: &VerifiedTask,
    config: &AgentResponse,
    submission: &Submission,
    reading: &ReadingOptions<'_>,
) -> Result<Vec<Check>, ReadingFailure> {
    let (answer, leniency) = match reading.profile {
        Profile::Compat => (submission.answer.clone(), None),
        Profile::Strict => match tidied(&submission.answer, &config.results_schema) {
            Ok(tidied) => tidied,
            Err(hedge) => {
                let check = failed(&Evaluator::AgentResponse(config.clone()), submission, hedge.to_string());
                return Ok(vec![check]);
            }
        },
    };
    let outcome = agent_response::judge(config, &answer, task.is_retrieval(), reading)?;
    let part = |node: &node::ValueNode, name: &str| node.get(name).map_or(Value::Null, node::ValueNode::to_json);
    let mut checks = Vec::new();
    let mut rest = outcome.differences;
    for name in ["task_type", "status", "retrieved_data"] {
        let (own, others): (Vec<ValueMismatch>, Vec<ValueMismatch>) = rest.into_iter().partition(|difference| {
            difference.name.strip_prefix("agent_response.").unwrap_or(&difference.name).starts_with(name)
        });
        rest = others;
        let (expected, found) = (part(&outcome.expected, name), part(&outcome.actual, name));
        let check = Check::of(RESPONSE, name, "answer", expected, found, own.is_empty());
        let accepted = leniency.filter(|_| name == "retrieved_data").map(Leniency::reason);
        checks.push(Check { reason: reason(&own).or(accepted), ..check });
    }
    if !rest.is_empty() {
        let found = agent_response::shown(&submission.answer);
        let check = Check::of(RESPONSE, "form", "answer", outcome.expected.to_json(), found, false);
        checks.push(Check { reason: reason(&rest), ..check });
    }
    Ok(checks)
}

fn reason(differences: &[ValueMismatch]) -> Option<String> {
    let says = |difference: &ValueMismatch| format!("{}: {}", difference.name, difference.message);
    (!differences.is_empty()).then(|| differences.iter().map(says).collect::<Vec<_>>().join("; "))
}

fn event_check(
    task: &VerifiedTask,
    config: &NetworkEvent,
    trace: &Trace,
    reading: &ReadingOptions<'_>,
) -> Result<Check, ReadingFailure> {
    let outcome = network_event::judge(config, trace, task.is_navigation(), reading)?;
    let check = Check::of(
        EVENT,
        rule(config),
        &place(config),
        config.expected.to_json(),
        Value::Array(outcome.found),
        outcome.is_fine,
    );
    Ok(Check { reason: outcome.reason, ..check })
}

/// Returns the name of the rule that selects the requests.
fn rule(config: &NetworkEvent) -> &'static str {
    match (config.should_not_exist, config.last_event_only) {
        (true, _) => "no_event",
        (false, true) => "last_event",
        (false, false) => "any_event",
    }
}

fn place(config: &NetworkEvent) -> String {
    match &config.expected.url {
        Value::String(url) => url.clone(),
        other => other.to_string(),
    }
}

/// Returns the check of an evaluator that could not reach a verdict.
fn undecided(evaluator: &Evaluator, submission: &Submission, failure: &ReadingFailure) -> Check {
    let verdict = match failure {
        ReadingFailure::Raised(reason) => {
            return failed(evaluator, submission, format!("the benchmark's code raises an error: {reason}"));
        }
        ReadingFailure::Unsupported(_) => Verdict::Unsupported,
        ReadingFailure::Unseen(_) => Verdict::Inconclusive,
    };
    Check { verdict, found: None, ..failed(evaluator, submission, failure.to_string()) }
}

fn failed(evaluator: &Evaluator, submission: &Submission, reason: String) -> Check {
    let check = match evaluator {
        Evaluator::AgentResponse(config) => {
            let expected = object!({
                "task_type": config.expected.task_type,
                "status": config.expected.status,
                "retrieved_data": config.expected.retrieved_data,
            });
            let found = agent_response::shown(&submission.answer);
            Check::of(RESPONSE, "form", "answer", expected, found, false)
        }
        Evaluator::NetworkEvent(config) => {
            let expected = config.expected.to_json();
            Check::of(EVENT, rule(config), &place(config), expected, Value::Array(Vec::new()), false)
        }
    };
    Check { reason: Some(reason), ..check }
}
