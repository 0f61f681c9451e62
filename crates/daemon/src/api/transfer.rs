//! Endpoints that export a snapshot as one file and import one part by part.

use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::Body as RawBody;
use axum::extract::{Path, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};

use super::Api;
use super::environments::{JsonRequest, body};
use super::error::ApiError;
use super::snapshots::{self, find};
use crate::export;
use crate::imports::{self, ImportState};
use arenad_api::{ImportBegun, ImportRequest, SIZE_HEADER, StoredSnapshot};
use arenad_export::MANIFEST_BYTES_MAX;

/// The longest request that begins an import, in bytes: a manifest and a name.
pub(super) const REQUEST_BYTES_MAX: usize = MANIFEST_BYTES_MAX as usize + 4096;

/// `GET /v1/snapshots/{id}/export`: returns the file; its length is known only approximately.
pub(super) async fn export(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let known = api.shared.store.snapshots().await?;
    let stored = find(&known, &id)?;
    let export = export::prepare(&api.shared, stored).await?;
    let name = stored.name.as_deref().unwrap_or(&stored.id);
    let headers = [
        (header::CONTENT_TYPE.as_str(), "application/zstd".to_owned()),
        (
            header::CONTENT_DISPOSITION.as_str(),
            format!("attachment; filename=\"{}-{name}.snapshot.tar.zst\"", stored.site),
        ),
        (SIZE_HEADER, export.about_bytes.to_string()),
    ];
    let pieces = stream::unfold(export.stream(), |mut pieces| async move {
        let piece = pieces.recv().await?;
        Some((piece, pieces))
    });
    Ok((headers, RawBody::from_stream(pieces)).into_response())
}

/// `POST /v1/imports`: begins an import or resumes one.
pub(super) async fn begin(
    State(api): State<Arc<Api>>,
    request: JsonRequest<ImportRequest<arenad_export::Manifest>>,
) -> Result<Json<ImportBegun>, ApiError> {
    let request = body(request)?;
    if let Some(name) = &request.name {
        snapshots::check_name(name)?;
    }
    let snapshot = request.manifest.id.clone();
    Ok(Json(match imports::begin(&api.shared, request.manifest, request.name).await? {
        ImportState::Present => ImportBegun { snapshot, is_present: true, missing: Vec::new() },
        ImportState::Missing(missing) => ImportBegun { snapshot, is_present: false, missing },
    }))
}

/// `PUT /v1/imports/{id}/parts/{index}`: receives the raw content of a part.
pub(super) async fn part(
    State(api): State<Arc<Api>>,
    Path((id, index)): Path<(String, usize)>,
    request: Request,
) -> Result<(), ApiError> {
    let content = request.into_body().into_data_stream().map(|piece| piece.map_err(io::Error::other));
    Ok(imports::receive(&api.shared, &id, index, content).await?)
}

/// `POST /v1/imports/{id}/finish`: returns the snapshot, once all its parts have arrived.
pub(super) async fn finish(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<Json<StoredSnapshot>, ApiError> {
    // The work runs in a task of its own, so that a client that disconnects leaves nothing half done.
    let shared = api.shared.clone();
    let finished = api.shared.tasks.spawn(async move { imports::finish(&shared, &id).await }).await;
    match finished {
        Ok(snapshot) => Ok(Json(snapshots::shown(snapshot?, &[]))),
        Err(error) => Err(ApiError::internal(error)),
    }
}
