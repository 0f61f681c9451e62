//! Steps of a session beside the same steps of a browser without the service.

use serde_json::json;

use crate::SITE;
use crate::arena::Arena;
use crate::client::EpisodeApi;
use crate::direct::DirectBrowser;
use crate::figures::quantile;
use crate::session::Session;

/// The limit of the difference of the medians, in milliseconds.
const LIMIT: f64 = 10.0;

/// Scrolls the same page in both browsers in turn, and prints the table.
pub async fn compare(arena: &Arena, api: &EpisodeApi, port: u16, steps: usize) {
    api.await_rest(&[SITE]).await;
    let mut session = Session::open(port).await;
    let url = arena.url(SITE);
    let first = session.reset(json!({ "sites": [SITE], "url": url })).await.expect("an episode");
    let mut direct = DirectBrowser::open(&url).await;
    let shown = first.data["observation"]["text"].as_str().expect("a text").lines().count();
    assert_eq!(shown, direct.lines, "both browsers show the same page");
    let (mut served, mut alone) = (Vec::new(), Vec::new());
    for number in 0..steps {
        let action = if number % 2 == 0 { "scroll [down]" } else { "scroll [up]" };
        served.push(session.step(action).await.expect("a step").took);
        alone.push(direct.step(action).await);
    }
    direct.close().await;
    println!("\n{steps} steps that scroll the first page of {SITE}, {shown} lines; ms\n");
    println!("{:44} {:>8} {:>8} {:>8}", "", "p50", "p99", "limit");
    for (what, times) in [("a step of a session", &served), ("the same step of a browser alone", &alone)] {
        println!("{what:44} {:>8.1} {:>8.1}", quantile(times, 0.5), quantile(times, 0.99));
    }
    let difference = quantile(&served, 0.5) - quantile(&alone, 0.5);
    println!("{:44} {difference:>8.1} {:>8} {LIMIT:>8.0}", "difference of the medians", "");
}
