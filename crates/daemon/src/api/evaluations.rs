//! Endpoints that judge an episode by the state of the sites.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::Value;

use super::Api;
use super::environments::{JsonRequest, body};
use super::error::ApiError;
use super::har;
use super::which::{self, RequestSubject};
use crate::answers::Witness;
use crate::evaluate::{self, EvaluatingError};
use crate::traffic::SiteTraffic;
use arenad_api::{Evaluation, EvaluationRequest};
use arenad_evaluation::{CaseError, Day, TaskFiles, evaluate_on, of_environment, speaks_of, today};
use arenad_instance::InstanceHandle;
use arenad_locators::js::LivePage;
use arenad_model::error::describe;
use arenad_model::site::Environment;
use arenad_verdict::Profile;
use arenad_verdict::{Benchmark, EpisodeEvidence, Traffic};

/// The largest request, in bytes: it can hold recorded traffic with bodies, and pictures of earlier readings.
pub(super) const SIZE_MAX: usize = 256 << 20;

/// `POST /v1/environments/{environment}/evaluations`: judges an episode of a benchmark's task.
pub(super) async fn evaluate(
    State(api): State<Arc<Api>>,
    Path(environment): Path<String>,
    request: JsonRequest<EvaluationRequest>,
) -> Result<Json<Evaluation>, ApiError> {
    evaluated(&api, &environment, body(request)?).await.map(Json)
}

/// `POST /v1/evaluations`: uses the only environment that is up, or the only one whose sites the task mentions.
pub(super) async fn evaluate_found(
    State(api): State<Arc<Api>>,
    request: JsonRequest<EvaluationRequest>,
) -> Result<Json<Evaluation>, ApiError> {
    let mut request = body(request)?;
    let (id, task) = task(request.benchmark, request.task).await?;
    let subject = RequestSubject { what: format!("task {id} of {}", request.benchmark), unknown: "bad_task" };
    let is_of = |definition: &Environment| speaks_of(&task, &of_environment(definition), &request.urls);
    let environment = which::environment(&api, &subject, is_of)?;
    request.task = task;
    evaluated(&api, &environment, request).await.map(Json)
}

async fn evaluated(api: &Api, environment: &str, request: EvaluationRequest) -> Result<Evaluation, ApiError> {
    let handles = api.environments.choose(environment, &[])?;
    let live = request.cdp.clone().map(LivePage::Address);
    evaluated_on(api, environment, &handles, request, live).await.map(|(evaluation, _)| evaluation)
}

/// Returns the profiles to judge by, of those that a request names.
pub(super) fn profiles(named: &[Profile]) -> Vec<Profile> {
    if named.is_empty() { vec![Profile::Compat] } else { named.to_vec() }
}

/// Judges an episode by the state of these instances, which are of one environment, and the page of its agent. Returns the
/// day of the judgement as well, which it may depend on.
pub(super) async fn evaluated_on(
    api: &Api,
    environment: &str,
    handles: &[InstanceHandle],
    request: EvaluationRequest,
    live: Option<LivePage>,
) -> Result<(Evaluation, Day), ApiError> {
    let begun = Instant::now();
    let listed = api.environments.list();
    let definition = listed.iter().map(|(definition, _)| definition).find(|it| it.name.as_str() == environment);
    let mut urls = definition.map(of_environment).unwrap_or_default();
    urls.extend(request.urls);
    let (id, task) = task(request.benchmark, request.task).await?;
    let answer = match request.answer {
        Value::Null => String::new(),
        Value::String(text) => text,
        document => document.to_string(),
    };
    let traffic = match (request.traffic, request.benchmark) {
        // The request has no recording of the browser, so the gateway's recording is used if there is one.
        (None, Benchmark::WebArenaVerified) => {
            let sites: Vec<SiteTraffic> = handles.iter().map(SiteTraffic::of).collect();
            match sites.iter().any(|site| site.generation().is_some()) {
                true => Some(Traffic::of(har::text(sites).await?.into_bytes())),
                false => None,
            }
        }
        (given, _) => given,
    };
    let mut evidence = EpisodeEvidence {
        benchmark: request.benchmark,
        id,
        task,
        urls,
        answer,
        url: request.url,
        told: request.told,
        traffic,
        looked_at: Vec::new(),
    };
    let profiles = profiles(&request.profiles);
    let host = api.environments.host(environment).unwrap_or_default();
    let witness = Witness::new(&api.shared, handles, &host, live, &request.accounts);
    evaluate::look(&witness, &mut evidence, &profiles).await?;
    let day = today();
    // Traffic can be large, and comparing pictures takes time.
    let judged = tokio::task::spawn_blocking(move || (evaluate_on(day, &evidence, &profiles), evidence)).await;
    let (evaluated, evidence) = judged
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", format!("judge: {error}")))?;
    let evaluated = evaluated.map_err(EvaluatingError::from)?;
    Ok((Evaluation { evaluated, evidence, duration_ms: begun.elapsed().as_secs_f64() * 1e3 }, day))
}

/// Returns the id of a task that is sent as its file has it, or by its number; an empty one if the task has none. `None`
/// for anything else.
pub(super) fn task_id(given: &Value) -> Option<String> {
    match given {
        Value::Object(task) => Some(task.get("task_id").map(ToString::to_string).unwrap_or_default()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(id) => Some(id.clone()),
        _ => None,
    }
}

/// Returns the id of the task and the task itself, as sent or from the benchmark's files.
pub(super) async fn task(benchmark: Benchmark, given: Value) -> Result<(String, Value), ApiError> {
    let Some(id) = task_id(&given) else {
        return Err(bad_task("the task is neither an object nor a number").hint("send the task as its file has it"));
    };
    if given.is_object() {
        return Ok((id, given));
    }
    let Some(folder) = std::env::var_os("ARENAD_BENCHMARK_DATA") else {
        return Err(bad_task(format!("find task {id} of {benchmark}: this daemon knows no task files"))
            .hint("send the task itself, or start the daemon with ARENAD_BENCHMARK_DATA"));
    };
    let wanted = id.clone();
    let found = tokio::task::spawn_blocking(move || {
        TaskFiles::open(benchmark, FilePath::new(&folder)).and_then(|files| files.find(&wanted))
    });
    match found.await {
        Ok(found) => found.map(|task| (id, task)).map_err(|error| bad_task(describe(&error))),
        Err(error) => Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())),
    }
}

fn bad_task(detail: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_task", detail)
}

impl From<EvaluatingError> for ApiError {
    fn from(error: EvaluatingError) -> Self {
        let detail = describe(&error);
        match error {
            EvaluatingError::Case(
                CaseError::WebArena(_)
                | CaseError::Verified(_)
                | CaseError::WebCanvas(_)
                | CaseError::Trajectory(_)
                | CaseError::Turking(_)
                | CaseError::Mind2Web(_)
                | CaseError::Task { .. },
            ) => bad_task(detail),
            EvaluatingError::Reset(_) => {
                Self::new(StatusCode::CONFLICT, "busy", detail).hint("evaluate an episode before its sites are reset")
            }
        }
    }
}
