//! The endpoint that starts episodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};

use super::{fork, refusal, shown, streams};
use crate::api::environments::{JsonRequest, body};
use crate::api::error::ApiError;
use crate::api::which::{self, RequestSubject};
use crate::api::{Api, checks};
use arenad_api::EpisodeRecording;
use arenad_api::episodes::{
    DEFAULT_OWNER, DEFAULT_WAIT_SECONDS, EpisodeProxy, EpisodeStartRequest, IDEMPOTENCY_KEY, StartedEpisode, TASK_LABEL,
};
use arenad_episodes::EpisodeView;
use arenad_instance::InstanceHandle;
use arenad_model::episode::ids::{EpisodeId, EpisodeLabels, IdempotencyKey, InvalidEpisodeValue, Owner};
use arenad_model::episode::life::{DEFAULT_TTL, EpisodeTerms};
use arenad_model::episode::request::{EpisodeRequest, SiteWant, StartPoint};
use arenad_model::ids::{ReplayName, SiteId};
use arenad_model::site::{Environment, RecordedRequests};
use arenad_model::task::Task;

/// `POST /v1/episodes`: requests an episode, and answers when its client can reach the sites. A detached request is
/// answered at once, and so is one whose connection holds the episode, with a stream.
pub(in crate::api) async fn start(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    request: JsonRequest<EpisodeStartRequest>,
) -> Result<Response, ApiError> {
    let request = body(request)?;
    let key = key(&headers)?;
    if request.from_episode.is_some() {
        if request.hold {
            let refusal = ApiError::bad_request("`hold` cannot be combined with `from_episode`");
            return Err(refusal.hint("hold the child with `GET /v1/episodes/ID/hold`"));
        }
        return Ok(fork::start(api, request, key).await?.into_response());
    }
    let (is_detached, is_held) = (request.detach, request.hold);
    let wanted = wanted(&api, request, key).await?;
    if is_held {
        return start_held(api, wanted).await;
    }
    let has_key = wanted.key.is_some();
    let receipt = api.episodes.ask(wanted).await?;
    let view = match is_detached {
        true => api.episodes.get(&receipt.id)?,
        false => {
            let unanswered = Unanswered::of(&api, &receipt.id, has_key);
            let view = api.episodes.wait(&receipt.id).await?;
            unanswered.answer();
            view
        }
    };
    if let Some(ending) = view.state.ending() {
        return Err(refusal::ended(ending));
    }
    let status = status(receipt.is_known, shown::is_served(&view));
    Ok((status, Json(started(&api, &view, receipt.token.reveal(), receipt.is_known))).into_response())
}

/// Requests an episode that ends with the connection of the request.
async fn start_held(api: Arc<Api>, wanted: EpisodeRequest) -> Result<Response, ApiError> {
    let (receipt, guard) = api.episodes.ask_and_hold(wanted).await?;
    let view = api.episodes.get(&receipt.id)?;
    let status = status(receipt.is_known, shown::is_served(&view));
    let started = started(&api, &view, receipt.token.reveal(), receipt.is_known);
    let first = Event::default().event("started").json_data(started).unwrap_or_default();
    let events = stream::once(async { Ok(first) }).chain(streams::held(api, guard));
    Ok((status, streams::answer(events)).into_response())
}

/// Returns the status of an answer that shows an episode, or several of which the least advanced decides.
pub(super) fn status(is_known: bool, is_served: bool) -> StatusCode {
    match (is_known, is_served) {
        (_, false) => StatusCode::ACCEPTED,
        (true, true) => StatusCode::OK,
        (false, true) => StatusCode::CREATED,
    }
}

pub(super) fn started(api: &Api, view: &EpisodeView, token: &str, is_known: bool) -> StartedEpisode {
    let proxy = api.proxy.server.clone().map(|server| EpisodeProxy {
        server,
        username: view.id.to_string(),
        password: token.to_owned(),
    });
    StartedEpisode { episode: shown::whole(api, view), token: token.to_owned(), proxy, is_known }
}

/// Releases an episode when its client goes away before the answer, because no client knows its id then. With an
/// idempotency key the client can ask for it again, and `id` is `None`.
pub(super) struct Unanswered {
    api: Arc<Api>,
    id: Option<EpisodeId>,
}

impl Unanswered {
    pub(super) fn of(api: &Arc<Api>, id: &EpisodeId, has_key: bool) -> Self {
        Self { api: api.clone(), id: (!has_key).then(|| id.clone()) }
    }

    pub(super) fn answer(mut self) {
        self.id = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let episodes = self.api.episodes.clone();
        self.api.shared.tasks.spawn(async move {
            if let Err(error) = episodes.release(&id).await {
                tracing::debug!(episode.id = %id, %error, "episode {id} ended before its client withdrew the request");
            }
        });
    }
}

pub(super) fn key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = IdempotencyKey::parse(value.to_str().unwrap_or_default()).map_err(invalid)?;
    Ok(Some(key))
}

pub(super) fn invalid(error: InvalidEpisodeValue) -> ApiError {
    ApiError::bad_request(error.to_string())
}

/// Returns the request in the terms of the model.
pub(super) async fn wanted(
    api: &Api,
    request: EpisodeStartRequest,
    key: Option<IdempotencyKey>,
) -> Result<EpisodeRequest, ApiError> {
    let environment = environment(api, &request)?;
    let (definition, up) = checks::open(api, &environment)?;
    let task = match &request.task {
        Some(name) => Some(checks::task(&definition, name.clone(), request.file.clone()).await?),
        None => None,
    };
    let names = site_names(&request.sites, task.as_ref(), &up);
    let handles = api.environments.choose(&environment, &names)?;
    insist_chosen("snapshots", request.snapshots.keys(), &names)?;
    insist_chosen("slots", request.slots.keys(), &names)?;
    let starts = starts(api, &handles, &request.snapshots, task.as_ref()).await?;
    let want = |(handle, start): (&InstanceHandle, StartPoint)| SiteWant {
        site: SiteId { environment: handle.id.environment.clone(), site: handle.id.site.clone() },
        slot: request.slots.get(handle.id.site.as_str()).copied(),
        start,
    };
    let sites = handles.iter().zip(starts).map(want).collect();
    let seconds = |given: Option<u64>, default: Duration| given.map_or(default, Duration::from_secs);
    let ttl = seconds(request.ttl_seconds, DEFAULT_TTL.min(api.episode_settings.ttl));
    let wait = seconds(request.wait_seconds, Duration::from_secs(DEFAULT_WAIT_SECONDS));
    Ok(EpisodeRequest {
        owner: Owner::parse(request.owner.as_deref().unwrap_or(DEFAULT_OWNER)).map_err(invalid)?,
        key,
        sites,
        terms: EpisodeTerms::new(ttl, wait).map_err(invalid)?,
        labels: labels(request.labels, task.as_ref())?,
        record: request.record.map_or(RecordedRequests::Nothing, recorded),
        beginning: None,
        replays: replays(api, &request.replays)?,
    })
}

/// Returns the names of the replays, all of which exist.
fn replays(api: &Api, names: &[String]) -> Result<Vec<ReplayName>, ApiError> {
    let mut found: Vec<ReplayName> = Vec::new();
    for name in names {
        let name = ReplayName::parse(name).map_err(|error| ApiError::bad_request(error.to_string()))?;
        api.replays.get(&name)?;
        if !found.contains(&name) {
            found.push(name);
        }
    }
    Ok(found)
}

/// Returns the requests that are recorded.
pub(super) fn recorded(word: EpisodeRecording) -> RecordedRequests {
    match word {
        EpisodeRecording::Nothing => RecordedRequests::Nothing,
        EpisodeRecording::Writes => RecordedRequests::Writes,
        EpisodeRecording::All => RecordedRequests::All,
    }
}

/// Returns the environment that the request names, or the one that has its task or its sites.
fn environment(api: &Api, request: &EpisodeStartRequest) -> Result<String, ApiError> {
    if let Some(named) = &request.environment {
        return Ok(named.clone());
    }
    if let Some(task) = &request.task {
        return checks::environment_of(api, task, request.file.as_ref());
    }
    let (what, unknown) = match request.sites.as_slice() {
        [] => ("a site".to_owned(), "unknown_environment"),
        sites => (format!("site {}", sites.join(" and ")), "unknown_site"),
    };
    let has = |definition: &Environment| {
        let is_its = |name: &String| definition.sites.iter().any(|site| site.name.as_str() == name);
        request.sites.iter().all(is_its)
    };
    which::environment(api, &RequestSubject { what, unknown }, has)
}

/// Returns the sites of an episode: the named ones and those of the task, or all that are up.
fn site_names(named: &[String], task: Option<&Task>, up: &[InstanceHandle]) -> Vec<String> {
    let mut names = named.to_vec();
    for site in task.iter().flat_map(|task| &task.sites) {
        if !names.iter().any(|name| name == site.as_str()) {
            names.push(site.to_string());
        }
    }
    if names.is_empty() {
        names.extend(up.iter().map(|handle| handle.id.site.to_string()));
    }
    names
}

/// Checks that a field by site names only sites of the episode, because a misspelled name would be without effect.
fn insist_chosen<'a>(field: &str, given: impl Iterator<Item = &'a String>, names: &[String]) -> Result<(), ApiError> {
    let names: BTreeSet<&String> = names.iter().collect();
    let stranger = given.into_iter().find(|name| !names.contains(name));
    stranger.map_or(Ok(()), |name| {
        let known: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        Err(ApiError::bad_request(format!("`{field}` names {name}; the sites of the episode are {}", known.join(", "))))
    })
}

/// Returns the starting points of the sites. The snapshots exist.
async fn starts(
    api: &Api,
    handles: &[InstanceHandle],
    snapshots: &BTreeMap<String, String>,
    task: Option<&Task>,
) -> Result<Vec<StartPoint>, ApiError> {
    let names = handles.iter().map(|handle| {
        let of_task = || task.and_then(|task| task.snapshot(&handle.id.site)).map(str::to_owned);
        snapshots.get(handle.id.site.as_str()).cloned().or_else(of_task)
    });
    let names: Vec<Option<String>> = names.collect();
    if names.iter().all(Option::is_none) {
        return Ok(vec![StartPoint::Baseline; names.len()]);
    }
    let known = api.shared.store.snapshots().await?;
    let start = |(handle, name): (&InstanceHandle, Option<String>)| match name {
        Some(name) => checks::named(&known, handle, &name).map(|_| StartPoint::Snapshot(name.clone())),
        None => Ok(StartPoint::Baseline),
    };
    handles.iter().zip(names).map(start).collect()
}

/// Returns the labels, among them the one that names the task.
fn labels(mut given: BTreeMap<String, String>, task: Option<&Task>) -> Result<EpisodeLabels, ApiError> {
    if let Some(task) = task {
        let earlier = given.insert(TASK_LABEL.to_owned(), task.name.clone());
        if let Some(other) = earlier.filter(|other| *other != task.name) {
            let detail = format!("the label `{TASK_LABEL}` is {other}, and the task is {}", task.name);
            return Err(ApiError::bad_request(detail).hint("leave the label out: the daemon sets it"));
        }
    }
    EpisodeLabels::parse(given).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_optional_and_checked() {
        let mut headers = HeaderMap::new();
        assert!(key(&headers).expect("no key").is_none());
        headers.insert("Idempotency-Key", "run-7".parse().expect("a value"));
        assert_eq!(key(&headers).expect("a key").expect("given").as_str(), "run-7");
        headers.insert("Idempotency-Key", "run 7".parse().expect("a value"));
        assert!(key(&headers).is_err());
    }

    #[test]
    fn a_field_that_names_a_site_outside_of_the_episode_is_refused() {
        let names = ["shop".to_owned(), "forum".to_owned()];
        assert!(insist_chosen("slots", [].iter(), &names).is_ok());
        assert!(insist_chosen("slots", ["forum".to_owned()].iter(), &names).is_ok());
        let error = insist_chosen("slots", ["forun".to_owned()].iter(), &names).expect_err("a stranger");
        assert!(format!("{error:?}").contains("`slots` names forun"), "{error:?}");
    }
}
