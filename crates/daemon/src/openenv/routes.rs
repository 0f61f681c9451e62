//! The requests of the environment service by HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::gym::GymSessions;
use super::session::Session;
use super::tasks::{self, NoTasks};
use super::{EnvironmentService, SESSIONS_MAX, gym, socket};
use crate::api::Api;
use arenad_model::site::Environment;
use arenad_openenv::{ErrorCode, ErrorFrame, RpcAnswer, RpcErrorCode, StepAction, schema};

/// Returns the router of the environment service.
pub(crate) fn router(api: Arc<Api>) -> Router {
    let service = Arc::new(EnvironmentService { api, sessions: AtomicUsize::new(0), gym: GymSessions::default() });
    Router::new()
        .route("/ws", get(socket::session))
        .route("/health", get(health))
        .route("/metadata", get(metadata))
        .route("/schema", get(|| async { Json(schema::schemas()) }))
        .route("/openapi.json", get(|| async { Json(schema::openapi()) }))
        .route("/state", get(state))
        .route("/reset", post(reset))
        .route("/step", post(step))
        .route("/mcp", post(mcp))
        .route("/", get(gym::liveness))
        .route("/seed_session", post(gym::seed_session))
        .route("/verify", post(gym::verify))
        .route("/aggregate_metrics", post(gym::aggregate_metrics))
        .route("/{tool}", post(gym::tool))
        .route("/list_environments", get(list_environments))
        .route("/{environment}/splits", get(splits))
        .route("/{environment}/tasks", post(list_tasks))
        .route("/{environment}/num_tasks", post(num_tasks))
        .route("/{environment}/task", post(task))
        .route("/{environment}/task_range", post(task_range))
        .layer(middleware::from_fn(refuse_browsers))
        .with_state(service)
}

/// Refuses requests of pages in a browser: the service has no credentials, and any page may open a WebSocket.
async fn refuse_browsers(request: Request, next: Next) -> Response {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
        return detail(StatusCode::FORBIDDEN, "the environment service does not answer pages in a browser")
            .into_response();
    }
    next.run(request).await
}

/// An error in the form of FastAPI.
pub(super) struct Refusal {
    status: StatusCode,
    detail: Value,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "detail": self.detail }))).into_response()
    }
}

pub(super) fn detail(status: StatusCode, detail: impl Into<Value>) -> Refusal {
    Refusal { status, detail: detail.into() }
}

/// The service is degraded while no environment is up, because every reset would fail.
async fn health(State(service): State<Arc<EnvironmentService>>) -> Json<Value> {
    let status = if service.api.environments.list().is_empty() { "degraded" } else { "healthy" };
    Json(json!({ "status": status }))
}

async fn metadata() -> Json<Value> {
    Json(json!({
        "name": "arenad",
        "description": "Sites of web-agent benchmarks, pristine for each episode, with a browser that has WebArena's \
            observations and actions",
        "readme_content": null,
        "version": env!("CARGO_PKG_VERSION"),
        "author": null,
        "documentation_url": null,
    }))
}

/// Each request by HTTP has an environment of its own, which has no episode.
async fn state(State(service): State<Arc<EnvironmentService>>) -> Json<Value> {
    Json(Session::new(service.api.clone()).state())
}

/// `POST /reset`: begins an episode, observes its first page, and ends it.
async fn reset(State(service): State<Arc<EnvironmentService>>, body: Bytes) -> Response {
    let data = match body.is_empty() {
        true => Ok(Map::new()),
        false => serde_json::from_slice(&body),
    };
    let data: Map<String, Value> = match data {
        Ok(data) => data,
        Err(error) => {
            return detail(StatusCode::UNPROCESSABLE_ENTITY, format!("Invalid JSON: {error}")).into_response();
        }
    };
    let Ok(place) = service.enter() else {
        return failed(&ErrorFrame::capacity(SESSIONS_MAX, SESSIONS_MAX)).into_response();
    };
    let mut session = Session::new(service.api.clone());
    let observed = session.reset(&data).await;
    session.end().await;
    drop(place);
    match observed {
        Ok(observed) => Json(observed).into_response(),
        Err(error) => failed(&error).into_response(),
    }
}

/// `POST /step`: checks the action. There is no episode to perform it in.
async fn step(State(service): State<Arc<EnvironmentService>>, body: Bytes) -> Response {
    let request: Value = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => {
            return detail(StatusCode::UNPROCESSABLE_ENTITY, format!("Invalid JSON: {error}")).into_response();
        }
    };
    let Some(action) = request["action"].as_object() else {
        let missing = json!([{ "type": "missing", "loc": ["body", "action"], "msg": "Field required" }]);
        return detail(StatusCode::UNPROCESSABLE_ENTITY, missing).into_response();
    };
    if let Err(error) = StepAction::read(action) {
        return failed(&error).into_response();
    }
    match Session::new(service.api.clone()).step(action).await {
        Ok(observed) => Json(observed).into_response(),
        Err(error) => failed(&error).into_response(),
    }
}

/// Returns the answer for an error that a session would send as a frame.
pub(super) fn failed(error: &ErrorFrame) -> Refusal {
    match error.code {
        ErrorCode::ValidationError => {
            let errors = error.more.get("errors").cloned().unwrap_or_default();
            detail(StatusCode::UNPROCESSABLE_ENTITY, errors)
        }
        ErrorCode::CapacityReached => detail(StatusCode::SERVICE_UNAVAILABLE, error.message.as_str()),
        ErrorCode::InvalidJson | ErrorCode::UnknownType | ErrorCode::ExecutionError | ErrorCode::SessionError => {
            detail(StatusCode::INTERNAL_SERVER_ERROR, error.message.as_str())
        }
    }
}

/// `POST /mcp`: lists the tools. They are called in a session.
async fn mcp(body: Bytes) -> Json<Value> {
    let answer = match serde_json::from_slice(&body) {
        Ok(request) => socket::call(None, &request).await,
        Err(error) => {
            RpcAnswer { id: Value::Null, result: Err((RpcErrorCode::Parse, format!("Parse error: {error}"))) }
        }
    };
    Json(answer.json())
}

async fn list_environments(State(service): State<Arc<EnvironmentService>>) -> Json<Vec<String>> {
    let names = service.api.environments.list().into_iter().map(|(definition, _)| definition.name.to_string());
    Json(names.collect())
}

async fn splits(State(service): State<Arc<EnvironmentService>>, Path(name): Path<String>) -> Result<Response, Refusal> {
    let splits = tasks::splits(definition(&service, &name)?).await.map_err(no_tasks)?;
    // All tasks are for evaluation: none of their files says which ones to train on.
    let splits: Vec<Value> = splits.iter().map(|name| json!({ "name": name, "type": "test" })).collect();
    Ok(Json(splits).into_response())
}

fn definition(service: &EnvironmentService, name: &str) -> Result<Environment, Refusal> {
    let found = service.api.environments.definition(name);
    found.ok_or_else(|| detail(StatusCode::NOT_FOUND, format!("Environment '{name}' not found")))
}

fn no_tasks(reason: NoTasks) -> Refusal {
    match reason {
        NoTasks::Split(known) => {
            detail(StatusCode::BAD_REQUEST, format!("unknown split; the environment has {}", known.join(", ")))
        }
        NoTasks::Files(reason) => detail(StatusCode::INTERNAL_SERVER_ERROR, reason),
    }
}

/// Returns the tasks of the split that a request names.
async fn tasks_of(service: &EnvironmentService, name: &str, request: &Value) -> Result<Vec<Value>, Refusal> {
    let definition = definition(service, name)?;
    let Some(split) = request["split"].as_str() else {
        let missing = json!([{ "type": "missing", "loc": ["body", "split"], "msg": "Field required" }]);
        return Err(detail(StatusCode::UNPROCESSABLE_ENTITY, missing));
    };
    tasks::of_split(definition, split).await.map_err(no_tasks)
}

type JsonBody = Result<Json<Value>, axum::extract::rejection::JsonRejection>;

fn request(body: JsonBody) -> Result<Value, Refusal> {
    body.map(|Json(body)| body).map_err(|rejection| detail(StatusCode::UNPROCESSABLE_ENTITY, rejection.body_text()))
}

async fn list_tasks(
    State(service): State<Arc<EnvironmentService>>,
    Path(name): Path<String>,
    body: JsonBody,
) -> Result<Response, Refusal> {
    let tasks = tasks_of(&service, &name, &request(body)?).await?;
    Ok(Json(json!({ "tasks": tasks, "env_name": name })).into_response())
}

async fn num_tasks(
    State(service): State<Arc<EnvironmentService>>,
    Path(name): Path<String>,
    body: JsonBody,
) -> Result<Response, Refusal> {
    let tasks = tasks_of(&service, &name, &request(body)?).await?;
    Ok(Json(json!({ "num_tasks": tasks.len() })).into_response())
}

async fn task(
    State(service): State<Arc<EnvironmentService>>,
    Path(name): Path<String>,
    body: JsonBody,
) -> Result<Response, Refusal> {
    let request = request(body)?;
    let mut tasks = tasks_of(&service, &name, &request).await?;
    let index = request["index"].as_u64().and_then(|index| usize::try_from(index).ok());
    match index.filter(|index| *index < tasks.len()) {
        Some(index) => Ok(Json(json!({ "task": tasks.swap_remove(index) })).into_response()),
        None => {
            let said = format!("`index` is a number from 0 to {}", tasks.len().saturating_sub(1));
            Err(detail(StatusCode::BAD_REQUEST, said))
        }
    }
}

async fn task_range(
    State(service): State<Arc<EnvironmentService>>,
    Path(name): Path<String>,
    body: JsonBody,
) -> Result<Response, Refusal> {
    let request = request(body)?;
    let tasks = tasks_of(&service, &name, &request).await?;
    let place = |field: &str, default: usize| match &request[field] {
        Value::Null => Some(default),
        value => value.as_u64().and_then(|place| usize::try_from(place).ok()),
    };
    let range = place("start", 0).zip(place("stop", tasks.len()));
    let Some((start, stop)) = range.filter(|(start, stop)| start <= stop) else {
        return Err(detail(StatusCode::BAD_REQUEST, "`start` and `stop` are numbers, and `start` is not above `stop`"));
    };
    let tasks: Vec<&Value> = tasks.iter().skip(start).take(stop - start).collect();
    Ok(Json(json!({ "tasks": tasks })).into_response())
}
