//! `arenad tasks ls|show|lint --benchmark`: tasks of WebCanvas, TurkingBench and Mind2Web.

use std::path::PathBuf;

use clap::Args;

use crate::cli::args::{Global, Malformed};
use crate::cli::eval::{args as options, stored};
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, output};
use arenad_verdict::Benchmark;

/// A benchmark whose tasks are meant instead of those of an environment.
#[derive(Debug, Args)]
pub struct StoredChoice {
    /// Tasks of a benchmark instead of an environment's: webcanvas, turkingbench or mind2web
    #[arg(long, value_name = "NAME", value_parser = benchmark)]
    pub benchmark: Option<Benchmark>,
    /// With --benchmark: its task file or data folder, or a folder that contains the latter
    #[arg(long, env = "ARENAD_BENCHMARK_DATA", value_name = "FILE|DIR")]
    pub tasks: Option<PathBuf>,
}

fn benchmark(name: &str) -> Result<Benchmark, Malformed> {
    options::benchmark(name)?;
    Benchmark::named(name)
        .filter(|benchmark| benchmark.is_stored())
        .ok_or_else(|| "expected webcanvas, turkingbench or mind2web".into())
}

/// Lists the tasks of a benchmark.
pub fn list(global: &Global, choice: &StoredChoice, benchmark: Benchmark) -> Result<u8, CommandFailure> {
    let lines = stored::tasks(choice.tasks.as_deref(), benchmark)?.lines();
    if global.json {
        output::print_json(&lines)?;
    } else {
        let mut table = output::table(&["TASK", "SIZE", "INTENT"]);
        for line in &lines {
            table.add_row([line.id.as_str(), &line.size, &line.intent]);
        }
        output::print_fitted(&mut table, 2, output::width());
    }
    Ok(exit_code::OK)
}

/// Prints a task as JSON, in the form of evidence.
pub fn show(choice: &StoredChoice, benchmark: Benchmark, id: &str) -> Result<u8, CommandFailure> {
    let task = stored::tasks(choice.tasks.as_deref(), benchmark)?.find(id);
    output::print_json(&task.map_err(|error| CommandFailure::new(exit_code::USAGE, error))?)?;
    Ok(exit_code::OK)
}

/// Prints the defects of the tasks.
pub fn lint(global: &Global, choice: &StoredChoice, benchmark: Benchmark) -> Result<u8, CommandFailure> {
    let tasks = stored::tasks(choice.tasks.as_deref(), benchmark)?;
    let problems = tasks.lint();
    if global.json {
        output::print_json(&problems)?;
    } else {
        for problem in &problems {
            outln!("{}: {}: {}", problem.task, problem.kind, problem.problem);
        }
        let count = tasks.lines().len();
        match problems.len() {
            0 => outln!("{benchmark}: no problems in {count} tasks"),
            number => outln!("{benchmark}: {number} problems in {count} tasks"),
        }
    }
    Ok(if problems.is_empty() { exit_code::OK } else { exit_code::USAGE })
}
