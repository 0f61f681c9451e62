//! Episodes on several slots as Python uses them: values, sessions and judgements on their own slots, and the plug-in for
//! pytest.

use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use super::proxied::{BASELINE, ProxiedEpisode};
use super::{EpisodeClient, harnesses, id, ported};
use crate::support::World;

/// Tasks of the site.
const TASKS: &str = "
environment: @NAME@
tasks:
  - name: toy.write
    kind: content
    sites: [toy]
    start: { path: /cgi-bin/page }
    intent: Make the site remember pears
    check: { locate: 'http: /cgi-bin/page', contains: pears }
  - name: toy.page
    kind: navigation
    sites: [toy]
    start: { path: /cgi-bin/page }
    intent: Show me the page
    check: { url: { site: toy, path: /cgi-bin/page } }
";

/// A world whose site has up to three slots with own ports, and two native tasks.
fn world(label: &str) -> World {
    let (world, _) = ported::world(label, "unchanged");
    world.write_tasks(TASKS);
    world
}

async fn locate(api: &EpisodeClient, episode: &str, site: &str) -> (u16, Value) {
    let path = format!("/v1/episodes/{episode}/locate/{site}");
    api.ask(Method::POST, &path, Some(json!({ "locator": "http: /cgi-bin/page" }))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_read_on_the_slot_of_the_episode() {
    let world = world("located");
    world.up();
    let api = EpisodeClient::of(&world);
    let (one, other) = tokio::join!(ProxiedEpisode::start(&api), ProxiedEpisode::start(&api));
    one.write("of-one").await;
    other.write("of-other").await;
    for (episode, word) in [(&one, "of-one"), (&other, "of-other")] {
        let (status, located) = locate(&api, &episode.id, "toy").await;
        assert_eq!((status, &located["value"]), (200, &json!(format!("{BASELINE}{word}\n"))), "{located:#}");
        assert_eq!(located["evidence"]["instance"], episode.started["episode"]["sites"][0]["instance"]);
    }
    let (status, problem) = locate(&api, &one.id, "forum").await;
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_site")), "{problem:#}");
    let log_in = format!("/v1/episodes/{}/login/toy", one.id);
    let (status, problem) = api.ask(Method::POST, &log_in, None).await;
    assert_eq!((status, &problem["code"]), (409, &json!("no_login")), "{problem:#}");

    let queued =
        api.queue(json!({ "sites": ["toy"], "slots": { "toy": other.started["episode"]["sites"][0]["slot"] } }));
    let queued = queued.await;
    let (status, problem) = locate(&api, &queued, "toy").await;
    assert_eq!(status, 409, "{problem:#}");
    api.end(&one.id).await;
    let (status, problem) = locate(&api, &one.id, "toy").await;
    assert_eq!((status, &problem["ending"]["code"]), (410, &json!("client")), "{problem:#}");
    for episode in [&queued, &id(&other.started)] {
        api.end(episode).await;
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_page_is_judged_at_every_address_of_the_episode() {
    let world = world("lastpage");
    world.up();
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "task": "toy.page", "wait_seconds": 120 })).await;
    let site = &started["episode"]["sites"][0];
    assert_eq!(site["url"], Value::Null, "it is not slot 1: {site:#}");
    let verdict = async |url: &str| {
        let path = format!("/v1/episodes/{}/evaluations", id(&started));
        let (_, judged) = api.ask(Method::POST, &path, Some(json!({ "url": url, "certificate": false }))).await;
        judged["verdict"].as_str().unwrap_or_else(|| panic!("{judged:#}")).to_owned()
    };
    let (own, port) = (site["port_url"].as_str().unwrap().to_owned(), world.port);
    let episode = own.replace("localhost", &format!("{}.localhost", id(&started)));
    let common = [format!("http://arena.test:{port}"), format!("http://localhost:{port}"), own, episode];
    for address in common.iter().map(String::as_str).chain(["http://toy.arena.test", "http://TOY.arena.test"]) {
        assert_eq!(verdict(&format!("{address}/cgi-bin/page")).await, "passed", "{address}");
        assert_eq!(verdict(&format!("{address}/cgi-bin/other")).await, "failed", "{address}");
    }
    for address in ["http://elsewhere.test", "http://other.arena.test", "http://localhost:1"] {
        assert_eq!(verdict(&format!("{address}/cgi-bin/page")).await, "failed", "{address}");
    }
    api.end(&id(&started)).await;
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn the_plug_in_for_pytest_gives_each_test_an_episode_and_tells_faults_of_the_environment_from_failures() {
    let world = world("plugin");
    world.up();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let report = world.root().join("report.xml");
    let output = Command::new(harnesses::python())
        .args(["-m", "pytest", "-q", "--junitxml"])
        .arg(&report)
        .current_dir(root.join("tests/harnesses/plugin"))
        .env("PYTHONPATH", root.join("clients/python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("ARENAD_STATE_DIR", world.state_dir())
        .env_remove("ARENAD_HOST")
        .env_remove("PYTEST_ADDOPTS")
        .output()
        .expect("pytest runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 failed, 6 passed, 3 errors"), "{said}");
    assert!(said.contains("EpisodeVoid: the episode has ended: void, because a container of"), "{said}");
    let report = std::fs::read_to_string(report).unwrap();
    let cases: Vec<&str> = report.split("<testcase ").skip(1).collect();
    assert_eq!(cases.len(), 10, "{report}");
    for case in cases {
        let name = case.split("name=\"").last().and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let outcome = ["failure", "error"].into_iter().find(|kind| case.contains(&format!("<{kind} ")));
        let expected = match name.split('_').nth(1) {
            Some("fails") => Some("failure"),
            Some("errors") => Some("error"),
            _ => None,
        };
        assert_eq!(outcome, expected, "{case}");
    }
    let listed = world.api("/v1/episodes?live=true").unwrap();
    assert_eq!(listed["episodes"], Value::Array(Vec::new()), "each test has ended its episode");
    world.run(&["down"]).code(0);
    world.assert_down();
}
