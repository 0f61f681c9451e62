//! A session: an episode at a time, with a browser, from reset to reward.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Map, Value as Json, json};

use super::episode::{SessionEpisode, SessionOutcome};
use crate::api::episodes::service;
use crate::api::{Api, ApiError};
use arenad_openenv::{ErrorCode, ErrorFrame, ResetParameters, StepAction, ToolFailure, action_of, tools};

/// The time within which a reset answers. Clients wait for 60 s by default.
const RESET_LIMIT: Duration = Duration::from_secs(55);

/// The time for which a reset waits for slots, so that the rest of it has time as well.
pub(super) const SLOTS_LIMIT: Duration = Duration::from_secs(30);

/// The label of an episode that has the client's own id of it.
pub(super) const ID_LABEL: &str = "openenv_episode_id";

/// A session of a client.
pub(super) struct Session {
    api: Arc<Api>,
    episode: Option<SessionEpisode>,
}

impl Session {
    pub(super) fn new(api: Arc<Api>) -> Self {
        Self { api, episode: None }
    }

    /// Begins an episode, in place of the one that the session has, and observes its first page.
    pub(super) async fn reset(&mut self, data: &Map<String, Json>) -> Result<Json, ErrorFrame> {
        let parameters = ResetParameters::read(data)?;
        self.end().await;
        let begun = tokio::time::timeout(RESET_LIMIT, SessionEpisode::begin(&self.api, parameters)).await;
        let begun = begun.unwrap_or_else(|_| {
            let detail = format!("the episode was not ready within {} s", RESET_LIMIT.as_secs());
            Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timed_out", detail).hint("reset again"))
        });
        let (episode, page) = begun.map_err(|error| failed(&error))?;
        let observation = episode.observed(page, None);
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

    /// Performs an action, and judges the episode after `stop`.
    pub(super) async fn act(&mut self, action: &str) -> Result<Json, ErrorFrame> {
        let Some(episode) = &mut self.episode else {
            return Err(ErrorFrame::new(ErrorCode::ExecutionError, "there is no episode: send a reset first"));
        };
        if episode.outcome.is_some() {
            let message = "the episode is done: send a reset for another one";
            return Err(ErrorFrame::new(ErrorCode::ExecutionError, message));
        }
        let page = service::act(&self.api, &episode.id, action).await.map_err(|error| failed(&error))?;
        episode.steps += 1;
        if !page.done {
            return Ok(episode.observed(page, None));
        }
        let outcome = episode.judge(&self.api).await?;
        Ok(episode.observed(page, Some(&outcome)))
    }

    /// Returns the result of the episode with this answer, unless the agent has stopped already: then, of that end.
    pub(super) async fn stop(&mut self, answer: &str) -> Result<SessionOutcome, ErrorFrame> {
        if let Some(SessionEpisode { outcome: None, .. }) = &self.episode {
            self.act(&format!("stop [{answer}]")).await?;
        }
        match self.episode.as_ref().and_then(|episode| episode.outcome.clone()) {
            Some(outcome) => outcome,
            None => Err(ErrorFrame::new(ErrorCode::ExecutionError, "there is no episode")),
        }
    }

    /// Returns the state of the session.
    pub(super) fn state(&self) -> Json {
        let Some(episode) = &self.episode else {
            return json!({
                "episode_id": null, "arenad_episode": null, "step_count": 0, "task": null, "environment": null,
                "status": null, "done": false,
            });
        };
        let status = service::status(&self.api, &episode.id);
        json!({
            "episode_id": episode.given_id.clone().unwrap_or_else(|| episode.id.to_string()),
            "arenad_episode": episode.id.to_string(), "step_count": episode.steps,
            "task": episode.task.as_ref().map(|task| &task.name), "environment": episode.environment,
            "status": status, "done": episode.outcome.is_some(),
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

pub(super) fn without_reward(frame: ErrorFrame) -> ErrorFrame {
    frame.with("reward", Json::Null)
}
