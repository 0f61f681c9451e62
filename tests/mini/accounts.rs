//! Every site is watched with probes that pass, and every account signs in.

use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;

use crate::arena::Arena;

/// How long the deep probes get: they are due every few seconds here.
const PATIENCE: Duration = Duration::from_secs(60);

/// The definition with deep probes that do not wait for the clock.
fn without_waiting(definition: String) -> String {
    let cron = Regex::new(r#"(?m)^( *)cron: .*$"#).expect("a pattern");
    cron.replace_all(&definition, "${1}every: 2s").into_owned()
}

#[tokio::test]
async fn every_account_signs_in_and_every_probe_passes() {
    let arena = Arena::up_edited(&[], without_waiting);
    let checked = arena.json(&["login", "--check", "--json"]);
    let checked = checked.as_array().expect("a list");
    assert!(checked.len() >= 2, "{checked:#?}");
    assert!(checked.iter().all(|account| account["ok"] == true), "{checked:#?}");

    let health = deeply_looked_at(&arena);
    for site in health["sites"].as_array().expect("sites") {
        let probes = site["probes"].as_array().expect("probes");
        assert_eq!(probes.len(), 2, "shallow and deep: {site:#}");
        let missed = probes.iter().flat_map(|probes| probes["rounds"].as_array().expect("rounds"));
        let missed: Vec<&Value> = missed.filter(|round| round["ok"] != true).collect();
        assert_eq!(missed, Vec::<&Value>::new(), "{}", site["site"]);
    }
}

/// The health of all sites, once each has had a deep round.
fn deeply_looked_at(arena: &Arena) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let health = arena.json(&["health", "--json"]);
        let sites = health["sites"].as_array().expect("sites");
        let deep = |site: &Value| site["probes"][1]["count"].as_u64().unwrap_or_default();
        if sites.iter().all(|site| deep(site) > 0) {
            return health;
        }
        assert!(Instant::now() < deadline, "a site has no deep rounds: {health:#}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The session is good behind the public address, until the site is reset.
#[tokio::test]
async fn a_session_is_the_customers() {
    let arena = Arena::up(&["shopping"]);
    let state = arena.json(&["login", "shopping", "--account", "customer", "--format", "playwright"]);
    let cookies = state["cookies"].as_array().expect("cookies");
    let pair = |cookie: &Value| format!("{}={}", cookie["name"].as_str().unwrap(), cookie["value"].as_str().unwrap());
    let header = cookies.iter().map(pair).collect::<Vec<_>>().join("; ");
    let profile = format!("{}/accounts/profile/", arena.url("shopping"));
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let ask = async || {
        let answer = client.get(&profile).header("Cookie", &header).send().await.expect("an answer");
        answer.text().await.expect("a page")
    };
    assert!(ask().await.contains("emma.lopez@gmail.com"));
    arena.json(&["reset", "shopping", "--json"]);
    assert!(!ask().await.contains("emma.lopez@gmail.com"), "nobody is signed in in the baseline");
}
