//! The steps of an episode's agent: those that clients post, and those that the episode's browser tells.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::browser::active;
use super::id;
use crate::api::Api;
use crate::api::environments::{JsonRequest, body};
use crate::api::error::ApiError;
use crate::browsers::ObservedBrowser;
use crate::records::AddStepError;
use arenad_agent_browser::ActedPage;
use arenad_api::trajectory::{Trajectory, TrajectoryStep};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::error::describe;

/// The largest body of a step, in bytes: a page and the other fields.
pub(in crate::api) const STEP_BYTES_MAX: usize = 16 << 20;

/// `POST /v1/episodes/{id}/observations`: records a step of the agent of an active episode.
pub(in crate::api) async fn observe(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    request: JsonRequest<TrajectoryStep>,
) -> Result<StatusCode, ApiError> {
    let step = body(request)?;
    active(&api, &text)?;
    add(&api, &id(&text)?, &step).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/episodes/{id}/observations`: returns the steps so far, also after the end of the episode.
pub(in crate::api) async fn observations(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<Json<Trajectory>, ApiError> {
    let id = id(&text)?;
    let steps = api.environments.records().steps(&id).await.map_err(|error| internal(&error))?;
    if steps.is_empty() {
        // Steps outlive the memory of their episode, so an unknown one is an error only without steps.
        api.episodes.get(&id)?;
    }
    let declared_done = steps.iter().any(|step| step.done);
    let after = api.browsers.last_page(&id).filter(|_| !declared_done && !steps.is_empty());
    let after = after.map(|page| TrajectoryStep { url: page.url, ..TrajectoryStep::default() });
    Ok(Json(Trajectory { steps, after, declared_done }))
}

/// Records the step that a browser has told, if it tells steps.
pub(super) async fn add_acted(api: &Api, id: &EpisodeId, observed: &mut ObservedBrowser) -> Result<(), ApiError> {
    let Some(acted) = observed.acted.take() else { return Ok(()) };
    let ActedPage { url, html, selector, value } = acted;
    let (text_content, done) = (observed.answer.clone(), observed.answer.is_some());
    add(api, id, &TrajectoryStep { url, html, selector, element_value: value, text_content, done }).await
}

async fn add(api: &Api, id: &EpisodeId, step: &TrajectoryStep) -> Result<(), ApiError> {
    api.environments.records().add_step(id, step).await.map_err(|error| match error {
        AddStepError::Full => ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "full", describe(&error))
            .hint("leave the HTML out of steps whose element needs no proof"),
        AddStepError::Io(_) => internal(&error),
    })
}

fn internal(error: &(dyn std::error::Error + 'static)) -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", describe(error))
        .hint("the state directory may be full or damaged; `arenad doctor` examines it")
}
