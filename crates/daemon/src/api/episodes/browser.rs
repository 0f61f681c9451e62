//! The browser of an episode: its observations, and the actions of an agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{id, observations, slots};
use crate::api::Api;
use crate::api::environments::{JsonRequest, body};
use crate::api::error::ApiError;
use crate::browsers::{BrowserError, ObservedBrowser};
use arenad_agent_browser::{ActionError, BrowserSettings, ObservationKind, UploadFiles, Viewport};
use arenad_api::StorageCookie;
use arenad_api::browser::{
    BrowserActionError, BrowserElement, BrowserErrorKind, BrowserObservation, BrowserObservationKind,
    BrowserResetRequest, BrowserStep, BrowserStepRequest, BrowserTab, BrowserViewport, PageElements, PageSnapshot,
};
use arenad_model::episode::EpisodeState;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::error::describe;
use arenad_model::ids::ReplayName;

/// The sides that a viewport may have, in CSS pixels.
const SIDES: std::ops::RangeInclusive<u32> = 100..=4096;

/// The largest body of a reset, in bytes: all files that a browser may have, in base64, and the other fields.
pub(in crate::api) const RESET_BYTES_MAX: usize = 12 << 20;

/// `POST /v1/episodes/{id}/browser/reset`: opens a browser for an episode, in place of the one that it has.
pub(in crate::api) async fn browser_reset(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    request: JsonRequest<BrowserResetRequest>,
) -> Result<Json<BrowserStep>, ApiError> {
    let request = body(request)?;
    detached(api, text, move |api, id| async move { reset(&api, &id, request).await }).await.map(Json)
}

/// `POST /v1/episodes/{id}/browser/step`: performs an action, and observes the page.
pub(in crate::api) async fn browser_step(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    request: JsonRequest<BrowserStepRequest>,
) -> Result<Json<BrowserStep>, ApiError> {
    let BrowserStepRequest { action, selector } = body(request)?;
    let work = move |api: Arc<Api>, id: EpisodeId| async move { step(&api, &id, &action, selector.as_deref()).await };
    detached(api, text, work).await.map(Json)
}

/// `GET /v1/episodes/{id}/browser/elements`: returns the elements of the page that people act on.
pub(in crate::api) async fn browser_elements(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<Json<PageElements>, ApiError> {
    let list = |api: Arc<Api>, id: EpisodeId| async move {
        let listed = api.browsers.listed(&id).await;
        slots::served(&api, id.as_str())?;
        Ok(listed?)
    };
    detached(api, text, list).await.map(Json)
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct SnapshotQuery {
    /// A CSS selector; `element` of the answer is the first element that it matches.
    selector: Option<String>,
}

/// `GET /v1/episodes/{id}/browser/snapshot?selector=SELECTOR`: returns the whole content of the page.
pub(in crate::api) async fn browser_snapshot(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    Query(query): Query<SnapshotQuery>,
) -> Result<Json<PageSnapshot>, ApiError> {
    let take = move |api: Arc<Api>, id: EpisodeId| async move {
        let snapshot = api.browsers.snapshot(&id, query.selector.as_deref()).await;
        slots::served(&api, id.as_str())?;
        Ok(snapshot?)
    };
    detached(api, text, take).await.map(Json)
}

/// `GET /v1/episodes/{id}/browser`: observes the page again.
pub(in crate::api) async fn browser(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<Json<BrowserStep>, ApiError> {
    let observe = |api: Arc<Api>, id: EpisodeId| async move {
        let observed = api.browsers.observe(&id).await;
        answered(&api, &id, observed)
    };
    detached(api, text, observe).await.map(Json)
}

/// `DELETE /v1/episodes/{id}/browser`: closes the browser.
pub(in crate::api) async fn close_browser(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<StatusCode, ApiError> {
    let id = id(&text)?;
    api.episodes.get(&id)?;
    api.browsers.close(&id).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs work on the browser of an active episode in a task of its own, so that a client that disconnects leaves no
/// action half done.
async fn detached<F, T>(api: Arc<Api>, text: String, work: impl FnOnce(Arc<Api>, EpisodeId) -> F) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>> + Send + 'static,
    T: Send + 'static,
{
    active(&api, &text)?;
    let work = work(api.clone(), id(&text)?);
    api.shared.tasks.spawn(work).await.map_err(ApiError::internal)?
}

/// Refuses an episode whose clients cannot reach its sites.
pub(super) fn active(api: &Api, text: &str) -> Result<(), ApiError> {
    let view = slots::served(api, text)?;
    if view.state == EpisodeState::Frozen {
        let detail = format!("episode {text} is frozen, for example while it is evaluated");
        return Err(ApiError::new(StatusCode::CONFLICT, "busy", detail).hint("try again when it is active"));
    }
    Ok(())
}

/// Opens a browser for an active episode.
pub(crate) async fn reset(api: &Api, id: &EpisodeId, request: BrowserResetRequest) -> Result<BrowserStep, ApiError> {
    let BrowserViewport { width, height } = request.viewport.unwrap_or_else(default_viewport);
    if !SIDES.contains(&width) || !SIDES.contains(&height) {
        let (least, most) = (SIDES.start(), SIDES.end());
        return Err(ApiError::bad_request(format!(
            "the viewport {width} x {height} is outside the limits: both sides have {least} to {most} pixels"
        )));
    }
    let files = files(request.files)?;
    // Signing in does not need the browser, and both take time.
    let (cookies, unused) = tokio::join!(sign_in(api, id, request.accounts), api.browsers.unused());
    let cookies = cookies?;
    let replays = api.episodes.get(id)?.request.replays.clone();
    let settings = BrowserSettings {
        viewport: Viewport { width, height },
        observation: match request.observation {
            None | Some(BrowserObservationKind::AccessibilityTree) => ObservationKind::AccessibilityTree,
            Some(BrowserObservationKind::Html) => ObservationKind::Html,
            Some(BrowserObservationKind::SetOfMarks) => ObservationKind::SetOfMarks,
            Some(BrowserObservationKind::None) => ObservationKind::Nothing,
        },
        is_viewport_only: request.current_viewport_only,
        has_screenshot: request.screenshot,
        lists_elements: request.elements,
        cookies,
        files,
        tells_acted: request.trajectory,
        reaches_replays: !replays.is_empty(),
        clock_shifts: clock_shifts(api, &replays),
    };
    let observed = api.browsers.reset(id, unused, settings, request.url.as_deref()).await;
    answered(api, id, observed)
}

/// Returns the milliseconds to add to the time, so that the pages of each replay see that of its recording.
fn clock_shifts(api: &Api, replays: &[ReplayName]) -> BTreeMap<String, i64> {
    let now = Timestamp::now().as_millisecond();
    let mut shifts = BTreeMap::new();
    // The first of several replays with an origin serves it.
    for replay in replays.iter().rev().filter_map(|name| api.replays.get(name).ok()) {
        let from = replay.report.recorded_from.as_deref().and_then(|from| from.parse::<Timestamp>().ok());
        if let Some(from) = from {
            let shift = from.as_millisecond() - now;
            shifts.extend(replay.report.origins.iter().map(|origin| (origin.to_string(), shift)));
        }
    }
    shifts
}

/// Signs accounts in at their sites, and returns the cookies of all of them.
async fn sign_in(
    api: &Api,
    id: &EpisodeId,
    accounts: BTreeMap<String, Option<String>>,
) -> Result<Vec<StorageCookie>, ApiError> {
    let mut cookies = Vec::new();
    for (site, account) in accounts {
        let session = slots::session(api, id.as_str(), &site, account).await?;
        if !session.headers.is_empty() {
            let detail =
                format!("{} of {site} signs in with headers, which the browser does not send", session.account);
            return Err(ApiError::bad_request(detail)
                .hint("choose an account that signs in with cookies, or drive a browser of your own"));
        }
        cookies.extend(session.cookies);
    }
    Ok(cookies)
}

/// Performs an action in the browser of an active episode, on the element that `on` selects, if it is given.
async fn step(api: &Api, id: &EpisodeId, action: &str, on: Option<&str>) -> Result<BrowserStep, ApiError> {
    let mut observed = api.browsers.step(id, action, on).await;
    if let Ok(observed) = &mut observed {
        observations::add_acted(api, id, observed).await?;
    }
    answered(api, id, observed)
}

fn default_viewport() -> BrowserViewport {
    let Viewport { width, height } = Viewport::default();
    BrowserViewport { width, height }
}

/// Reads the files that the agent can upload.
fn files(encoded: BTreeMap<String, String>) -> Result<UploadFiles, ApiError> {
    let hint = "send files as their content in base64, by names such as \"photo.jpg\"";
    let mut files = BTreeMap::new();
    for (name, content) in encoded {
        let content = STANDARD.decode(content).map_err(|error| {
            ApiError::bad_request(format!("the content of the file {name:?} is not base64: {error}")).hint(hint)
        })?;
        files.insert(name, content);
    }
    UploadFiles::new(files).map_err(|error| ApiError::bad_request(error.to_string()).hint(hint))
}

/// Returns what a browser showed, or the reason why it did not. An end of the episode explains every other failure, and
/// makes every observation worthless.
fn answered(
    api: &Api,
    id: &EpisodeId,
    observed: Result<ObservedBrowser, BrowserError>,
) -> Result<BrowserStep, ApiError> {
    slots::served(api, id.as_str())?;
    Ok(shown(id, observed?))
}

fn shown(id: &EpisodeId, observed: ObservedBrowser) -> BrowserStep {
    let ObservedBrowser { observation, step, error, answer, viewport, lists_elements, acted: _ } = observed;
    let url = observation.url().to_owned();
    let tabs = observation.tabs.into_iter().enumerate().map(|(index, tab)| BrowserTab {
        title: tab.title,
        url: tab.url,
        is_current: index == observation.current,
    });
    let elements = lists_elements.then(|| {
        let elements = observation.elements.into_iter().map(|(id, element)| {
            let bounds = element.bounds.map(|bounds| [bounds.x, bounds.y, bounds.width, bounds.height]);
            (id, BrowserElement { text: element.text, bounds })
        });
        elements.collect::<BTreeMap<_, _>>()
    });
    BrowserStep {
        episode: id.to_string(),
        step,
        observation: BrowserObservation { text: observation.text, screenshot: observation.screenshot, elements },
        url,
        tabs: tabs.collect(),
        viewport: BrowserViewport { width: viewport.width, height: viewport.height },
        error: error.map(failed),
        done: answer.is_some(),
        answer,
    }
}

fn failed(error: ActionError) -> BrowserActionError {
    let kind = match &error {
        ActionError::Unparsed(_) => BrowserErrorKind::Parse,
        ActionError::NoElement(_)
        | ActionError::NoBounds
        | ActionError::NoTab
        | ActionError::Key(_)
        | ActionError::NoFile(_)
        | ActionError::Failed(_) => BrowserErrorKind::Execution,
    };
    BrowserActionError { kind, message: error.to_string(), hint: error.hint().map(str::to_owned) }
}

impl From<BrowserError> for ApiError {
    fn from(error: BrowserError) -> Self {
        let detail = describe(&error);
        match error {
            BrowserError::NotOpen => Self::new(StatusCode::CONFLICT, "no_browser", detail)
                .hint("open one with `POST /v1/episodes/ID/browser/reset`"),
            BrowserError::Stopped => Self::new(StatusCode::CONFLICT, "browser_stopped", detail)
                .hint("evaluate the episode, or open the browser anew with `POST /v1/episodes/ID/browser/reset`"),
            BrowserError::Full => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "full", detail).retry_after(Duration::from_secs(1))
            }
            BrowserError::Port(_) | BrowserError::NotStarted(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "browser_unavailable", detail)
                    .hint("`arenad doctor` examines the browser of the host")
            }
            // The episode is void, which the caller is told instead, unless the store has failed as well.
            BrowserError::Failed(_) => Self::new(StatusCode::BAD_GATEWAY, "browser_failed", detail)
                .hint("start another episode: this one becomes void"),
        }
    }
}
