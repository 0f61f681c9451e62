//! Grants, order, repetition and ends.

use std::time::Duration;

use arenad_model::episode::life::HOLD_AGAIN_WITHIN;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{EpisodeClient, FREE_WITHIN, id, kill_container};
use crate::support::World;
use crate::support::wait::{PATIENCE, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_has_a_pristine_site_until_it_ends() {
    let world = World::single("episode");
    world.up();
    world.write("people");
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "owner": "ann", "labels": { "run": "7" }, "ttl_seconds": 60 })).await;
    let (id, token) = (id(&started), started["token"].as_str().unwrap());
    let episode = &started["episode"];
    let url = format!("http://localhost:{}", world.port);
    assert_eq!((&episode["state"], &episode["environment"]), (&json!("active"), &json!(world.name)));
    assert_eq!((&episode["sites"][0]["slot"], &episode["sites"][0]["url"]), (&json!(1), &json!(url)));
    assert_eq!((&episode["variables"]["SHOPPING"], &episode["variables"]["REDDIT"]), (&json!(url), &json!("todo")));
    assert_eq!(token.len(), 64);
    assert!(!world.page().contains("people"), "what people wrote is gone");
    world.write("agent");

    // No other client changes the site, and the token is shown once.
    world.run(&["reset", "toy"]).code(1).says(&id);
    let shown = world.run(&["episode", "show", &id, "--json"]).code(0);
    assert!(!shown.out.contains(token), "{}", shown.out);
    let log = std::fs::read_to_string(world.state_dir().join("arenad.log")).unwrap_or_default();
    assert!(!log.contains(token));
    world.run(&["episode", "ls"]).code(0).prints(&id).prints("run=7");
    let owned = |query: &str| format!("/v1/episodes?live=true&{query}");
    for (query, count) in [("owner=ann", 1), ("owner=bob", 0), ("label=run%3D7", 1), ("label=run%3D8", 0)] {
        let (_, found) = api.get(&owned(query)).await;
        assert_eq!(found["episodes"].as_array().map(Vec::len), Some(count), "{query}: {found:#}");
    }
    world.run(&["complete", "--", "episode", "end", "ep-"]).code(0).prints(&id);

    world.run(&["episode", "freeze", &id]).code(0).prints("frozen");
    world.run(&["episode", "unfreeze", &id]).code(0).prints("active");
    world.run(&["episode", "unfreeze", &id]).code(1).says("not frozen");
    let extended = world.run(&["episode", "extend", &id, "20m", "--json"]).code(0).json();
    assert!(extended["left_seconds"].as_f64().unwrap() > 1000.0, "{extended:#}");
    let (status, problem) =
        api.ask(Method::POST, &format!("/v1/episodes/{id}/heartbeat"), Some(json!({ "extend_seconds": 0 }))).await;
    assert_eq!((status, &problem["code"]), (400, &json!("bad_request")), "{problem:#}");

    world.run(&["episode", "end", &id]).code(0).prints(&id);
    let (status, problem) = api.ask(Method::DELETE, &format!("/v1/episodes/{id}"), None).await;
    assert_eq!((status, &problem["code"], &problem["ending"]["code"]), (410, &json!("ended"), &json!("client")));
    // The slot is free for the next one, which sees nothing of the first.
    let next = api.start(json!({ "sites": ["toy"] })).await;
    assert!(!world.page().contains("agent"));
    api.end(&super::id(&next)).await;
    world.run(&["episode", "ls"]).code(0).says("no episodes");
    world.run(&["episode", "ls", "--all", "--label", "run=7"]).code(0).prints("released");
    let (status, problem) = api.get("/v1/episodes/ep-00000000000000000000").await;
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_episode")));
    for (body, code) in [
        (json!({ "sites": ["toy"], "slots": { "toi": 1 } }), 400),
        (json!({ "sites": ["toy"], "slots": { "toy": 9 } }), 404),
        (json!({ "sites": ["toi"] }), 404),
        (json!({ "sites": ["toy", "toy"] }), 400),
        (json!({ "sites": ["toy"], "snapshots": { "toy": "none" } }), 404),
        (json!({ "ttl_seconds": 0 }), 400),
        (json!({ "owner": "a b" }), 400),
    ] {
        let (status, problem) = api.ask(Method::POST, "/v1/episodes", Some(body.clone())).await;
        assert_eq!(status, code, "{body}: {problem:#}");
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_for_one_slot_are_granted_in_the_order_of_their_arrival() {
    let world = World::single("queue");
    world.up();
    let api = EpisodeClient::of(&world);
    let first = id(&api.start(json!({})).await);
    let (status, problem) = api.ask(Method::POST, "/v1/episodes", Some(json!({ "wait_seconds": 0 }))).await;
    assert_eq!((status, &problem["code"], &problem["ending"]["code"]), (409, &json!("no_slot"), &json!("wait")));
    let second = api.queue(json!({ "owner": "ann" })).await;
    let third = api.queue(json!({ "owner": "bob" })).await;
    assert_eq!(api.waiting().await, [second.clone(), third.clone()]);
    let shown = world.run(&["queue"]).code(0);
    let rows: Vec<&str> = shown.out.lines().skip(1).collect();
    assert!(rows.len() == 2 && rows[0].contains(&second) && rows[1].contains(&third), "{}", shown.out);

    // A client that goes away while it waits leaves the queue.
    let impatient = api.client.post("http://arenad/v1/episodes").json(&json!({})).timeout(Duration::from_secs(1));
    assert!(impatient.send().await.unwrap_err().is_timeout());
    within("the request is withdrawn", FREE_WITHIN, || {
        let waiting = world.api("/v1/episodes/queue")?;
        (waiting["requests"].as_array()?.len() == 2).then_some(())
    });

    api.end(&first).await;
    api.until(&second, "active", PATIENCE).await;
    assert_eq!(api.state(&third).await, "queued");
    assert_eq!(api.waiting().await, std::slice::from_ref(&third));
    api.end(&second).await;
    api.until(&third, "active", PATIENCE).await;
    world.run(&["queue"]).code(0).says("no request waits");
    // The events have each state once, in order, and the stream ends with the episode.
    let events = api.stream(&format!("/v1/episodes/{third}/events?after=0")).await;
    api.end(&third).await;
    let text = tokio::time::timeout(PATIENCE, events.text()).await.unwrap().unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["episode.queued", "episode.preparing", "episode.active", "episode.released"], "{text}");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_gets_the_same_episode() {
    let world = World::single("key");
    world.up();
    let api = EpisodeClient::of(&world);
    let ask = |body, key| api.with_key(Method::POST, "/v1/episodes", Some(body), Some(key));
    let (status, first) = ask(json!({ "ttl_seconds": 60 }), "run-7").await;
    assert_eq!((status, &first["is_known"]), (201, &json!(false)), "{first:#}");
    let (status, again) = ask(json!({ "ttl_seconds": 60 }), "run-7").await;
    assert_eq!((status, &again["is_known"], id(&again)), (200, &json!(true), id(&first)), "{again:#}");
    assert_ne!(first["token"], again["token"]);
    let (status, other) = ask(json!({ "ttl_seconds": 61 }), "run-7").await;
    assert_eq!((status, &other["code"]), (422, &json!("key_reused")), "{other:#}");
    let (status, wrong) = ask(json!({}), "run\t7").await;
    assert_eq!((status, &wrong["code"]), (400, &json!("bad_request")), "{wrong:#}");
    world.run(&["episode", "start", "--ttl", "60s", "--key", "run-7"]).code(0).prints(&id(&first));
    api.end(&id(&first)).await;
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_whose_hold_is_lost_ends_and_its_slot_is_free() {
    let world = World::single("hold");
    world.up();
    let api = EpisodeClient::of(&world);
    // Held while it waits, and when it is active.
    let first = id(&api.start(json!({})).await);
    let second = api.queue(json!({ "ttl_seconds": 1 })).await;
    let hold = api.stream(&format!("/v1/episodes/{second}/hold")).await;
    let (status, problem) = api.get(&format!("/v1/episodes/{second}/hold")).await;
    assert_eq!((status, &problem["code"]), (409, &json!("already_held")), "{problem:#}");
    api.end(&first).await;
    api.until(&second, "active", PATIENCE).await;
    // The time to live is over, but the connection is there.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(api.state(&second).await, "active");
    world.write("agent");

    let third = api.queue(json!({})).await;
    drop(hold);
    api.until(&second, "released", FREE_WITHIN).await;
    let (_, ended) = api.get(&format!("/v1/episodes/{second}")).await;
    assert_eq!(ended["ending"]["code"], "hold_closed", "{ended:#}");
    api.until(&third, "active", PATIENCE).await;
    assert!(!world.page().contains("agent"));

    api.end(&third).await;
    // Without a hold and a heartbeat, the time to live ends an episode.
    let short = id(&api.start(json!({ "ttl_seconds": 1 })).await);
    api.until(&short, "expired", Duration::from_secs(1) + FREE_WITHIN).await;
    let path = format!("/v1/episodes/{short}/heartbeat");
    let (status, problem) = api.ask(Method::POST, &path, Some(json!({}))).await;
    assert_eq!((status, &problem["ending"]["code"]), (410, &json!("ttl")), "{problem:#}");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_holds_its_episode_leaves_nothing_behind() {
    let world = World::single("held");
    world.up();
    let api = EpisodeClient::of(&world);
    let hold = async |body: Value| {
        let mut body = body;
        body["hold"] = json!(true);
        let mut answer = api.client.post("http://arenad/v1/episodes").json(&body).send().await.unwrap();
        // The slot may have been granted already.
        assert!(answer.status().is_success(), "{}", answer.status());
        let first = answer.chunk().await.unwrap().unwrap();
        let data = std::str::from_utf8(&first).unwrap().strip_prefix("event: started\ndata: ").unwrap();
        let started: Value = serde_json::from_str(data.split("\n\n").next().unwrap()).unwrap();
        assert_eq!(started["token"].as_str().unwrap().len(), 64, "{started:#}");
        (id(&started), answer)
    };
    // The stream has each state, and the time to live does not run.
    let (first, mut answer) = hold(json!({ "ttl_seconds": 1 })).await;
    let mut told = String::new();
    while !told.contains(r#""state":"active""#) {
        told += std::str::from_utf8(&answer.chunk().await.unwrap().unwrap()).unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(api.state(&first).await, "active");
    // A client that goes away at once leaves the queue, and a client that has its slots gives them back.
    let (second, waiting) = hold(json!({})).await;
    drop(waiting);
    api.until(&second, "released", FREE_WITHIN).await;
    drop(answer);
    api.until(&first, "released", FREE_WITHIN).await;
    let (_, ended) = api.get(&format!("/v1/episodes/{first}")).await;
    assert_eq!(ended["ending"]["code"], "hold_closed", "{ended:#}");

    // The hold is recorded with the request: the next daemon knows of it, and ends the episode of a client that is gone.
    let (third, answer) = hold(json!({ "ttl_seconds": 3600 })).await;
    world.signal_daemon(Signal::KILL);
    drop(answer);
    world.up();
    let limit = HOLD_AGAIN_WITHIN + FREE_WITHIN + PATIENCE;
    api.until(&third, "released", limit).await;
    let (_, ended) = api.get(&format!("/v1/episodes/{third}")).await;
    assert_eq!(ended["ending"]["code"], "hold_closed", "{ended:#}");

    // A hold of a fork or of an unknown site is refused.
    let parent = id(&api.start(json!({})).await);
    let body = json!({ "from_episode": parent, "hold": true });
    let (status, problem) = api.ask(Method::POST, "/v1/episodes", Some(body)).await;
    assert_eq!((status, &problem["code"]), (400, &json!("bad_request")), "{problem:#}");
    let (status, problem) =
        api.ask(Method::POST, "/v1/episodes", Some(json!({ "sites": ["toi"], "hold": true }))).await;
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_site")), "{problem:#}");
    api.end(&parent).await;
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_goes_on_when_an_up_restores_its_site_late() {
    let world = World::single("late");
    world.up();
    let started = id(&EpisodeClient::of(&world).start(json!({})).await);
    world.write("agent");
    world.signal_daemon(Signal::KILL);
    // The kernel releases the lock of a killed process before its sockets.
    let thief = within("the port", PATIENCE, || std::net::TcpListener::bind(("127.0.0.1", world.port)).ok());
    world.run(&["up", &world.name]).code(1).says("is held by");
    drop(thief);
    world.run(&["up", &world.name]).code(0);
    let api = EpisodeClient::of(&world);
    let (_, episode) = api.get(&format!("/v1/episodes/{started}")).await;
    assert_eq!(episode["state"], "active", "{episode:#}");
    assert!(world.page().contains("agent"), "its containers serve it again");
    api.end(&started).await;
    // The site is recycled, and people and episodes get it.
    let next = api.start(json!({})).await;
    assert!(!world.page().contains("agent"));
    api.end(&id(&next)).await;
    world.reset();
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_whose_container_is_killed_is_void_and_says_so() {
    let world = World::single("void");
    world.up();
    let api = EpisodeClient::of(&world);
    let started = id(&api.start(json!({})).await);
    kill_container(&world);
    api.until(&started, "void", PATIENCE).await;
    let (_, episode) = api.get(&format!("/v1/episodes/{started}")).await;
    assert_eq!(episode["ending"]["code"], "container_died", "{episode:#}");
    assert_eq!(episode["ending"]["slot"], json!(format!("{}/toy/1", world.name)));
    let path = format!("/v1/episodes/{started}/evaluations");
    let (status, evaluated) = api.ask(Method::POST, &path, Some(json!({ "task": "anything" }))).await;
    assert_eq!((status, &evaluated["verdict"], &evaluated["reward"]), (200, &json!("void"), &json!(null)));
    assert_eq!(evaluated["ending"]["code"], "container_died", "{evaluated:#}");
    for (method, path) in [(Method::POST, "heartbeat"), (Method::GET, "hold")] {
        let (status, problem) = api.ask(method, &format!("/v1/episodes/{started}/{path}"), Some(json!({}))).await;
        assert_eq!((status, &problem["code"]), (410, &json!("void")), "{path}: {problem:#}");
    }
    world.run(&["episode", "extend", &started]).code(75).says("hint: repeat");
    // The slot is brought back for the next episode.
    let next = api.start(json!({})).await;
    api.end(&id(&next)).await;
    world.run(&["down"]).code(0);
    world.assert_down();
}
