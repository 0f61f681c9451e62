//! The changes that an episode made on its own slots, and its looks.

use reqwest::Method;
use serde_json::{Value, json};

use super::{EpisodeClient, id};
use crate::support::World;
use crate::support::world::free_port;

const STORES: &str = "    slots: { max: 2 }
    stores: { notes: { kind: directory, path: /srv/state } }
    baseline:\n";

/// A world with a site of two slots, one that all episodes share, and one without stores.
fn world(label: &str) -> World {
    let world = World::single(label);
    world.edit("environment", "    baseline:\n", STORES);
    let (mut services, mut sites) = (String::from("services:\n"), String::from("sites:\n"));
    for (name, more) in [("atlas", "    reset: { strategy: keep }\n"), ("bare", "")] {
        let (port, image) = (free_port(), format!("arenad-toy/{}-{name}:1", world.name));
        services += &format!(
            "  {name}:\n    image: {image}\n    build: {{ context: toy, target: toy }}\n    ports: [ \"{port}:80\" ]\n    \
             mem_limit: 48m\n    stop_grace_period: 5s\n"
        );
        sites += &format!(
            "  {name}:\n    title: {name}\n    entry: {{ port: 80 }}\n    public: {{ port: {port} }}\n{more}    ready:\n      \
             timeout: 20s\n      probes:\n        - http: {{ path: /cgi-bin/healthz, json: {{ /ok: true }} }}\n"
        );
    }
    world.edit("compose", "services:\n", &services);
    world.edit("environment", "sites:\n", &sites);
    world
}

/// Adds a line in a slot of the site, past all proxies.
fn write(world: &World, slot: u64, line: &str) {
    let containers = world.containers_of_slot(slot);
    let [container] = containers.as_slice() else { panic!("slot {slot} has {containers:?}") };
    world.engine.docker(&["exec", container, "/bin/sh", "-c", &format!("echo {line} >>/srv/state/notes")]);
}

/// The difference of the only file that changed; none if nothing did.
fn diff(changes: &Value) -> Option<&str> {
    let [site] = changes["sites"].as_array().unwrap().as_slice() else { panic!("not one site: {changes:#}") };
    assert_eq!((&site["site"], &changes["settled"]), (&json!("toy"), &json!(true)), "{changes:#}");
    let stores = site["stores"].as_array().unwrap();
    assert_eq!((&changes["equal"], &site["equal"]), (&json!(stores.is_empty()), &json!(stores.is_empty())));
    let [store] = stores.as_slice() else { return None };
    let [file] = store["files"].as_array().unwrap().as_slice() else { panic!("not one file: {changes:#}") };
    assert_eq!((&file["path"], &file["change"]), (&json!("notes"), &json!("changed")));
    file["diff"].as_str()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_tells_what_it_changed_on_its_own_slots() {
    let world = world("changed");
    world.up();
    let api = EpisodeClient::of(&world);
    let one = id(&api.start(json!({ "slots": { "toy": 1 } })).await);
    let other = api.start(json!({ "sites": ["toy"] })).await;
    let slot = other["episode"]["sites"][0]["slot"].as_u64().unwrap();
    assert_eq!(slot, 2, "{other:#}");
    let other = id(&other);
    let changes = async |id: &str, query: &str| {
        let (status, found) = api.get(&format!("/v1/episodes/{id}/changes{query}")).await;
        assert_eq!(status, 200, "{found:#}");
        found
    };
    let found = changes(&one, "").await;
    assert_eq!((diff(&found), &found["episode"], &found["environment"]), (None, &json!(one), &json!(world.name)));
    let left_out: Vec<_> = found["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| (left["site"].as_str(), left["code"].as_str()))
        .collect();
    assert_eq!(left_out, [(Some("atlas"), Some("shared")), (Some("bare"), Some("no_stores"))]);

    // Each episode tells its own changes.
    write(&world, 1, "one");
    write(&world, slot, "other");
    assert_eq!(diff(&changes(&one, "").await), Some("@@ -1,2 +1,3 @@\n toy\n configured\n+one\n"));
    assert_eq!(diff(&changes(&other, "").await), Some("@@ -1,2 +1,3 @@\n toy\n configured\n+other\n"));

    // Between two looks.
    world.run(&["episode", "look", &one]).code(0).prints("1");
    write(&world, 1, "more");
    let more = Some("@@ -1,3 +1,4 @@\n toy\n configured\n one\n+more\n");
    assert_eq!(diff(&changes(&one, "?since=1").await), more);
    let until = changes(&one, "?until=1").await;
    assert_eq!((diff(&until), &until["until"]), (Some("@@ -1,2 +1,3 @@\n toy\n configured\n+one\n"), &json!(1)));
    let (status, look) = api.ask(Method::POST, &format!("/v1/episodes/{one}/looks"), None).await;
    assert_eq!((status, look), (201, json!({ "number": 2 })));
    write(&world, 1, "latest");
    assert_eq!(diff(&changes(&one, "?since=1&until=2").await), more);
    let offered = world.run(&["complete", "--", "episode", "changes", &one, "--since", ""]).code(0);
    assert_eq!(offered.out, "1\n2\n");
    let (_, looks) = api.get(&format!("/v1/episodes/{one}/looks")).await;
    assert_eq!(looks, json!({ "episode": one, "looks": [{ "number": 1 }, { "number": 2 }] }));
    for (query, expected) in [
        ("?since=3", (404, "unknown_look")),
        ("?since=x", (400, "bad_request")),
        ("?site=forum", (404, "unknown_site")),
    ] {
        let (status, problem) = api.get(&format!("/v1/episodes/{one}/changes{query}")).await;
        assert_eq!((status, problem["code"].as_str().unwrap()), expected, "{query}: {problem:#}");
    }
    let (_, problem) = api.get(&format!("/v1/episodes/{other}/changes?since=1")).await;
    assert_eq!(problem["detail"], "toy: there is no look 1 of the generation that serves");
    let nothing = changes(&one, "?site=atlas&site=bare").await;
    assert_eq!((&nothing["equal"], &nothing["sites"]), (&Value::Null, &json!([])));

    // A frozen episode is compared as well, and the command prints all of it.
    world.run(&["episode", "freeze", &one]).code(0);
    let shown =
        world.run(&["episode", "changes", &one, "--values"]).code(0).prints("toy differs from its starting point ");
    shown.prints("+latest").prints("atlas is left out: all episodes share it").prints("bare is left out");
    let printed = world.run(&["episode", "changes", &one, "toy", "--since", "2", "--json"]).code(0).json();
    assert_eq!((diff(&printed).unwrap().contains("\n+latest\n"), &printed["left_out"]), (true, &json!([])));

    // Nothing is told of an episode that waits or has ended, and the next one starts anew.
    let waiting = api.queue(json!({ "sites": ["toy"], "slots": { "toy": 1 } })).await;
    for (method, rest) in [(Method::GET, "changes"), (Method::POST, "looks"), (Method::GET, "looks")] {
        let (status, problem) = api.ask(method, &format!("/v1/episodes/{waiting}/{rest}"), None).await;
        assert_eq!((status, &problem["code"]), (409, &json!("not_active")), "{rest}");
    }
    api.end(&one).await;
    for (method, rest) in [(Method::GET, "changes"), (Method::POST, "looks"), (Method::GET, "looks")] {
        let (status, problem) = api.ask(method, &format!("/v1/episodes/{one}/{rest}"), None).await;
        assert_eq!((status, &problem["code"], &problem["ending"]["code"]), (410, &json!("ended"), &json!("client")));
    }
    world.run(&["episode", "changes", &one]).code(1).says("the episode has ended");
    api.until(&waiting, "active", crate::support::wait::PATIENCE).await;
    assert_eq!(diff(&changes(&waiting, "").await), None);
    let (_, looks) = api.get(&format!("/v1/episodes/{waiting}/looks")).await;
    assert_eq!(looks["looks"], json!([]));
    // The other episode is untouched by all of this.
    assert_eq!(diff(&changes(&other, "").await), Some("@@ -1,2 +1,3 @@\n toy\n configured\n+other\n"));
    world.run(&["down"]).code(0);
    world.assert_down();
}
