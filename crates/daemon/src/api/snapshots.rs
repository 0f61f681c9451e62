//! Endpoints that list, take, compare and remove snapshots.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Api;
use super::environments::{JsonRequest, body};
use super::error::ApiError;
use super::{operations, verify};
use arenad_api::{self as wire, Accepted, SnapshotDifferences, Snapshots, TakeRequest};
use arenad_baseline::snapshot;
use arenad_digest::{self as digest, Digest};
use arenad_model::ids::{SNAPSHOT_NAME_RULE, is_snapshot_name};
use arenad_model::instance::InstanceId;
use arenad_model::request_queue::Want;
use arenad_model::snapshot::Snapshot;

/// Converts a snapshot that people see to its form in the API.
pub(super) fn shown(snapshot: Snapshot, used_by: &[InstanceId]) -> wire::StoredSnapshot {
    wire::StoredSnapshot {
        kind: if snapshot.is_baseline() { wire::SnapshotKind::Baseline } else { wire::SnapshotKind::Named },
        id: snapshot.id.into(),
        environment: snapshot.environment.to_string(),
        site: snapshot.site.to_string(),
        name: snapshot.name,
        images: snapshot.images.into_iter().map(|(service, image)| (service.to_string(), image)).collect(),
        size_bytes: snapshot.size_bytes,
        created_at: snapshot.created_at.to_string(),
        used_by: used_by.iter().map(InstanceId::to_string).collect(),
        other_engine: None,
        missing_since: None,
    }
}

/// Converts snapshots, adding the location of their images.
async fn placed(api: &Api, stored: Vec<Snapshot>) -> Result<Vec<wire::StoredSnapshot>, ApiError> {
    let store = &api.shared.store;
    let (places, engines, in_use) =
        (store.snapshot_places().await?, store.engines().await?, store.engine_in_use().await?);
    let mut snapshots = Vec::new();
    for stored in stored {
        let used_by = store.snapshot_users(&stored.id).await?;
        let place = places.get(&stored.id).cloned().unwrap_or_default();
        let mut snapshot = shown(stored, &used_by);
        let other = place.engine.filter(|engine| in_use.as_ref() != Some(engine));
        snapshot.other_engine = other.map(|engine| engines.get(&engine).cloned().unwrap_or(engine));
        snapshot.missing_since = place.missing_since.map(|since| since.to_string());
        snapshots.push(snapshot);
    }
    Ok(snapshots)
}

/// `GET /v1/snapshots`: returns all snapshots, newest first. Copies for forks are not among them: they come and go with
/// episodes.
pub(super) async fn list(State(api): State<Arc<Api>>) -> Result<Json<Snapshots>, ApiError> {
    let mut known = api.shared.store.snapshots().await?;
    known.retain(|stored| !stored.is_copy());
    let snapshots = placed(&api, known).await?;
    Ok(Json(Snapshots { snapshots }))
}

/// `GET /v1/snapshots/{id}`: returns one snapshot.
pub(super) async fn one(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<Json<wire::StoredSnapshot>, ApiError> {
    let known = api.shared.store.snapshots().await?;
    let stored = find(&known, &id)?.clone();
    let id = stored.id.clone();
    let found = placed(&api, vec![stored]).await?.pop();
    Ok(Json(found.ok_or_else(|| ApiError::not_found(&format!("snapshot {id}")))?))
}

/// Checks that `name` is a valid name for a snapshot.
pub(super) fn check_name(name: &str) -> Result<(), ApiError> {
    if is_snapshot_name(name) {
        return Ok(());
    }
    let detail = format!("invalid snapshot name {name:?}; expected {SNAPSHOT_NAME_RULE}");
    Err(ApiError::new(StatusCode::BAD_REQUEST, "bad_name", detail))
}

/// `POST /v1/environments/{environment}/sites/{site}/snapshots`: begins to take a named snapshot.
pub(super) async fn take(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
    request: JsonRequest<TakeRequest>,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let name = body(request)?.name;
    check_name(&name)?;
    let known = api.shared.store.snapshots().await?;
    let is_same = |stored: &Snapshot| stored.is_of(&environment, &site) && stored.name.as_ref() == Some(&name);
    if known.iter().any(is_same) {
        let detail = format!("{environment}/{site} already has a snapshot named {name}");
        return Err(ApiError::new(StatusCode::CONFLICT, "name_taken", detail)
            .hint(format!("choose another name, or remove it with `arenad snapshot rm {name}`")));
    }
    let handles = api.environments.choose(&environment, &[site])?;
    let mut operations = Vec::new();
    for handle in handles {
        let ticket = handle.ask(Want::Take { name: name.clone() }).await?;
        let entry = api.operations.remember(wire::OperationKind::Snapshot, handle.id.clone(), ticket);
        operations.push(operations::shown(&api, &entry, None).await?);
    }
    Ok((StatusCode::ACCEPTED, Json(Accepted { operations, warnings: Vec::new() })))
}

/// `DELETE /v1/snapshots/{id}`; accepts an id, the beginning of an id, or a name.
pub(super) async fn remove(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    let known = api.shared.store.snapshots().await?;
    let stored = find(&known, &id)?;
    // A snapshot of an unchanged site is the baseline itself with a name. Only the name is removed; the baseline is
    // still needed.
    let is_by_name = stored.name.as_deref() == Some(id.as_str());
    if is_by_name && stored.is_baseline() {
        api.shared.store.unname_snapshot(&stored.id).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    snapshot::remove(&api.shared.baselines, stored).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the snapshot with the given id or name, or the only one whose id begins with the text (at least four
/// characters).
pub(super) fn find<'a>(known: &'a [Snapshot], id: &str) -> Result<&'a Snapshot, ApiError> {
    let lasting = || known.iter().filter(|stored| !stored.is_copy());
    let exact: Vec<&Snapshot> =
        lasting().filter(|stored| stored.id.as_str() == id || stored.name.as_deref() == Some(id)).collect();
    let found = match exact.as_slice() {
        [] if id.len() >= 4 => lasting().filter(|stored| stored.id.starts_with(id)).collect(),
        _ => exact,
    };
    match found.as_slice() {
        [] => Err(ApiError::new(StatusCode::NOT_FOUND, "unknown_snapshot", format!("there is no snapshot `{id}`"))
            .hint("`arenad snapshot ls` lists them")),
        [stored] => Ok(stored),
        several => {
            let ids: Vec<&str> = several.iter().map(|stored| stored.id.as_str()).collect();
            let detail = format!("{id} may be any of {}", ids.join(", "));
            Err(ApiError::new(StatusCode::CONFLICT, "ambiguous", detail).hint("give the whole id"))
        }
    }
}

/// The query that selects the snapshot to compare with.
#[derive(Deserialize, JsonSchema)]
pub(super) struct From {
    /// The id of the earlier snapshot, the beginning of one, or its name.
    from: String,
}

/// `GET /v1/snapshots/{id}/differences?from={id}`: compares the digests of two snapshots of one site.
pub(super) async fn differences(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(From { from }): Query<From>,
) -> Result<Json<SnapshotDifferences>, ApiError> {
    let known = api.shared.store.snapshots().await?;
    let (before, now) = (find(&known, &from)?, find(&known, &id)?);
    if (&before.environment, &before.site) != (&now.environment, &now.site) {
        let detail = format!("{} is of {}, {} of {}", before.id, before.site, now.id, now.site);
        return Err(ApiError::new(StatusCode::CONFLICT, "other_site", detail).hint("compare snapshots of one site"));
    }
    let comparison = digest::compare(&digest_of(&api, before).await?, &digest_of(&api, now).await?);
    Ok(Json(SnapshotDifferences {
        from: before.id.to_string(),
        snapshot: now.id.to_string(),
        differences: comparison.differences.iter().map(verify::difference).collect(),
        omitted: comparison.omitted,
    }))
}

async fn digest_of(api: &Api, snapshot: &Snapshot) -> Result<Digest, ApiError> {
    api.shared.store.digest(&snapshot.id).await?.ok_or_else(|| {
        let detail = format!("compare snapshot {}: its digest has not been taken", snapshot.id);
        let hint = "only sites that declare `stores` have digests; one is taken when the snapshot is first started";
        ApiError::new(StatusCode::CONFLICT, "no_reference", detail).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_are_those_of_files() {
        for name in ["a", "7", "before-2.0_x", &"x".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in
            ["", ".", "..", "...", ".hidden", "-x", "_x", "a/b", "a b", "a\0b", "é", &"x".repeat(65), &"x".repeat(300)]
        {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
