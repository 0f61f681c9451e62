//! Endpoints that bring environments up, reset their sites, and take them down.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::Api;
use super::error::ApiError;
use super::operations::shown;
use super::snapshots;
use crate::environments::UpOptions;
use arenad_api::{Accepted, DownRequest, OperationKind, ResetRequest, SourceText, UpRequest};
use arenad_model::request_queue::Want;
use arenad_store::StoredEnvironment;

pub(super) type JsonRequest<T> = Result<Json<T>, JsonRejection>;

pub(super) fn body<T>(body: JsonRequest<T>) -> Result<T, ApiError> {
    body.map(|Json(body)| body).map_err(|rejection| ApiError::bad_request(rejection.body_text()))
}

/// `PUT /v1/environments/{environment}`: brings sites up, and returns the operations that have begun.
pub(super) async fn up(
    State(api): State<Arc<Api>>,
    Path(environment): Path<String>,
    request: JsonRequest<UpRequest>,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let request = body(request)?;
    let text = |source: SourceText| (source.path, source.text);
    let stored = StoredEnvironment {
        name: environment,
        root: request.root,
        environment: text(request.environment),
        compose: text(request.compose),
        dotenv: request.dotenv.map(text),
        variables: request.variables,
    };
    // The work runs in a task of its own, as for `down`, so that a client that disconnects leaves nothing half done.
    let environments = api.environments.clone();
    let UpRequest { sites, force, recreate, keep_failed, .. } = request;
    let options = UpOptions { force, recreate, keep_failed };
    let work = async move { environments.up(stored, &sites, options).await };
    let begun = api.shared.tasks.spawn(work).await.map_err(ApiError::internal)??;
    let mut operations = Vec::new();
    for (handle, ticket) in begun.operations {
        let entry = api.operations.remember(OperationKind::Up, handle.id.clone(), ticket);
        operations.push(shown(&api, &entry, None).await?);
    }
    let warnings = begun.warnings.iter().map(Into::into).collect();
    Ok((StatusCode::ACCEPTED, Json(Accepted { operations, warnings })))
}

/// `POST /v1/environments/{environment}/resets`: resets sites or slots of them, and returns the operations that have
/// begun.
pub(super) async fn reset(
    State(api): State<Arc<Api>>,
    Path(environment): Path<String>,
    request: JsonRequest<ResetRequest>,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let ResetRequest { sites, if_dirty, to } = body(request)?;
    if let Some(to) = to {
        return reset_to(&api, &environment, &sites, &to).await;
    }
    let wanted = if if_dirty { Want::ResetIfDirty } else { Want::RESET };
    let handles = api.environments.choose_slots(&environment, &sites)?;
    let mut operations = Vec::new();
    for handle in handles {
        let ticket = handle.ask(wanted.clone()).await?;
        let entry = api.operations.remember(OperationKind::Reset, handle.id.clone(), ticket);
        operations.push(shown(&api, &entry, None).await?);
    }
    Ok((StatusCode::ACCEPTED, Json(Accepted { operations, warnings: Vec::new() })))
}

/// Resets one site to a snapshot that is not its baseline.
async fn reset_to(
    api: &Api,
    environment: &str,
    sites: &[String],
    to: &str,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let [slot] = sites else {
        let detail = format!("snapshot {to} is of one site, {} are named", sites.len());
        return Err(ApiError::bad_request(detail).hint("name that site alone"));
    };
    let handle = api.environments.choose_slot(environment, slot)?;
    let mut known = api.shared.store.snapshots().await?;
    known.retain(|stored| stored.is_of(environment, handle.id.site.as_str()));
    let snapshot = snapshots::find(&known, to)?.id.to_string();
    let ticket = handle.ask(Want::Reset { to: Some(snapshot) }).await?;
    let entry = api.operations.remember(OperationKind::Reset, handle.id.clone(), ticket);
    let operations = vec![shown(api, &entry, None).await?];
    Ok((StatusCode::ACCEPTED, Json(Accepted { operations, warnings: Vec::new() })))
}

/// `POST /v1/environments/{environment}/down`; responds when the environment is down.
pub(super) async fn down(
    State(api): State<Arc<Api>>,
    Path(environment): Path<String>,
    request: JsonRequest<DownRequest>,
) -> Result<StatusCode, ApiError> {
    let request = body(request)?;
    // The work runs in a task of its own, so that a client that disconnects leaves nothing half done.
    let environments = api.environments.clone();
    let work = async move { environments.down(&environment, &request.sites, request.purge).await };
    api.shared.tasks.spawn(work).await.map_err(ApiError::internal)??;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /v1/purge`; removes snapshots and built images, once nothing is up.
pub(super) async fn purge(State(api): State<Arc<Api>>) -> Result<StatusCode, ApiError> {
    api.environments.purge_all().await?;
    Ok(StatusCode::NO_CONTENT)
}
