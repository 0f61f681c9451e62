//! The beginning of an episode of a benchmark's task: what an agent may know of the task, at an environment's addresses.
//!
//! A task's evaluation is not part of it, so that a client that lists tasks does not learn the expected results.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use arenad_evaluators::webarena;
use arenad_model::ids::SiteName;
use arenad_model::site::{Environment, Site};

use super::placeholders::{first, mentioned, of_environment, placeholder};

/// The beginning of a task of WebArena, VisualWebArena or WebArena-Verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStart {
    /// The instruction for the agent.
    pub intent: String,
    /// The sites of the environment that the task names, or whose addresses it contains, in the environment's order.
    pub sites: Vec<SiteName>,
    /// The addresses that the browser opens; ` |AND| ` separates those of several tabs.
    pub url: String,
    /// The sites that the agent is signed in to. WebArena-Verified does not say, and its agents are signed in to all.
    pub signed_in: Vec<SiteName>,
    /// The pictures that belong to the instruction, as the task names them: addresses, or paths in the benchmark's
    /// repository.
    pub pictures: Vec<String>,
}

/// Returns the beginning of a task.
///
/// # Errors
///
/// Returns an error if the task starts at a site that the environment does not have.
pub fn start_of(task: &Value, environment: &Environment) -> Result<TaskStart, webarena::WebArenaFileError> {
    let urls = first(&of_environment(environment));
    let texts = |value: &Value| -> Vec<String> {
        match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => Vec::new(),
        }
    };
    let mut shown = json!({
        "task_id": task["task_id"],
        "start": ([texts(&task["start_url"]), texts(&task["start_urls"])].concat()),
        "pictures": texts(&task["image"]),
    });
    webarena::fill(&mut shown, &urls)?;
    let named: BTreeSet<String> = texts(&task["sites"]).iter().map(|name| placeholder(name)).collect();
    let all: BTreeSet<String> = mentioned(task).chain(named.iter().cloned()).collect();
    let of = |placeholders: &BTreeSet<String>| -> Vec<SiteName> {
        let has = |site: &&Site| {
            let variables = site.public.variable.iter().chain(site.exports.iter().map(|(variable, _)| variable));
            variables.map(|variable| placeholder(variable)).any(|own| placeholders.contains(&own))
        };
        environment.sites.iter().filter(has).map(|site| site.name.clone()).collect()
    };
    let needs_login = task["require_login"].as_bool().unwrap_or(true);
    Ok(TaskStart {
        intent: task["intent"].as_str().unwrap_or_default().to_owned(),
        sites: of(&all),
        url: texts(&shown["start"]).join(" |AND| "),
        signed_in: if needs_login { of(&named) } else { Vec::new() },
        pictures: texts(&shown["pictures"]),
    })
}
