//! The endpoint for entering a container of a site by hand: `arenad exec` and `arenad shell`.
//!
//! The client runs the command through the engine, so the terminal does not pass through the daemon. The client
//! notifies the daemon first; from then on, the daemon no longer assumes that these containers are unchanged.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::Api;
use super::environments::{JsonRequest, body};
use super::error::ApiError;
use arenad_api::{ContainerEntry, EntryRequest};
use arenad_engine::{ContainerState, EngineHandle, labels};
use arenad_instance::{AskError, InstanceHandle};
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceState;

/// The longest wait for the end of a reset.
const RESET_LIMIT: Duration = Duration::from_secs(60);

/// `POST /v1/environments/{environment}/sites/{site}/entries`: returns the container to enter, and records the entry. While
/// the site is being reset, the answer waits for the end of the reset: slots are also reset without a request, after an
/// episode.
pub(super) async fn enter(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
    request: JsonRequest<EntryRequest>,
) -> Result<Json<ContainerEntry>, ApiError> {
    let request = body(request)?;
    let handles = api.environments.choose(&environment, std::slice::from_ref(&site))?;
    let handle = handles.into_iter().next().ok_or_else(|| ApiError::not_found("this site"))?;
    let service = service(&handle, request.service)?;
    let mut changes = handle.changes();
    let settled = changes.wait_for(|report| !matches!(report.state, InstanceState::Resetting));
    // After the limit, the refusal below says that the site is being reset.
    let _ = tokio::time::timeout(RESET_LIMIT, settled).await;
    let report = handle.report();
    let Some(incarnation) = report.incarnation.as_ref().filter(|_| report.state.serves()) else {
        return kept(&api, &handle, service).await;
    };
    let container = report.containers.get(&service).map(|(id, _)| id.clone());
    let container = container.ok_or_else(|| ApiError::not_found(&format!("a container of {service}")))?;
    // The note comes first and the state is read again afterwards: a reset in between sees the note, or this code sees
    // the reset.
    // The visit of a person ends when the person ends it.
    handle.begin_visit(report.generation)?;
    handle.note_entry(incarnation.made);
    let now = handle.report();
    if !now.state.serves() || now.incarnation.as_ref().is_none_or(|now| now.made != incarnation.made) {
        let error = AskError::Busy { instance: handle.id.clone(), doing: "being reset" };
        return Err(error.into());
    }
    let id = &handle.id;
    let message = format!(
        "{id} was entered: a command runs in the container of {service}; its next reset creates new containers"
    );
    api.shared.events.note(EventKind::InstanceEntered, Some(id), &message).await;
    let engine = api.shared.engine.endpoint().to_owned();
    Ok(Json(ContainerEntry { environment, site, service, container, engine, generation: Some(report.generation) }))
}

/// Returns the service that the request names, or the site's entry service if it names none.
fn service(handle: &InstanceHandle, named: Option<String>) -> Result<String, ApiError> {
    let site = &handle.site;
    let Some(named) = named else { return Ok(site.entry.service.to_string()) };
    let known: Vec<&str> = site.services.iter().map(|service| service.name.as_str()).collect();
    match known.contains(&named.as_str()) {
        true => Ok(named),
        false => {
            let detail = format!("{} has no service `{named}`", site.name);
            let hint = format!("it has {}", known.join(", "));
            Err(ApiError::new(StatusCode::NOT_FOUND, "unknown_service", detail).hint(hint))
        }
    }
}

/// Returns the container of a baseline that could not be made and whose containers were kept.
async fn kept(api: &Api, handle: &InstanceHandle, service: String) -> Result<Json<ContainerEntry>, ApiError> {
    let (engine, id) = (api.shared.engine.as_ref(), handle.id.clone());
    if !api.shared.baselines.kept_builds.has(&handle.id) {
        let error = AskError::NotUp { instance: id, state: handle.report().state.name() };
        let hint = format!(
            "`arenad up {} {} --keep-failed` keeps the containers of a baseline that cannot be made",
            handle.id.environment, handle.id.site
        );
        return Err(ApiError::from(error).hint(hint));
    }
    let mut containers = engine.containers(labels::INSTANCE, &id.to_string()).await?;
    let has = |labels: &std::collections::BTreeMap<String, String>, key: &str, value: &str| {
        labels.get(key).is_some_and(|found| found == value)
    };
    containers.retain(|found| {
        has(&found.labels, labels::INSTALLATION, &api.shared.installation)
            && has(&found.labels, labels::ROLE, labels::ROLE_BUILDER)
            && has(&found.labels, labels::SERVICE, &service)
    });
    let found = containers.into_iter().next();
    let found = found.ok_or_else(|| ApiError::not_found(&format!("a kept container of {service}")))?;
    if let ContainerState::Exited(code) = engine.inspect(&EngineHandle(found.handle.0.clone())).await?.state {
        let short: String = found.handle.0.chars().take(12).collect();
        let detail = format!("the kept container of {service} has exited with code {code}");
        return Err(ApiError::new(StatusCode::CONFLICT, "not_up", detail).hint(format!(
            "`docker logs {short}` shows what it said, `docker cp {short}:/PATH .` copies files out of it"
        )));
    }
    let (environment, site) = (handle.id.environment.to_string(), handle.id.site.to_string());
    let engine = engine.endpoint().to_owned();
    Ok(Json(ContainerEntry { environment, site, service, container: found.handle.0, engine, generation: None }))
}
