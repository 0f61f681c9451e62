//! `arenad check` and `arenad check begin`: judge an episode of a native task, or begin one.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use reqwest::Method;

use super::args::{CheckArgs, CheckBeginArgs, CheckCommand, Global, TaskChoice};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::tasks::choice::{ChosenTasks, rendered};
use super::{exit_code, output, report};
use arenad_api::SourceText;
use arenad_api::checks::{BeginRequest, Begun, CheckEvidence, CheckRequest, Checked, SeenReading, Sighted};
use arenad_definition::tasks;
use arenad_evaluators::native::{self, Episode, ReadingOutcome, Sight};
use arenad_model::locator::json;
use arenad_model::task::Reading;

/// Judges an episode, or begins one.
pub async fn run(global: &Global, args: &CheckArgs) -> Result<u8, CommandFailure> {
    match &args.command {
        Some(CheckCommand::Begin(args)) => begin(global, args).await,
        None => match &args.from {
            Some(kept) => again(global, args, kept),
            None => check(global, args).await,
        },
    }
}

async fn check(global: &Global, args: &CheckArgs) -> Result<u8, CommandFailure> {
    let meant = SelectedTask::of(args.task.as_deref().unwrap_or_default(), &args.choice)?;
    let client = ApiClient::new(global)?;
    let address = meant.address();
    let request = CheckRequest {
        task: meant.task,
        file: meant.file,
        begun: args.begun.as_deref().map(read_begun).transpose()?,
        answer: args.answer.clone(),
        url: args.url.clone(),
        cdp: args.cdp.clone(),
        evidence: args.evidence.is_some(),
    };
    let mut checked: Checked = client.send(Method::POST, &address, &request).await?;
    if let (Some(file), Some(evidence)) = (&args.evidence, checked.evidence.take()) {
        let text = serde_json::to_string(&evidence).context("write the observations as JSON")?;
        std::fs::write(file, text + "\n").with_context(|| format!("write {}", file.display()))?;
    }
    print(global, &checked)
}

/// Judges an episode again by stored evidence and by the task as it is now.
fn again(global: &Global, args: &CheckArgs, file: &Path) -> Result<u8, CommandFailure> {
    let begun = Instant::now();
    let wrong = |error: anyhow::Error| {
        let failure = CommandFailure::new(exit_code::USAGE, error.context(format!("read {}", file.display())));
        failure.hint("`arenad check TASK --evidence FILE` writes such a file")
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.into()))?;
    let kept: CheckEvidence = serde_json::from_str(&text).map_err(|error| wrong(error.into()))?;
    let name = args.task.as_deref().unwrap_or(&kept.task);
    let chosen = match &args.choice.file {
        Some(path) => ChosenTasks::of_words(path.to_str(), None)?,
        None => vec![ChosenTasks::of_environment(Some(&kept.environment), None)?],
    };
    let chosen = chosen.first().ok_or_else(|| CommandFailure::usage("there are no tasks"))?;
    let task = chosen.find(name)?;
    let captured = kept.captured.iter().map(|(name, value)| {
        let read = json::from_typed(value).ok_or_else(|| anyhow::anyhow!("the value of `{name}` is invalid"));
        Ok((name.clone(), read.map_err(wrong)?))
    });
    let captured = captured.collect::<Result<BTreeMap<_, _>, CommandFailure>>()?;
    // A reading that the evidence does not contain is inconclusive.
    let readings = native::readings(&task).into_iter();
    let sights: Vec<Sight> =
        readings.filter_map(|reading| kept.seen.iter().find_map(|seen| sight(seen, reading))).collect();
    let episode = Episode { answer: &kept.answer, url: kept.url.as_deref(), no_url: None, captured: &captured };
    let report = native::judge(&task.criterion, &episode, &sights);
    let duration_ms = begun.elapsed().as_secs_f64() * 1e3;
    let CheckEvidence { environment, at, answer, url, .. } = kept;
    print(global, &Checked { task: task.name, environment, at, answer, url, report, duration_ms, evidence: None })
}

fn print(global: &Global, checked: &Checked) -> Result<u8, CommandFailure> {
    if global.json {
        output::print_json(checked)?;
    } else {
        report::print(&checked.task, &checked.report);
    }
    Ok(report::code(checked.report.verdict))
}

async fn begin(global: &Global, args: &CheckBeginArgs) -> Result<u8, CommandFailure> {
    let meant = SelectedTask::of(&args.task, &args.choice)?;
    let client = ApiClient::new(global)?;
    let path = format!("{}/begin", meant.address());
    let request = BeginRequest { task: meant.task, file: meant.file, reset: args.reset };
    let begun: Begun = client.send(Method::POST, &path, &request).await?;
    match &args.out {
        None => output::print_json(&begun)?,
        Some(file) => {
            let text = serde_json::to_string_pretty(&begun).context("write the captured values as JSON")?;
            std::fs::write(file, text + "\n").with_context(|| format!("write {}", file.display()))?;
        }
    }
    Ok(exit_code::OK)
}

fn read_begun(path: &Path) -> Result<Begun, CommandFailure> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(path).map(|read| text = read),
    };
    let wrong = |error: anyhow::Error| {
        let failure = CommandFailure::new(exit_code::USAGE, error.context(format!("read {}", path.display())));
        failure.hint("`arenad check begin TASK --out FILE` writes such a file")
    };
    read.map_err(|error| wrong(error.into()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.into()))
}

/// The task that the arguments select, and the file that was named for it.
pub struct SelectedTask {
    /// The name of the task.
    pub task: String,
    /// The file that contains it, if one was named.
    pub file: Option<SourceText>,
    /// The environment that the options or the file name.
    pub environment: Option<String>,
}

impl SelectedTask {
    /// Selects a task by its name, optionally in a file, or the only task of a file.
    pub fn of(task: &str, choice: &TaskChoice) -> Result<Self, CommandFailure> {
        let is_file = choice.file.is_none() && task.contains(['/', '.']) && Path::new(task).is_file();
        let path = if is_file { Some(Path::new(task)) } else { choice.file.as_deref() };
        let Some(path) = path else {
            return Ok(Self { task: task.to_owned(), file: None, environment: choice.environment.clone() });
        };
        let chosen = ChosenTasks::of_words(path.to_str(), None)?;
        let Some((chosen, file)) = chosen.first().and_then(|chosen| Some((chosen, chosen.files.first()?))) else {
            return Err(CommandFailure::usage(format!("{} has no tasks", path.display())));
        };
        let file_text = SourceText { path: file.path.display().to_string(), text: file.text.clone() };
        let environment = choice.environment.clone().or_else(|| Some(chosen.environment.name.to_string()));
        let meant = |task: String| Self { task, file: Some(file_text.clone()), environment: environment.clone() };
        if !is_file {
            return Ok(meant(task.to_owned()));
        }
        let loaded = tasks::load(&chosen.files, &chosen.environment);
        match (loaded.tasks.as_slice(), &loaded.problems) {
            (_, Some(problems)) => {
                Err(CommandFailure::new(exit_code::USAGE, anyhow::anyhow!("parse the tasks\n\n{}", rendered(problems))))
            }
            ([only], None) => Ok(meant(only.name.clone())),
            (several, None) => {
                let names: Vec<&str> = several.iter().map(|task| task.name.as_str()).collect();
                let failure = CommandFailure::usage(format!("{} has {} tasks", path.display(), several.len()));
                Err(failure.hint(format!("name one of them, and pass the file with --file: {}", names.join(", "))))
            }
        }
    }

    /// Returns the base path of the daemon's checks: those of the named environment, or else those of the environment
    /// that the daemon finds by the task or by the record of how the episode began.
    fn address(&self) -> String {
        match &self.environment {
            Some(named) => format!("/v1/environments/{named}/checks"),
            None => "/v1/checks".to_owned(),
        }
    }
}

/// Returns the kept observation if it belongs to this reading; `None` for any other, and for an invalid value.
fn sight(kept: &SeenReading, reading: &Reading) -> Option<Sight> {
    let arguments: BTreeMap<String, String> = reading.arguments.0.iter().cloned().collect();
    let is_it = (kept.site.as_str(), &kept.locate) == (reading.site.as_str(), &reading.text)
        && (&kept.arguments, &kept.page, &kept.account) == (&arguments, &reading.page, &reading.account);
    let seen = match kept.seen.clone() {
        Sighted::Value(value) => ReadingOutcome::Value(json::from_typed(&value)?),
        Sighted::Nothing(reason) => ReadingOutcome::Nothing(reason),
        Sighted::Unavailable(reason) => ReadingOutcome::Unavailable(reason),
        Sighted::Unsupported(reason) => ReadingOutcome::Unsupported(reason),
    };
    let took = Duration::try_from_secs_f64(kept.duration_ms / 1e3).unwrap_or_default();
    is_it.then(|| Sight { reading: reading.clone(), seen, took })
}
