//! The probes of every site pass, and every account signs in.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::arena::Arena;
use crate::arena::shared::{SITES, SharedArena};

/// The time limit for the probes, of which the deep ones are due every other minute.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test]
async fn every_account_signs_in_and_every_probe_passes() {
    let arena = SharedArena::with(&SITES);
    let checked = arena.json(&["login", "--check", "--json"]);
    let checked = checked.as_array().expect("a list");
    assert!(checked.len() >= 2, "{checked:#?}");
    assert!(checked.iter().all(|account| account["ok"] == true), "{checked:#?}");
    drop(arena);

    // Nothing is written here, so that other tests may use the sites.
    every_kind_passes(&SharedArena::with(&[]));
}

/// Waits until the latest shallow and the latest deep round of every site have passed. A machine that is busy with
/// booting them may be too slow for a round or two.
fn every_kind_passes(arena: &Arena) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Exit code 3 means that at least one site is unhealthy at the moment.
        let health = arena.arenad(&["health", "--json"]);
        let health: Value = serde_json::from_slice(&health.stdout).expect("JSON");
        let sites = health["sites"].as_array().expect("sites");
        let passes = |probes: &Value| probes["rounds"][0]["ok"] == true;
        let is_well = |site: &Value| {
            let kinds = site["probes"].as_array().expect("probes");
            kinds.len() == 2 && kinds.iter().all(passes)
        };
        let ailing: Vec<&Value> = sites.iter().filter(|site| !is_well(site)).collect();
        if ailing.is_empty() && sites.len() >= 2 {
            return;
        }
        assert!(Instant::now() < deadline, "{ailing:#?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The session is valid at the public address, and again after every reset, because it is part of the snapshot.
#[tokio::test]
async fn a_session_is_the_customers() {
    let arena = SharedArena::with(&["shopping"]);
    let state = arena.json(&["login", "shopping", "--account", "customer", "--format", "playwright"]);
    let cookies = state["cookies"].as_array().expect("cookies");
    let text = |cookie: &Value, key: &str| cookie[key].as_str().expect("a text").to_owned();
    let pair = |cookie: &Value| format!("{}={}", text(cookie, "name"), text(cookie, "value"));
    let header = cookies.iter().map(pair).collect::<Vec<_>>().join("; ");
    let profile = format!("{}/accounts/profile/", arena.url("shopping"));
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let ask = async || {
        let answer = client.get(&profile).header("Cookie", &header).send().await.expect("an answer");
        answer.text().await.expect("a page")
    };
    assert!(ask().await.contains("emma.lopez@gmail.com"));
    for _ in 0..3 {
        arena.json(&["reset", "shopping", "--json"]);
        assert!(ask().await.contains("emma.lopez@gmail.com"), "the session is part of the baseline");
    }
    // Other visitors stay signed out.
    let stranger = client.get(&profile).send().await.expect("an answer").text().await.expect("a page");
    assert!(!stranger.contains("emma.lopez@gmail.com"));
}
