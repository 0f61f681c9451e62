//! The resources server of NeMo Gym: sessions by cookie, with an episode each.
//!
//! ```text
//!   POST /seed_session ──► episode and browser ──► POST /click, /type, … ──► POST /verify: reward, end of the episode
//! ```
//! No connection holds such a session, so its episode ends when nothing is asked of it for [`IDLE`]. The outcome of
//! `/verify` is kept, so that a client that repeats the request gets the same answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, body::Bytes};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::routes::{Refusal, detail, failed};
use super::session::Session;
use super::{EnvironmentService, SESSIONS_MAX, SessionPlace};
use arenad_model::hex::hex;
use arenad_openenv::{ErrorCode, ErrorFrame, ToolFailure, action_of, gym};

/// Time without requests after which the episode of a session ends. Models think for minutes at most.
const IDLE: Duration = Duration::from_secs(600);

/// Time for which the outcome of a session is kept.
const KEPT: Duration = Duration::from_secs(3600);

/// The most sessions that are known, most of them with nothing but an outcome.
const KNOWN_MAX: usize = 16_384;

/// The answer to a request whose judgement has failed within the daemon.
const UNJUDGED: &str = "the session is not judged; see the daemon's log";

/// The sessions by their ids.
#[derive(Default)]
pub(super) struct GymSessions(Mutex<HashMap<String, Arc<GymSession>>>);

struct GymSession {
    state: tokio::sync::Mutex<GymState>,
    last_used: Mutex<Instant>,
}

/// The state of a session.
enum GymState {
    /// The agent acts, and the session has a place among the open ones.
    Open { session: Box<Session>, _place: SessionPlace },
    /// The episode has ended, and later requests get this outcome.
    Verified(Result<GymOutcome, ErrorFrame>),
}

/// The reward of a session, and its verdict.
#[derive(Clone)]
struct GymOutcome {
    reward: f64,
    facts: Vec<(&'static str, Value)>,
}

impl GymSession {
    fn last_used(&self) -> MutexGuard<'_, Instant> {
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        *self.last_used() = Instant::now();
    }

    fn idle(&self) -> Duration {
        self.last_used().elapsed()
    }
}

impl GymSessions {
    // Every change is one insertion or removal, so a panic leaves a valid table.
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<GymSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, id: &str) -> Option<Arc<GymSession>> {
        let found = self.table().get(id).cloned();
        if let Some(session) = &found {
            session.touch();
        }
        found
    }
}

/// Returns the id of the request's session, or that of a new one.
fn id_of(headers: &HeaderMap) -> String {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let given = cookies.into_iter().find_map(gym::cookie_of).map(str::to_owned);
    given.unwrap_or_else(|| hex(&rand::random::<[u8; 16]>()))
}

/// Adds the session's cookie to an answer.
fn with_cookie(id: &str, mut response: Response) -> Response {
    if let Ok(value) = HeaderValue::try_from(gym::set_cookie(id)) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

fn object(body: &Bytes) -> Result<Map<String, Value>, Refusal> {
    let parsed = if body.is_empty() { Ok(Map::new()) } else { serde_json::from_slice(body) };
    parsed.map_err(|error| detail(StatusCode::UNPROCESSABLE_ENTITY, format!("Invalid JSON: {error}")))
}

/// Answers a request of a session, whose body is an object, and sets the session's cookie.
async fn in_session<F: Future<Output = Response>>(
    headers: &HeaderMap,
    body: &Bytes,
    answer: impl FnOnce(String, Map<String, Value>) -> F,
) -> Response {
    let id = id_of(headers);
    let response = match object(body) {
        Ok(fields) => answer(id.clone(), fields).await,
        Err(refusal) => refusal.into_response(),
    };
    with_cookie(&id, response)
}

/// Returns the answer to a request that has no reward or no episode. A void episode is gone: an agent that repeats the
/// request gets the same answer, and a trainer finds no number in it.
fn refused(error: &ErrorFrame) -> Response {
    if error.more.get("reward").is_some_and(Value::is_null) {
        let told = json!({
            "message": error.message, "problem": error.more.get("problem"), "reward": null,
            "ending": error.more.get("ending"),
        });
        return detail(StatusCode::GONE, told).into_response();
    }
    failed(error).into_response()
}

/// `GET /`: says that the server runs.
pub(super) async fn liveness() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// `POST /seed_session`: begins an episode for the session, in place of the one that it has.
pub(super) async fn seed_session(
    State(service): State<Arc<EnvironmentService>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    in_session(&headers, &body, |id, row| async move { seed(&service, &id, &row).await }).await
}

async fn seed(service: &Arc<EnvironmentService>, id: &str, row: &Map<String, Value>) -> Response {
    let earlier = service.gym.table().remove(id);
    if let Some(earlier) = earlier
        && let GymState::Open { session, .. } = &mut *earlier.state.lock().await
    {
        session.end().await;
    }
    if service.gym.table().len() >= KNOWN_MAX {
        let full = format!("{KNOWN_MAX} sessions are known, which is the limit");
        return detail(StatusCode::SERVICE_UNAVAILABLE, full).into_response();
    }
    let Ok(place) = service.enter() else {
        return failed(&ErrorFrame::capacity(SESSIONS_MAX, SESSIONS_MAX)).into_response();
    };
    let mut session = Box::new(Session::new(service.api.clone()));
    let observed = match session.reset(&gym::parameters(row)).await {
        Ok(observed) => observed,
        Err(error) => return refused(&error),
    };
    let state = tokio::sync::Mutex::new(GymState::Open { session, _place: place });
    let session = Arc::new(GymSession { state, last_used: Mutex::new(Instant::now()) });
    service.gym.table().insert(id.to_owned(), session.clone());
    let (stop, watched, own) = (service.api.stop.clone(), service.clone(), id.to_owned());
    service.api.shared.tasks.spawn(async move { stop.run_until_cancelled(watch(&watched, &own, &session)).await });
    Json(json!({ "observation": observed["observation"] })).into_response()
}

/// Ends the episode of a session that nothing is asked of, and forgets its outcome later.
async fn watch(service: &EnvironmentService, id: &str, session: &Arc<GymSession>) {
    for limit in [IDLE, KEPT] {
        loop {
            let idle = session.idle();
            if idle >= limit {
                break;
            }
            tokio::time::sleep(limit - idle).await;
        }
        let mut state = session.state.lock().await;
        if let GymState::Open { session, .. } = &mut *state {
            session.end().await;
            let seconds = IDLE.as_secs();
            let message = format!("the session has ended: nothing was asked of it for {seconds} s; seed it again");
            let error = ErrorFrame::new(ErrorCode::SessionError, message).with("reward", Value::Null);
            *state = GymState::Verified(Err(error.with("problem", json!("expired"))));
        }
    }
    let mut table = service.gym.table();
    if table.get(id).is_some_and(|known| Arc::ptr_eq(known, session)) {
        table.remove(id);
    }
}

/// `POST /{tool}`: performs an action. Agents show the answer to their models as it is.
pub(super) async fn tool(
    State(service): State<Arc<EnvironmentService>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    in_session(&headers, &body, |id, arguments| async move { used(&service, &id, &name, &arguments).await }).await
}

async fn used(service: &EnvironmentService, id: &str, name: &str, arguments: &Map<String, Value>) -> Response {
    let told = |error: &str| Json(json!({ "result": null, "error": error })).into_response();
    let action = match action_of(name, arguments) {
        Ok(action) => action,
        Err(failure @ ToolFailure::Unknown(_)) => {
            return detail(StatusCode::NOT_FOUND, failure.message()).into_response();
        }
        Err(failure) => return told(&failure.message()),
    };
    let Some(known) = service.gym.of(id) else {
        return told("No active session. Call /seed_session first.");
    };
    let mut state = known.state.lock().await;
    let GymState::Open { session, .. } = &mut *state else { return told("Episode has ended.") };
    let acted = session.act(&action).await;
    known.touch();
    match acted {
        Ok(page) => {
            let seen = &page["observation"];
            let mut result = json!({ "text": seen["text"], "url": seen["url"] });
            if !seen["screenshot"].is_null() {
                result["screenshot"] = seen["screenshot"].clone();
            }
            Json(json!({ "result": result, "error": seen["error"] })).into_response()
        }
        Err(error) if error.more.contains_key("reward") => refused(&error),
        Err(error) => told(&error.message),
    }
}

/// `POST /verify`: judges the episode, ends it, and answers with the request and the reward. A repeated request gets the
/// first outcome again.
pub(super) async fn verify(
    State(service): State<Arc<EnvironmentService>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    in_session(&headers, &body, |id, request| async move {
        // A client that goes away meanwhile, and repeats the request, gets this outcome and no other.
        let tasks = service.api.shared.tasks.clone();
        let task = tasks.spawn(async move { judged(&service, &id, request).await });
        task.await.unwrap_or_else(|_| detail(StatusCode::INTERNAL_SERVER_ERROR, UNJUDGED).into_response())
    })
    .await
}

async fn judged(service: &EnvironmentService, id: &str, request: Map<String, Value>) -> Response {
    let missing: Vec<Value> = ["responses_create_params", "response"]
        .into_iter()
        .filter(|name| !request.contains_key(*name))
        .map(|name| json!({ "type": "missing", "loc": ["body", name], "msg": "Field required" }))
        .collect();
    if !missing.is_empty() {
        return detail(StatusCode::UNPROCESSABLE_ENTITY, missing).into_response();
    }
    let Some(known) = service.gym.of(id) else {
        let message = "the session is unknown: send its cookie, or call /seed_session first";
        return detail(StatusCode::CONFLICT, message).into_response();
    };
    let mut state = known.state.lock().await;
    if let GymState::Open { session, .. } = &mut *state {
        let stopped = session.stop(&gym::last_answer(&request["response"])).await;
        let facts = session.state();
        session.end().await;
        let outcome = stopped.and_then(|outcome| {
            let verdict = json!(outcome.verdict);
            let Some(reward) = outcome.reward else {
                let message = format!("the episode has no reward: its verdict is {verdict}");
                return Err(ErrorFrame::new(ErrorCode::ExecutionError, message)
                    .with("reward", Value::Null)
                    .with("problem", json!("undecided")));
            };
            let facts = vec![
                ("verdict", verdict),
                ("steps", facts["step_count"].clone()),
                ("arenad_episode", facts["arenad_episode"].clone()),
            ];
            Ok(GymOutcome { reward, facts })
        });
        *state = GymState::Verified(outcome);
    }
    known.touch();
    match &*state {
        GymState::Verified(Ok(GymOutcome { reward, facts })) => {
            Json(gym::verified(request, *reward, facts)).into_response()
        }
        GymState::Verified(Err(error)) => refused(error),
        GymState::Open { .. } => detail(StatusCode::INTERNAL_SERVER_ERROR, UNJUDGED).into_response(),
    }
}

/// `POST /aggregate_metrics`: returns statistics of the answers to `/verify`.
pub(super) async fn aggregate_metrics(body: Bytes) -> Response {
    let request = match object(&body) {
        Ok(request) => request,
        Err(refusal) => return refusal.into_response(),
    };
    let responses: Option<Vec<Map<String, Value>>> = request
        .get("verify_responses")
        .and_then(Value::as_array)
        .and_then(|responses| responses.iter().map(|it| it.as_object().cloned()).collect());
    let Some(responses) = responses else {
        let wrong = json!([{
            "type": "list_type", "loc": ["body", "verify_responses"], "msg": "Input should be a list of objects",
        }]);
        return detail(StatusCode::UNPROCESSABLE_ENTITY, wrong).into_response();
    };
    match gym::aggregate(&responses) {
        Ok(metrics) => Json(metrics).into_response(),
        Err(error) => detail(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).into_response(),
    }
}
