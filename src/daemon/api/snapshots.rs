//! Snapshots: listed, taken, removed.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::Api;
use super::environments::{Body, body};
use super::error::ApiError;
use super::operations;
use crate::daemon::baseline::snapshot;
use crate::daemon::store::StoredSnapshot;
use crate::wire::{Accepted, Snapshot, Snapshots, TakeRequest};

/// A snapshot as clients see it.
pub(super) fn shown(snapshot: StoredSnapshot, used_by: Vec<String>) -> Snapshot {
    Snapshot {
        id: snapshot.id,
        environment: snapshot.environment,
        site: snapshot.site,
        kind: if snapshot.baseline_key.is_some() { "baseline" } else { "named" }.to_owned(),
        name: snapshot.name,
        images: snapshot.images,
        size_bytes: snapshot.size_bytes,
        created_at: snapshot.created_at.to_string(),
        used_by,
    }
}

/// `GET /v1/snapshots`
pub(super) async fn list(State(api): State<Arc<Api>>) -> Result<Json<Snapshots>, ApiError> {
    let mut snapshots = Vec::new();
    for stored in api.shared.store.snapshots().await? {
        let used_by = api.shared.store.snapshot_users(&stored.id).await?;
        snapshots.push(shown(stored, used_by));
    }
    Ok(Json(Snapshots { snapshots }))
}

/// `POST /v1/environments/{environment}/sites/{site}/snapshots`
pub(super) async fn take(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
    request: Body<TakeRequest>,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let name = body(request)?.name;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        let detail = format!("{name:?} is not a snapshot's name: 1 to 64 of letters, digits, '-', '_', '.'");
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "bad_name", detail));
    }
    let known = api.shared.store.snapshots().await?;
    let is_same = |stored: &&StoredSnapshot| {
        stored.environment == environment && stored.site == site && stored.name.as_ref() == Some(&name)
    };
    if known.iter().any(|stored| is_same(&stored)) {
        let detail = format!("{environment}/{site} already has a snapshot named {name}");
        return Err(ApiError::new(StatusCode::CONFLICT, "name_taken", detail)
            .hint(format!("choose another name, or remove it with `arenad snapshot rm {name}`")));
    }
    let handles = api.environments.choose(&environment, &[site])?;
    let mut operations = Vec::new();
    for handle in handles {
        let ticket = handle.take(name.clone()).await?;
        let entry = api.operations.remember("snapshot", handle.id.clone(), ticket);
        operations.push(operations::shown(&api, &entry, None).await?);
    }
    Ok((StatusCode::ACCEPTED, Json(Accepted { operations, warnings: Vec::new() })))
}

/// `DELETE /v1/snapshots/{id}`, by id, by the beginning of an id, or by name.
pub(super) async fn remove(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    let known = api.shared.store.snapshots().await?;
    let exact: Vec<&StoredSnapshot> =
        known.iter().filter(|stored| stored.id == id || stored.name.as_deref() == Some(&id)).collect();
    let found = match exact.as_slice() {
        [] if id.len() >= 4 => known.iter().filter(|stored| stored.id.starts_with(&id)).collect(),
        _ => exact,
    };
    let stored = match found.as_slice() {
        [] => return Err(ApiError::not_found(&format!("snapshot {id}")).hint("`arenad snapshot ls` lists them")),
        [stored] => *stored,
        several => {
            let ids: Vec<&str> = several.iter().map(|stored| stored.id.as_str()).collect();
            let detail = format!("{id} may be any of {}", ids.join(", "));
            return Err(ApiError::new(StatusCode::CONFLICT, "ambiguous", detail).hint("give the whole id"));
        }
    };
    let users = api.shared.store.snapshot_users(&stored.id).await?;
    if !users.is_empty() {
        let detail = format!("snapshot {} is in use by {}", stored.id, users.join(", "));
        return Err(
            ApiError::new(StatusCode::CONFLICT, "in_use", detail).hint("take those down first with `arenad down`")
        );
    }
    snapshot::remove(&api.shared, stored).await?;
    Ok(StatusCode::NO_CONTENT)
}
