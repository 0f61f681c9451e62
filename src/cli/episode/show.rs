//! Episodes and the queue in the form for people.

use comfy_table::{Cell, Color};

use crate::cli::output::{self, age};
use arenad_api::EpisodeStatus;
use arenad_api::episodes::{EpisodeSite, QueuedRequest, ReportedEpisode, StartedEpisode};

/// Returns an episode that has been started, with its token.
pub fn started(started: &StartedEpisode) -> String {
    let proxy = started.proxy.as_ref().map(|proxy| format!("  proxy     {}\n", proxy.url())).unwrap_or_default();
    format!("{}{proxy}  token     {}\n", whole(&started.episode), started.token)
}

/// Returns the commands that are useful after the start of an episode.
pub fn next_steps(episode: &ReportedEpisode) -> String {
    let id = &episode.id;
    match episode.state {
        EpisodeStatus::Queued | EpisodeStatus::Preparing => {
            format!("`arenad queue` shows the requests that wait, `arenad episode show {id}` the episode")
        }
        _ => format!(
            "it ends in {} unless `arenad episode extend {id}` extends it; `arenad episode end {id}` ends it",
            seconds(episode.left_seconds)
        ),
    }
}

/// Returns everything that is known of an episode.
pub fn whole(episode: &ReportedEpisode) -> String {
    let mut text = format!("{}  {}\n", episode.id, episode.state);
    let mut line = |heading: &str, value: &str| text.push_str(&format!("  {heading:8}  {value}\n"));
    if let Some(ending) = &episode.ending {
        line("reason", &ending.reason);
    }
    for site in &episode.sites {
        line("site", &described(&episode.environment, site));
    }
    if let Some(parent) = &episode.forked_from {
        line("fork of", parent);
    }
    line("owner", &episode.owner);
    if !episode.labels.is_empty() {
        line("labels", &labels(episode));
    }
    line("asked", &ago(&episode.asked_at));
    if let Some(at) = &episode.granted_at {
        line("granted", &ago(at));
    }
    for evaluation in &episode.evaluations {
        let reward = evaluation.reward.map(|reward| format!(", reward {reward}")).unwrap_or_default();
        line("verdict", &format!("{} on {}{reward}, {}", evaluation.verdict, evaluation.task, ago(&evaluation.at)));
    }
    match &episode.ended_at {
        Some(at) => line("ended", &ago(at)),
        None => line(if episode.granted_at.is_some() { "ends" } else { "waits" }, &left(episode)),
    }
    text
}

fn described(environment: &str, site: &EpisodeSite) -> String {
    let slot = site.slot.map(|slot| format!(", slot {slot}")).unwrap_or_default();
    let from = site.snapshot.as_ref().map(|snapshot| format!(", from {snapshot}")).unwrap_or_default();
    let url = site.url.as_ref().or(site.proxy_url.as_ref()).map(|url| format!("  {url}")).unwrap_or_default();
    let port = site.port_url.as_ref().map(|url| format!("  {url}")).unwrap_or_default();
    format!("{environment}/{}{slot}{from}{url}{port}", site.site)
}

fn labels(episode: &ReportedEpisode) -> String {
    let pairs: Vec<String> = episode.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(" ")
}

fn ago(at: &str) -> String {
    format!("{} ago", age(at))
}

/// Returns the time that is left of the present part of an episode's life.
fn left(episode: &ReportedEpisode) -> String {
    match (episode.is_held, episode.ending.is_some()) {
        (_, true) => "-".to_owned(),
        (true, false) if episode.granted_at.is_some() => "with its connection".to_owned(),
        _ => format!("in {}", seconds(episode.left_seconds)),
    }
}

/// Formats a number of seconds in one unit: `12s`, `5m`, `3h`.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0}s"),
        s if s < 7200.0 => format!("{:.0}m", (s / 60.0).floor()),
        s => format!("{:.0}h", (s / 3600.0).floor()),
    }
}

fn state_cell(state: EpisodeStatus) -> Cell {
    let cell = Cell::new(state);
    match state {
        EpisodeStatus::Active => cell.fg(Color::Green),
        EpisodeStatus::Void => cell.fg(Color::Red),
        EpisodeStatus::Queued | EpisodeStatus::Preparing | EpisodeStatus::Frozen => cell.fg(Color::Yellow),
        EpisodeStatus::Released | EpisodeStatus::Expired => cell,
    }
}

/// Prints episodes as a table.
pub fn table(episodes: &[ReportedEpisode]) {
    let mut table = output::table(&["EPISODE", "STATE", "SITES", "OWNER", "ENDS", "AGE", "LABELS"]);
    for episode in episodes {
        let sites: Vec<String> = episode.sites.iter().map(short).collect();
        table.add_row([
            Cell::new(&episode.id),
            state_cell(episode.state),
            Cell::new(format!("{}/{}", episode.environment, sites.join(","))),
            Cell::new(&episode.owner),
            Cell::new(if episode.is_held { "held".to_owned() } else { left(episode) }),
            Cell::new(age(&episode.asked_at)),
            Cell::new(labels(episode)),
        ]);
    }
    output::print_fitted(&mut table, 2, output::width());
}

fn short(site: &EpisodeSite) -> String {
    match site.slot {
        Some(slot) => format!("{}:{slot}", site.site),
        None => site.site.clone(),
    }
}

/// Prints the requests that wait as a table.
pub fn queue(requests: &[QueuedRequest]) {
    let mut table = output::table(&["#", "EPISODE", "SITES", "OWNER", "AHEAD", "ESTIMATE", "WAITING"]);
    for request in requests {
        let estimate = match request.estimate_seconds {
            _ if request.is_over_quota => "over quota".to_owned(),
            Some(estimate) => seconds(estimate),
            None => "-".to_owned(),
        };
        table.add_row([
            Cell::new(request.position),
            Cell::new(&request.id),
            Cell::new(format!("{}/{}", request.environment, request.sites.join(","))),
            Cell::new(&request.owner),
            Cell::new(request.ahead),
            Cell::new(estimate),
            Cell::new(age(&request.asked_at)),
        ]);
    }
    output::print_fitted(&mut table, 2, output::width());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use arenad_api::episodes::EpisodeProxy;

    fn episode() -> ReportedEpisode {
        serde_json::from_value(json!({
            "id": "ep-00112233445566778899", "environment": "mini", "state": "active", "owner": "ann",
            "labels": { "run": "7", "task": "shopping.order.1" },
            "sites": [
                { "site": "shopping", "slot": 1, "instance": "mini/shopping/1", "generation": 4,
                  "snapshot": "full-basket", "url": "http://localhost:7770" },
                { "site": "map", "slot": null, "instance": null, "generation": null, "snapshot": null, "url": null },
            ],
            "ttl_seconds": 600.0, "left_seconds": 599.0, "is_held": false,
            "asked_at": "2026-01-01T00:00:00Z", "granted_at": "2026-01-01T00:00:00Z", "ended_at": null, "ending": null,
        }))
        .expect("an episode")
    }

    #[test]
    fn an_episode_is_shown_with_its_sites_and_its_end() {
        let text = whole(&episode());
        assert!(text.starts_with("ep-00112233445566778899  active\n"), "{text}");
        assert!(
            text.contains("  site      mini/shopping, slot 1, from full-basket  http://localhost:7770\n"),
            "{text}"
        );
        assert!(text.contains("  site      mini/map\n"), "{text}");
        assert!(text.contains("  labels    run=7 task=shopping.order.1\n"), "{text}");
        assert!(text.contains("  ends      in 9m\n"), "{text}");
        let held = ReportedEpisode { is_held: true, ..episode() };
        assert!(whole(&held).contains("  ends      with its connection\n"));
    }

    #[test]
    fn the_token_is_shown_when_an_episode_starts_and_never_later() {
        let token = "0123456789abcdef";
        let shown = StartedEpisode { episode: episode(), token: token.to_owned(), proxy: None, is_known: false };
        assert!(started(&shown).ends_with(&format!("  token     {token}\n")));
        assert!(!started(&shown).contains("proxy"));
        let (server, username) = ("http://127.0.0.1:7500".to_owned(), shown.episode.id.clone());
        let proxy = Some(EpisodeProxy { server, username, password: token.to_owned() });
        let text = started(&StartedEpisode { proxy, ..shown.clone() });
        assert!(text.contains(&format!("  proxy     http://{}:{token}@127.0.0.1:7500\n", shown.episode.id)), "{text}");
        assert!(!whole(&shown.episode).contains(token));
    }
}
