//! Resets of a session that is alone: the whole, and the part of the episode without its browser.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::EpisodeApi;
use crate::figures::quantile;
use crate::session::Session;
use crate::{SITE, TASK};

/// The limits of the medians, in milliseconds.
const LIMITS: (f64, f64) = (500.0, 20.0);

/// Measures resets, each of which finds all slots free and the standby ready, and prints the table.
pub async fn measure(api: &EpisodeApi, port: u16, resets: usize) {
    let (mut whole, mut granted) = (Vec::new(), Vec::new());
    // The first one is not counted: it starts the browser's process, and standbys are made after it.
    for number in 0..=resets {
        api.await_rest(&[SITE]).await;
        let mut session = Session::open(port).await;
        let answer = session.reset(json!({ "task": TASK })).await.expect("an episode");
        let episode = api.episode(&session.episode().await).await;
        if number > 0 {
            whole.push(answer.took);
            granted.push(between(&episode["asked_at"], &episode["granted_at"]));
        }
    }
    println!("\nreset of a session that is alone, task {TASK}, {resets} resets; ms\n");
    println!("{:44} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p99", "worst", "limit");
    for (what, times, limit) in
        [("until the first observation", whole, LIMITS.0), ("of which until the episode is granted", granted, LIMITS.1)]
    {
        let [p50, p99, worst] = [0.5, 0.99, 1.0].map(|part| quantile(&times, part));
        println!("{what:44} {p50:>8.1} {p99:>8.1} {worst:>8.1} {limit:>8.0}");
    }
}

/// Returns the time between two times of an episode, in milliseconds.
fn between(from: &Value, to: &Value) -> f64 {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok()).expect("a time");
    time(to).duration_since(time(from)).as_secs_f64() * 1e3
}
