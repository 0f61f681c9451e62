//! `arenad eval`: judges episodes of benchmarks.
//!
//! A single episode may require readings of the sites, which the daemon takes. The sites of episodes in result folders
//! have changed since, so they are not read, and a check that needs a reading is inconclusive. The forms of TurkingBench are
//! read from the database of an episode's site, and the steps of WebCanvas are those that the daemon has recorded.

pub mod args;
mod batch;
mod judge;
mod local;
mod one;
pub mod places;
pub mod stored;
mod trajectory;
mod turkle;

use std::path::Path;

use anyhow::Context;

use self::args::EvalArgs;
use super::args::Global;
use super::failure::CommandFailure;
use super::{exit_code, output, report};
use arenad_evaluation::{TaskFiles, results};
use arenad_verdict::{Benchmark, EpisodeEvidence, EpisodeReports, Urls};
use arenad_verdict::{Profile, Report, SideBySide};

/// Judges one episode, a folder of results, or stored evidence.
pub async fn run(global: &Global, args: &EvalArgs) -> Result<u8, CommandFailure> {
    if let Some(from) = &args.from {
        if let (true, Some(benchmark)) = (from.is_dir(), args.benchmark.filter(|benchmark| benchmark.is_stored())) {
            return stored::batch(global, args, benchmark, from).await;
        }
        if from.is_dir() {
            return batch::run(global, args, from).await;
        }
        let mut evidence = results::evidence(from)?;
        evidence.told.reopen();
        return one::again(global, args, evidence).await;
    }
    if let (Some(episode), Some(benchmark)) = (&args.episode, args.benchmark) {
        return match benchmark {
            Benchmark::WebCanvas => trajectory::run(global, args, episode).await,
            _ => turkle::run(global, args, benchmark, episode).await,
        };
    }
    match (&args.results, &args.task, args.benchmark) {
        (Some(results), _, Some(benchmark)) if benchmark.is_stored() => {
            stored::batch(global, args, benchmark, results).await
        }
        (None, Some(task), Some(benchmark)) if benchmark.is_stored() => {
            stored::run(global, args, benchmark, task).await
        }
        (Some(results), _, _) => batch::run(global, args, results).await,
        (None, Some(task), Some(benchmark)) => one::run(global, args, benchmark, task).await,
        _ => Err(CommandFailure::usage("nothing to judge: pass --task with --benchmark, --results or --from")),
    }
}

/// Returns the addresses of the sites. WebArena-Verified takes them from the traffic unless they are given, as its own
/// code does, so an environment is used only if it is named.
async fn urls(global: &Global, args: &EvalArgs, benchmark: Benchmark) -> Result<Urls, CommandFailure> {
    match (benchmark, args.environment.as_deref()) {
        (Benchmark::WebArenaVerified, None) => Ok(places::given(&args.sites)),
        (_, environment) => places::of(global, environment, environment, &args.sites).await,
    }
}

/// Finds the task files of a benchmark.
fn task_files(args: &EvalArgs, benchmark: Benchmark) -> Result<TaskFiles, CommandFailure> {
    let Some(path) = &args.tasks else {
        return Err(CommandFailure::usage(format!("the location of the tasks of {benchmark} is unknown"))
            .hint("pass its task file with --tasks, or set ARENAD_BENCHMARK_DATA to a folder that contains it"));
    };
    TaskFiles::open(benchmark, path).map_err(|error| CommandFailure::new(exit_code::USAGE, error))
}

/// Prints one episode's reports, and returns the exit code.
fn print(global: &Global, evaluated: &EpisodeReports) -> Result<u8, CommandFailure> {
    let subject = format!("{} {}: {}", evaluated.benchmark, evaluated.task, evaluated.intent);
    if global.json {
        output::print_json(evaluated)?;
    } else {
        match (of(evaluated, Profile::Compat), of(evaluated, Profile::Strict)) {
            (Some(compat), Some(strict)) => {
                report::print_both(&subject, &SideBySide { compat: compat.clone(), strict: strict.clone() });
            }
            (Some(only), None) | (None, Some(only)) => report::print(&subject, only),
            (None, None) => {}
        }
        for warning in &evaluated.warnings {
            errln!("warning: {warning}");
        }
    }
    Ok(evaluated.reports.last().map_or(exit_code::OK, |last| report::code(last.verdict)))
}

fn of(evaluated: &EpisodeReports, profile: Profile) -> Option<&Report> {
    evaluated.reports.iter().find(|report| report.profile == profile)
}

/// Writes evidence atomically, so that no partial file is left.
fn save(evidence: &EpisodeEvidence, path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> anyhow::Result<()> {
        let file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(std::io::BufWriter::new(file.as_file()), evidence)?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("write the evidence to {}", path.display()))
}
