//! Episodes for the daemon's own clients: the sessions of the environment service.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::{browser, evaluate, refusal, shown, start};
use crate::api::error::ApiError;
use crate::api::which::{self, RequestSubject};
use crate::api::{Api, checks, evaluations};
use arenad_api::EpisodeStatus;
use arenad_api::browser::{BrowserResetRequest, BrowserStep};
use arenad_api::checks::Begun;
use arenad_api::episodes::{EpisodeBeginRequest, EpisodeEvaluation, EpisodeEvaluationRequest, EpisodeStartRequest};
use arenad_episodes::HoldGuard;
use arenad_evaluation::{of_environment, speaks_of};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::site::Environment;
use arenad_model::task::Task;
use arenad_verdict::{Benchmark, Urls};

/// An active episode, which ends when it is dropped.
pub(crate) struct GrantedEpisode {
    pub(crate) id: EpisodeId,
    pub(crate) hold: HoldGuard,
    pub(crate) environment: String,
    pub(crate) task: Option<Task>,
}

/// A task of a benchmark, and the environment whose sites it is done on.
pub(crate) struct BenchmarkTask {
    pub(crate) environment: Environment,
    /// The task as its file has it.
    pub(crate) task: serde_json::Value,
}

/// Returns a task of a benchmark from the files that the daemon knows, and the environment that has its sites: the named
/// one, the only one that is up, or the only one that has them.
pub(crate) async fn benchmark_task(
    api: &Api,
    benchmark: Benchmark,
    id: &str,
    environment: Option<&str>,
) -> Result<BenchmarkTask, ApiError> {
    let (_, task) = evaluations::task(benchmark, id.into()).await?;
    let is_of = |definition: &Environment| speaks_of(&task, &of_environment(definition), &Urls::new());
    let what = format!("task {id} of {benchmark}");
    let name = match environment {
        Some(named) => named.to_owned(),
        None => which::environment(api, &RequestSubject { what: what.clone(), unknown: "bad_task" }, is_of)?,
    };
    let (definition, _) = checks::open(api, &name)?;
    if !is_of(&definition) {
        let detail = format!("{name} does not have the sites of {what}");
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_task", detail)
            .hint("name an environment that has them with `environment`"));
    }
    Ok(BenchmarkTask { environment: definition, task })
}

/// Requests an episode, and returns it when its sites can be reached.
///
/// Cancellation: the episode ends.
pub(crate) async fn grant(api: &Arc<Api>, request: EpisodeStartRequest) -> Result<GrantedEpisode, ApiError> {
    let name = request.task.clone();
    let wanted = start::wanted(api, request, None).await?;
    let (receipt, hold) = api.episodes.ask_and_hold(wanted).await?;
    let view = api.episodes.wait(&receipt.id).await?;
    if let Some(ending) = view.state.ending() {
        return Err(refusal::ended(ending));
    }
    let environment = shown::environment(&view).to_owned();
    let task = match name {
        Some(name) => {
            let (definition, _) = checks::open(api, &environment)?;
            Some(checks::task(&definition, name, None).await?)
        }
        None => None,
    };
    Ok(GrantedEpisode { id: receipt.id, hold, environment, task })
}

/// Captures the values that the check of the episode's task compares with.
pub(crate) async fn begin(api: &Arc<Api>, id: &EpisodeId) -> Result<Begun, ApiError> {
    let request = EpisodeBeginRequest { task: None, file: None };
    let begun = evaluate::begin(State(api.clone()), Path(id.to_string()), Ok(Json(request))).await;
    begun.map(|Json(begun)| begun)
}

/// Opens the browser of an episode.
pub(crate) async fn open_browser(
    api: &Arc<Api>,
    id: &EpisodeId,
    request: BrowserResetRequest,
) -> Result<BrowserStep, ApiError> {
    let opened = browser::browser_reset(State(api.clone()), Path(id.to_string()), Ok(Json(request))).await;
    opened.map(|Json(step)| step)
}

/// Performs an action in the browser of an episode.
pub(crate) async fn act(api: &Arc<Api>, id: &EpisodeId, action: &str) -> Result<BrowserStep, ApiError> {
    let request = arenad_api::browser::BrowserStepRequest { action: action.to_owned(), selector: None };
    let stepped = browser::browser_step(State(api.clone()), Path(id.to_string()), Ok(Json(request))).await;
    stepped.map(|Json(step)| step)
}

/// Judges an episode, which is frozen meanwhile.
pub(crate) async fn judge(
    api: &Arc<Api>,
    id: &EpisodeId,
    request: EpisodeEvaluationRequest,
) -> Result<EpisodeEvaluation, ApiError> {
    let judged = evaluate::evaluate(State(api.clone()), Path(id.to_string()), Ok(Json(request))).await;
    judged.map(|Json(judged)| judged)
}

/// Returns the state of an episode, if it is known.
pub(crate) fn status(api: &Api, id: &EpisodeId) -> Option<EpisodeStatus> {
    let view = api.episodes.get(id).ok()?;
    Some(shown::status(view.state.status()))
}
