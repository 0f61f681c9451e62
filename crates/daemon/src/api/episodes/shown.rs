//! Episodes in their JSON.

use crate::api::Api;
use crate::slots::is_public;
use arenad_api::EpisodeRecording;
use arenad_api::EpisodeStatus as StatusWord;
use arenad_api::episodes::{EpisodeSite, EpisodeStateEvent, ReportedEnding, ReportedEpisode, ReportedEvaluation};
use arenad_episodes::EpisodeView;
use arenad_model::episode::ending::EpisodeEnding;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::request::{SiteWant, StartPoint};
use arenad_model::episode::{EpisodeState, EpisodeStatus};
use arenad_model::harness_variables::{of_benchmark, of_browsergym};
use arenad_model::proxy_address::{common_url, own_url, slot_url};
use arenad_model::site::{Environment, RecordedRequests, Site};
use arenad_store::{NewEvaluation, StoredEpisodeEvent, StoredEvaluation};

pub(super) fn status(status: EpisodeStatus) -> StatusWord {
    match status {
        EpisodeStatus::Queued => StatusWord::Queued,
        EpisodeStatus::Preparing => StatusWord::Preparing,
        EpisodeStatus::Active => StatusWord::Active,
        EpisodeStatus::Frozen => StatusWord::Frozen,
        EpisodeStatus::Released => StatusWord::Released,
        EpisodeStatus::Expired => StatusWord::Expired,
        EpisodeStatus::Void => StatusWord::Void,
    }
}

fn recording(record: RecordedRequests) -> EpisodeRecording {
    match record {
        RecordedRequests::Nothing => EpisodeRecording::Nothing,
        RecordedRequests::Writes => EpisodeRecording::Writes,
        RecordedRequests::All => EpisodeRecording::All,
    }
}

pub(super) fn ending(ending: &EpisodeEnding) -> ReportedEnding {
    ReportedEnding {
        state: status(EpisodeState::Ended(ending.clone()).status()),
        code: ending.code().to_owned(),
        reason: ending.to_string(),
        slot: ending.slot().map(ToString::to_string),
    }
}

pub(super) fn event(event: &StoredEpisodeEvent) -> EpisodeStateEvent {
    EpisodeStateEvent {
        seq: event.seq,
        at: event.at.to_string(),
        episode: event.episode.to_string(),
        state: status(event.status),
        ending: event.ending.as_ref().map(ending),
    }
}

/// Returns an episode with the variables that benchmarks read.
pub(super) fn whole(api: &Api, view: &EpisodeView) -> ReportedEpisode {
    let definition = definition(api, view);
    let mut episode = shown(api, view, definition.as_ref());
    let Some(definition) = definition.filter(|_| is_served(view)) else { return episode };
    let is_proxied = episode.is_proxied();
    let url = |site: &Site| {
        let own = episode.sites.iter().find(|own| own.site == site.name.as_str())?;
        if is_proxied { own.proxy_url.as_ref().map(|_| common_url(site)) } else { own.url.clone() }
    };
    let variables = of_benchmark(&definition, &url).into_iter().chain(of_browsergym(&definition, &url)).collect();
    if episode.has_ports() {
        let url = |site: &Site| {
            let own = episode.sites.iter().find(|own| own.site == site.name.as_str())?;
            own.direct_url().cloned()
        };
        let variables = of_benchmark(&definition, &url).into_iter().chain(of_browsergym(&definition, &url));
        episode.port_variables = variables.collect();
    }
    episode.variables = variables;
    episode
}

/// Returns an episode as an item of a list.
pub(super) fn listed(api: &Api, view: &EpisodeView) -> ReportedEpisode {
    shown(api, view, definition(api, view).as_ref())
}

fn definition(api: &Api, view: &EpisodeView) -> Option<Environment> {
    api.environments.definition(environment(view))
}

/// Returns the environment of an episode, which all of its sites belong to.
pub(super) fn environment(view: &EpisodeView) -> &str {
    view.request.sites.first().map_or("", |want| want.site.environment.as_str())
}

/// Whether the client can reach the sites.
pub(super) fn is_served(view: &EpisodeView) -> bool {
    matches!(view.state, EpisodeState::Active | EpisodeState::Frozen)
}

fn shown(api: &Api, view: &EpisodeView, definition: Option<&Environment>) -> ReportedEpisode {
    let request = &view.request;
    let has_proxy = api.proxy.server.is_some();
    ReportedEpisode {
        id: view.id.to_string(),
        environment: environment(view).to_owned(),
        state: status(view.state.status()),
        owner: request.owner.to_string(),
        labels: request.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        record: Some(recording(request.record)),
        sites: request.sites.iter().map(|want| site(view, want, definition, has_proxy)).collect(),
        replays: request.replays.iter().map(ToString::to_string).collect(),
        ttl_seconds: request.terms.ttl().as_secs_f64(),
        left_seconds: view.left.as_secs_f64(),
        is_held: view.is_held,
        asked_at: view.asked_at.to_string(),
        granted_at: view.granted_at.map(|at| at.to_string()),
        ended_at: view.ended_at.map(|at| at.to_string()),
        ending: view.state.ending().map(ending),
        evaluations: Vec::new(),
        forked_from: request.sites.iter().find_map(|want| parent(&want.start)).map(EpisodeId::to_string),
        variables: Default::default(),
        port_variables: Default::default(),
    }
}

/// Returns an evaluation as it is reported.
pub(super) fn evaluation(stored: StoredEvaluation) -> ReportedEvaluation {
    let NewEvaluation { task, verdict, reward } = stored.evaluation;
    ReportedEvaluation { at: stored.at.to_string(), task, verdict, reward }
}

fn parent(start: &StartPoint) -> Option<&EpisodeId> {
    match start {
        StartPoint::Fork { parent, .. } => Some(parent),
        StartPoint::Baseline | StartPoint::Snapshot(_) => None,
    }
}

fn site(view: &EpisodeView, want: &SiteWant, definition: Option<&Environment>, has_proxy: bool) -> EpisodeSite {
    let name = &want.site.site;
    let slot = view.slots.iter().find(|slot| slot.instance.site == *name);
    let reached = definition.filter(|_| is_served(view)).and_then(|definition| {
        let site = definition.sites.iter().find(|site| site.name == *name)?;
        Some((site, definition.host.as_str()))
    });
    EpisodeSite {
        site: name.to_string(),
        slot: slot.map(|slot| slot.instance.number),
        instance: slot.map(|slot| slot.instance.to_string()),
        generation: slot.and_then(|slot| slot.generation),
        snapshot: match &want.start {
            StartPoint::Snapshot(snapshot) => Some(snapshot.clone()),
            StartPoint::Baseline | StartPoint::Fork { .. } => None,
        },
        url: reached.filter(|_| slot.is_none_or(|slot| is_public(&slot.instance))).map(|(site, host)| site.url(host)),
        proxy_url: reached.filter(|_| has_proxy).map(|(site, _)| own_url(site)),
        port_url: reached.zip(slot).and_then(|((site, host), slot)| slot_url(site, host, slot.instance.number)),
    }
}
