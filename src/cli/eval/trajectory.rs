//! Judges an episode by the steps of its agent that the daemon has recorded, while it runs or after its end.

use reqwest::Method;

use super::args::EvalArgs;
use super::{one, stored as files};
use crate::cli::args::Global;
use crate::cli::client::ApiClient;
use crate::cli::exit_code;
use crate::cli::failure::CommandFailure;
use arenad_api::trajectory::Trajectory;
use arenad_verdict::Benchmark;

const BENCHMARK: Benchmark = Benchmark::WebCanvas;

/// Judges one task of WebCanvas.
pub(super) async fn run(global: &Global, args: &EvalArgs, episode: &str) -> Result<u8, CommandFailure> {
    let Some(id) = &args.task else {
        return Err(CommandFailure::usage("the steps of an episode are judged for one task")
            .hint("name it with --task; `arenad tasks ls --benchmark webcanvas` lists the tasks"));
    };
    let tasks = files::tasks(args.tasks.as_deref(), BENCHMARK)?;
    let task = tasks.find(id).map_err(|error| CommandFailure::new(exit_code::USAGE, error))?;
    let path = format!("/v1/episodes/{episode}/observations");
    let trajectory: Trajectory = ApiClient::new(global)?.json(Method::GET, &path).await?;
    if trajectory.steps.is_empty() {
        let failure = anyhow::anyhow!("no step of episode {episode} was recorded");
        return Err(CommandFailure::new(exit_code::FAILED, failure).hint(
            "open its browser with `\"trajectory\": true`, or post the steps to `/v1/episodes/ID/observations`",
        ));
    }
    let answer = serde_json::to_string(&trajectory)?;
    one::again(global, args, files::evidence(BENCHMARK, id.clone(), task, answer)).await
}
