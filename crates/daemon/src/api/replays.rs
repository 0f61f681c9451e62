//! The endpoints that list, make and remove replays.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;

use super::Api;
use super::error::ApiError;
use crate::replays::{LoadedReplay, NewReplay, ReplayFailure};
use arenad_api::episodes::EpisodeProxy;
use arenad_api::replays::{Replay, ReplayCertificate, ReplayProblem, Replays};
use arenad_episodes::EpisodeFilter;
use arenad_model::error::describe;
use arenad_model::ids::ReplayName;
use arenad_replay::{BODIES_MAX, EntryProblem, ReplayError, ReplaySettings};

/// The maximum size of an upload, in bytes.
pub(super) const UPLOAD_BYTES_MAX: usize = BODIES_MAX as usize;

/// The options of a new replay.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AddOptions {
    /// The names of parameters that differ at each visit, separated by commas.
    #[serde(default)]
    moving: String,
    /// Whether recordings that cannot be read are left out, instead of refused.
    #[serde(default)]
    skip_broken: bool,
    /// The name of the recording, if the body is one file.
    #[serde(default)]
    file: Option<String>,
}

/// `GET /v1/replays`: returns all replays.
pub(super) async fn list(State(api): State<Arc<Api>>) -> Json<Replays> {
    let shown = |replay: Arc<LoadedReplay>| Replay {
        problems: Vec::new(),
        missed: Vec::new(),
        proxy: None,
        ..shown(&api, &replay)
    };
    Json(Replays { replays: api.replays.list().into_iter().map(shown).collect() })
}

/// `GET /v1/replays/{name}`: returns a replay.
pub(super) async fn one(State(api): State<Arc<Api>>, Path(name): Path<String>) -> Result<Json<Replay>, ApiError> {
    let replay = api.replays.get(&parsed(&name)?)?;
    Ok(Json(shown(&api, &replay)))
}

/// `PUT /v1/replays/{name}`: adds a replay from a tar archive of recordings, or from one recording.
pub(super) async fn add(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Query(options): Query<AddOptions>,
    request: Request,
) -> Result<(StatusCode, Json<Replay>), ApiError> {
    let name = match vacant(&api, &name) {
        Ok(name) => name,
        Err(refusal) => {
            // A client that still sends would not read an answer before the end of its upload.
            let mut content = request.into_body().into_data_stream();
            while let Some(Ok(_)) = content.next().await {}
            return Err(refusal);
        }
    };
    // The file is removed if the client goes away before all of it has arrived.
    let upload = api.replays.spool()?;
    let failed = |cause| ReplayFailure::File { doing: "write", path: upload.path().to_owned(), cause };
    let mut file = tokio::fs::File::create_new(upload.path()).await.map_err(failed)?;
    let mut content = request.into_body().into_data_stream();
    let mut size = 0;
    while let Some(piece) = content.next().await {
        let piece = piece.map_err(|error| ApiError::bad_request(format!("the upload ended early: {error}")))?;
        size += piece.len() as u64;
        if size > BODIES_MAX {
            return Err(ReplayError::TooLarge { what: "the upload", limit: "8 GiB".to_owned() }.into());
        }
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    let moving = options.moving.split(',').map(str::trim).filter(|name| !name.is_empty());
    let settings = ReplaySettings { moving: moving.map(str::to_owned).collect(), skip_broken: options.skip_broken };
    let file = options.file.unwrap_or_else(|| "recording".to_owned());
    let new = NewReplay { name, upload, file, settings };
    // In a task of its own, so that a client that disconnects leaves nothing half done.
    let replays = api.replays.clone();
    let added = api.shared.tasks.spawn(async move { replays.add(new).await }).await.map_err(ApiError::internal)??;
    Ok((StatusCode::CREATED, Json(shown(&api, &added))))
}

/// `DELETE /v1/replays/{name}`: removes a replay that no live episode uses.
pub(super) async fn remove(State(api): State<Arc<Api>>, Path(name): Path<String>) -> Result<StatusCode, ApiError> {
    let name = parsed(&name)?;
    let task = {
        let api = api.clone();
        async move { api.replays.remove(&name, || users(&api, &name)).await }
    };
    api.shared.tasks.spawn(task).await.map_err(ApiError::internal)??;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/certificates/replay`: returns the certificate of the authority that vouches for recorded hosts.
pub(super) async fn certificate(State(api): State<Arc<Api>>) -> Result<Json<ReplayCertificate>, ApiError> {
    let authority = api.replays.authority()?;
    Ok(Json(ReplayCertificate {
        certificate: authority.certificate().to_owned(),
        key_hash: authority.key_hash().to_owned(),
    }))
}

/// Parses the name of a new replay.
fn vacant(api: &Api, name: &str) -> Result<ReplayName, ApiError> {
    let name = ReplayName::parse(name).map_err(|error| ApiError::bad_request(error.to_string()))?;
    match api.replays.get(&name) {
        Ok(_) => Err(ReplayFailure::Exists(name).into()),
        Err(_) => Ok(name),
    }
}

/// Parses a name in a path. No replay has an invalid name.
fn parsed(name: &str) -> Result<ReplayName, ApiError> {
    ReplayName::parse(name).map_err(|_| ReplayFailure::Unknown(name.to_owned()).into())
}

/// Returns the ids of the live episodes that use a replay.
fn users(api: &Api, name: &ReplayName) -> Vec<String> {
    let episodes = api.episodes.list(&EpisodeFilter::default());
    let uses = episodes.into_iter().filter(|view| view.state.ending().is_none() && view.request.replays.contains(name));
    uses.map(|view| view.id.to_string()).collect()
}

fn shown(api: &Api, replay: &LoadedReplay) -> Replay {
    let report = &replay.report;
    let (username, password) = replay.credentials();
    Replay {
        name: replay.name.to_string(),
        created_at: replay.created_at.clone(),
        origins: report.origins.iter().map(ToString::to_string).collect(),
        entries: report.entries as u64,
        size_bytes: report.body_bytes,
        recordings: report.recordings.clone(),
        skipped: report.skipped.iter().map(problem).collect(),
        left_out: report.left_out as u64,
        problems: report.problems.iter().map(problem).collect(),
        recorded_from: report.recorded_from.clone(),
        recorded_until: report.recorded_until.clone(),
        moving: report.moving.clone(),
        counts: replay.counts.shown(),
        missed: replay.counts.latest_missed(),
        used_by: users(api, &replay.name),
        proxy: api.proxy.server.clone().map(|server| EpisodeProxy { server, username, password }),
    }
}

fn problem(problem: &EntryProblem) -> ReplayProblem {
    let EntryProblem { file, place, what } = problem.clone();
    ReplayProblem { file, place, what }
}

impl From<ReplayFailure> for ApiError {
    fn from(error: ReplayFailure) -> Self {
        let told = describe(&error);
        match error {
            ReplayFailure::Exists(name) => Self::new(StatusCode::CONFLICT, "replay_exists", told)
                .hint(format!("choose another name, or remove it with `arenad replay rm {name}`")),
            ReplayFailure::Unknown(_) => {
                Self::new(StatusCode::NOT_FOUND, "unknown_replay", told).hint("`arenad replay ls` lists them")
            }
            ReplayFailure::InUse { .. } => {
                Self::new(StatusCode::CONFLICT, "replay_in_use", told).hint("end the episodes first")
            }
            ReplayFailure::Recording(error) => error.into(),
            ReplayFailure::Authority(_) | ReplayFailure::File { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "replay_failed", told)
            }
        }
    }
}

impl From<ReplayError> for ApiError {
    fn from(error: ReplayError) -> Self {
        let told = describe(&error);
        match error {
            ReplayError::Broken { .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "broken_recording", told)
                .hint("record it again, or leave broken recordings out with --skip-broken"),
            ReplayError::NoRecording { .. } | ReplayError::Empty { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "no_recording", told)
            }
            ReplayError::TooLarge { .. } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", told)
                .hint("make several replays; an episode can name all of them"),
            ReplayError::File { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "replay_failed", told),
        }
    }
}
