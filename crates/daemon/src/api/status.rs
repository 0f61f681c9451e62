//! Endpoints that report the version and the status of all sites, and stop the daemon.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;

use super::Api;
use super::error::ApiError;
use super::operations::shown_reset;
use super::words;
use crate::slots::{EpisodeSettings, SlotUse, SlotView, is_public};
use crate::stranded::Stranded;
use arenad_api as wire;
use arenad_instance::{InstanceHandle, StandbyReport};
use arenad_model::ids::SiteId;
use arenad_model::instance::InstanceState;
use arenad_model::site::{Site, SlotPorts};
use arenad_model::standby_schedule::count_at;

/// `GET /v1/version`: returns the version of the daemon and of the API.
pub(super) async fn version() -> Json<wire::Version> {
    Json(wire::Version { version: env!("CARGO_PKG_VERSION").to_owned(), api: "v1".to_owned() })
}

/// `POST /v1/shutdown`; the containers keep running.
pub(super) async fn shutdown(State(api): State<Arc<Api>>) -> StatusCode {
    api.stop.cancel();
    StatusCode::ACCEPTED
}

/// `GET /v1/status`: returns the state of the daemon, the host and every site.
pub(super) async fn status(State(api): State<Arc<Api>>) -> Result<Json<wire::Status>, ApiError> {
    let host = api.host.borrow().clone();
    let mut environments = Vec::new();
    for (environment, handles) in api.environments.list() {
        let mut sites = Vec::new();
        for handle in handles {
            let mut shown = site(&api, &handle, &environment.host).await?;
            let known = environment.sites.iter().find(|site| site.name == handle.site.name);
            shown.slots = slots(&api, &handle.id.site_id(), known);
            sites.push(shown);
        }
        environments.push(wire::EnvironmentStatus {
            name: environment.name.to_string(),
            description: environment.description,
            host: environment.host,
            sites,
        });
    }
    environments.extend(api.environments.stranded().into_iter().map(stranded));
    environments.sort_by(|one: &wire::EnvironmentStatus, two| one.name.cmp(&two.name));
    Ok(Json(wire::Status {
        daemon: wire::DaemonStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            installation: api.shared.installation.clone(),
            state_dir: api.shared.state_dir.path().display().to_string(),
            background: api.background,
            started_at: api.started_at.to_string(),
            engine: api.shared.engine.endpoint().to_owned(),
            proxy: api.proxy.server.clone(),
            compat: api.compat.server.clone(),
            episodes: episode_limits(&api.episode_settings),
            notes: api.shared.storage_note.iter().chain(&api.proxy.note).chain(&api.compat.note).cloned().collect(),
        },
        conditions: vec![host.engine, host.disk],
        environments,
    }))
}

fn episode_limits(settings: &EpisodeSettings) -> wire::EpisodeLimitStatus {
    let quotas = settings.quotas.by_owner.iter().map(|(owner, most)| (owner.to_string(), *most));
    wire::EpisodeLimitStatus {
        quota: settings.quotas.default,
        quotas: quotas.collect(),
        queue: settings.queue.waiting,
        owner_queue: settings.queue.waiting_of_owner,
        ttl_seconds: settings.ttl.as_secs(),
    }
}

async fn site(api: &Api, handle: &InstanceHandle, host: &str) -> Result<wire::SiteStatus, ApiError> {
    let report = handle.report();
    let trouble = report.state.trouble().cloned();
    let (status, message) = match (&report.state, &trouble) {
        (InstanceState::Ready, _) => (wire::ConditionStatus::True, String::new()),
        (_, Some(trouble)) => (wire::ConditionStatus::False, trouble.reason.clone()),
        (state, None) => {
            (wire::ConditionStatus::False, report.stage.clone().unwrap_or_else(|| state.name().to_owned()))
        }
    };
    let last_reset = api.shared.store.last_reset(&handle.id).await?;
    Ok(wire::SiteStatus {
        environment: handle.id.environment.to_string(),
        name: handle.site.name.to_string(),
        title: handle.site.title.clone(),
        url: handle.site.url(host),
        variable: handle.site.public.variable.clone(),
        instance: handle.id.to_string(),
        state: words::state(&report.state),
        since: report.since.to_string(),
        stage: report.stage,
        waiting_for: report.waiting_for,
        reason: trouble.as_ref().map(|trouble| trouble.reason.clone()),
        hint: trouble.map(|trouble| trouble.hint),
        generation: report.generation,
        snapshot: report.snapshot.map(String::from),
        last_passed: report.last_passed.map(|at| at.to_string()),
        containers: containers(report.containers),
        has_stores: !handle.site.stores.is_empty(),
        standbys: standbys(handle),
        written: report.writes.map(|writes| wire::ReadOnlyWrites {
            requests: writes.requests,
            since: writes.since.to_string(),
            difference: writes.difference,
        }),
        has_been_entered: handle.was_entered(),
        slots: Vec::new(),
        conditions: vec![wire::Condition {
            kind: wire::ConditionKind::Ready,
            status,
            reason: camel(report.state.name()),
            message,
            last_transition_time: report.since.to_string(),
        }],
        last_reset: last_reset.map(shown_reset),
    })
}

/// Returns the standbys of a site, which all of its slots share.
fn standbys(handle: &InstanceHandle) -> wire::Standbys {
    let spec = &handle.site.reset;
    let StandbyReport { members, lack } = handle.standbys();
    let shown = |(generation, state)| wire::Standby { generation, state: words::standby(state) };
    wire::Standbys {
        wanted: handle.pool().size(count_at(&spec.schedule, Timestamp::now()).unwrap_or(spec.standby)),
        members: members.into_iter().map(shown).collect(),
        lack,
    }
}

fn containers(found: BTreeMap<String, (String, Option<IpAddr>)>) -> Vec<wire::SiteContainer> {
    let container = |(service, (id, address)): (String, (String, Option<IpAddr>))| wire::SiteContainer {
        service,
        id,
        address: address.map(|address| address.to_string()),
    };
    found.into_iter().map(container).collect()
}

/// Returns the slots of a site if there may be several, several exist still, or they have own ports. `known` is the
/// definition of the site.
fn slots(api: &Api, site: &SiteId, known: Option<&Site>) -> Vec<wire::SlotStatus> {
    let views = api.environments.slots_of(site);
    let is_shown = views.len() > 1 || known.is_some_and(|site| site.slots.max > 1 || site.ports.is_some());
    let ports = known.and_then(|site| site.ports);
    views.into_iter().filter(|_| is_shown).map(|view| slot(view, ports)).collect()
}

fn slot(view: SlotView, ports: Option<SlotPorts>) -> wire::SlotStatus {
    let SlotView { instance, slot_use } = view;
    let report = instance.report();
    wire::SlotStatus {
        number: instance.id.number,
        instance: instance.id.to_string(),
        port: ports.and_then(|ports| ports.of(instance.id.number)),
        state: words::state(&report.state),
        since: report.since.to_string(),
        reason: report.state.trouble().map(|trouble| trouble.reason.clone()),
        generation: report.generation,
        occupation: match &slot_use {
            SlotUse::Idle => wire::SlotOccupation::Free,
            SlotUse::Preparing(_) => wire::SlotOccupation::Preparing,
            SlotUse::Leased { .. } => wire::SlotOccupation::Leased,
            SlotUse::Recycling => wire::SlotOccupation::Recycling,
        },
        episode: slot_use.holder().map(ToString::to_string),
        containers: containers(report.containers),
    }
}

/// Converts a stranded environment to one whose sites have failed.
fn stranded(stranded: Stranded) -> wire::EnvironmentStatus {
    let definition = stranded.definition.as_ref();
    let host = definition.map(|definition| definition.host.clone()).unwrap_or_default();
    let firsts = stranded.instances.iter().filter(|row| is_public(&row.id));
    let sites = firsts.map(|row| {
        let site = definition.and_then(|known| known.sites.iter().find(|site| site.name == row.id.site));
        wire::SiteStatus {
            environment: stranded.name.clone(),
            name: row.id.site.to_string(),
            title: site.map_or_else(|| row.id.site.to_string(), |site| site.title.clone()),
            url: site.map(|site| site.url(&host)).unwrap_or_default(),
            variable: site.and_then(|site| site.public.variable.clone()),
            instance: row.id.to_string(),
            state: wire::InstanceState::Failed,
            since: stranded.since.to_string(),
            stage: None,
            waiting_for: None,
            reason: Some(stranded.trouble.reason.clone()),
            hint: Some(stranded.trouble.hint.clone()),
            generation: row.generation,
            snapshot: row.snapshot.clone().map(String::from),
            last_passed: None,
            containers: Vec::new(),
            has_stores: site.is_some_and(|site| !site.stores.is_empty()),
            standbys: wire::Standbys::default(),
            written: None,
            has_been_entered: false,
            slots: Vec::new(),
            conditions: vec![wire::Condition {
                kind: wire::ConditionKind::Ready,
                status: wire::ConditionStatus::False,
                reason: "Stranded".to_owned(),
                message: stranded.trouble.reason.clone(),
                last_transition_time: stranded.since.to_string(),
            }],
            last_reset: None,
        }
    });
    wire::EnvironmentStatus {
        sites: sites.collect(),
        name: stranded.name.clone(),
        description: definition.map(|known| known.description.clone()).unwrap_or_default(),
        host,
    }
}

/// Capitalizes a word, because Kubernetes' reasons begin with a capital letter.
fn camel(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}
