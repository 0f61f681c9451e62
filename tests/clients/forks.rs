//! Forks: children that start from the state of a running episode, which goes on.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::proxied::{BASELINE, PAGE, ProxiedEpisode, client, fetch};
use super::{EpisodeClient, id};
use crate::support::wait::PATIENCE;
use crate::support::world::list;
use crate::support::{World, until, within};

/// The site's declarations by which its stores are copied while its writers rest.
const STORES: &str = "    reset: { standby: 0 }
    stores:
      notes:
        kind: directory
        path: /srv/state
        volatile: [ { file: \".probe.*\", reason: its own probe writes it and removes it } ]
    writers:
      stop: [ { command: [/bin/true] } ]
      start: [ { command: [/bin/true] } ]
    baseline:\n";

fn world(label: &str, slots: u32) -> World {
    let world = World::single(label);
    world.edit("environment", "title: Toy", &format!("title: Toy\n    slots: {{ min: 1, max: {slots} }}"));
    world
}

fn with_stores(world: World) -> World {
    world.edit("environment", "    baseline:\n", STORES);
    world
}

/// Adds a site `other`, which is defined as `toy` is.
fn with_second_site(world: World) -> World {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    for (kind, list) in [("environment", "sites:\n"), ("compose", "services:\n")] {
        let text = std::fs::read_to_string(world.file(kind)).unwrap();
        let second = text.split_once(list).unwrap().1;
        let second = second.replace("  toy:\n", "  other:\n").replace(&world.port.to_string(), &port.to_string());
        let second = second.replace(", variable: SHOPPING", "").replace(":1\n", "-other:1\n");
        std::fs::write(world.file(kind), text + &second).unwrap();
    }
    world
}

/// The snapshots whose trees are in the state root.
fn trees(world: &World) -> BTreeSet<String> {
    let folder = std::fs::read_dir(world.state_dir().join("stores/snapshots"));
    folder.into_iter().flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The ids of the snapshots that people see.
fn snapshots(world: &World) -> BTreeSet<String> {
    list(&world.api("/v1/snapshots").unwrap()["snapshots"], "id").into_iter().collect()
}

/// The text that a slot has stored.
fn notes(world: &World, slot: &Value) -> Option<String> {
    let found = world.engine.containers(&format!("dev.arenad.instance={}/toy/{slot}", world.name));
    let [container] = found.as_slice() else { return None };
    world.engine.try_docker(&["exec", container, "/bin/sh", "-c", "cat /srv/state/notes"]).ok()
}

async fn fork(api: &EpisodeClient, parent: &str, body: Value) -> (u16, Value) {
    api.ask(Method::POST, &format!("/v1/episodes/{parent}/fork"), Some(body)).await
}

async fn children_share_nothing(world: World, is_stopped: bool) {
    world.up();
    let api = EpisodeClient::of(&world);
    let parent = ProxiedEpisode::start(&api).await;
    parent.write("before").await;
    let own = |episode: &Value| (episode["sites"][0]["instance"].clone(), episode["sites"][0]["generation"].clone());
    let (_, before) = api.get(&format!("/v1/episodes/{}", parent.id)).await;
    let (known, images) = (snapshots(&world), world.engine.images(&world.label()).len());

    let (status, forked) =
        fork(&api, &parent.id, json!({ "children": 2, "wait_seconds": 120, "labels": { "branch": "a" } })).await;
    assert_eq!((status, &forked["parent"]), (201, &json!(parent.id)), "{forked:#}");
    assert_eq!(snapshots(&world), known, "people do not see the copy");
    assert_eq!(world.engine.images(&world.label()).len(), images + usize::from(is_stopped));
    let started = forked["children"].as_array().unwrap();
    let mut slots: BTreeSet<String> = BTreeSet::from([own(&before).0.to_string()]);
    let mut children = Vec::new();
    for child in started {
        let episode = &child["episode"];
        assert_eq!((&episode["state"], &episode["forked_from"]), (&json!("active"), &json!(parent.id)), "{child:#}");
        assert_eq!(episode["labels"], json!({ "branch": "a" }));
        assert!(slots.insert(own(episode).0.to_string()), "{forked:#}");
        children.push(client(&parent.server, &id(child), child["token"].as_str().unwrap()));
    }
    assert_eq!(children.len(), 2);

    // A copy of the stores alone is put under containers that run, as by any rewind.
    let log = std::fs::read_to_string(world.state_dir().join("arenad.log")).unwrap();
    for child in started {
        let reset = format!("{} was reset in", child["episode"]["sites"][0]["instance"].as_str().unwrap());
        let line =
            log.lines().rev().find(|line| line.contains(&reset)).unwrap_or_else(|| panic!("no {reset:?}:\n{log}"));
        assert!(line.contains(if is_stopped { "by recreate" } else { "by rewind" }), "{line}");
    }

    // Each sees what the parent wrote before, and from now on only its own writes.
    let page = |words: &str| (200, format!("{BASELINE}before\n{words}"));
    parent.write("after").await;
    for (number, child) in children.iter().enumerate() {
        assert_eq!(fetch(child, PAGE).await, page(""));
        let written = fetch(child, &format!("http://toy.arena.test/cgi-bin/write?by-{number}")).await;
        assert_eq!(written, (200, "written\n".to_owned()));
    }
    assert_eq!(parent.get(PAGE).await, page("after\n"));
    for (number, child) in children.iter().enumerate() {
        assert_eq!(fetch(child, PAGE).await, page(&format!("by-{number}\n")));
    }
    let (_, after) = api.get(&format!("/v1/episodes/{}", parent.id)).await;
    assert_eq!((own(&after), &after["state"]), (own(&before), &json!("active")), "the parent goes on");

    // A child can be forked as well, and needs its parent no more.
    api.end(&parent.id).await;
    let (status, grandchild) = api
        .ask(Method::POST, "/v1/episodes", Some(json!({ "from_episode": id(&started[0]), "wait_seconds": 120 })))
        .await;
    assert_eq!((status, &grandchild["episode"]["forked_from"]), (201, &json!(id(&started[0]))), "{grandchild:#}");
    assert_eq!(grandchild["episode"]["labels"], json!({ "branch": "a" }));
    let of_it = client(&parent.server, &id(&grandchild), grandchild["token"].as_str().unwrap());
    assert_eq!(fetch(&of_it, PAGE).await, page("by-0\n"));

    // Nothing of them is left in the slots or in the state root.
    for ended in started.iter().chain([&grandchild]) {
        api.end(&id(ended)).await;
    }
    let mut next = Vec::new();
    for _ in 0..3 {
        let episode = ProxiedEpisode::start(&api).await;
        assert_eq!(episode.get(PAGE).await, (200, BASELINE.to_owned()));
        next.push(episode);
    }
    // An image that is the base of another one is removed by the reconciliation, later.
    within("the copies are removed", PATIENCE * 4, || {
        let is_clean = trees(&world).is_subset(&known) && world.engine.images(&world.label()).len() == images;
        is_clean.then_some(())
    });
    assert_eq!(snapshots(&world), known);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_share_nothing_if_the_stores_are_copied_while_the_writers_rest() {
    children_share_nothing(with_stores(world("fork", 4)), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_share_nothing_if_the_site_is_stopped_to_be_copied() {
    children_share_nothing(world("fork-stop", 4), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_copies_of_several_sites_fit_together() {
    let world = with_second_site(with_stores(world("fork-two", 3)));
    world.up();
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "wait_seconds": 120 })).await;
    let server = started["proxy"]["server"].as_str().unwrap().to_owned();
    let of = |started: &Value| client(&server, &id(started), started["token"].as_str().unwrap());
    // Each number is written to one site and then to the other, during the fork as well.
    let is_over = Arc::new(AtomicBool::new(false));
    let (parent, stop) = (of(&started), is_over.clone());
    let writer = tokio::spawn(async move {
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            for site in ["toy", "other"] {
                let written = fetch(&parent, &format!("http://{site}.arena.test/cgi-bin/write?{number}")).await;
                assert_eq!(written, (200, "written\n".to_owned()), "{number} to {site}: a request was cut");
            }
            number += 1;
            // A moment without requests, in which the slots are held.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        number
    });
    let observer = of(&started);
    while !fetch(&observer, "http://other.arena.test/cgi-bin/page").await.1.contains("\n3\n") {}
    let (status, forked) = fork(&api, &id(&started), json!({ "wait_seconds": 120 })).await;
    is_over.store(true, Ordering::Relaxed);
    let written = writer.await.unwrap();
    assert_eq!(status, 201, "{forked:#}");
    let child = of(&forked["children"][0]);
    let mut counts = Vec::new();
    for site in ["toy", "other"] {
        let (status, page) = fetch(&child, &format!("http://{site}.arena.test/cgi-bin/page")).await;
        let expected: String = (0..page.lines().count() - 2).map(|number| format!("{number}\n")).collect();
        assert_eq!((status, &page), (200, &format!("{BASELINE}{expected}")));
        counts.push(page.lines().count() - 2);
    }
    assert!(counts[0] - counts[1] <= 1 && counts[1] >= 4 && counts[0] <= written, "{counts:?} of {written}");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_wait_for_slots_and_outlive_their_parent() {
    // Slot 1 is left to people, so there is one for episodes.
    let world = with_stores(world("fork-wait", 2));
    world.up();
    let api = EpisodeClient::of(&world);
    let parent = ProxiedEpisode::start(&api).await;
    parent.write("before").await;
    for (path, body, expected) in [
        ("ep-00000000000000000000", json!({}), (404, "unknown_episode")),
        (parent.id.as_str(), json!({ "children": 0 }), (400, "bad_request")),
        (parent.id.as_str(), json!({ "children": 65 }), (400, "bad_request")),
        (parent.id.as_str(), json!({ "children": 2, "wait_seconds": 0 }), (409, "no_slot")),
    ] {
        let (status, problem) = fork(&api, path, body.clone()).await;
        assert_eq!((status, problem["code"].as_str().unwrap()), expected, "{body}: {problem:#}");
    }
    let both = json!({ "from_episode": parent.id, "sites": ["toy"] });
    let (status, problem) = api.ask(Method::POST, "/v1/episodes", Some(both)).await;
    assert_eq!((status, &problem["code"]), (400, &json!("bad_request")), "{problem:#}");

    let keyed = |body| {
        let path = format!("/v1/episodes/{}/fork", parent.id);
        let api = &api;
        async move { api.with_key(Method::POST, &path, Some(body), Some("branch-1")).await }
    };
    let wanted = json!({ "children": 2, "wait_seconds": 600, "detach": true });
    let (status, first) = keyed(wanted.clone()).await;
    assert_eq!(status, 202, "{first:#}");
    let ids: Vec<String> = first["children"].as_array().unwrap().iter().map(id).collect();
    assert_eq!(api.waiting().await, ids);
    let (status, problem) = fork(&api, &ids[0], json!({})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("not_active")), "{problem:#}");

    // Neither what the parent writes later nor its end changes the children.
    parent.write("after").await;
    api.end(&parent.id).await;
    let (status, problem) = fork(&api, &parent.id, json!({})).await;
    assert_eq!((status, &problem["code"]), (410, &json!("ended")), "{problem:#}");
    let (_, again) = keyed(wanted).await;
    let repeated: Vec<String> = again["children"].as_array().unwrap().iter().map(id).collect();
    assert_eq!((repeated, &again["children"][0]["is_known"]), (ids.clone(), &json!(true)), "{again:#}");
    for (number, child) in ids.iter().enumerate() {
        api.until(child, "active", PATIENCE).await;
        if number == 0 {
            let path = format!("/v1/episodes/{child}/fork");
            let (status, problem) = api.with_key(Method::POST, &path, Some(json!({})), Some("branch-1")).await;
            assert_eq!(
                (status, &problem["code"]),
                (422, &json!("key_reused")),
                "the key of another parent: {problem:#}"
            );
        }
        let (_, episode) = api.get(&format!("/v1/episodes/{child}")).await;
        let stored = notes(&world, &episode["sites"][0]["slot"]);
        assert_eq!(stored.as_deref(), Some(format!("{BASELINE}before").as_str()), "{episode:#}");
        api.end(child).await;
    }
    let known = snapshots(&world);
    within("the copy is removed", PATIENCE, || trees(&world).is_subset(&known).then_some(()));
    world.run(&["episode", "fork", &ids[0]]).code(1).says("has ended");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_is_killed_during_a_fork_leaves_nothing_of_it() {
    let world = with_stores(world("fork-kill", 3));
    let faults = world.root().join("faults");
    std::fs::create_dir(&faults).unwrap();
    let up = || {
        let mut command = world.command(&["up", &world.name]);
        command.env("ARENAD_FAULTS", &faults);
        world.start_command(command).ended().code(0);
    };
    up();
    let parent = ProxiedEpisode::start(&EpisodeClient::of(&world)).await;
    parent.write("before").await;
    let slot = parent.started["episode"]["sites"][0]["slot"].clone();
    let known = snapshots(&world);
    // Before the copy has a row, and after its last step.
    for point in ["snapshot-saved", "copy-taken"] {
        std::fs::write(faults.join(point), "").unwrap();
        let (api, id) = (EpisodeClient::of(&world), parent.id.clone());
        let cut = tokio::spawn(async move {
            let forked = api.client.post(format!("http://arenad/v1/episodes/{id}/fork")).json(&json!({})).send().await;
            forked.is_err()
        });
        until("the fork", PATIENCE, || faults.join(format!("{point}.reached")).exists(), |is_there| *is_there);
        assert!(!trees(&world).is_subset(&known), "{point}: nothing has been copied");
        world.signal_daemon(Signal::KILL);
        assert!(cut.await.unwrap(), "{point}: the request was answered");
        for file in [point.to_owned(), format!("{point}.reached")] {
            std::fs::remove_file(faults.join(file)).unwrap();
        }
        up();
        within("the copy is removed", PATIENCE, || trees(&world).is_subset(&known).then_some(()));
        let api = EpisodeClient::of(&world);
        let (_, live) = api.get("/v1/episodes?live=true").await;
        assert_eq!(list(&live["episodes"], "id"), std::slice::from_ref(&parent.id), "{point}: {live:#}");
        api.until(&parent.id, "active", PATIENCE).await;
        let stored = until("the slot", PATIENCE, || notes(&world, &slot), Option::is_some);
        assert_eq!(stored.as_deref(), Some(format!("{BASELINE}before").as_str()), "{point}");
    }
    // Its containers were adopted, so what they hold outside of their stores is unknown, and the site is stopped.
    let (status, forked) = fork(&EpisodeClient::of(&world), &parent.id, json!({ "wait_seconds": 120 })).await;
    assert_eq!(status, 201, "{forked:#}");
    let child = notes(&world, &forked["children"][0]["episode"]["sites"][0]["slot"]);
    assert_eq!(child.as_deref(), Some(format!("{BASELINE}before").as_str()));
    world.run(&["down"]).code(0);
    world.assert_down();
    assert!(trees(&world).is_subset(&known));
}
