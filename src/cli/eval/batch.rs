//! Judges many episodes: folders of results, and of evidence.
//!
//! An interrupted batch is simply run again: judging takes milliseconds, and a judge's replies are kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use comfy_table::Cell;
use futures_util::StreamExt;
use serde::Serialize;
use serde_json::{Map, Value};

use super::args::EvalArgs;
use super::local::Local;
use super::{judge, save, task_files};
use crate::cli::args::Global;
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, output, report};
use arenad_evaluation::results::{self, EVIDENCE, Left, RecordedResult, Stored};
use arenad_evaluation::{Summary, TaskFiles, VerdictTally};
use arenad_judge::Judge;
use arenad_verdict::{Benchmark, EpisodeEvidence, EpisodeReports, Urls};
use arenad_verdict::{Check, Report, Verdict};

/// The maximum length of a reason in a table.
const WHY_MAX: usize = 100;

/// One result and the outcome of its evaluation.
#[derive(Serialize)]
pub(super) struct BatchOutcome {
    /// The file or folder of the result.
    pub(super) path: String,
    /// The reports, unless the evaluation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) evaluated: Option<EpisodeReports>,
    /// The score that the benchmark run itself recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recorded: Option<f64>,
    /// The error that prevented reading or judging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// The whole batch, in the shape of `--json`.
#[derive(Serialize)]
pub(super) struct Batch {
    pub(super) results: Vec<BatchOutcome>,
    pub(super) summary: Summary,
    /// The measures that a benchmark publishes, by profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) measures: Option<Map<String, Value>>,
}

arenad_model::text_error! {
    /// The reason why the tasks of a benchmark are unknown, which each of its results reports.
    struct NoTaskFiles;
}

/// The inputs that all results of a batch share.
struct Common<'a> {
    args: &'a EvalArgs,
    folder: &'a Path,
    files: BTreeMap<Benchmark, Result<Arc<TaskFiles>, NoTaskFiles>>,
    urls: BTreeMap<Benchmark, Urls>,
    judge: Option<Box<dyn Judge>>,
}

/// Judges every result below a folder.
pub(super) async fn run(global: &Global, args: &EvalArgs, folder: &Path) -> Result<u8, CommandFailure> {
    let mut found = results::find(folder).map_err(|error| CommandFailure::new(exit_code::USAGE, error))?;
    if args.from.is_some() {
        found.retain(|stored| stored.layout == results::ResultLayout::Evidence);
    }
    if found.is_empty() {
        return Err(CommandFailure::usage(format!("{} contains no results", folder.display())).hint(
            "name a folder that contains render_NUMBER.html, experiments with exp_args.pkl and step_NUMBER.pkl.gz, \
             NUMBER/agent_response.json, or NAME.evidence.json",
        ));
    }
    if let Some(folder) = &args.evidence {
        std::fs::create_dir_all(folder)?;
    }
    let common = Common::new(global, args, folder).await?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(processors, usize::from);
    let results: Vec<BatchOutcome> =
        futures_util::stream::iter(found).map(|stored| common.outcome(stored)).buffered(jobs).collect().await;
    let mut summary = Summary::of(args.profile.list());
    for outcome in &results {
        summary.add(outcome.evaluated.as_ref());
    }
    let code = if summary.unreadable == 0 { exit_code::OK } else { exit_code::FAILED };
    let batch = Batch { results, summary, measures: None };
    if global.json {
        output::print_json(&batch)?;
    } else {
        show(&batch);
    }
    Ok(code)
}

impl<'a> Common<'a> {
    async fn new(global: &Global, args: &'a EvalArgs, folder: &'a Path) -> Result<Self, CommandFailure> {
        let (mut files, mut urls) = (BTreeMap::new(), BTreeMap::new());
        // A missing task file is an error only if one of the results belongs to its benchmark.
        for benchmark in Benchmark::OF_SITES {
            files.insert(
                benchmark,
                task_files(args, benchmark).map(Arc::new).map_err(|failure| NoTaskFiles::from(said(&failure.error))),
            );
            urls.insert(benchmark, super::urls(global, args, benchmark).await?);
        }
        Ok(Self { args, folder, files, urls, judge: judge::of(global, args)? })
    }

    async fn outcome(&self, stored: Stored) -> BatchOutcome {
        let path = stored.path.display().to_string();
        match self.judged(stored).await {
            Ok((evaluated, recorded)) => BatchOutcome { path, evaluated: Some(evaluated), recorded, error: None },
            Err(error) => BatchOutcome { path, evaluated: None, recorded: None, error: Some(said(&error)) },
        }
    }

    async fn judged(&self, stored: Stored) -> anyhow::Result<(EpisodeReports, Option<f64>)> {
        let target = self.args.evidence.as_ref().map(|folder| folder.join(file_name(self.folder, &stored.path)));
        // Reading files, archives and traffic is CPU-bound, so each result gets a thread of its own.
        let read = tokio::task::spawn_blocking(move || stored.read()).await??;
        let (mut evidence, recorded) = match read {
            RecordedResult::Evidence(mut evidence) => {
                evidence.told.reopen();
                (*evidence, None)
            }
            RecordedResult::Left(left) => {
                let recorded = left.recorded;
                (self.evidence(*left)?, recorded)
            }
        };
        let profiles = self.args.profile.list();
        let local = Local { judge: self.judge.as_deref(), pictures: self.args.pictures.as_deref() };
        local.settle(&mut evidence, profiles).await?;
        let work = move || -> anyhow::Result<EpisodeReports> {
            let evaluated = arenad_evaluation::evaluate(&evidence, profiles)?;
            if let Some(target) = target {
                save(&evidence, &target)?;
            }
            Ok(evaluated)
        };
        Ok((tokio::task::spawn_blocking(work).await??, recorded))
    }

    fn evidence(&self, left: Left) -> anyhow::Result<EpisodeEvidence> {
        let benchmark = left.benchmark.or(self.args.benchmark).unwrap_or(Benchmark::WebArena);
        let files = match &self.files[&benchmark] {
            Ok(files) => files,
            Err(reason) => anyhow::bail!("find task {} of {benchmark}: {reason}", left.id),
        };
        Ok(EpisodeEvidence {
            benchmark,
            task: files.find(&left.id)?,
            id: left.id,
            urls: self.urls[&benchmark].clone(),
            answer: left.answer,
            url: left.url,
            told: Default::default(),
            traffic: left.traffic,
            looked_at: Vec::new(),
        })
    }
}

/// Returns the file name of a result's evidence, derived from the path below the batch's folder so that it is unique.
pub(super) fn file_name(folder: &Path, result: &Path) -> String {
    let parts = result.strip_prefix(folder).unwrap_or(result).iter().map(|part| part.to_string_lossy());
    let path = parts.collect::<Vec<_>>().join(".");
    let bare = path.strip_suffix(EVIDENCE).or_else(|| path.strip_suffix(".html")).unwrap_or(&path);
    format!("{bare}{EVIDENCE}")
}

/// Returns an error with its causes, on one line.
pub(super) fn said(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

pub(super) fn show(batch: &Batch) {
    let profiles: Vec<&str> = batch.summary.profiles.keys().copied().collect();
    let has_recorded = batch.results.iter().any(|outcome| outcome.recorded.is_some());
    let headings: Vec<String> = ["BENCHMARK", "TASK", "SITES"]
        .into_iter()
        .map(str::to_owned)
        .chain(profiles.iter().map(|profile| profile.to_uppercase()))
        .chain(has_recorded.then(|| "RECORDED".to_owned()))
        .chain(["WHY".to_owned()])
        .collect();
    let mut table = output::table(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for outcome in batch.results.iter() {
        let Some(evaluated) = &outcome.evaluated else { continue };
        let mut row = vec![evaluated.benchmark.name().to_owned(), evaluated.task.clone(), evaluated.sites.join(",")];
        row.extend(evaluated.reports.iter().map(|report| report::word(report.verdict).to_owned()));
        if has_recorded {
            row.push(outcome.recorded.map(|score| score.to_string()).unwrap_or_default());
        }
        row.push(evaluated.reports.last().map(why).unwrap_or_default());
        table.add_row(row.into_iter().map(Cell::new).collect::<Vec<_>>());
    }
    if batch.summary.unreadable < batch.summary.results {
        output::print_table(&table);
    }
    for outcome in &batch.results {
        if let Some(error) = &outcome.error {
            // Some errors already contain the file's path and the position in it.
            let place = if error.contains(&outcome.path) { String::new() } else { format!("{}: ", outcome.path) };
            errln!("error: {place}{error}");
        }
    }
    outln!("");
    for (profile, tally) in &batch.summary.profiles {
        outln!("{profile}: {}", counted(tally));
    }
    for (profile, own) in batch.measures.iter().flatten() {
        outln!("\nmeasures of the benchmark, {profile}");
        measured(own, "  ");
    }
}

/// Prints measures: numbers in lines, and groups below their names.
fn measured(own: &Value, indent: &str) {
    let Value::Object(entries) = own else { return };
    for (name, value) in entries {
        match value {
            Value::Object(_) => {
                outln!("{indent}{name}");
                measured(value, &format!("{indent}  "));
            }
            Value::Number(number) if number.is_f64() => {
                outln!("{indent}{name:<28} {:.4}", number.as_f64().unwrap_or_default());
            }
            Value::Null => outln!("{indent}{name:<28} -"),
            other => outln!("{indent}{name:<28} {}", other.to_string().trim_matches('"')),
        }
    }
}

/// Returns a tally on one line. The rate is over all results; results whose verdict is neither passed nor failed are
/// counted separately.
fn counted(tally: &VerdictTally) -> String {
    let rate = tally.success_rate.map(|rate| format!(" ({:.1} %)", rate * 100.0)).unwrap_or_default();
    let open = [
        (tally.inconclusive, "inconclusive"),
        (tally.needs_judge, "needs_judge"),
        (tally.unsupported, "unsupported"),
        (tally.unreadable, "could not be judged"),
    ];
    let open = open.into_iter().filter(|(count, _)| *count > 0);
    let open: String = open.map(|(count, verdict)| format!(", {count} {verdict}")).collect();
    format!("{} of {} passed{rate}, {} failed{open}", tally.passed, tally.total, tally.failed)
}

/// Returns a short reason for a verdict other than passed.
fn why(report: &Report) -> String {
    let decisive = |check: &&Check| check.verdict == report.verdict && report.verdict != Verdict::Passed;
    let Some(check) = report.checks.iter().find(decisive) else { return String::new() };
    let text = match &check.reason {
        Some(reason) => format!("{} {}: {reason}", check.evaluator, check.rule),
        None => format!("{} {}: expected {}", check.evaluator, check.rule, check.expected),
    };
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(WHY_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_all_results() {
        let tally = VerdictTally {
            total: 100,
            passed: 5,
            unsupported: 95,
            success_rate: Some(0.05),
            ..VerdictTally::default()
        };
        assert_eq!(counted(&tally), "5 of 100 passed (5.0 %), 0 failed, 95 unsupported");
    }

    #[test]
    fn evidence_is_named_after_where_its_result_lies() {
        let name = |path: &str| file_name(Path::new("/r"), Path::new(path));
        assert_eq!(name("/r/study/a_on_webarena.1_7"), "study.a_on_webarena.1_7.evidence.json");
        assert_eq!(name("/r/107"), "107.evidence.json");
        assert_eq!(name("/r/wa/render_3.html"), "wa.render_3.evidence.json");
        assert_eq!(name("/r/107.evidence.json"), "107.evidence.json");
    }
}
