//! Endpoints that judge an episode by the state of its own slots.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::certify::certified;
use super::{shown, slots};
use crate::api::environments::{JsonRequest, body};
use crate::api::error::ApiError;
use crate::api::{Api, checks, evaluations};
use crate::browsers::LastPage;
use arenad_api::checks::{Begun, CheckRequest};
use arenad_api::episodes::{EpisodeBeginRequest, EpisodeEvaluation, EpisodeEvaluationRequest, TASK_LABEL};
use arenad_api::{EpisodeVerdict, EvaluationRequest};
use arenad_certificate::{JudgedEvidence, Judgement};
use arenad_episodes::{EpisodeError, EpisodeView};
use arenad_instance::InstanceHandle;
use arenad_locators::js::LivePage;
use arenad_model::episode::EpisodeRefusal;
use arenad_model::episode::ending::EpisodeEnding;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::error::describe;
use arenad_model::proxy_address::canonical_url;
use arenad_model::site::{Environment, RecordedRequests, Site};
use arenad_store::NewEvaluation;
use arenad_verdict::{Benchmark, Traffic, Verdict};

/// The time limit of an evaluation, for which the episode is frozen.
const LIMIT: Duration = Duration::from_secs(600);

/// `POST /v1/episodes/{id}/evaluations/begin`: captures the values that the check of the episode's native task
/// compares with.
pub(in crate::api) async fn begin(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    request: JsonRequest<EpisodeBeginRequest>,
) -> Result<Json<Begun>, ApiError> {
    let request = body(request)?;
    let view = slots::served(&api, &text)?;
    let (definition, handles) = sites(&api, &view)?;
    let task = checks::task(&definition, task_name(&view, request.task)?, request.file).await?;
    let known = api.shared.store.snapshots().await?;
    let begun = checks::begun_on(&api, &definition, &handles, &task, &known).await?;
    // Values that were read after the end belong to another episode.
    slots::served(&api, &text)?;
    Ok(Json(begun))
}

/// `POST /v1/episodes/{id}/evaluations`: judges an episode, which is frozen meanwhile. An episode that the environment
/// failed, before or during the evaluation, has the verdict `void` and no reward.
pub(in crate::api) async fn evaluate(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    request: JsonRequest<EpisodeEvaluationRequest>,
) -> Result<Json<EpisodeEvaluation>, ApiError> {
    let request = body(request)?;
    let id = super::id(&text)?;
    let view = api.episodes.get(&id)?;
    if let Some(EpisodeEnding::Void(_)) = view.state.ending() {
        return Ok(Json(void(&view, view.state.ending())));
    }
    let frozen = match api.episodes.begin_evaluation(&id, LIMIT).await {
        Ok(frozen) => frozen,
        Err(error) => return ended(&view, error),
    };
    let task = recorded_task(&view, &request);
    let judged = tokio::time::timeout(LIMIT, judge(&api, &view, request)).await;
    let judged = judged.unwrap_or_else(|_| {
        let detail = format!("evaluate episode {id}: not done within {} s", LIMIT.as_secs());
        Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timed_out", detail))
    });
    // An end meanwhile explains every other failure, and makes every verdict worthless.
    match frozen.end().await {
        Ok(()) => {
            let judged = judged?;
            note(&api, &id, task, &judged).await;
            Ok(Json(judged))
        }
        Err(error) => ended(&view, error),
    }
}

/// Returns the task of a request as it is recorded with the verdict.
fn recorded_task(view: &EpisodeView, request: &EpisodeEvaluationRequest) -> String {
    match &request.benchmark {
        Some(EvaluationRequest { benchmark, task, .. }) => {
            let id = evaluations::task_id(task).filter(|id| !id.is_empty());
            id.map_or(benchmark.to_string(), |id| format!("{benchmark}/{id}"))
        }
        None => task_name(view, request.task.clone()).unwrap_or_default(),
    }
}

/// Records an evaluation with its episode. The client has the verdict even if that fails.
async fn note(api: &Api, id: &EpisodeId, task: String, given: &EpisodeEvaluation) {
    let evaluation = NewEvaluation { task, verdict: given.verdict.word().to_owned(), reward: given.reward };
    if let Err(error) = api.shared.store.note_evaluation(id, &evaluation).await {
        tracing::warn!(episode.id = %id, error = describe(&error), "an evaluation of episode {id} is not recorded");
    }
}

/// Returns the verdict on an episode that is void, or the error for one that cannot be evaluated for another reason.
fn ended(view: &EpisodeView, error: EpisodeError) -> Result<Json<EpisodeEvaluation>, ApiError> {
    match &error {
        EpisodeError::Refused(EpisodeRefusal::Ended(ending @ EpisodeEnding::Void(_))) => {
            Ok(Json(void(view, Some(ending))))
        }
        _ => Err(error.into()),
    }
}

fn void(view: &EpisodeView, ending: Option<&EpisodeEnding>) -> EpisodeEvaluation {
    EpisodeEvaluation {
        episode: view.id.to_string(),
        verdict: EpisodeVerdict::Void,
        reward: None,
        ending: ending.map(shown::ending),
        check: None,
        evaluation: None,
        certificate: None,
    }
}

async fn judge(
    api: &Api,
    view: &EpisodeView,
    request: EpisodeEvaluationRequest,
) -> Result<EpisodeEvaluation, ApiError> {
    let is_elsewhere = match &request.benchmark {
        Some(benchmark) => !benchmark.url.is_empty() || benchmark.cdp.is_some(),
        None => request.url.is_some() || request.cdp.is_some(),
    };
    // An agent that says where it is has a browser of its own.
    let live = match (&request.benchmark, is_elsewhere) {
        (_, false) => api.browsers.live_page(&view.id).await,
        (Some(benchmark), true) => benchmark.cdp.clone().map(LivePage::Address),
        (None, true) => request.cdp.clone().map(LivePage::Address),
    };
    let request = with_browser(request, api.browsers.last_page(&view.id));
    // Read again: the episode may have got its slots since the request began.
    let view = &api.episodes.get(&view.id)?;
    let (definition, handles) = sites(api, view)?;
    let is_certified = request.certificate.unwrap_or(true);
    // Rules and tasks have the addresses that the sites were made for, and the agent's browser may have others.
    let number =
        |site: &Site| view.slots.iter().find(|slot| slot.instance.site == site.name).map(|it| it.instance.number);
    let as_made = |url: &str| canonical_url(url, &definition, &number);
    let (check, evaluation, certificate) = match request.benchmark {
        Some(benchmark) => {
            if request.task.is_some() || request.begun.is_some() || !request.answer.is_empty() {
                return Err(ApiError::bad_request(
                    "`benchmark` contains the task and the answer, so nothing else may be given",
                ));
            }
            let environment = definition.name.as_str();
            let benchmark = EvaluationRequest { url: as_made(&benchmark.url), ..benchmark };
            let benchmark = with_record(api, view, benchmark).await?;
            let profiles = evaluations::profiles(&benchmark.profiles);
            let (mut evaluation, day) = evaluations::evaluated_on(api, environment, &handles, benchmark, live).await?;
            let mut certificate = None;
            if is_certified {
                let evidence = JudgedEvidence::Benchmark { day, profiles, evidence: Box::new(evaluation.evidence) };
                let judgement = Judgement::Benchmark(evaluation.evaluated.clone());
                let (signed, evidence) = certified(api, view, &handles, evidence, judgement).await?;
                certificate = signed;
                // Moved there and back, because recorded traffic is large.
                let JudgedEvidence::Benchmark { evidence, .. } = evidence else { return Err(no_report()) };
                evaluation.evidence = *evidence;
            }
            (None, Some(evaluation), certificate)
        }
        None => {
            let check = CheckRequest {
                task: task_name(view, request.task)?,
                file: request.file,
                begun: request.begun,
                answer: request.answer,
                url: request.url.as_deref().map(as_made),
                cdp: request.cdp,
                evidence: request.evidence,
            };
            let (checked, evidence) = checks::checked_on(api, &definition, &handles, check, live).await?;
            let certificate = match is_certified {
                true => {
                    let evidence = JudgedEvidence::Native(Box::new(evidence));
                    let judgement = Judgement::Native(checked.report.clone());
                    certified(api, view, &handles, evidence, judgement).await?.0
                }
                false => None,
            };
            (Some(checked), None, certificate)
        }
    };
    let report = match (&check, &evaluation) {
        (Some(checked), _) => Some(&checked.report),
        (None, Some(evaluation)) => evaluation.evaluated.reports.first(),
        (None, None) => None,
    };
    // Without a profile in the request there is a report of the default one.
    let (verdict, reward) = report.map(|report| (word(report.verdict), report.score)).ok_or_else(no_report)?;
    Ok(EpisodeEvaluation {
        episode: view.id.to_string(),
        verdict,
        reward,
        ending: None,
        check,
        evaluation,
        certificate,
    })
}

/// Returns the request with the page of the episode's browser and the answer that its agent gave, as far as the request
/// says neither.
fn with_browser(mut request: EpisodeEvaluationRequest, last: Option<LastPage>) -> EpisodeEvaluationRequest {
    let Some(LastPage { url, answer }) = last else { return request };
    let answer = answer.unwrap_or_default();
    match &mut request.benchmark {
        Some(benchmark) => {
            if benchmark.url.is_empty() && benchmark.cdp.is_none() {
                benchmark.url = url;
            }
            if benchmark.answer.is_null() {
                benchmark.answer = answer.into();
            }
        }
        None => {
            if request.url.is_none() && request.cdp.is_none() {
                request.url = Some(url);
            }
            if request.answer.is_empty() {
                request.answer = answer;
            }
        }
    }
    request
}

fn no_report() -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the evaluation has no report")
}

/// Returns the request with the record of the episode, if the benchmark reads traffic and the request has none. A
/// record has more than the gateway's memory, because it outlives the daemon.
async fn with_record(api: &Api, view: &EpisodeView, request: EvaluationRequest) -> Result<EvaluationRequest, ApiError> {
    let is_recorded = view.request.record == RecordedRequests::All;
    if !is_recorded || request.traffic.is_some() || request.benchmark != Benchmark::WebArenaVerified {
        return Ok(request);
    }
    let har = slots::recorded_har(api, &view.id).await?;
    Ok(EvaluationRequest { traffic: har.map(|har| Traffic::of(har.into_bytes())), ..request })
}

/// Returns the definition of an episode's environment, and the episode's instances.
fn sites(api: &Api, view: &EpisodeView) -> Result<(Environment, Vec<InstanceHandle>), ApiError> {
    let handles = slots::instances(api, view)?;
    let definition = api.environments.definition(shown::environment(view));
    Ok((definition.ok_or_else(|| ApiError::not_found("this environment"))?, handles))
}

/// Returns the task that is named, or the one that the episode was requested with.
fn task_name(view: &EpisodeView, named: Option<String>) -> Result<String, ApiError> {
    named.or_else(|| view.request.labels.get(TASK_LABEL).map(str::to_owned)).ok_or_else(|| {
        let detail = format!("episode {} was not requested with a task", view.id);
        ApiError::bad_request(detail)
            .hint("name a native task with `task`, or give the task of a benchmark as `benchmark`")
    })
}

fn word(verdict: Verdict) -> EpisodeVerdict {
    match verdict {
        Verdict::Passed => EpisodeVerdict::Passed,
        Verdict::Failed => EpisodeVerdict::Failed,
        Verdict::NeedsJudge => EpisodeVerdict::NeedsJudge,
        Verdict::Inconclusive => EpisodeVerdict::Inconclusive,
        Verdict::Unsupported => EpisodeVerdict::Unsupported,
    }
}
