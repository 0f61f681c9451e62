//! The endpoint that compares the serving generation with its snapshot.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::Api;
use super::error::ApiError;
use super::words;
use arenad_api as wire;
use arenad_digest as digest;
use arenad_instance::proof::{ProofCandidate, ProofError};
use arenad_instance::{AskError, InstanceHandle, InstanceReport};
use arenad_model::error::describe;
use arenad_model::instance::InstanceId;
use arenad_model::snapshot::Snapshot;

/// `POST /v1/environments/{environment}/sites/{site}/verify`: returns the differences between the serving generation
/// and its snapshot.
pub(super) async fn verify(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
) -> Result<Json<wire::Verification>, ApiError> {
    let subject = SiteSubject::find(&api, &environment, &site).await?;
    let (handle, report, stored) = (&subject.handle, &subject.report, &subject.snapshot);
    let candidate = subject.candidate(&api)?;
    let looked = candidate.look().await;
    let (taken, comparison) = looked.map_err(|error| unproven(error, &handle.id))?;
    subject.check_generation()?;
    Ok(Json(wire::Verification {
        environment: handle.id.environment.to_string(),
        site: handle.site.name.to_string(),
        instance: handle.id.to_string(),
        generation: report.generation,
        snapshot: stored.id.to_string(),
        equal: comparison.is_equal(),
        digest: taken.digest.total(),
        differences: comparison.differences.iter().map(difference).collect(),
        omitted: comparison.omitted,
        stores: taken
            .costs
            .into_iter()
            .map(|cost| wire::VerifiedStore { name: cost.store, duration_ms: cost.took.as_secs_f64() * 1e3 })
            .collect(),
    }))
}

/// The serving generation of a site, which a request reads.
pub(super) struct SiteSubject {
    pub(super) handle: InstanceHandle,
    /// The state in which the request found the site.
    pub(super) report: InstanceReport,
    pub(super) snapshot: Snapshot,
}

impl SiteSubject {
    /// Finds a site that is up, or one of its slots.
    pub(super) async fn find(api: &Api, environment: &str, site: &str) -> Result<Self, ApiError> {
        Self::of(api, api.environments.choose_slot(environment, site)?).await
    }

    /// Finds what an instance serves.
    pub(super) async fn of(api: &Api, handle: InstanceHandle) -> Result<Self, ApiError> {
        let report = handle.report();
        let (Some(_), Some(snapshot)) = (&report.incarnation, &report.snapshot) else {
            return Err(AskError::NotUp { instance: handle.id.clone(), state: report.state.name() }.into());
        };
        let stored = api.shared.store.snapshot(snapshot).await?;
        let snapshot = stored.ok_or_else(|| ApiError::not_found(&format!("snapshot {snapshot}")))?;
        Ok(Self { handle, report, snapshot })
    }

    /// Returns the instance for a comparison, if there is anything to compare.
    pub(super) fn candidate<'a>(&'a self, api: &'a Api) -> Result<ProofCandidate<'a>, ApiError> {
        let Self { handle, report, .. } = self;
        let Some(candidate) = self.serving(api) else {
            return Err(AskError::NotUp { instance: handle.id.clone(), state: report.state.name() }.into());
        };
        if candidate.can_be_proven() {
            return Ok(candidate);
        }
        let (detail, hint) = match handle.site.stores.is_empty() {
            true => ("it declares no stores", "give the site `stores` in the environment file"),
            false => ("its snapshot was taken without a state root", "`arenad up` again takes one with it"),
        };
        let detail = format!("compare {} with its snapshot: {detail}", handle.site.name);
        Err(ApiError::new(StatusCode::CONFLICT, "cannot_verify", detail).hint(hint))
    }

    /// Whether there is anything to compare.
    pub(super) fn can_be_compared(&self, api: &Api) -> bool {
        self.serving(api).is_some_and(|candidate| candidate.can_be_proven())
    }

    fn serving<'a>(&'a self, api: &'a Api) -> Option<ProofCandidate<'a>> {
        let Self { handle, report, snapshot } = self;
        let incarnation = report.incarnation.as_ref()?;
        Some(ProofCandidate { shared: &api.shared, id: &handle.id, site: &handle.site, snapshot, incarnation })
    }

    /// Returns an error if the site was reset since it was found.
    pub(super) fn check_generation(&self) -> Result<(), ApiError> {
        if self.handle.report().generation == self.report.generation {
            return Ok(());
        }
        let detail = format!("{} was reset while it was looked at", self.handle.site.name);
        Err(ApiError::new(StatusCode::CONFLICT, "busy", detail).hint("try again"))
    }
}

/// Converts a difference to its form in the API.
pub(super) fn difference(found: &digest::ItemDifference) -> wire::StoreDifference {
    wire::StoreDifference {
        store: found.store.clone(),
        kind: words::difference(found.kind),
        name: found.name.clone(),
        before: found.before.clone(),
        now: found.now.clone(),
        text: found.to_string(),
    }
}

/// Converts an error, with a hint if a person can take a specific action against its cause.
pub(super) fn unproven(error: ProofError, id: &InstanceId) -> ApiError {
    let (detail, cause) = (describe(&error), error.cause());
    let failed = |detail| ApiError::new(StatusCode::BAD_GATEWAY, "digest", detail);
    match error {
        ProofError::Store(error) => error.into(),
        ProofError::NoReference(_) => ApiError::new(StatusCode::CONFLICT, "no_reference", detail)
            .hint("reset the site with `arenad reset`: its digest is taken when it is created from the snapshot"),
        ProofError::Digest(_) if cause.is_some() => failed(detail).hint(arenad_instance::hint(cause, id)),
        ProofError::Differs(_) | ProofError::Digest(_) => failed(detail),
    }
}
