//! Folders of BrowserGym's and AgentLab's experiments: `exp_args.pkl`, `step_<n>.pkl.gz`, `summary_info.json`.
//!
//! Source: `browsergym/experiments/loop.py` (`ExpArgs`, `StepInfo`, `_save_summary_info`) and
//! `browsergym/webarena/task.py`. The pickles are read as data: objects yield their attributes, arrays yield nothing,
//! and no code in them is executed.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Benchmark, Left, ResultError, form, pickle, text, traffic, unfinished};

const ARGUMENTS: &str = "exp_args.pkl";

/// The answers that the benchmark receives if an agent says nothing, and if it gives up.
const NOTHING: &str = "whatever";
const INFEASIBLE: &str = "N/A";

#[derive(Deserialize)]
struct ExperimentArguments {
    env_args: EnvironmentArguments,
}

#[derive(Deserialize)]
struct EnvironmentArguments {
    task_name: String,
}

#[derive(Deserialize)]
struct ExperimentStep {
    #[serde(default)]
    obs: Option<Observation>,
    #[serde(default)]
    action: Option<String>,
}

#[derive(Deserialize)]
struct Observation {
    #[serde(default)]
    url: String,
    #[serde(default)]
    chat_messages: Vec<ExperimentMessage>,
}

#[derive(Deserialize)]
struct ExperimentMessage {
    role: String,
    message: String,
}

/// Returns whether a folder belongs to an experiment.
pub(super) fn is_experiment(folder: &Path) -> bool {
    folder.join(ARGUMENTS).is_file() || folder.join("step_0.pkl.gz").is_file()
}

pub(super) fn read(folder: &Path) -> Result<Left, ResultError> {
    let name = task_name(folder)?;
    let (benchmark, id) = task(&name)
        .ok_or_else(|| form(folder, "an experiment of a known benchmark", format!("its task is `{name}`")))?;
    let step: ExperimentStep = last_step(folder)?;
    let observation = step.obs.ok_or_else(|| unfinished(folder, "its last step saw nothing: the run was cut off"))?;
    if step.action.is_some() {
        return Err(unfinished(folder, "its last step has an action but no outcome, so the run was cut off"));
    }
    Ok(Left {
        benchmark: Some(benchmark),
        id,
        answer: answer(&observation.chat_messages),
        url: observation.url,
        traffic: traffic(folder)?,
        recorded: recorded(folder)?,
    })
}

/// Returns the task's name from the arguments, or from a folder name of the form `…_on_TASK_SEED`.
fn task_name(folder: &Path) -> Result<String, ResultError> {
    let path = folder.join(ARGUMENTS);
    if path.is_file() {
        let file = File::open(&path).map_err(|cause| ResultError::Read { path: path.clone(), cause })?;
        let arguments: ExperimentArguments = unpickled(&path, BufReader::new(file))?;
        return Ok(arguments.env_args.task_name);
    }
    let folder_name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let task = folder_name.rsplit_once("_on_").and_then(|(_, task)| Some(task.rsplit_once('_')?.0.to_owned()));
    task.ok_or_else(|| unfinished(folder, "it has no exp_args.pkl, and its name no `_on_TASK_SEED`"))
}

/// Parses a task name such as `webarena.310`, `browsergym/visualwebarena.35` or
/// `webarena_verified.TEMPLATE.TASK.REVISION`.
fn task(name: &str) -> Option<(Benchmark, String)> {
    let bare = name.strip_prefix("browsergym/").unwrap_or(name);
    let (benchmark, numbers) = bare.split_once('.')?;
    let benchmark = Benchmark::named(benchmark)?;
    let numbers: Vec<&str> = numbers.split('.').collect();
    let id = match (benchmark, numbers.as_slice()) {
        (Benchmark::WebArenaVerified, [_, task, _]) | (_, [task]) => *task,
        _ => return None,
    };
    super::is_number(id).then(|| (benchmark, id.to_owned()))
}

/// Reads the last step that was written.
fn last_step(folder: &Path) -> Result<ExperimentStep, ResultError> {
    let entries = std::fs::read_dir(folder).map_err(|cause| ResultError::Read { path: folder.to_owned(), cause })?;
    let number = |name: &str| name.strip_prefix("step_")?.strip_suffix(".pkl.gz")?.parse::<u32>().ok();
    let steps = entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?));
    let last = steps.max().ok_or_else(|| unfinished(folder, "it has no step: the run never began"))?;
    let path = folder.join(format!("step_{last}.pkl.gz"));
    let file = File::open(&path).map_err(|cause| ResultError::Read { path: path.clone(), cause })?;
    unpickled(&path, BufReader::new(GzDecoder::new(file)))
}

fn unpickled<T: DeserializeOwned>(path: &Path, input: impl std::io::Read) -> Result<T, ResultError> {
    pickle::read(input).map_err(|error| form(path, "a pickle of BrowserGym", error))
}

/// Returns the agent's last message, or `N/A` if the agent gave up, as `browsergym.webarena` does.
fn answer(messages: &[ExperimentMessage]) -> String {
    match messages.last() {
        Some(last) if last.role == "assistant" => last.message.clone(),
        Some(last) if last.role == "infeasible" => INFEASIBLE.to_owned(),
        _ => NOTHING.to_owned(),
    }
}

/// Returns the score that the harness itself recorded.
fn recorded(folder: &Path) -> Result<Option<f64>, ResultError> {
    let path = folder.join("summary_info.json");
    if !path.is_file() {
        return Ok(None);
    }
    let summary: Value =
        serde_json::from_str(&text(&path)?).map_err(|error| form(&path, "a summary of an experiment", error))?;
    Ok(summary["cum_reward"].as_f64())
}
