//! The endpoints that name the changes in a site, and keep looks to compare later states with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Api;
use super::error::ApiError;
use super::verify::{SiteSubject, unproven};
use super::words;
use arenad_api as wire;
use arenad_changes::{ChangeKind, FileChange, RowChange, RowChanges, StoreChanges, TableChange};
use arenad_digest::{FileEntry, FileKind, describe_file};
use arenad_instance::changes::{ChangesError, ChangesRequest};
use arenad_model::error::describe;
use arenad_model::instance::InstanceId;

/// The query of a comparison.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ChangesQuery {
    /// Whether values of rows are shown.
    #[serde(default)]
    values: bool,
    /// The number of the look that is the earlier state; without it, the snapshot.
    since: Option<u64>,
    /// The number of the look that is the later state; without it, the present.
    until: Option<u64>,
}

/// `GET /v1/environments/{environment}/sites/{site}/changes`: returns the differences between two states of the serving
/// generation, with the rows of tables.
pub(super) async fn changes(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
    Query(query): Query<ChangesQuery>,
) -> Result<Json<wire::SiteChanges>, ApiError> {
    let subject = SiteSubject::find(&api, &environment, &site).await?;
    let request = ChangesRequest { since: query.since, until: query.until, with_values: query.values };
    Ok(Json(of(&api, &subject, request).await?))
}

/// Returns the differences between two states of the generation that an instance serves.
pub(super) async fn of(
    api: &Api,
    subject: &SiteSubject,
    request: ChangesRequest,
) -> Result<wire::SiteChanges, ApiError> {
    let begun = Instant::now();
    let candidate = subject.candidate(api)?;
    let id = &subject.handle.id;
    let found = candidate.changes(request).await.map_err(|error| refused(error, id))?;
    subject.check_generation()?;
    let stores = found.changes.stores.into_iter().map(|(name, changes)| store(name, changes, request.with_values));
    let stores: Vec<wire::ChangedStore> = stores.collect();
    Ok(wire::SiteChanges {
        environment: id.environment.to_string(),
        site: id.site.to_string(),
        instance: id.to_string(),
        generation: subject.report.generation,
        snapshot: subject.snapshot.id.to_string(),
        since: request.since,
        until: request.until,
        equal: stores.is_empty(),
        settled: found.is_settled,
        duration_ms: begun.elapsed().as_secs_f64() * 1e3,
        stores,
    })
}

/// `POST /v1/environments/{environment}/sites/{site}/looks`: keeps the state of the serving generation, and returns the
/// number under which it is found again.
pub(super) async fn keep(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
) -> Result<(StatusCode, Json<wire::Look>), ApiError> {
    let subject = SiteSubject::find(&api, &environment, &site).await?;
    let kept = subject.candidate(&api)?.keep_look().await;
    let number = kept.map_err(|error| refused(error, &subject.handle.id))?;
    subject.check_generation()?;
    Ok((StatusCode::CREATED, Json(wire::Look { number })))
}

/// `GET /v1/environments/{environment}/sites/{site}/looks`: returns the looks of the serving generation.
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
) -> Result<Json<wire::Looks>, ApiError> {
    let subject = SiteSubject::find(&api, &environment, &site).await?;
    let looks = numbers(&api, &subject).await?.into_iter().map(|number| wire::Look { number }).collect();
    Ok(Json(wire::Looks { generation: subject.report.generation, looks }))
}

/// Returns the numbers of the looks of the generation that an instance serves, in order.
pub(super) async fn numbers(api: &Api, subject: &SiteSubject) -> Result<Vec<u64>, ApiError> {
    let (looks, id, generation) = (api.shared.state_dir.looks(), subject.handle.id.clone(), subject.report.generation);
    let path = looks.path().to_owned();
    let numbers = tokio::task::spawn_blocking(move || looks.numbers(&id, generation)).await;
    numbers
        .map_err(ApiError::internal)?
        .map_err(|cause| refused(ChangesError::File { doing: "list", path, cause }, &subject.handle.id))
}

/// Converts an error, with a hint if a person can take a specific action.
pub(super) fn refused(error: ChangesError, id: &InstanceId) -> ApiError {
    let detail = describe(&error);
    match error {
        ChangesError::Proof(error) => unproven(error, id),
        ChangesError::UnknownLook(_) => ApiError::new(StatusCode::NOT_FOUND, "unknown_look", detail).hint(
            "looks end with a reset and with their episode; `arenad look SITE` or `arenad episode look ID` takes one",
        ),
        ChangesError::TooManyLooks => ApiError::new(StatusCode::CONFLICT, "too_many_looks", detail)
            .hint("compare with one of them; a reset of the site removes them"),
        ChangesError::File { .. } => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "look_file", detail)
            .hint("the state directory may be full or read-only; the daemon's log says more"),
    }
}

fn store(name: String, changes: StoreChanges, with_values: bool) -> wire::ChangedStore {
    let item = |name, kind| wire::ChangedItem { name, change: words::change(kind) };
    wire::ChangedStore {
        name,
        tables: changes.tables.into_iter().map(|found| table(found, with_values)).collect(),
        sequences: changes
            .sequences
            .into_iter()
            .map(|found| wire::ChangedSequence { name: found.name, before: found.before, now: found.now })
            .collect(),
        definitions: changes.definitions.into_iter().map(|found| item(found.name, found.kind)).collect(),
        files: changes.files.into_iter().map(file).collect(),
        keys: changes.keys.into_iter().map(|found| item(found.name, found.kind)).collect(),
        omitted: changes.omitted,
    }
}

fn table(found: TableChange, with_values: bool) -> wire::ChangedTable {
    wire::ChangedTable {
        name: found.name,
        change: words::change(found.kind),
        rows_before: found.rows_before,
        rows_now: found.rows_now,
        rows: found.rows.map(|found| rows(found, with_values)),
    }
}

fn rows(found: RowChanges, with_values: bool) -> wire::ChangedRows {
    let RowChanges { key, added, changed, removed, listed } = found;
    let omitted = added + changed + removed - listed.len();
    let listed = listed.into_iter().map(|found| row(found, with_values)).collect();
    wire::ChangedRows { key, added, changed, removed, listed, omitted }
}

fn row(found: RowChange, with_values: bool) -> wire::ChangedRow {
    let has_values = with_values && !found.cells.is_empty();
    let (mut before, mut now) = (BTreeMap::new(), BTreeMap::new());
    for cell in found.cells {
        before.extend(cell.before.map(|value| (cell.column.clone(), value)));
        now.extend(cell.now.map(|value| (cell.column, value)));
    }
    wire::ChangedRow {
        change: words::change(found.kind),
        key: found.key,
        before: Some(before).filter(|_| has_values && found.kind != ChangeKind::Added),
        now: Some(now).filter(|_| has_values && found.kind != ChangeKind::Removed),
    }
}

fn file(found: FileChange) -> wire::ChangedFile {
    let size =
        |file: &Option<FileEntry>| file.as_ref().filter(|file| file.kind == FileKind::File).map(|file| file.size);
    let (diff, diff_is_cut) = found.diff.map_or((None, false), |diff| (Some(diff.text), diff.is_cut));
    wire::ChangedFile {
        change: words::change(found.kind),
        size_before: size(&found.before),
        size_now: size(&found.now),
        text: describe_file(found.before.as_ref(), found.now.as_ref()),
        path: found.path,
        diff,
        diff_is_cut,
    }
}
