//! The endpoint that returns the traffic that the gateway has recorded.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Api;
use super::error::ApiError;
use crate::traffic::{self, SiteTraffic};

#[derive(Deserialize, JsonSchema)]
pub(super) struct HarSiteQuery {
    /// The names of the sites, separated by commas; an empty list selects all sites.
    #[serde(default)]
    sites: String,
}

/// `GET /v1/environments/{environment}/har?sites=a,b`: returns the requests to the serving generations, in one HAR. For
/// a site that is not recorded, `log._arenad.sites` says so.
pub(super) async fn har(
    State(api): State<Arc<Api>>,
    Path(environment): Path<String>,
    Query(which): Query<HarSiteQuery>,
) -> Result<Response, ApiError> {
    let names = which.sites.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let handles = api.environments.choose(&environment, &names.collect::<Vec<_>>())?;
    let text = text(handles.iter().map(SiteTraffic::of).collect()).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Returns the traffic of sites as the text of one HAR.
pub(super) async fn text(sites: Vec<SiteTraffic>) -> Result<String, ApiError> {
    let work = tokio::task::spawn_blocking(move || traffic::har(&sites, |_| true).to_string());
    work.await.map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", format!("read: {error}")))
}
