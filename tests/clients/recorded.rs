//! Records of episodes: on disk as they go, without secrets, and complete after a kill of the daemon.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Client, Proxy};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::proxied::{serve, serve_at};
use super::{EpisodeClient, id};
use crate::support::wait::{PATIENCE, within};
use crate::support::{World, until};

/// A world whose site has two slots, so that its episodes use the proxy unless they ask for slot 1.
fn world(label: &str) -> World {
    let world = World::single(label);
    world.edit("environment", "title: Toy", "title: Toy\n    slots: { min: 2, max: 2 }");
    world
}

/// Returns a client of an episode, through the episode proxy.
fn proxied(started: &Value) -> Client {
    let text = |name: &str| started["proxy"][name].as_str().unwrap().to_owned();
    let proxy = Proxy::http(text("server")).unwrap().basic_auth(&text("username"), &text("password"));
    Client::builder().proxy(proxy).timeout(Duration::from_secs(20)).build().unwrap()
}

/// Returns the part of each URL after the host, in the order of the HAR.
fn paths(har: &Value) -> Vec<String> {
    let entries = har["log"]["entries"].as_array().unwrap_or_else(|| panic!("{har:#}"));
    let path = |entry: &Value| {
        let url = entry["request"]["url"].as_str().unwrap();
        url.splitn(4, '/').nth(3).unwrap_or_default().to_owned()
    };
    entries.iter().map(path).collect()
}

fn har_of(id: &str) -> String {
    format!("/v1/episodes/{id}/har")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_read_while_its_episode_runs_and_after_it() {
    let world = world("recorded");
    world.up();
    let api = EpisodeClient::of(&world);
    // Slot 1 has the public port as well, so both doors lead to it.
    let asked = json!({ "sites": ["toy"], "slots": { "toy": 1 }, "record": "all", "wait_seconds": 60 });
    let started = api.start(asked).await;
    let episode = id(&started);
    assert_eq!(started["episode"]["record"], "all");
    let client = proxied(&started);
    let url = "http://toy.arena.test/cgi-bin/page?token=hunter2";
    let answer = client.get(url).header("Authorization", "Bearer hunter2").send().await.unwrap();
    let page = answer.text().await.unwrap();
    world.write("at-the-port");
    let body = [("user", "ann"), ("password", "hunter2")];
    client.post("http://toy.arena.test/cgi-bin/page").form(&body).send().await.unwrap().text().await.unwrap();

    // Writing at the port reads the page as well.
    let expected = ["cgi-bin/page?token=[redacted]", "cgi-bin/write?at-the-port", "cgi-bin/page", "cgi-bin/page"];
    let (status, running) = api.get(&har_of(&episode)).await;
    assert_eq!((status, paths(&running)), (200, expected.map(str::to_owned).to_vec()), "{running:#}");
    let entries = &running["log"]["entries"];
    assert_eq!(entries[0]["response"]["content"]["text"], page);
    assert_eq!(entries[3]["request"]["postData"]["text"], "user=ann&password=[redacted]");
    let site = &running["log"]["_arenad"]["sites"][0];
    assert_eq!(
        (&site["site"], &site["variable"], &site["records"]),
        (&json!("toy"), &json!("SHOPPING"), &json!("all"))
    );
    assert_eq!(site["lacks"], Value::Null, "{site:#}");
    for address in ["http://toy.arena.test".to_owned(), format!("http://localhost:{}", world.port)] {
        assert!(site["urls"].as_array().unwrap().contains(&json!(address)), "{site:#}");
    }
    let folder = world.state_dir().join("records").join(&episode);
    let text = fs::read_to_string(folder.join("exchanges.jsonl")).unwrap();
    assert!(!text.contains("hunter2") && text.contains("at-the-port"), "{text}");
    let token = started["token"].as_str().unwrap();
    assert!(!text.contains(token), "the credentials of the episode are not in its record");
    assert_eq!((mode(&folder), mode(&folder.join("exchanges.jsonl"))), (0o700, 0o600));

    api.end(&episode).await;
    let (status, ended) = api.get(&har_of(&episode)).await;
    assert_eq!((status, &ended["log"]["entries"]), (200, entries));

    // An episode that asks for no record has none, and one that records writes has no reads.
    let other = api.start(json!({ "sites": ["toy"], "wait_seconds": 60 })).await;
    proxied(&other).get("http://toy.arena.test/cgi-bin/page").send().await.unwrap();
    api.end(&id(&other)).await;
    let (status, problem) = api.get(&har_of(&id(&other))).await;
    assert_eq!((status, &problem["code"]), (404, &json!("no_record")), "{problem:#}");
    let writing = api.start(json!({ "sites": ["toy"], "record": "writes", "wait_seconds": 60 })).await;
    let client = proxied(&writing);
    client.get("http://toy.arena.test/cgi-bin/page").send().await.unwrap();
    client.put("http://toy.arena.test/cgi-bin/page?written").send().await.unwrap();
    let (_, har) = api.get(&har_of(&id(&writing))).await;
    assert_eq!(paths(&har), ["cgi-bin/page?written"]);
    api.end(&id(&writing)).await;
    let (status, problem) = api.ask(reqwest::Method::POST, "/v1/episodes", Some(json!({ "record": "some" }))).await;
    assert_eq!(status, 400, "{problem:#}");

    // A new daemon has the records of the last one.
    world.signal_daemon(Signal::TERM);
    until("the daemon has ended", PATIENCE, || world.daemon(), Option::is_none);
    let _daemon = world.start_command(serve(&world));
    let later = within("the new daemon", PATIENCE, || world.api(&har_of(&episode)));
    assert_eq!(&later["log"]["entries"], entries);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().to_str().unwrap();
    world.run(&["episode", "export", &episode, "-o", output]).code(0).prints(".har");
    let file = fs::read_to_string(folder.path().join(format!("{episode}.har"))).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&file).unwrap(), later);
    world.run(&["down"]).code(0);
    world.signal_daemon(Signal::TERM);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_response_that_a_client_has_read_is_missing_after_a_kill_of_the_daemon() {
    let world = world("killed-record");
    world.up();
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "sites": ["toy"], "record": "all", "wait_seconds": 60 })).await;
    let episode = id(&started);
    let acknowledged: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let (client, acknowledged, is_over) = (proxied(&started), acknowledged.clone(), is_over.clone());
            tokio::spawn(async move {
                for request in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    let path = format!("cgi-bin/page?{number}-{request}");
                    let answer = client.get(format!("http://toy.arena.test/{path}")).send().await;
                    let Ok(answer) = answer else { break };
                    if answer.status() == 200 && answer.text().await.is_ok() {
                        acknowledged.lock().unwrap().insert(path);
                    }
                }
            })
        })
        .collect();
    let read = || acknowledged.lock().unwrap().len();
    until("requests", PATIENCE, read, |read| *read > 40);
    world.signal_daemon(Signal::KILL);
    is_over.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    // The end of a line that the daemon was writing, as a crash at another moment leaves it.
    let file = world.state_dir().join("records").join(&episode).join("exchanges.jsonl");
    let mut torn = fs::read(&file).unwrap();
    torn.extend_from_slice(b"{\"entry\":{\"startedDateTime\":\"2026");
    fs::write(&file, torn).unwrap();

    let proxy = started["proxy"]["server"].as_str().unwrap();
    let _daemon = world.start_command(serve_at(&world, proxy));
    until("the site", PATIENCE, || world.state(), |state| state == "ready");
    let client = proxied(&started);
    let after = async || match client.get("http://toy.arena.test/cgi-bin/page?after").send().await {
        Ok(answer) => answer.status() == 200 && answer.text().await.is_ok(),
        Err(_) => false,
    };
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !after().await {
        assert!(tokio::time::Instant::now() < deadline, "the episode does not go on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let api = EpisodeClient::of(&world);
    let (status, har) = api.get(&har_of(&episode)).await;
    assert_eq!(status, 200, "{har:#}");
    let recorded: BTreeSet<String> = paths(&har).into_iter().collect();
    let acknowledged = acknowledged.lock().unwrap().clone();
    let missing: Vec<&String> = acknowledged.difference(&recorded).collect();
    assert!(missing.is_empty(), "{} of {} are missing: {missing:?}", missing.len(), acknowledged.len());
    assert!(recorded.contains("cgi-bin/page?after"), "the record goes on");
    let lacks = har["log"]["_arenad"]["sites"][0]["lacks"].as_str().unwrap();
    assert!(lacks.contains("ended without notice"), "{lacks}");
    api.end(&episode).await;
    assert_eq!(api.get(&har_of(&episode)).await.1["log"]["entries"], har["log"]["entries"]);
    world.run(&["down"]).code(0);
    world.signal_daemon(Signal::TERM);
}

#[test]
fn a_command_leaves_the_requests_of_its_episode_behind() {
    let world = world("har-of-run");
    world.up();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("hars");
    let output = output.to_str().unwrap();
    let script = "curl --silent --proxy \"$ARENAD_PROXY_URL\" --noproxy '' \"$ARENAD_URL_TOY/cgi-bin/page?$ARENAD_RUN\"; \
                  echo \"episode $ARENAD_EPISODE\"; exit 3";
    let run = |options: &[&str]| {
        let args = [&["run", "--sites", "toy", "--wait", "2m"], options, &["--", "/bin/sh", "-c", script]].concat();
        world.run(&args)
    };
    // Also if the command fails.
    let ran = run(&["--har", output]).code(3).says("the requests of ep-");
    let episode = ran.out.lines().find_map(|line| line.strip_prefix("episode ")).unwrap().to_owned();
    let file = fs::read_to_string(format!("{output}/{episode}.har")).unwrap();
    assert_eq!(paths(&serde_json::from_str(&file).unwrap()), ["cgi-bin/page?1"]);
    run(&["--har", output, "--record", "none"]).code(2).says("--har requires a record");
    let blocked = format!("{output}/{episode}.har");
    run(&["--har", &blocked]).code(3).says("create");

    // The folder of webarena-verified.
    let verified = folder.path().join("verified");
    let verified = verified.to_str().unwrap();
    let export = |options: &[&str]| {
        let args =
            [&["episode", "export", &episode, "--format", "webarena-verified", "-o", verified], options].concat();
        world.run(&args)
    };
    export(&["--task", "21"]).code(2).says("without the agent's response");
    let response = folder.path().join("answer.json");
    let answer = r#"{"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["a"], "error_details": null}"#;
    fs::write(&response, answer).unwrap();
    let response = response.to_str().unwrap();
    export(&["--response", response]).code(2).says("does not name a task");
    export(&["--response", response, "--task", "21"]).code(0).prints("21/network.har");
    let read = |name: &str| fs::read_to_string(format!("{verified}/21/{name}")).unwrap();
    assert_eq!(read("agent_response.json"), answer);
    assert_eq!(serde_json::from_str::<Value>(&read("network.har")).unwrap()["log"]["entries"], {
        serde_json::from_str::<Value>(&file).unwrap()["log"]["entries"].clone()
    });
    let config: Value = serde_json::from_str(&read("run_config.json")).unwrap();
    let urls = config["environments"]["__SHOPPING__"]["urls"].as_array().unwrap();
    assert!(urls.contains(&json!("http://toy.arena.test")), "{config:#}");
    // A response that the harness wrote is left alone.
    export(&["--task", "21"]).code(0);
    assert_eq!(read("agent_response.json"), answer);
    world.run(&["episode", "export", "ep-00000000000000000000"]).code(2).says("the episode is unknown");
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
    assert!(!world.state_dir().exists(), "the record is removed with the rest");
}
