//! Judges one episode by readings of its sites, replies of the judge, or stored evidence.

use anyhow::Context;
use reqwest::Method;
use serde_json::Value;

use super::args::EvalArgs;
use super::local::Local;
use super::{judge, places, print, save, task_files};
use crate::cli::args::Global;
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::{exit_code, find, har};
use arenad_api::{Evaluation, EvaluationRequest};
use arenad_evaluation::EvaluationCase;
use arenad_verdict::{Benchmark, EpisodeEvidence, Traffic};

/// The maximum number of rounds in which sites and judge are asked in turn; an answer of one may lead to a question for
/// the other.
const ROUNDS_MAX: usize = 4;

/// Judges an episode that has just ended, while its sites are in the state that the agent left.
pub(super) async fn run(
    global: &Global,
    args: &EvalArgs,
    benchmark: Benchmark,
    id: &str,
) -> Result<u8, CommandFailure> {
    let task = task_files(args, benchmark)?.find(id).map_err(|error| CommandFailure::new(exit_code::USAGE, error))?;
    let named = args.environment.as_deref();
    let (urls, environment) = match (benchmark, named) {
        // The addresses come from the traffic, unless an environment is named.
        (Benchmark::WebArenaVerified, None) => (places::given(&args.sites), None),
        _ => places::of_task(global, named, &task, &args.sites).await?,
    };
    let mut evidence = EpisodeEvidence {
        benchmark,
        id: id.to_owned(),
        task,
        urls,
        answer: answer(args)?,
        url: args.url.clone().unwrap_or_default(),
        told: Default::default(),
        traffic: traffic(global, args, benchmark).await?,
        looked_at: Vec::new(),
    };
    EvaluationCase::of(&evidence).map_err(|error| {
        CommandFailure::new(exit_code::USAGE, error)
            .hint("bring its sites up, or pass their addresses with --site NAME=URL")
    })?;
    let judge = judge::of(global, args)?;
    let local = Local { judge: judge.as_deref(), pictures: args.pictures.as_deref() };
    let profiles = args.profile.list();
    for _ in 0..ROUNDS_MAX {
        let known = evidence.told.count();
        if local.settle(&mut evidence, profiles).await? {
            look(global, args, environment.as_deref(), &mut evidence).await?;
        }
        if evidence.told.count() == known {
            break;
        }
    }
    finish(global, args, &evidence)
}

/// Judges an episode again by stored evidence.
pub(super) async fn again(
    global: &Global,
    args: &EvalArgs,
    mut evidence: EpisodeEvidence,
) -> Result<u8, CommandFailure> {
    let judge = judge::of(global, args)?;
    let local = Local { judge: judge.as_deref(), pictures: args.pictures.as_deref() };
    local.settle(&mut evidence, args.profile.list()).await?;
    finish(global, args, &evidence)
}

fn finish(global: &Global, args: &EvalArgs, evidence: &EpisodeEvidence) -> Result<u8, CommandFailure> {
    if let Some(path) = &args.evidence {
        save(evidence, path)?;
    }
    print(global, &arenad_evaluation::evaluate(evidence, args.profile.list())?)
}

/// Requests the readings of the sites from the daemon.
async fn look(
    global: &Global,
    args: &EvalArgs,
    environment: Option<&str>,
    evidence: &mut EpisodeEvidence,
) -> Result<(), CommandFailure> {
    let client = ApiClient::new(global)?;
    let environment = match environment {
        Some(found) => found.to_owned(),
        // The task does not name its environment, so it must be the only one that is up, or be named by an option.
        None => find::environment(&client.status().await?, args.environment.as_deref())?.name.clone(),
    };
    let request = EvaluationRequest {
        benchmark: evidence.benchmark,
        task: evidence.task.clone(),
        urls: evidence.urls.clone(),
        answer: Value::from(evidence.answer.as_str()),
        url: evidence.url.clone(),
        traffic: None,
        cdp: args.cdp.clone(),
        accounts: args.accounts.iter().cloned().collect(),
        profiles: args.profile.list().to_vec(),
        told: evidence.told.clone(),
    };
    let path = format!("/v1/environments/{environment}/evaluations");
    let answered: Evaluation = client.send(Method::POST, &path, &request).await?;
    evidence.told.extend(answered.evidence.told);
    for seen in answered.evidence.looked_at {
        if !evidence.looked_at.contains(&seen) {
            evidence.looked_at.push(seen);
        }
    }
    Ok(())
}

pub(super) fn answer(args: &EvalArgs) -> Result<String, CommandFailure> {
    match (&args.answer, &args.answer_file) {
        (Some(answer), _) => Ok(answer.clone()),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file);
            Ok(text.with_context(|| format!("read the answer in {}", file.display()))?)
        }
        (None, None) => Ok(String::new()),
    }
}

/// Returns the given traffic; for WebArena-Verified, otherwise the traffic that the gateway of the named environment
/// has recorded.
async fn traffic(global: &Global, args: &EvalArgs, benchmark: Benchmark) -> Result<Option<Traffic>, CommandFailure> {
    let read = |file: &std::path::PathBuf| {
        std::fs::read(file).map(Traffic::of).with_context(|| format!("read the traffic in {}", file.display()))
    };
    if let (None, Benchmark::WebArenaVerified, Some(environment)) = (&args.har, benchmark, &args.environment) {
        let client = ApiClient::new(global)?;
        if !client.is_running().await? {
            return Ok(None);
        }
        let har = har::fetch(&client, environment, &[]).await?;
        let sites = har["log"]["_arenad"]["sites"].as_array();
        let is_recorded = sites.is_some_and(|sites| sites.iter().any(|site| site["records"] != "none"));
        return Ok(is_recorded.then(|| Traffic::of(har.to_string().into_bytes())));
    }
    Ok(args.har.as_ref().map(read).transpose()?)
}
