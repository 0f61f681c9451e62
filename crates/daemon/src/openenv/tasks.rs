//! The tasks of an environment: its native ones, and those of benchmarks whose files the daemon has.
//!
//! A benchmark is a split of each environment that has sites of its tasks, and `webarena/27` is the name of its task 27.

use std::path::Path;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::api::ApiError;
use arenad_definition::tasks;
use arenad_evaluation::{TaskFiles, TaskFilesError, TaskStart, of_environment, speaks_of, start_of};
use arenad_model::error::describe;
use arenad_model::login::LoginRecipe;
use arenad_model::site::Environment;
use arenad_model::task::Task;
use arenad_seams::inline::blocking;
use arenad_verdict::{Benchmark, Urls};

/// The split of an environment's native tasks.
const NATIVE: &str = "test";

/// The variable that names the folder with the benchmarks' files.
const DATA: &str = "ARENAD_BENCHMARK_DATA";

/// The reason why there are no tasks.
#[derive(Debug)]
pub(super) enum NoTasks {
    /// The environment has no such split; the splits that it has.
    Split(Vec<String>),
    /// The files cannot be read.
    Files(String),
}

/// Returns the benchmark and the id that the name of a task consists of; `None` for that of a native task.
pub(super) fn benchmark_of(name: &str) -> Option<(Benchmark, &str)> {
    let (benchmark, id) = name.split_once('/')?;
    Some((Benchmark::named(benchmark).filter(|it| !it.is_stored())?, id))
}

/// Returns the beginning of a benchmark's task.
pub(super) fn start(name: &str, task: &Value, definition: &Environment) -> Result<TaskStart, ApiError> {
    start_of(task, definition).map_err(|error| {
        let detail = format!("begin task {name} in {}: {}", definition.name, describe(&error));
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_task", detail)
    })
}

/// Returns the accounts by which an agent is signed in: of each site, the first one that signs in by cookies.
pub(super) fn accounts(start: &TaskStart, definition: &Environment) -> Vec<(String, String)> {
    let sites = definition.sites.iter().filter(|site| start.signed_in.contains(&site.name));
    let has_cookies = |recipe: &LoginRecipe| matches!(recipe, LoginRecipe::Form(_));
    let account = |site: &arenad_model::site::Site| {
        let first =
            site.accounts.iter().find(|it| it.login.as_ref().is_some_and(|login| has_cookies(&login.recipe)))?;
        Some((site.name.to_string(), first.name.clone()))
    };
    sites.filter_map(account).collect()
}

/// Returns the names of an environment's splits: that of the native tasks, and the benchmarks that it has tasks of.
pub(super) async fn splits(definition: Environment) -> Result<Vec<String>, NoTasks> {
    in_files(move || {
        let mut splits = vec![NATIVE.to_owned()];
        for benchmark in Benchmark::OF_SITES {
            if !of_benchmark(benchmark, &definition)?.is_empty() {
                splits.push(benchmark.to_string());
            }
        }
        Ok(splits)
    })
    .await
}

/// Returns the tasks of a split in the form of the parameters of a reset, without their expected results. Invalid native
/// tasks are left out, and tasks of benchmarks at sites that the environment does not have.
pub(super) async fn of_split(definition: Environment, split: &str) -> Result<Vec<Value>, NoTasks> {
    let benchmark = match split {
        NATIVE => return in_files(move || native(&definition)).await,
        other => Benchmark::named(other).filter(|it| !it.is_stored() && it.name() == other),
    };
    let Some(benchmark) = benchmark else { return Err(NoTasks::Split(splits(definition).await?)) };
    in_files(move || {
        let tasks = of_benchmark(benchmark, &definition)?;
        Ok(tasks.iter().filter_map(|(id, task)| shown(benchmark, id, task, &definition)).collect())
    })
    .await
}

/// Runs work that reads files, which takes milliseconds.
async fn in_files<T: Send + 'static>(work: impl FnOnce() -> Result<T, NoTasks> + Send + 'static) -> Result<T, NoTasks> {
    blocking(work).await.map_err(|error| NoTasks::Files(error.to_string()))?
}

fn native(definition: &Environment) -> Result<Vec<Value>, NoTasks> {
    let files = tasks::read_tasks(&definition.root, &definition.name);
    let files = files.map_err(|error| NoTasks::Files(describe(&error)))?;
    let loaded = tasks::load(&files, definition);
    let shown = |task: &Task| {
        json!({
            "task": task.name,
            "environment": definition.name.to_string(),
            "intent": task.intent,
            "kind": task.kind.name(),
            "task_sites": task.sites.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    };
    Ok(loaded.tasks.iter().map(shown).collect())
}

/// Returns the tasks of a benchmark that can be done in an environment, with their ids.
fn of_benchmark(benchmark: Benchmark, definition: &Environment) -> Result<Vec<(String, Value)>, NoTasks> {
    let Some(folder) = std::env::var_os(DATA) else { return Ok(Vec::new()) };
    let files = match TaskFiles::open(benchmark, Path::new(&folder)) {
        Err(TaskFilesError::Empty { .. }) => return Ok(Vec::new()),
        opened => opened.map_err(|error| NoTasks::Files(describe(&error)))?,
    };
    let urls = of_environment(definition);
    let mut tasks = files.all().map_err(|error| NoTasks::Files(describe(&error)))?;
    tasks.retain(|(_, task)| speaks_of(task, &urls, &Urls::new()));
    Ok(tasks)
}

fn shown(benchmark: Benchmark, id: &str, task: &Value, definition: &Environment) -> Option<Value> {
    let start = start_of(task, definition).ok()?;
    Some(json!({
        "task": format!("{benchmark}/{id}"),
        "environment": definition.name.to_string(),
        "intent": start.intent,
        "images": start.pictures,
        "task_sites": start.sites.iter().map(ToString::to_string).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_a_benchmark_is_named_after_it() {
        assert_eq!(benchmark_of("webarena/27"), Some((Benchmark::WebArena, "27")));
        assert_eq!(benchmark_of("visualwebarena/shopping/35"), Some((Benchmark::VisualWebArena, "shopping/35")));
        assert_eq!(benchmark_of("shopping.order.1"), None);
        assert_eq!(benchmark_of("mind2web/1"), None, "its tasks have no sites");
        assert_eq!(benchmark_of("ebay/1"), None);
    }
}
