//! Evaluations of an episode on its own slot, its traffic, and its accounts.

use reqwest::Method;
use serde_json::json;

use super::{EpisodeClient, id};
use crate::support::World;

const TASKS: &str = r#"
environment: @NAME@
tasks:
  - name: toy.write
    kind: content
    sites: [toy]
    intent: Make the site remember apples
    before:
      lines: { locate: "exec: toy: wc -l /srv/state/notes" }
    check:
      all:
        - { name: one line more, locate: "exec: toy: wc -l /srv/state/notes", difference: { from: lines, by: 1 } }
        - { name: the word, locate: "http: /cgi-bin/page", contains: apples }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_is_judged_by_its_own_slot_and_only_while_it_has_it() {
    let world = World::single("judged");
    world.write_tasks(TASKS);
    world.edit("environment", "variable: SHOPPING", "variable: SHOPPING, record: all");
    world.up();
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "task": "toy.write" })).await;
    assert_eq!(started["episode"]["labels"]["task"], "toy.write", "{started:#}");
    let id = id(&started);
    let path = |rest: &str| format!("/v1/episodes/{id}/{rest}");
    let (status, begun) = api.ask(Method::POST, &path("evaluations/begin"), Some(json!({}))).await;
    assert_eq!((status, &begun["task"]), (200, &json!("toy.write")), "{begun:#}");
    let judge = async |body| api.ask(Method::POST, &path("evaluations"), Some(body)).await;
    let (status, problem) = judge(json!({})).await;
    assert_eq!((status, &problem["code"]), (422, &json!("not_begun")), "{problem:#}");
    let (_, failed) = judge(json!({ "begun": begun })).await;
    assert_eq!((&failed["verdict"], &failed["reward"]), (&json!("failed"), &json!(0.0)), "{failed:#}");
    assert_eq!(api.state(&id).await, "active", "the evaluation has ended");
    world.write("apples");
    let (_, passed) = judge(json!({ "begun": begun })).await;
    assert_eq!((&passed["verdict"], &passed["reward"]), (&json!("passed"), &json!(1.0)), "{passed:#}");
    let (status, problem) = judge(json!({ "benchmark": { "benchmark": "webarena", "task": {} }, "task": "x" })).await;
    assert_eq!((status, &problem["code"]), (400, &json!("bad_request")), "{problem:#}");

    let (_, har) = api.get(&path("har")).await;
    let urls: Vec<&str> =
        har["log"]["entries"].as_array().unwrap().iter().filter_map(|entry| entry["request"]["url"].as_str()).collect();
    assert!(urls.iter().any(|url| url.ends_with("/cgi-bin/write?apples")), "{urls:#?}");
    let (status, problem) = api.get(&path("storage-state/toy")).await;
    assert_eq!((status, &problem["code"]), (409, &json!("no_login")), "{problem:#}");
    let (status, problem) = api.get(&path("storage-state/forum")).await;
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_site")), "{problem:#}");

    api.end(&id).await;
    let (status, problem) = judge(json!({ "begun": begun })).await;
    assert_eq!((status, &problem["code"]), (410, &json!("ended")), "{problem:#}");
    let (status, problem) = api.get(&path("har")).await;
    assert_eq!((status, &problem["code"]), (404, &json!("no_record")), "{problem:#}");
    world.run(&["down"]).code(0);
    world.assert_down();
}
