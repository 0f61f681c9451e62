//! Endpoints that report disk usage and free disk space.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;

use super::Api;
use super::environments::{JsonRequest, body};
use super::error::ApiError;
use crate::space;
use arenad_api::{Df, PruneRequest, Pruned};
use arenad_model::prune::PruneBudget;

/// `GET /v1/df`: returns the disk usage of all objects.
pub(super) async fn df(State(api): State<Arc<Api>>) -> Result<Json<Df>, ApiError> {
    Ok(Json(space::df(&api.shared).await?))
}

/// `POST /v1/prune`; responds when pruning is done.
pub(super) async fn prune(
    State(api): State<Arc<Api>>,
    request: JsonRequest<PruneRequest>,
) -> Result<Json<Pruned>, ApiError> {
    let request = body(request)?;
    let budget = PruneBudget { older: request.older_seconds.map(Duration::from_secs), keep_bytes: request.keep_bytes };
    // The work runs in a task of its own, so that a client that disconnects leaves nothing half done.
    let (environments, shared) = (api.environments.clone(), api.shared.clone());
    let work = async move { space::prune(&environments, &shared, budget, &request.only, request.is_trial).await };
    match api.shared.tasks.spawn(work).await {
        Ok(done) => Ok(Json(done?)),
        Err(error) => Err(ApiError::internal(error)),
    }
}
