//! The gateway's recording of an agent's traffic, and locators that read it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::World;
use crate::support::wait::{PATIENCE, until};

/// Answers with the number of received bytes, and sets a cookie of each kind.
const ECHO: &str = "#!/bin/sh\nread=$(wc -c)\n\
    printf 'Content-Type: application/json\\r\\nSet-Cookie: sid=hush1; HttpOnly\\r\\nSet-Cookie: seen=yes\\r\\n\\r\\n'\n\
    printf '{\"got\": %s, \"token\": \"hush2\"}\\n' \"$read\"\n";

const TASKS: &str = r#"
environment: @NAME@
tasks:
  - name: toy.post
    kind: content
    sites: [toy]
    intent: Send the quantity 2, once
    check:
      all:
        - { name: once, locate: "trace: POST /cgi-bin/echo | count", equals: 1 }
        - { name: the quantity, locate: "trace: POST /cgi-bin/echo | jsonpath: $.body.quantity", equals: "2" }
"#;

fn world() -> World {
    let world = World::single("recorded");
    let script = world.root().join("compose/toy/root/srv/www/cgi-bin/echo");
    std::fs::write(&script, ECHO).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.write_tasks(TASKS);
    let task = json!([{
        "sites": ["shopping"], "task_id": 1, "intent_template_id": 1, "start_urls": ["__SHOPPING__"], "intent": "?",
        "intent_template": "?", "instantiation_dict": {}, "revision": 1,
        "eval": [{ "evaluator": "NetworkEventEvaluator", "expected": {
            "url": "__SHOPPING__/cgi-bin/echo", "post_data": { "quantity": "2" }, "http_method": "POST",
        } }, { "evaluator": "AgentResponseEvaluator", "results_schema": { "type": "null" },
            "expected": { "task_type": "mutate", "status": "SUCCESS", "retrieved_data": null } }],
    }]);
    std::fs::write(world.root().join("verified.json"), task.to_string()).unwrap();
    world.edit("environment", "variable: SHOPPING", "variable: SHOPPING, record: all");
    world
}

/// Sends a request as a client would, and returns the answer.
fn send(world: &World, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", world.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    let (port, length) = (world.port, body.len());
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n{headers}");
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn order(world: &World, quantity: &str) {
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let answer = send(world, "POST", "/cgi-bin/echo", form, &format!("quantity={quantity}&note=a+b"));
    assert!(answer.contains("\"got\""), "{answer}");
}

#[track_caller]
fn value(world: &World, locator: &str) -> Value {
    world.run(&["locate", "toy", locator, "--json"]).code(0).json()["value"].clone()
}

fn verdict(world: &World, profile: &str, code: i32) -> Value {
    let answer = r#"{"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": null}"#;
    let base = ["eval", "--benchmark", "webarena-verified", "--tasks", "verified.json", "--task", "1", "--json"];
    let options = ["--answer", answer, "--environment", &world.name, "--profile", profile];
    world.run(&[&base[..], &options].concat()).code(code).json()
}

#[test]
fn what_agents_send_is_recorded_until_the_next_reset() {
    let world = world();
    world.up();
    assert_eq!(value(&world, "trace: * | count"), 0, "probes and warming do not go through the public port");

    order(&world, "2");
    assert_eq!(value(&world, "trace: POST /cgi-bin/echo | jsonpath: $.body.quantity"), "2");
    assert_eq!(value(&world, "trace: POST /cgi-bin/echo | jsonpath: $.answer.got"), 19);
    world.run(&["check", "toy.post", "--answer", "done", "--evidence", "check.json"]).code(0);
    assert_eq!(verdict(&world, "strict", 0)["reports"][0]["verdict"], "passed");
    order(&world, "3");
    world.run(&["check", "toy.post"]).code(5).prints("once");
    let login = json!({ "username": "somebody", "password": "hush3" }).to_string();
    let secrets = "Content-Type: application/json\r\nAuthorization: Bearer hush4\r\nCookie: sid=hush5\r\n";
    send(&world, "POST", "/cgi-bin/echo?token=hush6&next=%2F", secrets, &login);
    assert_eq!(value(&world, "trace: POST /cgi-bin/echo | jq: .body.username"), "somebody");
    world.get("/cgi-bin/page").unwrap();
    assert_eq!(value(&world, "http: /cgi-bin/page | status"), 200);
    assert_eq!(value(&world, "trace: * | count"), 4, "locators' own requests are not the agent's");

    the_har_is_whole_and_has_no_secrets(&world);
    what_was_not_kept_is_said(&world);

    world.reset();
    assert_eq!(value(&world, "trace: * | count"), 0);
    world.run(&["check", "toy.post"]).code(5);
    assert_eq!(verdict(&world, "strict", 5)["reports"][0]["verdict"], "failed", "nothing was sent, and that is known");
    order(&world, "2");
    world.run(&["check", "toy.post"]).code(0);
    a_killed_daemon_forgets_and_says_so(&world);
    world.reset();
    assert_eq!(value(&world, "trace: * | count"), 0, "a reset begins anew");

    only_what_is_wanted_is_recorded(&world);
    world.run(&["down"]).code(0);
    world.assert_down();
    what_was_seen_is_judged_again(&world);
}

/// The recording is judged after the site is gone; the task may have changed since.
fn what_was_seen_is_judged_again(world: &World) {
    world.edit("environment", "variable: SHOPPING", "variable: SHOPPING, record: all");
    let again = world.run(&["check", "--from", "check.json", "--json"]).code(0).json();
    assert_eq!((&again["task"], &again["answer"]), (&json!("toy.post"), &json!("done")));
    assert_eq!(again["report"]["checks"][0]["verdict"], "passed");
    let tasks = TASKS.replace("@NAME@", &world.name);
    let write = |text: String| std::fs::write(world.root().join("changed.yaml"), text).unwrap();
    write(tasks.replace("equals: \"2\"", "equals: \"3\""));
    let changed = ["check", "toy.post", "--file", "changed.yaml", "--from", "check.json"];
    world.run(&changed).code(5).prints("failed");
    write(tasks.replace("$.body.quantity", "$.body.note"));
    world.run(&changed).code(6).prints("it was not read");
    world.run(&["check", "--from", "verified.json"]).code(2).says("--evidence");
}

fn the_har_is_whole_and_has_no_secrets(world: &World) {
    world.run(&["har", "toy", "--out", "toy.har"]).code(0).prints("4 requests in toy.har");
    let text = std::fs::read_to_string(world.root().join("toy.har")).unwrap();
    assert!(!text.contains("hush"), "{text}");
    let har: Value = serde_json::from_str(&text).unwrap();
    let first = &har["log"]["entries"][0];
    assert_eq!(first["request"]["url"], format!("http://localhost:{}/cgi-bin/echo", world.port));
    assert_eq!(first["request"]["postData"]["text"], "quantity=2&note=a+b");
    assert_eq!((&first["response"]["status"], &first["_lost"]), (&json!(200), &json!([])));
    assert_eq!(first["response"]["cookies"][1], json!({ "name": "seen", "value": "yes" }));
    assert!(first["time"].as_f64().is_some_and(|time| time > 0.0) && first["startedDateTime"].is_string());
    let third = &har["log"]["entries"][2]["request"];
    assert_eq!(third["queryString"][1], json!({ "name": "next", "value": "/" }));
    let own = &har["log"]["_arenad"]["sites"][0];
    assert_eq!((&own["records"], &own["generation"], &own["lacks"]), (&json!("all"), &json!(1), &Value::Null));
    // An export answers the same locators as the recording, even after the site has moved on.
    let located = world.run(&["locate", "toy", "trace: /cgi-bin/* | count", "--har", "toy.har", "--json"]).code(0);
    assert_eq!(located.json()["value"], 4);
}

fn what_was_not_kept_is_said(world: &World) {
    let plain = "Content-Type: text/plain\r\n";
    let answer = send(world, "POST", "/cgi-bin/echo?long", plain, &"x".repeat((1 << 20) + 1));
    assert!(answer.contains("1048577"), "{answer}");
    assert_eq!(value(world, "trace: POST /cgi-bin/echo?long | count"), 1);
    assert_eq!(value(world, "trace: POST /cgi-bin/echo?long | jsonpath: $.path"), "/cgi-bin/echo");
    world.run(&["locate", "toy", "trace: POST /cgi-bin/echo?long | jsonpath: $.body"]).code(1).says("was not kept");
}

fn a_killed_daemon_forgets_and_says_so(world: &World) {
    world.signal_daemon(Signal::KILL);
    until("the daemon's end", PATIENCE, || world.daemon().is_some(), |lives| !lives);
    world.up();
    world.run(&["locate", "toy", "trace: POST * | count"]).code(1).says("the daemon was started anew");
    world.run(&["check", "toy.post"]).code(6).prints("inconclusive");
    let judged = verdict(world, "both", 6);
    assert_eq!(judged["reports"][1]["verdict"], "inconclusive", "{judged:#}");
    assert!(judged["warnings"][0].as_str().unwrap().contains("started anew"), "{judged:#}");
    order(world, "5");
    // The newest request is complete even if older ones are missing.
    assert_eq!(value(world, "trace: POST * | jsonpath: $.body.quantity"), "5");
    world.run(&["har", "--out", "late.har"]).code(0).says("started anew").prints("1 requests");
}

fn only_what_is_wanted_is_recorded(world: &World) {
    world.edit("environment", "record: all", "record: writes");
    world.up();
    order(world, "2");
    world.page();
    assert_eq!(value(world, "trace: POST * | count"), 1);
    world.run(&["locate", "toy", "trace: /cgi-bin/page"]).code(1).says("record: writes");
    assert_eq!(verdict(world, "strict", 6)["reports"][0]["verdict"], "inconclusive");
    world.edit("environment", ", record: writes", "");
    world.up();
    order(world, "2");
    world.run(&["locate", "toy", "trace: *"]).code(1).says("give a HAR").says("record: all");
    world.run(&["har"]).code(2).says("does not record the traffic").says("record: all");
    // A check that can never be evaluated is reported before an agent works on its task.
    world.run(&["tasks", "lint", &world.name]).code(2).prints("records nothing").prints("record: writes");
}
