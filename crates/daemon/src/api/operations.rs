//! Endpoints that return the state of operations and resets.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Api;
use super::error::ApiError;
use super::snapshots;
use super::words;
use crate::operations::OperationEntry;
use arenad_api as wire;
use arenad_instance::OperationOutcome;
use arenad_store::StoredReset;

/// The longest time that one request waits, in seconds.
const WAIT_MAX: f64 = 60.0;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wait {
    /// The time to wait for the end of the operation, in seconds.
    wait: Option<f64>,
}

/// `GET /v1/operations/{id}?wait=SECONDS`: returns an operation, after waiting for its end for at most `wait`.
pub(super) async fn operation(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Query(query): Query<Wait>,
) -> Result<Json<wire::Operation>, ApiError> {
    let entry = api.operations.get(&id).ok_or_else(|| ApiError::not_found(&format!("operation {id}")))?;
    let wait = query.wait.filter(|wait| wait.is_finite()).unwrap_or(0.0).clamp(0.0, WAIT_MAX);
    let ended = tokio::time::timeout(Duration::from_secs_f64(wait), entry.ticket.clone().wait()).await.ok();
    Ok(Json(shown(&api, &entry, ended).await?))
}

/// `GET /v1/resets/{id}`: returns the record of a reset that has ended.
pub(super) async fn reset(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<Json<wire::Reset>, ApiError> {
    let found = api.shared.store.reset(&id).await?.ok_or_else(|| ApiError::not_found(&format!("reset {id}")))?;
    Ok(Json(shown_reset(found)))
}

/// Converts an operation to its form in the API.
pub(super) async fn shown(
    api: &Api,
    entry: &OperationEntry,
    ended: Option<OperationOutcome>,
) -> Result<wire::Operation, ApiError> {
    let mut shown = wire::Operation {
        id: entry.ticket.operation.clone(),
        environment: entry.instance.environment.to_string(),
        site: entry.instance.site.to_string(),
        instance: entry.instance.to_string(),
        kind: entry.kind,
        joined: entry.ticket.joined,
        state: wire::OperationState::Running,
        duration_ms: None,
        reason: None,
        hint: None,
        reset: None,
        snapshot: None,
    };
    match ended {
        None => {}
        Some(OperationOutcome::Done { took, snapshot }) => {
            shown.state = wire::OperationState::Done;
            shown.duration_ms = Some(took.as_secs_f64() * 1e3);
            shown.snapshot = snapshot.map(|taken| snapshots::shown(*taken, &[]));
        }
        Some(OperationOutcome::Failed(trouble)) => {
            shown.state = wire::OperationState::Failed;
            shown.reason = Some(trouble.reason);
            shown.hint = Some(trouble.hint);
        }
        Some(OperationOutcome::Superseded) => shown.state = wire::OperationState::Superseded,
        Some(OperationOutcome::Stopped) => {
            shown.state = wire::OperationState::Superseded;
            shown.reason = Some("the daemon was told to stop before it was done".to_owned());
            shown.hint = Some(format!("`arenad up {}` goes on with it", shown.environment));
        }
    }
    if shown.state != wire::OperationState::Running && entry.kind == wire::OperationKind::Reset {
        shown.reset = api.shared.store.reset(&shown.id).await?.map(shown_reset);
    }
    Ok(shown)
}

/// Converts a reset to its form in the API.
pub(super) fn shown_reset(reset: StoredReset) -> wire::Reset {
    wire::Reset {
        id: reset.id,
        instance: reset.instance.to_string(),
        strategy: words::way(reset.strategy),
        requested_at: reset.requested_at.to_string(),
        finished_at: reset.finished_at.map(|at| at.to_string()),
        outcome: reset.outcome.map(words::outcome),
        reason: reset.reason,
        duration_ms: reset.duration_ms,
        stages: reset
            .stages
            .into_iter()
            .map(|stage| wire::ResetStage { stage: stage.stage, duration_ms: stage.duration_ms })
            .collect(),
        verified: reset.verified.map(words::extent),
        compared: reset.compared.map(|compared| wire::Compared {
            declared: compared.declared,
            stores: compared.stores,
            left_out: compared
                .left_out
                .into_iter()
                .map(|left| wire::UncomparedPart { store: left.store, part: left.part, reason: left.reason })
                .collect(),
        }),
    }
}
