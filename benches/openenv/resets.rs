//! Resets of a session that is alone, on each site: the whole, and the part of the episode without its browser.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::client::EpisodeApi;
use crate::figures::quantile;
use crate::session::Session;
use crate::{SITE, TASK};

/// The sites of `mini`.
const SITES: [&str; 8] = ["shopping", "shopping_admin", "wikipedia", "reddit", "turkle", "homepage", "map", "gitlab"];

/// The limits of the medians, in milliseconds.
const LIMITS: (f64, f64) = (500.0, 20.0);

/// The time between the end of an episode's remains and the next reset: the daemon does nothing in the background then.
const PAUSE: Duration = Duration::from_secs(1);

/// The times of resets, in milliseconds.
#[derive(Default)]
struct Times {
    whole: Vec<f64>,
    granted: Vec<f64>,
}

/// Measures resets, each of which finds all slots free and the standby ready, and prints the table.
pub async fn measure(arena: &Arena, api: &EpisodeApi, port: u16, resets: usize) {
    let mut rows = vec![(format!("{SITE}, signed in"), SITE, json!({ "task": TASK }))];
    rows.extend(SITES.map(|site| (site.to_owned(), site, json!({ "sites": [site], "url": arena.url(site) }))));
    println!("\nreset of a session that is alone, until the first observation, {resets} resets of each; ms\n");
    println!("{:28} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p99", "worst", "limit");
    let mut all = Times::default();
    for (name, site, request) in rows {
        let times = resets_of(api, port, (site, &request), resets).await;
        line(&name, &times.whole, None);
        // Each site counts once.
        if request["task"].is_null() {
            all.whole.extend(times.whole);
        }
        all.granted.extend(times.granted);
    }
    line("all sites, not signed in", &all.whole, Some(LIMITS.0));
    line("until the grant, all", &all.granted, Some(LIMITS.1));
}

async fn resets_of(api: &EpisodeApi, port: u16, (site, request): (&str, &Value), resets: usize) -> Times {
    let mut times = Times::default();
    // The first one is not counted: it may start the browser's process, and standbys are made after it.
    for number in 0..=resets {
        api.await_rest(&[site]).await;
        tokio::time::sleep(PAUSE).await;
        let mut session = Session::open(port).await;
        let answer = session.reset(request.clone()).await.expect("an episode");
        let episode = api.episode(&session.episode().await).await;
        if number > 0 {
            times.whole.push(answer.took);
            times.granted.push(between(&episode["asked_at"], &episode["granted_at"]));
        }
    }
    times
}

fn line(name: &str, times: &[f64], limit: Option<f64>) {
    let [p50, p99, worst] = [0.5, 0.99, 1.0].map(|part| quantile(times, part));
    let limit = limit.map(|limit| format!("{limit:.0}")).unwrap_or_default();
    println!("{name:28} {p50:>8.1} {p99:>8.1} {worst:>8.1} {limit:>8}");
}

/// Returns the time between two times of an episode, in milliseconds.
fn between(from: &Value, to: &Value) -> f64 {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok()).expect("a time");
    time(to).duration_since(time(from)).as_secs_f64() * 1e3
}
