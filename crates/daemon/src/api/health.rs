//! The endpoint that returns the history of the sites' health probes.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Api;
use super::error::ApiError;
use super::words;
use crate::environments::EnvironmentError;
use arenad_api as wire;
use arenad_instance::InstanceHandle;
use arenad_model::health::{Depth, HealthProbes};
use arenad_model::slot_name::SlotName;
use arenad_store::StoredRound;

/// The largest number of rounds that are listed of each kind, which is the number of rounds that are kept.
const LIMIT_MAX: u32 = 1000;

/// The number of rounds that are listed of each kind by default.
const LIMIT: u32 = 100;

#[derive(Deserialize, JsonSchema)]
pub(super) struct HealthQuery {
    /// The environment to list; all environments by default.
    environment: Option<String>,
    /// The site to list with all of its slots, or one slot, in the named environment or in every environment; all sites
    /// by default.
    site: Option<String>,
    /// The largest number of rounds of each kind.
    limit: Option<u32>,
}

/// `GET /v1/health?environment=NAME&site=NAME&limit=N`: returns the newest rounds of the selected sites, with their
/// statistics.
pub(super) async fn health(
    State(api): State<Arc<Api>>,
    Query(choice): Query<HealthQuery>,
) -> Result<Json<wire::Health>, ApiError> {
    let limit = choice.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
    let chosen = choice.site.as_deref().map(SlotName::parse).transpose().map_err(EnvironmentError::from)?;
    let name = chosen.map(|chosen| chosen.site.to_owned());
    let firsts: Vec<InstanceHandle> = match &choice.environment {
        Some(environment) => api.environments.choose(environment, name.as_slice())?,
        None => {
            let all = api.environments.list().into_iter().flat_map(|(_, handles)| handles);
            all.filter(|handle| name.iter().all(|name| handle.site.name.as_str() == name)).collect()
        }
    };
    if let ([], Some(name)) = (firsts.as_slice(), name) {
        return Err(ApiError::not_found(&format!("site {name}")));
    }
    let mut sites = Vec::new();
    for first in firsts {
        let handles = match chosen.and_then(|chosen| chosen.number) {
            Some(number) => vec![api.environments.numbered(&first, number)?],
            None => {
                let slots = api.environments.slots_of(&first.id.site_id());
                slots.into_iter().map(|slot| slot.instance).collect()
            }
        };
        for handle in handles {
            sites.push(site(&api, &handle, limit).await?);
        }
    }
    Ok(Json(wire::Health { sites }))
}

async fn site(api: &Api, handle: &InstanceHandle, limit: u32) -> Result<wire::SiteHealth, ApiError> {
    let report = handle.report();
    let mut probes = Vec::new();
    for depth in Depth::ALL {
        if let Some(health) = handle.site.health.at(depth) {
            let rounds = api.shared.health.newest(&handle.id, depth, limit).await?;
            probes.push(shown(depth, health, rounds));
        }
    }
    Ok(wire::SiteHealth {
        environment: handle.id.environment.to_string(),
        site: handle.site.name.to_string(),
        instance: handle.id.to_string(),
        state: words::state(&report.state),
        since: report.since.to_string(),
        reason: report.state.trouble().map(|trouble| trouble.reason.clone()),
        probes,
    })
}

fn shown(depth: Depth, health: &HealthProbes, rounds: Vec<StoredRound>) -> wire::ProbeRounds {
    let passed = rounds.iter().filter(|round| round.reason.is_none()).count();
    let mut durations: Vec<f64> = rounds.iter().map(|round| round.duration_ms).collect();
    durations.sort_by(f64::total_cmp);
    wire::ProbeRounds {
        kind: words::probes(depth),
        schedule: health.schedule.to_string(),
        names: health.probes.iter().map(|probe| probe.name.clone()).collect(),
        failures: health.failures,
        count: rounds.len(),
        passed,
        success_rate: (!rounds.is_empty()).then(|| passed as f64 / rounds.len() as f64),
        median_ms: durations.get(durations.len() / 2).copied(),
        longest_ms: durations.last().copied(),
        rounds: rounds.into_iter().map(shown_round).collect(),
    }
}

fn shown_round(round: StoredRound) -> wire::Round {
    wire::Round {
        at: round.at.to_string(),
        generation: round.generation,
        ok: round.reason.is_none(),
        reason: round.reason,
        duration_ms: round.duration_ms,
    }
}
