//! The HTTP API as programs use it: access control, responses, waiting for operations, and following events.

#![allow(clippy::unwrap_used)]

mod python;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::world::{RunningCommand, free_port};

const TOKEN: &str = "a-long-random-token";

/// A daemon in the foreground, with the API on TCP too.
struct ForegroundDaemon {
    world: World,
    base: String,
    daemon: Option<RunningCommand>,
}

impl ForegroundDaemon {
    async fn start(label: &str) -> Self {
        let world = World::single(label);
        let port = free_port();
        let mut command = world.command(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
        command.env("ARENAD_TOKEN", TOKEN);
        let daemon = world.start_command(command);
        let served = Self { world, base: format!("http://127.0.0.1:{port}"), daemon: Some(daemon) };
        served.is_offered().await;
        served
    }

    /// Waits until the API answers on TCP.
    async fn is_offered(&self) {
        for _ in 0..600 {
            if self.ask(Method::GET, "/v1/version", Some(TOKEN), None).await.is_some_and(|(status, _)| status == 200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the API is not offered");
    }

    async fn ask(&self, method: Method, path: &str, token: Option<&str>, body: Option<Value>) -> Option<(u16, Value)> {
        let client = Client::builder().no_proxy().build().unwrap();
        let mut request = client.request(method, format!("{}{path}", self.base));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status();
        let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        if status.is_client_error() || status.is_server_error() {
            assert_eq!(kind.as_deref(), Some("application/problem+json"), "{path}");
        }
        let text = answer.text().await.ok()?;
        Some((status.as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, Some(TOKEN), None).await.unwrap()
    }
}

impl Drop for ForegroundDaemon {
    fn drop(&mut self) {
        let _ = self.world.run(&["down"]);
        if let Some(daemon) = self.daemon.take() {
            let _ = rustix::process::kill_process(daemon.pid(), rustix::process::Signal::TERM);
            daemon.ended();
        }
    }
}

#[tokio::test]
async fn tcp_wants_the_token_and_the_socket_its_owner() {
    let served = ForegroundDaemon::start("token").await;
    for token in [None, Some("wrong"), Some("")] {
        let (status, problem) = served.ask(Method::GET, "/v1/status", token, None).await.unwrap();
        assert_eq!((status, &problem["code"]), (401, &json!("unauthorized")), "{token:?}");
        assert!(problem["hint"].as_str().unwrap().contains("ARENAD_TOKEN"));
    }
    assert_eq!(served.get("/v1/status").await.0, 200);
    let socket = served.world.state_dir().join("arenad.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(served.world.state_dir()).unwrap().permissions().mode() & 0o777, 0o700);
    // Without a token the API is not offered on TCP.
    let other = World::single("notoken");
    other.run(&["serve", "--listen", "127.0.0.1:0"]).code(2).says("--listen requires a token").says("hint: ");
}

#[tokio::test]
async fn the_token_of_an_episode_opens_the_life_of_this_episode_alone() {
    let served = ForegroundDaemon::start("leasetoken").await;
    served.world.up();
    let start = json!({ "ttl_seconds": 300 });
    let (status, started) = served.ask(Method::POST, "/v1/episodes", Some(TOKEN), Some(start)).await.unwrap();
    assert_eq!(status, 201, "{started:#}");
    let (id, token) = (started["episode"]["id"].as_str().unwrap(), started["token"].as_str().unwrap());
    let path = |rest: &str| format!("/v1/episodes/{id}{rest}");
    let ask = async |method: Method, path: String, token: &str| {
        served.ask(method, &path, Some(token), Some(json!({}))).await.unwrap().0
    };
    assert_eq!(ask(Method::GET, path(""), token).await, 200);
    assert_eq!(ask(Method::POST, path("/heartbeat"), token).await, 200);
    for (method, path) in [
        (Method::GET, "/v1/status".to_owned()),
        (Method::GET, "/v1/episodes".to_owned()),
        (Method::POST, "/v1/episodes".to_owned()),
        (Method::POST, path("/evaluations")),
        (Method::POST, path("/freeze")),
        (Method::GET, path("/storage-state/toy")),
        (Method::GET, "/v1/episodes/ep-00000000000000000000".to_owned()),
    ] {
        assert_eq!(ask(method, path.clone(), token).await, 401, "{path}");
    }
    assert_eq!(ask(Method::GET, path(""), &token.replace(&token[..1], "x")).await, 401);
    assert_eq!(ask(Method::DELETE, path(""), token).await, 204);
    let (status, ended) = served.ask(Method::GET, &path(""), Some(token), None).await.unwrap();
    assert_eq!((status, &ended["ending"]["code"]), (200, &json!("client")), "{ended:#}");
}

#[tokio::test]
async fn a_token_from_a_file_is_in_no_list_of_processes() {
    let world = World::single("tokenfile");
    let file = world.root().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let port = free_port();
    let mut command = world.command(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
    command.env("ARENAD_TOKEN_FILE", &file);
    let daemon = world.start_command(command);
    let served = ForegroundDaemon { world, base: format!("http://127.0.0.1:{port}"), daemon: Some(daemon) };
    served.is_offered().await;
    assert_eq!(served.ask(Method::GET, "/v1/status", Some("wrong"), None).await.unwrap().0, 401);
    let pid = served.daemon.as_ref().unwrap().pid().as_raw_nonzero();
    for list in ["cmdline", "environ"] {
        let shown = std::fs::read(format!("/proc/{pid}/{list}")).unwrap();
        assert!(!shown.is_empty() && !String::from_utf8_lossy(&shown).contains(TOKEN), "{list} shows the token");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_answered_with_a_problem() {
    let served = ForegroundDaemon::start("problems").await;
    let cases = [
        (Method::GET, "/v1/nothing", None, 404, "not_found"),
        (Method::DELETE, "/v1/status", None, 405, "method_not_allowed"),
        (Method::GET, "/v1/operations/none", None, 404, "not_found"),
        (Method::GET, "/v1/resets/none", None, 404, "not_found"),
        (Method::DELETE, "/v1/snapshots/none", None, 404, "unknown_snapshot"),
        (Method::POST, "/v1/environments/none/resets", Some(json!({})), 404, "unknown_environment"),
        (Method::POST, "/v1/environments/none/resets", Some(json!({"sitez": []})), 400, "bad_request"),
        (Method::POST, "/v1/environments/none/resets", Some(json!("all")), 400, "bad_request"),
        (Method::GET, "/v1/environments/none/sites/x/logs", None, 404, "unknown_environment"),
        (Method::PUT, "/v1/environments/x", Some(json!({})), 400, "bad_request"),
    ];
    let long = "x".repeat(300);
    let names = ["a b", "..", ".", "a/b", "", "a\0b", &long];
    let take = "/v1/environments/none/sites/x/snapshots";
    let named = names.map(|name| (Method::POST, take, Some(json!({"name": name})), 400, "bad_name"));
    for (method, path, body, status, code) in cases.into_iter().chain(named) {
        let (found, problem) = served.ask(method.clone(), path, Some(TOKEN), body).await.unwrap();
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{method} {path}: {problem}");
        for key in ["type", "title", "detail", "request_id"] {
            assert!(problem[key].is_string(), "{path}: {key}");
        }
    }
    let wrong = json!({
        "root": served.world.root(), "variables": {},
        "environment": {"path": "environments/x.yaml", "text": "name: x\nsites: {}\nextra: 1\n"},
        "compose": {"path": "compose/x.yaml", "text": "services: {}\n"},
    });
    let (status, problem) = served.ask(Method::PUT, "/v1/environments/x", Some(TOKEN), Some(wrong)).await.unwrap();
    assert_eq!((status, problem["code"].as_str()), (422, Some("definition")));
    assert!(problem["detail"].as_str().unwrap().contains("environments/x.yaml:3:1"), "{problem}");
}

#[tokio::test]
async fn resets_are_joined_waited_for_and_told() {
    let served = ForegroundDaemon::start("resets").await;
    let name = served.world.name.clone();
    served.world.up();
    let path = format!("/v1/environments/{name}/resets");
    let ask = || served.ask(Method::POST, &path, Some(TOKEN), Some(json!({"sites": ["toy"]})));
    let (first, second) = tokio::join!(ask(), ask());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((first.0, second.0), (202, 202));
    let operation = |answer: &(u16, Value)| answer.1["operations"][0].clone();
    assert_eq!(operation(&first)["id"], operation(&second)["id"], "the second joins the first");
    let joined = [operation(&first)["joined"].clone(), operation(&second)["joined"].clone()];
    assert!(joined.contains(&json!(true)) && joined.contains(&json!(false)), "{joined:?}");
    let id = operation(&first)["id"].as_str().unwrap().to_owned();
    let (status, ended) = served.get(&format!("/v1/operations/{id}?wait=60")).await;
    assert_eq!((status, ended["state"].as_str()), (200, Some("done")), "{ended}");
    let stages: Vec<&str> =
        ended["reset"]["stages"].as_array().unwrap().iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    for stage in ["hold", "create", "start", "remove", "ready"] {
        assert!(stages.contains(&stage), "{stages:?}");
    }
    let (status, reset) = served.get(&format!("/v1/resets/{id}")).await;
    assert_eq!((status, reset["outcome"].as_str()), (200, Some("done")));
    let (_, status) = served.get("/v1/status").await;
    let site = &status["environments"][0]["sites"][0];
    assert_eq!(site["last_reset"]["id"], json!(id));
    assert_eq!(site["conditions"][0]["status"], json!("True"));
    let (status, _) = served.get(&format!("/v1/operations/{id}?wait=NaN")).await;
    assert_ne!(status, 500);
}

#[tokio::test]
async fn events_are_followed_from_where_a_client_left_off() {
    let served = ForegroundDaemon::start("events").await;
    served.world.up();
    let (_, past) = served.get("/v1/events?limit=1000").await;
    let past = past["events"].as_array().unwrap().clone();
    let kinds: Vec<&str> = past.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    for kind in ["daemon.started", "instance.preparing", "snapshot.stored", "instance.ready"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let left_off = past[past.len() - 2]["seq"].as_i64().unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    let request = client.get(format!("{}/v1/events?follow=true", served.base)).bearer_auth(TOKEN);
    let mut stream = request.header("last-event-id", left_off.to_string()).send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    served.world.run(&["reset", "toy"]).code(0);
    let mut text = String::new();
    while !text.contains("event: instance.reset\n") {
        let chunk = tokio::time::timeout(Duration::from_secs(60), stream.chunk()).await.expect("an event in time");
        text.push_str(&String::from_utf8_lossy(&chunk.unwrap().expect("the stream goes on")));
    }
    let sequence: Vec<i64> = text.lines().filter_map(|line| line.strip_prefix("id:")?.trim().parse().ok()).collect();
    assert_eq!(sequence.first(), Some(&(left_off + 1)), "nothing is left out");
    assert!(sequence.windows(2).all(|pair| pair[1] == pair[0] + 1), "in order, without gaps: {sequence:?}");
}

#[tokio::test]
async fn the_command_line_works_over_tcp() {
    let served = ForegroundDaemon::start("remote").await;
    served.world.up();
    let over_tcp = |token: Option<&str>, args: &[&str]| {
        let mut command = served.world.command(args);
        command.env("ARENAD_HOST", &served.base).env_remove("ARENAD_STATE_DIR").env("HOME", "/nonexistent");
        if let Some(token) = token {
            command.env("ARENAD_TOKEN", token);
        }
        served.world.start_command(command).ended()
    };
    over_tcp(None, &["ps"]).code(1).says("bearer token").says("hint: ");
    let file = served.world.root().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let file = file.to_str().unwrap();
    over_tcp(None, &["ps", "--token-file", file]).code(0).prints("toy");
    over_tcp(None, &["ps", "--token-file", "/nonexistent"]).code(1).says("read the token from /nonexistent");
    over_tcp(Some(TOKEN), &["ps", "--token-file", file]).code(2).says("cannot be used with");
    over_tcp(Some(TOKEN), &["reset", "toy"]).code(0).prints("recreate");
    let status = over_tcp(Some(TOKEN), &["status", "--json"]).code(0).json();
    assert_eq!(status["environments"][0]["sites"][0]["generation"], json!(2));
}
