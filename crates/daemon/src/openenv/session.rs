//! A session: an episode at a time, with a browser, from reset to reward.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Map, Value as Json, json};

use crate::api::episodes::service;
use crate::api::{Api, ApiError};
use arenad_api::EpisodeVerdict;
use arenad_api::browser::{BrowserObservationKind, BrowserResetRequest, BrowserStep, BrowserViewport};
use arenad_api::checks::Begun;
use arenad_api::episodes::{EpisodeEvaluation, EpisodeEvaluationRequest, EpisodeStartRequest};
use arenad_episodes::HoldGuard;
use arenad_model::episode::ids::EpisodeId;
use arenad_openenv::{
    ErrorCode, ErrorFrame, ResetParameters, StepAction, ToolFailure, ViewportSize, WantedObservation, action_of, tools,
};

/// The time within which a reset answers. Clients wait for 60 s by default.
const RESET_LIMIT: Duration = Duration::from_secs(55);

/// The time for which a reset waits for slots, so that the rest of it has time as well.
const SLOTS_LIMIT: Duration = Duration::from_secs(30);

/// The label of an episode that has the client's own id of it.
const ID_LABEL: &str = "openenv_episode_id";

/// A session of a client.
pub(super) struct Session {
    api: Arc<Api>,
    episode: Option<SessionEpisode>,
}

/// The episode of a session. Dropping it ends the episode.
struct SessionEpisode {
    id: EpisodeId,
    _hold: HoldGuard,
    task: Option<String>,
    intent: Option<String>,
    environment: String,
    begun: Option<Begun>,
    steps: u64,
    is_done: bool,
}

impl Session {
    pub(super) fn new(api: Arc<Api>) -> Self {
        Self { api, episode: None }
    }

    /// Begins an episode, in place of the one that the session has, and observes its first page.
    pub(super) async fn reset(&mut self, data: &Map<String, Json>) -> Result<Json, ErrorFrame> {
        let parameters = ResetParameters::read(data)?;
        self.end().await;
        let begun = tokio::time::timeout(RESET_LIMIT, begin(&self.api, parameters)).await;
        let begun = begun.unwrap_or_else(|_| {
            let detail = format!("the episode was not ready within {} s", RESET_LIMIT.as_secs());
            Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timed_out", detail).hint("reset again"))
        });
        let (episode, page) = begun.map_err(|error| failed(&error))?;
        let observation = observed(&episode, page, None);
        self.episode = Some(episode);
        Ok(observation)
    }

    /// Ends the episode of the session, if it has one.
    pub(super) async fn end(&mut self) {
        let Some(episode) = self.episode.take() else { return };
        // If the release fails, the end of the hold ends the episode.
        let _ = self.api.episodes.release(&episode.id).await;
    }

    /// Performs the action of a step.
    pub(super) async fn step(&mut self, data: &Map<String, Json>) -> Result<Json, ErrorFrame> {
        match StepAction::read(data)? {
            StepAction::Browser(action) => self.act(&action).await,
            StepAction::ListTools => Ok(json!({
                "observation": { "tools": tools("input_schema"), "metadata": {} }, "reward": null, "done": false,
            })),
            StepAction::CallTool { name, arguments } => {
                let called = match action_of(&name, &arguments) {
                    Ok(action) => self.act(&action).await,
                    Err(failure) => {
                        let error = json!({ "error_type": failure.kind(), "message": failure.message() });
                        let observation = json!({ "tool_name": name, "result": null, "error": error, "metadata": {} });
                        return Ok(json!({ "observation": observation, "reward": null, "done": false }));
                    }
                }?;
                let observation =
                    json!({ "tool_name": name, "result": called["observation"], "error": null, "metadata": {} });
                Ok(json!({ "observation": observation, "reward": called["reward"], "done": called["done"] }))
            }
        }
    }

    /// Calls a tool by JSON-RPC, and returns its result.
    pub(super) async fn call(&mut self, name: &str, arguments: &Map<String, Json>) -> Result<Json, CallFailure> {
        let action = action_of(name, arguments).map_err(CallFailure::Tool)?;
        let stepped = self.act(&action).await.map_err(CallFailure::Session)?;
        let text = stepped["observation"]["text"].as_str().unwrap_or_default();
        let is_error = !stepped["observation"]["error"].is_null();
        Ok(json!({
            "content": [{ "type": "text", "text": text }], "structuredContent": stepped, "isError": is_error,
        }))
    }

    async fn act(&mut self, action: &str) -> Result<Json, ErrorFrame> {
        let Some(episode) = &mut self.episode else {
            return Err(ErrorFrame::new(ErrorCode::ExecutionError, "there is no episode: send a reset first"));
        };
        if episode.is_done {
            let message = "the episode is done: send a reset for another one";
            return Err(ErrorFrame::new(ErrorCode::ExecutionError, message));
        }
        let page = service::act(&self.api, &episode.id, action).await.map_err(|error| failed(&error))?;
        episode.steps += 1;
        if !page.done {
            return Ok(observed(episode, page, None));
        }
        episode.is_done = true;
        let verdict = match &episode.task {
            Some(task) => Some(judge(&self.api, episode, task.clone()).await?),
            None => None,
        };
        Ok(observed(episode, page, verdict.as_ref()))
    }

    /// Returns the state of the session.
    pub(super) fn state(&self) -> Json {
        let Some(episode) = &self.episode else {
            return json!({
                "episode_id": null, "step_count": 0, "task": null, "environment": null, "status": null, "done": false,
            });
        };
        let status = service::status(&self.api, &episode.id);
        json!({
            "episode_id": episode.id.to_string(), "step_count": episode.steps, "task": episode.task,
            "environment": episode.environment, "status": status, "done": episode.is_done,
        })
    }
}

/// The reason why a tool did not do what it was called for.
pub(super) enum CallFailure {
    /// The call does not fit the tool.
    Tool(ToolFailure),
    /// The episode failed, or there is none.
    Session(ErrorFrame),
}

/// Requests an episode and opens its browser.
async fn begin(api: &Arc<Api>, parameters: ResetParameters) -> Result<(SessionEpisode, BrowserStep), ApiError> {
    let start = EpisodeStartRequest {
        environment: parameters.environment,
        sites: parameters.sites,
        task: parameters.task.clone(),
        snapshots: parameters.injected_state,
        wait_seconds: Some(SLOTS_LIMIT.as_secs()),
        labels: parameters.episode_id.into_iter().map(|id| (ID_LABEL.to_owned(), id)).collect(),
        ..EpisodeStartRequest::default()
    };
    let granted = service::grant(api, start).await?;
    let begun = match granted.task.as_ref().filter(|task| task.needs_beginning()) {
        Some(_) => Some(service::begin(api, &granted.id).await?),
        None => None,
    };
    let mut accounts = parameters.accounts;
    for (site, account) in granted.task.iter().flat_map(|task| &task.accounts) {
        accounts.entry(site.to_string()).or_insert_with(|| Some(account.clone()));
    }
    let opened = BrowserResetRequest {
        url: parameters.url.or_else(|| granted.task.as_ref().map(|task| task.start.clone())),
        accounts,
        viewport: parameters.viewport.map(|ViewportSize { width, height }| BrowserViewport { width, height }),
        observation: Some(match parameters.observation {
            WantedObservation::AccessibilityTree => BrowserObservationKind::AccessibilityTree,
            WantedObservation::Html => BrowserObservationKind::Html,
            WantedObservation::Nothing => BrowserObservationKind::None,
        }),
        current_viewport_only: parameters.current_viewport_only,
        screenshot: parameters.screenshot,
        elements: false,
    };
    let page = service::open_browser(api, &granted.id, opened).await?;
    let episode = SessionEpisode {
        task: granted.task.as_ref().map(|task| task.name.clone()),
        intent: granted.task.map(|task| task.intent),
        environment: granted.environment,
        id: granted.id,
        _hold: granted.hold,
        begun,
        steps: 0,
        is_done: false,
    };
    Ok((episode, page))
}

/// Judges an episode whose agent has stopped.
///
/// Errors: the episode is void, or could not be judged. There is no reward then.
async fn judge(api: &Arc<Api>, episode: &SessionEpisode, task: String) -> Result<EpisodeEvaluation, ErrorFrame> {
    let request = EpisodeEvaluationRequest {
        task: Some(task),
        begun: episode.begun.clone(),
        certificate: Some(false),
        ..EpisodeEvaluationRequest::default()
    };
    let judged = service::judge(api, &episode.id, request).await.map_err(|error| failed(&error))?;
    match (&judged.verdict, &judged.ending) {
        (EpisodeVerdict::Void, ending) => {
            let reason = ending.as_ref().map_or("the environment failed it", |ending| ending.reason.as_str());
            let message = format!("the episode has no reward: {reason}");
            Err(without_reward(ErrorFrame::new(ErrorCode::ExecutionError, message)).with("ending", json!(ending)))
        }
        _ => Ok(judged),
    }
}

/// Returns the answer to a reset or a step, as OpenEnv serializes observations: the reward and the end are beside the
/// observation, and metadata are in it as well.
fn observed(episode: &SessionEpisode, page: BrowserStep, judged: Option<&EpisodeEvaluation>) -> Json {
    let verdict = judged.map(|judged| json!(judged.verdict));
    let metadata = json!({
        "episode_id": episode.id.to_string(), "task": episode.task, "step": episode.steps, "verdict": verdict,
        "error": page.error,
    });
    json!({
        "observation": {
            "metadata": metadata,
            "text": page.observation.text,
            "url": page.url,
            "tabs": page.tabs,
            "intent": episode.intent,
            "screenshot": page.observation.screenshot,
            "error": page.error.map(|error| error.message),
            "answer": page.answer,
            "verdict": verdict,
        },
        "reward": judged.and_then(|judged| judged.reward),
        "done": episode.is_done,
        "metadata": metadata,
    })
}

/// Returns the frame for an error of the API. A void episode has no reward, and the frame says so.
pub(super) fn failed(error: &ApiError) -> ErrorFrame {
    let code = match error.code() {
        "no_slot" | "full" | "queue_full" => ErrorCode::CapacityReached,
        _ => ErrorCode::ExecutionError,
    };
    let frame = ErrorFrame::new(code, error.told()).with("problem", json!(error.code()));
    match error.reported_ending() {
        Some(ending) => without_reward(frame).with("ending", json!(ending)),
        None => frame,
    }
}

fn without_reward(frame: ErrorFrame) -> ErrorFrame {
    frame.with("reward", Json::Null)
}
