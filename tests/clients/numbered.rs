//! Commands and requests that name a slot of a site by its number.

use reqwest::Method;
use serde_json::{Value, json};

use super::{EpisodeClient, id};
use crate::support::wait::PATIENCE;
use crate::support::{World, until};

const TWO_SLOTS: &str = "    slots: { min: 2 }
    stores: { notes: { kind: directory, path: /srv/state } }
    baseline:\n";

/// The slots of the site, as `arenad status --json` shows them.
fn slots(world: &World) -> Vec<Value> {
    world.site().and_then(|site| site["slots"].as_array().cloned()).unwrap_or_default()
}

fn generation(world: &World, slot: usize) -> u64 {
    slots(world)[slot - 1]["generation"].as_u64().unwrap()
}

/// Runs a command in the only container of a slot.
fn execute(world: &World, slot: u32, command: &str) {
    let containers = world.containers_of_slot(slot.into());
    let [container] = containers.as_slice() else { panic!("slot {slot} has {containers:?}") };
    world.engine.docker(&["exec", container, "/bin/sh", "-c", command]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_reach_each_slot_by_its_number() {
    let world = World::single("numbered");
    world.edit("environment", "    baseline:\n", TWO_SLOTS);
    world.up();
    let is_free = |slot: &Value| slot["state"] == "ready" && slot["occupation"] == "free";
    until("both slots", PATIENCE, || slots(&world), |slots| slots.len() == 2 && slots.iter().all(is_free));

    // Containers and health of all slots, or of one.
    let both = world.run(&["ps"]).code(0);
    assert!(both.out.contains("toy:1") && both.out.contains("toy:2"), "{}", both.out);
    let rows = |words: &[&str]| world.run(&[words, &["--json"]].concat()).code(0).json();
    let numbers = |rows: Value| -> Vec<u64> {
        rows.as_array().unwrap().iter().map(|row| row["slot"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(rows(&["ps"])), [1, 2]);
    assert_eq!(numbers(rows(&["ps", "toy"])), [1, 2]);
    let second = rows(&["ps", "toy:2"]);
    assert_eq!(second[0]["container"], slots(&world)[1]["containers"][0]["id"]);
    assert_eq!(numbers(second), [2]);
    let health = |words: &[&str]| -> Vec<String> {
        let found = rows(words);
        found["sites"].as_array().unwrap().iter().map(|site| site["instance"].as_str().unwrap().to_owned()).collect()
    };
    let instance = |slot: u32| format!("{}/toy/{slot}", world.name);
    assert_eq!(health(&["health"]), [instance(1), instance(2)]);
    assert_eq!(health(&["health", "toy:2"]), [instance(2)]);
    world.run(&["health"]).code(0).prints("toy:2");

    // Logs of one slot, and not of the other.
    execute(&world, 2, "echo from-the-second >/proc/1/fd/1");
    let has_line = |name: &str| world.run(&["logs", name]).code(0).out.contains("from-the-second");
    until("the line", PATIENCE, || has_line("toy:2"), |found| *found);
    assert!(!has_line("toy") && !has_line("toy:1"));
    let line = world.run(&["logs", "toy:2", "--json", "--tail", "1"]).code(0).json();
    assert_eq!((&line["site"], &line["slot"]), (&json!("toy"), &json!(2)));

    // Comparison and reset of one slot, and not of the other.
    execute(&world, 2, "echo graffiti >>/srv/state/notes");
    world.run(&["verify", "toy:2"]).code(1).prints("toy:2 differs from its snapshot").prints("notes");
    world.run(&["verify", "toy:1"]).code(0).prints("toy equals its snapshot");
    world.run(&["changes", "toy:2", "--values"]).code(0).prints("toy:2 differs").prints("+graffiti");
    let before = (generation(&world, 1), generation(&world, 2));
    world.run(&["reset", "toy:2"]).code(0).prints("toy:2");
    assert_eq!(generation(&world, 1), before.0);
    assert!(generation(&world, 2) > before.1);
    world.run(&["verify", "toy:2"]).code(0).prints("toy:2 equals its snapshot");

    // A slot that does not exist: the answer names those that do.
    let api = EpisodeClient::of(&world);
    let resets = format!("/v1/environments/{}/resets", world.name);
    for command in ["reset", "verify", "changes", "logs", "ps", "health", "look"] {
        world.run(&[command, "toy:3"]).code(2).says("toy has no slot 3").says("toy:1, toy:2");
        world.run(&[command, "toy:0"]).code(2).says("numbered from 1");
    }
    let of_site = |rest: &str| format!("/v1/environments/{}/sites/toy:3/{rest}", world.name);
    for (method, path, body) in [
        (Method::POST, resets.clone(), Some(json!({ "sites": ["toy:3"] }))),
        (Method::POST, of_site("verify"), Some(json!({}))),
        (Method::GET, of_site("changes"), None),
        (Method::GET, of_site("logs"), None),
        (Method::GET, "/v1/health?site=toy:3".to_owned(), None),
    ] {
        let (status, problem) = api.ask(method, &path, body).await;
        assert_eq!((status, &problem["code"]), (404, &json!("unknown_slot")), "{path}: {problem:#}");
        assert!(problem["detail"].as_str().unwrap().ends_with("it has toy:1, toy:2"), "{problem:#}");
    }
    let (status, problem) = api.ask(Method::POST, &resets, Some(json!({ "sites": ["toy:two"] }))).await;
    assert_eq!((status, &problem["code"]), (400, &json!("bad_request")), "{problem:#}");

    // The slot of an episode is not reset, and the other one is.
    let episode = id(&api.start(json!({ "slots": { "toy": 2 } })).await);
    let before = generation(&world, 2);
    world.run(&["reset", "toy:2"]).code(1).says(&episode);
    let (status, problem) = api.ask(Method::POST, &resets, Some(json!({ "sites": ["toy:2"] }))).await;
    assert_eq!((status, &problem["code"]), (409, &json!("leased")), "{problem:#}");
    world.run(&["reset", "toy:1"]).code(0);
    assert_eq!(generation(&world, 2), before);
    assert_eq!(api.state(&episode).await, "active");
    api.end(&episode).await;
    world.run(&["down"]).code(0);
    world.assert_down();
}
