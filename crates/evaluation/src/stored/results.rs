//! Files of results: trajectories, answers, predictions.

use std::io;
use std::path::{Path, PathBuf};

use arenad_evaluators::mind2web;
use arenad_evaluators::turkingbench::{ANSWER, Label, Table};
use arenad_verdict::Benchmark;
use serde_json::{Map, Value, json};
use walkdir::WalkDir;

use super::case::{StoredPrediction, StoredPredictions, TOP_K};
use super::tasks::StoredTasks;

/// The maximum depth of files below a folder of results.
const DEPTH_MAX: usize = 4;

/// The reason why results cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredResultError {
    /// A file cannot be read.
    #[error("read {path}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A file does not have the form of results of the benchmark.
    #[error("{path} has no results of {benchmark}: {what}")]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// Benchmark whose results were expected.
        benchmark: Benchmark,
        /// Description of the defect, and of the expected content.
        what: String,
    },
}

/// One result: the task that it belongs to, and the answer in the form of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredResult {
    /// The file, with the place in it.
    pub path: String,
    /// Identifier of the task.
    pub id: String,
    /// The answer, in the form of evidence.
    pub answer: String,
    /// The score that the run itself recorded.
    pub recorded: Option<f64>,
}

/// Reads the results of a benchmark in a file, or in the files below a folder.
///
/// # Errors
///
/// Returns an error for the first file that cannot be read, or if there are no results.
pub fn results(benchmark: Benchmark, path: &Path, tasks: &StoredTasks) -> Result<Vec<StoredResult>, StoredResultError> {
    let mut files = Vec::new();
    for entry in WalkDir::new(path).max_depth(DEPTH_MAX).sort_by_file_name() {
        let entry = entry.map_err(|error| StoredResultError::Read {
            path: error.path().unwrap_or(path).to_owned(),
            cause: error.into(),
        })?;
        if entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    let mut found = Vec::new();
    for file in &files {
        let form = |what: String| StoredResultError::Form { path: file.clone(), benchmark, what };
        let text =
            || std::fs::read_to_string(file).map_err(|cause| StoredResultError::Read { path: file.clone(), cause });
        let suffix = file.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        match (benchmark, suffix) {
            (Benchmark::WebCanvas, "json") => found.extend(trajectory(file, &text()?).map_err(form)?),
            (Benchmark::TurkingBench, "json" | "jsonl") => found.extend(answers(file, &text()?).map_err(form)?),
            (Benchmark::TurkingBench, "csv") => found.extend(turkle(file, &text()?, tasks).map_err(form)?),
            (Benchmark::Mind2Web, "json") => found.extend(predictions(file, &text()?).map_err(form)?),
            _ => {}
        }
    }
    if found.is_empty() {
        let what = match benchmark {
            Benchmark::WebCanvas => "expected JSON files with `task` and `steps`, or those of its json_result folder",
            Benchmark::TurkingBench => {
                "expected a results CSV of Turkle, or JSON lines with `task`, `instance` and `answers`"
            }
            _ => "expected *_predictions_top50.json or *_outputs_top50.json",
        };
        return Err(StoredResultError::Form { path: path.to_owned(), benchmark, what: what.to_owned() });
    }
    Ok(found)
}

/// A trajectory with its task; other JSON files of a run, such as `out.json`, are none.
fn trajectory(file: &Path, text: &str) -> Result<Option<StoredResult>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let is_own = value["steps"].is_array();
    if !is_own && !value["step_list"].is_array() {
        return Ok(None);
    }
    let id = match (&value["task"], &value["id"]) {
        (Value::String(id), _) if is_own => id.clone(),
        (Value::Number(id), _) if is_own => id.to_string(),
        (_, Value::String(id)) => id.clone(),
        (_, Value::Number(id)) => id.to_string(),
        _ => return Err("the trajectory does not name its task: expected `task` with the index of the task".to_owned()),
    };
    let last = value["step_list"].as_array().and_then(|steps| steps.last()?["score"].as_str().map(str::to_owned));
    let recorded = last.and_then(|score| {
        let (reached, all) = score.split_once('/')?;
        Some(reached.trim().parse::<f64>().ok()? / all.trim().parse::<f64>().ok()?)
    });
    Ok(Some(StoredResult { path: file.display().to_string(), id, answer: text.to_owned(), recorded }))
}

/// Stored answers: one object, a list of objects, or one object in each line.
fn answers(file: &Path, text: &str) -> Result<Vec<StoredResult>, String> {
    let entries: Vec<Value> = match serde_json::from_str(text) {
        Ok(Value::Array(entries)) => entries,
        Ok(one) => vec![one],
        Err(_) => {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            lines
                .map(|(at, line)| serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1)))
                .collect::<Result<_, _>>()?
        }
    };
    let result = |(at, entry): (usize, &Value)| {
        let wrong = || format!("entry {} lacks `task` or `instance`", at + 1);
        let (task, instance) =
            (entry["task"].as_str().ok_or_else(wrong)?, entry["instance"].as_u64().ok_or_else(wrong)?);
        let answer = match entry.get("fields") {
            Some(fields) => json!({ "fields": fields }),
            None => json!({ "answers": entry["answers"] }),
        };
        let path = format!("{}#{}", file.display(), at + 1);
        Ok(StoredResult { path, id: format!("{task}/{instance}"), answer: answer.to_string(), recorded: None })
    };
    entries.iter().enumerate().map(result).collect()
}

/// Turkle's results: a row for each assignment, with the task's project in `Title`, and columns `Input.…` and `Answer.…`.
fn turkle(file: &Path, text: &str, tasks: &StoredTasks) -> Result<Vec<StoredResult>, String> {
    const INPUT: &str = "Input.";
    let table = Table::read(text).map_err(|error| error.to_string())?;
    let cell = |label: &Label| if label.is_nan() { String::new() } else { label.text() };
    let titles = table.column("Title").or_else(|| table.column("Project"));
    let mut out = Vec::new();
    for row in 0..table.rows {
        let task = match titles {
            Some(titles) => cell(&titles[row]),
            None => file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        let own = |prefix: &str| -> Vec<(String, String)> {
            let named = table.columns.iter().zip(&table.cells);
            named.filter_map(|(name, cells)| Some((name.strip_prefix(prefix)?.to_owned(), cell(&cells[row])))).collect()
        };
        let place = format!("{}#{}", file.display(), row + 1);
        let instance = tasks
            .instance_of(&task, &own(INPUT))
            .ok_or_else(|| format!("row {}: no instance of the task `{task}` has this input", row + 1))?;
        let answers: Map<String, Value> =
            own(ANSWER).into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        let answer = json!({ "answers": answers }).to_string();
        out.push(StoredResult { path: place, id: format!("{task}/{instance}"), answer, recorded: None });
    }
    Ok(out)
}

/// A file of predictions, by task. The number of candidates is part of its name.
fn predictions(file: &Path, text: &str) -> Result<Vec<StoredResult>, String> {
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if !name.contains("_predictions") && !name.contains("_outputs") {
        return Ok(Vec::new());
    }
    let top_k = name.rsplit_once("_top").and_then(|(_, k)| k.parse().ok()).unwrap_or(TOP_K);
    let by_task = mind2web::predictions(text).map_err(|error| error.to_string())?;
    let result = |(id, own): (String, std::collections::BTreeMap<String, mind2web::Prediction>)| {
        let stored = |(action, own): (String, mind2web::Prediction)| {
            (action, StoredPrediction { element: own.element, action: own.action })
        };
        let stored = StoredPredictions { top_k: Some(top_k), predictions: own.into_iter().map(stored).collect() };
        let answer = serde_json::to_string(&stored).map_err(|error| error.to_string())?;
        Ok(StoredResult { path: format!("{}#{id}", file.display()), id, answer, recorded: None })
    };
    by_task.into_iter().map(result).collect()
}
