//! Endpoints for native tasks: beginning an episode and judging it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::Api;
use super::environments::{JsonRequest, body};
use super::error::ApiError;
use super::which::{self, RequestSubject};
use super::words;
use crate::checks::{BeginError, Beginning, EpisodeEnd, SiteGeneration, TaskChecker};
use arenad_api::SourceText;
use arenad_api::checks::{
    BeginRequest, Begun, BegunSite, BegunValue, CheckEvidence, CheckRequest, Checked, SeenReading, Sighted,
};
use arenad_certificate::NativeEvidence;
use arenad_definition::{SourceFile, tasks};
use arenad_evaluators::native::{ReadingOutcome, Sight};
use arenad_instance::{InstanceHandle, OperationOutcome};
use arenad_locators::js::LivePage;
use arenad_model::error::describe;
use arenad_model::ids::SiteName;
use arenad_model::locator::Value;
use arenad_model::locator::json as values;
use arenad_model::request_queue::Want;
use arenad_model::site::Environment;
use arenad_model::snapshot::Snapshot;
use arenad_model::task::{Reading, Task};
use arenad_seams::inline::blocking;

/// `POST /v1/environments/{environment}/checks/begin`: begins an episode and returns the captured values.
pub(super) async fn begin(
    State(api): State<Arc<Api>>,
    Path(environment): Path<String>,
    request: JsonRequest<BeginRequest>,
) -> Result<Json<Begun>, ApiError> {
    begun(&api, &environment, body(request)?).await
}

/// `POST /v1/checks/begin`: uses the only environment that is up, or the only one that has the task.
pub(super) async fn begin_found(
    State(api): State<Arc<Api>>,
    request: JsonRequest<BeginRequest>,
) -> Result<Json<Begun>, ApiError> {
    let request = body(request)?;
    let environment = environment_of(&api, &request.task, request.file.as_ref())?;
    begun(&api, &environment, request).await
}

async fn begun(api: &Api, environment: &str, request: BeginRequest) -> Result<Json<Begun>, ApiError> {
    let (definition, handles) = open(api, environment)?;
    let task = task(&definition, request.task, request.file).await?;
    let known = api.shared.store.snapshots().await?;
    if request.reset {
        reset(&task, &handles, &known).await?;
    }
    begun_on(api, &definition, &handles, &task, &known).await.map(Json)
}

/// Captures the values of a task on these instances, which must be at the task's start.
pub(super) async fn begun_on(
    api: &Api,
    definition: &Environment,
    handles: &[InstanceHandle],
    task: &Task,
    known: &[Snapshot],
) -> Result<Begun, ApiError> {
    let desk = TaskChecker { shared: &api.shared, handles, host: &definition.host, live: None };
    let beginning = desk.begin(task).await?;
    for (site, standing) in &beginning.sites {
        stands_at_start(task, site, standing.snapshot.as_deref(), known)?;
    }
    Ok(shown(task, definition, beginning))
}

/// `POST /v1/environments/{environment}/checks`: judges an episode.
pub(super) async fn check(
    State(api): State<Arc<Api>>,
    Path(environment): Path<String>,
    request: JsonRequest<CheckRequest>,
) -> Result<Json<Checked>, ApiError> {
    checked(&api, environment, body(request)?).await
}

/// `POST /v1/checks`: uses the environment in which the episode began, otherwise chooses as [`begin_found`] does.
pub(super) async fn check_found(
    State(api): State<Arc<Api>>,
    request: JsonRequest<CheckRequest>,
) -> Result<Json<Checked>, ApiError> {
    let request = body(request)?;
    let environment = match &request.begun {
        Some(begun) => begun.environment.clone(),
        None => environment_of(&api, &request.task, request.file.as_ref())?,
    };
    checked(&api, environment, request).await
}

async fn checked(api: &Api, environment: String, request: CheckRequest) -> Result<Json<Checked>, ApiError> {
    let (definition, handles) = open(api, &environment)?;
    let live = request.cdp.clone().map(LivePage::Address);
    checked_on(api, &definition, &handles, request, live).await.map(|(checked, _)| Json(checked))
}

/// Judges an episode by the state of these instances and the page of its agent. Returns the evidence as well, from which
/// it can be judged again.
pub(super) async fn checked_on(
    api: &Api,
    definition: &Environment,
    handles: &[InstanceHandle],
    request: CheckRequest,
    live: Option<LivePage>,
) -> Result<(Checked, NativeEvidence), ApiError> {
    let since = Instant::now();
    let environment = definition.name.to_string();
    let task = task(definition, request.task, request.file).await?;
    if let Some(begun) = &request.begun
        && (begun.task != task.name || begun.environment != environment)
    {
        let detail =
            format!("check {} of {environment}: what began is {} of {}", task.name, begun.task, begun.environment);
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "other_task", detail)
            .hint("give what `arenad check begin` said of this task"));
    }
    if request.begun.is_none() && task.needs_beginning() {
        let names: Vec<&str> = task.before.iter().map(|(name, _)| name.as_str()).collect();
        let detail = format!("check {}: it compares with values of the beginning: {}", task.name, names.join(", "));
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "not_begun", detail).hint(format!(
            "`arenad check begin {} --out FILE` when the episode begins, then --begun FILE",
            task.name
        )));
    }
    let desk = TaskChecker { shared: &api.shared, handles, host: &definition.host, live };
    let (url, no_url) = match request.url {
        Some(url) => (Some(url), None),
        None => match desk.agents_url().await {
            Ok(url) => (url, None),
            Err(error) => (None, Some(describe(&error))),
        },
    };
    let ended = EpisodeEnd {
        answer: request.answer,
        url,
        no_url,
        generations: request.begun.iter().flat_map(|begun| &begun.sites).map(generation).collect(),
        captured: captured(&task, request.begun.as_ref())?,
    };
    let (report, sights) = desk.check(&task, &ended).await;
    let judged = NativeEvidence::of(&task, &ended.episode(), &sights);
    let at = Timestamp::now().to_string();
    let evidence = request.evidence.then(|| CheckEvidence {
        task: task.name.clone(),
        environment: environment.clone(),
        at: at.clone(),
        answer: ended.answer.clone(),
        url: ended.url.clone(),
        captured: ended.captured.iter().map(|(name, value)| (name.clone(), values::typed(value))).collect(),
        seen: sights.iter().map(seen_reading).collect(),
    });
    let checked = Checked {
        task: task.name,
        environment,
        at,
        answer: ended.answer,
        url: ended.url,
        report,
        duration_ms: since.elapsed().as_secs_f64() * 1e3,
        evidence,
    };
    Ok((checked, judged))
}

/// Returns the environment that a task belongs to: the one that its file names, or the one that has a task of that
/// name.
pub(super) fn environment_of(api: &Api, task: &str, file: Option<&SourceText>) -> Result<String, ApiError> {
    let named = file.and_then(|file| tasks::environment_of(&SourceFile::new(file.path.clone(), file.text.clone())));
    let subject = RequestSubject { what: format!("task {task}"), unknown: "unknown_task" };
    match named {
        Some(named) => Ok(named),
        None => which::environment(api, &subject, |definition| has_task(definition, task)),
    }
}

/// Returns whether an environment's files contain a task. A file that names the task but is invalid counts as
/// containing it, so that the caller sees the problems in that file.
fn has_task(definition: &Environment, name: &str) -> bool {
    let Ok(files) = tasks::read_tasks(&definition.root, &definition.name) else { return false };
    let naming = naming(&files, name);
    let loaded = tasks::load_for(&naming, definition, name);
    loaded.find(name).is_some() || (!naming.is_empty() && loaded.problems.is_some())
}

/// Returns the files that may contain a task; most files do not mention its name and need not be parsed.
fn naming(files: &[SourceFile], name: &str) -> Vec<SourceFile> {
    let template = name.rsplit_once('.').map_or(name, |(template, _)| template);
    files.iter().filter(|file| file.text.contains(template)).cloned().collect()
}

fn generation(site: &BegunSite) -> (String, u64) {
    (site.site.clone(), site.generation)
}

/// Returns the definition with which an environment was brought up, and its sites.
pub(super) fn open(api: &Api, environment: &str) -> Result<(Environment, Vec<InstanceHandle>), ApiError> {
    let handles = api.environments.choose(environment, &[])?;
    let definition = api.environments.definition(environment);
    Ok((definition.ok_or_else(|| ApiError::not_found("this environment"))?, handles))
}

/// Returns the task of that name, from the file that was sent or from the environment's own files.
pub(super) async fn task(definition: &Environment, name: String, file: Option<SourceText>) -> Result<Task, ApiError> {
    let definition = definition.clone();
    // Reading and checking the files takes milliseconds.
    let found = blocking(move || find_task(&definition, &name, file)).await;
    found.map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string()))?
}

fn find_task(definition: &Environment, name: &str, file: Option<SourceText>) -> Result<Task, ApiError> {
    let broken = |detail| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "definition", detail);
    let files = match file {
        Some(file) => vec![SourceFile::new(file.path, file.text)],
        None => tasks::read_tasks(&definition.root, &definition.name).map_err(|error| broken(describe(&error)))?,
    };
    let loaded = tasks::load_for(&naming(&files, name), definition, name);
    if let Some(task) = loaded.find(name) {
        return Ok(task.clone());
    }
    if let Some(problems) = &loaded.problems {
        return Err(broken(format!("understand the tasks:\n{problems}")));
    }
    let known = tasks::load(&files, definition);
    let error = ApiError::new(StatusCode::NOT_FOUND, "unknown_task", format!("{} has no task {name}", definition.name));
    Err(match known.suggestion(name) {
        Some(close) => error.hint(format!("did you mean `{close}`?")),
        None => error.hint("`arenad tasks ls` lists them"),
    })
}

/// Resets a task's sites to the task's start, all at the same time.
async fn reset(task: &Task, handles: &[InstanceHandle], known: &[Snapshot]) -> Result<(), ApiError> {
    let mut tickets = Vec::new();
    for site in &task.sites {
        let handle = handles.iter().find(|handle| handle.site.name == *site);
        let handle = handle.ok_or_else(|| BeginError::NotUp(site.clone()))?;
        let ticket = match task.snapshot(site) {
            None => handle.ask(Want::RESET).await?,
            Some(name) => handle.ask(Want::Reset { to: Some(named(known, handle, name)?.id.to_string()) }).await?,
        };
        tickets.push((site, ticket));
    }
    for (site, ticket) in tickets {
        match ticket.wait().await {
            OperationOutcome::Done { .. } => {}
            OperationOutcome::Failed(trouble) => {
                let detail = format!("bring {site} to where {} starts: {}", task.name, trouble.reason);
                return Err(ApiError::new(StatusCode::BAD_GATEWAY, "reset_failed", detail).hint(trouble.hint));
            }
            OperationOutcome::Superseded | OperationOutcome::Stopped => {
                let detail = format!("bring {site} to where {} starts: the reset was cut off", task.name);
                return Err(ApiError::new(StatusCode::CONFLICT, "busy", detail).hint("try again"));
            }
        }
    }
    Ok(())
}

/// Returns the site's snapshot of that name.
pub(super) fn named<'a>(known: &'a [Snapshot], handle: &InstanceHandle, name: &str) -> Result<&'a Snapshot, ApiError> {
    let (environment, site) = (handle.id.environment.as_str(), handle.site.name.as_str());
    let own = known.iter().filter(|stored| stored.is_of(environment, site));
    own.clone().find(|stored| stored.name.as_deref() == Some(name)).ok_or_else(|| {
        let names: Vec<&str> = own.filter_map(|stored| stored.name.as_deref()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ApiError::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("{site} has no snapshot named {name}: it has {names}"),
        )
        .hint(format!("`arenad snapshot take {site} --name {name}` takes one"))
    })
}

/// Checks that a site is at the task's start; an episode that begins in another state is effectively another task.
fn stands_at_start(task: &Task, site: &SiteName, snapshot: Option<&str>, known: &[Snapshot]) -> Result<(), ApiError> {
    let stored = known.iter().find(|stored| Some(stored.id.as_str()) == snapshot);
    let stands_at = stored.and_then(|stored| stored.name.as_deref());
    let starts_at = task.snapshot(site);
    if stands_at == starts_at {
        return Ok(());
    }
    let word = |name: Option<&str>| name.map_or("its baseline".to_owned(), |name| format!("snapshot {name}"));
    let detail =
        format!("begin {}: {site} stands at {}, and starts at {}", task.name, word(stands_at), word(starts_at));
    let command = match starts_at {
        Some(name) => format!("arenad reset {site} --to {name}"),
        None => format!("arenad reset {site}"),
    };
    Err(ApiError::new(StatusCode::CONFLICT, "wrong_snapshot", detail)
        .hint(format!("`{command}`, or `arenad check begin {} --reset`", task.name)))
}

fn shown(task: &Task, definition: &Environment, begun: Beginning) -> Begun {
    let site = |(name, standing): (SiteName, SiteGeneration)| BegunSite {
        site: name.to_string(),
        instance: standing.instance.to_string(),
        generation: standing.generation,
        snapshot: standing.snapshot.map(String::from),
    };
    let values = begun.values.into_iter().map(|(name, located)| {
        let value = BegunValue {
            kind: words::value(&located.value),
            value: values::plain(&located.value),
            ran: located.evidence.ran,
            duration_ms: located.evidence.took.as_secs_f64() * 1e3,
        };
        (name, value)
    });
    Begun {
        task: task.name.clone(),
        environment: definition.name.to_string(),
        at: Timestamp::now().to_string(),
        intent: task.intent.clone(),
        start: task.start.clone(),
        accounts: task.accounts.iter().map(|(site, account)| (site.to_string(), account.clone())).collect(),
        sites: begun.sites.into_iter().map(site).collect(),
        values: values.collect(),
    }
}

/// Returns the captured values that the task declares, with their types.
fn captured(task: &Task, begun: Option<&Begun>) -> Result<BTreeMap<String, Value>, ApiError> {
    let Some(begun) = begun else { return Ok(BTreeMap::new()) };
    let wrong = |name: &str| {
        let detail = format!("check {}: what began has no `{name}` that can be read", task.name);
        ApiError::new(StatusCode::BAD_REQUEST, "other_task", detail)
            .hint("begin the episode anew: the task has changed")
    };
    let value = |name: &String| {
        let found = begun.values.get(name)?;
        values::from_typed(&json!({ "type": found.kind, "value": found.value }))
    };
    task.before.iter().map(|(name, _)| Ok((name.clone(), value(name).ok_or_else(|| wrong(name))?))).collect()
}

impl From<BeginError> for ApiError {
    fn from(error: BeginError) -> Self {
        let detail = describe(&error);
        match error {
            BeginError::Ask(error) => error.into(),
            BeginError::NotUp(_) => {
                Self::new(StatusCode::CONFLICT, "not_up", detail).hint("bring it up first with `arenad up`")
            }
            BeginError::Capture { cause, .. } => Self::from(cause).detailed(detail),
            BeginError::Reset(_) => Self::new(StatusCode::CONFLICT, "busy", detail).hint("try again"),
        }
    }
}

/// Converts a reading to its form in the evidence.
fn seen_reading(sight: &Sight) -> SeenReading {
    let Reading { site, text, arguments, page, account, .. } = &sight.reading;
    SeenReading {
        site: site.to_string(),
        locate: text.clone(),
        arguments: arguments.0.iter().cloned().collect(),
        page: page.clone(),
        account: account.clone(),
        seen: match &sight.seen {
            ReadingOutcome::Value(value) => Sighted::Value(values::typed(value)),
            ReadingOutcome::Nothing(reason) => Sighted::Nothing(reason.clone()),
            ReadingOutcome::Unavailable(reason) => Sighted::Unavailable(reason.clone()),
            ReadingOutcome::Unsupported(reason) => Sighted::Unsupported(reason.clone()),
        },
        duration_ms: sight.took.as_secs_f64() * 1e3,
    }
}
