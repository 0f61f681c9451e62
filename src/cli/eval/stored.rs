//! Judges WebCanvas, TurkingBench and Mind2Web: by stored results, without a daemon and without sites.

use std::path::Path;

use serde_json::{Map, Value};

use super::args::EvalArgs;
use super::batch::{Batch, BatchOutcome, file_name, said, show};
use super::local::Local;
use super::{judge, one, save};
use crate::cli::args::Global;
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, output};
use arenad_evaluation::Summary;
use arenad_evaluation::results;
use arenad_evaluation::stored::{self, StoredTasks};
use arenad_judge::Judge;
use arenad_verdict::{Benchmark, EpisodeEvidence, Profile};

/// Opens the tasks of a benchmark.
pub fn tasks(path: Option<&Path>, benchmark: Benchmark) -> Result<StoredTasks, CommandFailure> {
    let Some(path) = path else {
        return Err(CommandFailure::usage(format!("the location of the tasks of {benchmark} is unknown")).hint(
            format!("pass them with --tasks, or set ARENAD_BENCHMARK_DATA to a folder that contains {benchmark}/"),
        ));
    };
    StoredTasks::open(benchmark, path).map_err(|error| CommandFailure::new(exit_code::USAGE, error))
}

pub(super) fn evidence(benchmark: Benchmark, id: String, task: Value, answer: String) -> EpisodeEvidence {
    EpisodeEvidence {
        benchmark,
        id,
        task,
        urls: Default::default(),
        answer,
        url: String::new(),
        told: Default::default(),
        traffic: None,
        looked_at: Vec::new(),
    }
}

/// Judges one task by an answer.
pub(super) async fn run(
    global: &Global,
    args: &EvalArgs,
    benchmark: Benchmark,
    id: &str,
) -> Result<u8, CommandFailure> {
    let tasks = tasks(args.tasks.as_deref(), benchmark)?;
    let task = tasks.find(id).map_err(|error| CommandFailure::new(exit_code::USAGE, error))?;
    let evidence = evidence(benchmark, id.to_owned(), task, one::answer(args)?);
    one::again(global, args, evidence).await
}

/// Judges every result of a file or folder, and prints the benchmark's own measures as well.
pub(super) async fn batch(
    global: &Global,
    args: &EvalArgs,
    benchmark: Benchmark,
    path: &Path,
) -> Result<u8, CommandFailure> {
    let mut found: Vec<FoundResult> = Vec::new();
    if args.from.is_some() {
        let all = results::find(path).map_err(|error| CommandFailure::new(exit_code::USAGE, error))?;
        for stored in all.iter().filter(|stored| stored.layout == results::ResultLayout::Evidence) {
            let read = results::evidence(&stored.path).map(|mut evidence| {
                evidence.told.reopen();
                evidence
            });
            match read {
                Ok(evidence) if evidence.benchmark != benchmark => {}
                read => found.push((stored.path.display().to_string(), read.map_err(|error| error.to_string()), None)),
            }
        }
    } else {
        let tasks = tasks(args.tasks.as_deref(), benchmark)?;
        let read =
            stored::results(benchmark, path, &tasks).map_err(|error| CommandFailure::new(exit_code::USAGE, error))?;
        for result in read {
            let task = tasks.find(&result.id).map_err(|error| error.to_string());
            let own = task.map(|task| evidence(benchmark, result.id.clone(), task, result.answer));
            found.push((result.path, own, result.recorded));
        }
    }
    if found.is_empty() {
        return Err(CommandFailure::usage(format!("{} contains no evidence of {benchmark}", path.display())));
    }
    judge_all(global, args, benchmark, path, found).await
}

/// A result to judge: its place, its evidence or the reason why there is none, and the score that was recorded with it.
pub(super) type FoundResult = (String, Result<EpisodeEvidence, String>, Option<f64>);

/// Judges results, and prints the benchmark's own measures as well. The places of results are relative to `path`.
pub(super) async fn judge_all(
    global: &Global,
    args: &EvalArgs,
    benchmark: Benchmark,
    path: &Path,
    found: Vec<FoundResult>,
) -> Result<u8, CommandFailure> {
    if let Some(folder) = &args.evidence {
        std::fs::create_dir_all(folder)?;
    }
    let judge = judge::of(global, args)?;
    let profiles = args.profile.list();
    let (mut outcomes, mut kept) = (Vec::new(), Vec::new());
    let mut summary = Summary::of(profiles);
    for (place, read, recorded) in found {
        let outcome = match read {
            Ok(evidence) => judged(args, judge.as_deref(), evidence, path, &place).await.map_err(|error| said(&error)),
            Err(error) => Err(error),
        };
        outcomes.push(match outcome {
            Ok((evaluated, evidence)) => {
                summary.add(Some(&evaluated));
                kept.push(evidence);
                BatchOutcome { path: place, evaluated: Some(evaluated), recorded, error: None }
            }
            Err(error) => {
                summary.add(None);
                BatchOutcome { path: place, evaluated: None, recorded: None, error: Some(error) }
            }
        });
    }
    let code = if summary.unreadable == 0 { exit_code::OK } else { exit_code::FAILED };
    let batch = Batch { results: outcomes, summary, measures: Some(measures(benchmark, &kept, profiles)?) };
    if global.json {
        output::print_json(&batch)?;
    } else {
        show(&batch);
    }
    Ok(code)
}

async fn judged(
    args: &EvalArgs,
    judge: Option<&dyn Judge>,
    mut evidence: EpisodeEvidence,
    folder: &Path,
    place: &str,
) -> anyhow::Result<(arenad_verdict::EpisodeReports, EpisodeEvidence)> {
    let profiles = args.profile.list();
    Local { judge, pictures: None }.settle(&mut evidence, profiles).await?;
    let evaluated = arenad_evaluation::evaluate(&evidence, profiles)?;
    if let Some(target) = &args.evidence {
        // Several results may lie in one file, which the identifier tells apart.
        let bare = place.rsplit_once('#').map_or(place, |(file, _)| file);
        let name = file_name(folder, &Path::new(bare).with_extension(""));
        let name = name.trim_start_matches('.');
        let id: String = evidence.id.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect();
        save(&evidence, &target.join(format!("{id}.{name}")))?;
    }
    Ok((evaluated, evidence))
}

/// The measures of the benchmark, by profile.
fn measures(
    benchmark: Benchmark,
    episodes: &[EpisodeEvidence],
    profiles: &[Profile],
) -> Result<Map<String, Value>, CommandFailure> {
    let episodes: Vec<&EpisodeEvidence> = episodes.iter().collect();
    let mut out = Map::new();
    for profile in profiles {
        out.insert(profile.name().to_owned(), stored::measures(benchmark, &episodes, *profile)?);
    }
    Ok(out)
}
