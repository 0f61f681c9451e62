//! Many clients that ask at once for two of five sites each: whether the order per site holds, and how long they wait.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;
use tokio::task::JoinSet;

use crate::FIVE;
use crate::client::{EpisodeApi, EpisodeVisitor};
use crate::figures::quantile;

/// The time limit of a request; the last client waits for all others.
const WAIT_SECONDS: u64 = 3600;

/// Lets the clients ask, visit their sites and end their episodes, and prints how long they waited.
pub async fn queue(api: &EpisodeApi, clients: usize) {
    api.await_rest(&FIVE).await;
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let api = api.clone();
        // Each pair of different sites comes up equally often.
        let first = number % FIVE.len();
        let second = (first + 1 + (number / FIVE.len()) % (FIVE.len() - 1)) % FIVE.len();
        tasks.spawn(async move {
            let grant = api.start(&[FIVE[first], FIVE[second]], WAIT_SECONDS).await;
            EpisodeVisitor::of(&grant).visit(4).await;
            api.end(&grant.id).await;
            (api.episode(&grant.id).await, grant.took)
        });
    }
    let done = tasks.join_all().await;
    let total = begun.elapsed().as_secs_f64();
    let (episodes, waits): (Vec<Value>, Vec<f64>) = done.into_iter().unzip();
    println!("\n{clients} clients at once, two of five sites each, one slot a site");
    println!(
        "granted {} in {total:.1} s, {:.0} a minute; wait p50 {:.1} s, longest {:.1} s; overtaken on a site: {}",
        episodes.len(),
        episodes.len() as f64 * 60.0 / total,
        quantile(&waits, 0.5) / 1e3,
        quantile(&waits, 1.0) / 1e3,
        overtaken(&episodes)
    );
}

/// Returns the number of grants of a site that a later request got before an earlier one.
fn overtaken(episodes: &[Value]) -> usize {
    let mut by_site: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let text = |value: &'_ Value| -> Option<String> { value.as_str().map(str::to_owned) };
    for episode in episodes {
        assert!(text(&episode["granted_at"]).is_some(), "{episode:#}");
        for site in episode["sites"].as_array().into_iter().flatten() {
            let times =
                (episode["asked_at"].as_str().unwrap_or_default(), episode["granted_at"].as_str().unwrap_or_default());
            by_site.entry(site["site"].as_str().unwrap_or_default()).or_default().push(times);
        }
    }
    let mut count = 0;
    for mut grants in by_site.into_values() {
        grants.sort_unstable();
        count += grants.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
    }
    count
}
