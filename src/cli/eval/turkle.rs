//! Judges the forms that were submitted in a running episode. The answers are read from the database of the episode's slot.

use std::path::Path;

use reqwest::Method;

use super::args::EvalArgs;
use super::{one, stored as files};
use crate::cli::args::Global;
use crate::cli::client::ApiClient;
use crate::cli::exit_code;
use crate::cli::failure::CommandFailure;
use arenad_api::{LocateRequest, LocateResponse};
use arenad_evaluation::stored::{SUBMITTED, StoredResult, submitted};
use arenad_verdict::Benchmark;

/// The name of the site that runs Turkle.
const SITE: &str = "turkle";

/// Judges one task or, without --task, all tasks of which a form was submitted.
pub(super) async fn run(
    global: &Global,
    args: &EvalArgs,
    benchmark: Benchmark,
    episode: &str,
) -> Result<u8, CommandFailure> {
    if benchmark != Benchmark::TurkingBench {
        return Err(CommandFailure::usage(format!(
            "--episode judges tasks of webcanvas and turkingbench, not of {benchmark}"
        ))
        .hint("pass the answer of the agent with --answer"));
    }
    let tasks = files::tasks(args.tasks.as_deref(), benchmark)?;
    let find = |id: &str| tasks.find(id).map_err(|error| CommandFailure::new(exit_code::USAGE, error));
    // An unknown task is reported before the episode is read.
    let wanted = args.task.as_deref().map(|id| Ok::<_, CommandFailure>((id, find(id)?))).transpose()?;
    let request = LocateRequest { locator: format!("sql(rows): {SUBMITTED}"), ..LocateRequest::default() };
    let client = ApiClient::new(global)?;
    let path = format!("/v1/episodes/{episode}/locate/{SITE}");
    let located: LocateResponse = client.send(Method::POST, &path, &request).await?;
    let found = submitted(&located.value, &tasks)?;
    let Some((id, task)) = wanted else {
        if found.is_empty() {
            let failure = anyhow::anyhow!("nothing was submitted to the tasks of {benchmark} in episode {episode}");
            return Err(CommandFailure::new(exit_code::FAILED, failure)
                .hint("name a task with --task to judge the page as it was at the beginning"));
        }
        let evidence = |result: StoredResult| {
            let evidence = find(&result.id).map(|task| files::evidence(benchmark, result.id, task, result.answer));
            (result.path, evidence.map_err(|failure| failure.error.to_string()), None)
        };
        let found = found.into_iter().map(evidence).collect();
        return files::judge_all(global, args, benchmark, Path::new(""), found).await;
    };
    let own = found.into_iter().find(|result| result.id == id);
    if own.is_none() {
        errln!("note: no form of {id} was submitted in episode {episode}; the page counts as it was at the beginning");
    }
    let answer = own.map(|result| result.answer).unwrap_or_default();
    one::again(global, args, files::evidence(benchmark, id.to_owned(), task, answer)).await
}
