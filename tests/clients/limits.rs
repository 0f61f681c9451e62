//! The limits of episodes that an operator sets: quotas of owners, the length of the queue, and the time to live.

use reqwest::Method;
use reqwest::header::RETRY_AFTER;
use serde_json::{Value, json};

use super::{EpisodeClient, id};
use crate::support::World;
use crate::support::wait::PATIENCE;

/// The settings of the daemon.
const SETTINGS: [(&str, &str); 4] = [
    ("ARENAD_QUOTA", "2,bob=1,eve=0"),
    ("ARENAD_QUEUE_LIMIT", "3"),
    ("ARENAD_OWNER_QUEUE_LIMIT", "2"),
    ("ARENAD_TTL_LIMIT", "2m"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_has_the_limits_that_it_was_started_with() {
    let world = World::single("limits");
    // All episodes share the site, so that only the settings limit their number.
    world.edit("environment", "    baseline:\n", "    reset: { strategy: keep }\n    baseline:\n");
    let mut up = world.command(&["up", &world.name]);
    up.envs(SETTINGS);
    world.start_command(up).ended().code(0);
    let api = EpisodeClient::of(&world);
    let status = world.api("/v1/status").unwrap();
    let limits = json!({
        "quota": 2, "quotas": { "bob": 1, "eve": 0 }, "queue": 3, "owner_queue": 2, "ttl_seconds": 120
    });
    assert_eq!(status["daemon"]["episodes"], limits);
    world.run(&["status", "--verbose"]).code(0).prints("2 at once for each owner, bob 1, eve 0").prints("2m");

    // Times to live: the default is the limit if that is shorter, and no heartbeat exceeds it.
    let start = async |body: Value| api.ask(Method::POST, "/v1/episodes", Some(body)).await;
    for ttl in [121, 600] {
        let (status, problem) = start(json!({ "owner": "ann", "ttl_seconds": ttl })).await;
        assert_eq!((status, &problem["code"]), (400, &json!("bad_request")), "{problem:#}");
        assert!(problem["detail"].as_str().unwrap().contains("at most 120 s"), "{problem:#}");
    }
    let started = api.start(json!({ "owner": "ann" })).await;
    assert_eq!(started["episode"]["ttl_seconds"], 120.0, "{started:#}");
    let first = id(&started);
    let heartbeat = format!("/v1/episodes/{first}/heartbeat");
    let (status, problem) = api.ask(Method::POST, &heartbeat, Some(json!({ "extend_seconds": 121 }))).await;
    assert_eq!((status, &problem["code"]), (400, &json!("bad_request")), "{problem:#}");
    assert_eq!(api.ask(Method::POST, &heartbeat, Some(json!({ "extend_seconds": 120 }))).await.0, 200);

    // Quotas: a request beyond it waits, that of another owner passes, and an owner without a quota is refused.
    api.start(json!({ "owner": "ann", "ttl_seconds": 120 })).await;
    let (status, problem) = start(json!({ "owner": "ann", "wait_seconds": 0 })).await;
    assert_eq!((status, &problem["code"]), (409, &json!("no_slot")), "{problem:#}");
    let third = api.queue(json!({ "owner": "ann" })).await;
    api.start(json!({ "owner": "bob" })).await;
    let of_bob = api.queue(json!({ "owner": "bob" })).await;
    let (status, problem) = start(json!({ "owner": "eve" })).await;
    assert_eq!((status, &problem["code"]), (403, &json!("no_quota")), "{problem:#}");
    let (_, queue) = api.get("/v1/episodes/queue").await;
    for request in queue["requests"].as_array().unwrap() {
        assert_eq!(request["is_over_quota"], true, "{request:#}");
    }

    // The queue: that of one owner is full first, then the whole.
    let fourth = api.queue(json!({ "owner": "ann" })).await;
    assert_eq!(api.waiting().await, [third.clone(), of_bob.clone(), fourth.clone()]);
    let refused = async |owner: &str| {
        let body = json!({ "owner": owner, "detach": true });
        let answer = api.client.post("http://arenad/v1/episodes").json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 429);
        let pause: u64 = answer.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&pause), "{pause}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        answer.json::<Value>().await.unwrap()
    };
    for owner in ["ann", "dan"] {
        let problem = refused(owner).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(problem["code"] == "queue_full" && detail.starts_with("3 requests are waiting"), "{problem:#}");
    }
    api.end(&of_bob).await;
    let problem = refused("ann").await;
    assert!(problem["detail"].as_str().unwrap().starts_with("2 requests of ann are waiting"), "{problem:#}");
    api.queue(json!({ "owner": "bob" })).await;

    // An episode that ends makes room for the next of its owner.
    assert_eq!(api.state(&third).await, "queued");
    api.end(&first).await;
    api.until(&third, "active", PATIENCE).await;
    assert_eq!(api.state(&fourth).await, "queued");

    let mut twice = world.command(&["serve"]);
    twice.env("ARENAD_QUOTA", "2,3");
    world.start_command(twice).ended().code(2).says("two quotas");
    world.run(&["down"]).code(0);
    world.assert_down();
}
