//! Forks: children that start from the state of a running episode, which goes on.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    let found = world.containers_of_slot(slot.as_u64()?);
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

/// The part of each recorded URL after the host.
fn recorded_paths(har: &Value) -> Vec<String> {
    let entries = har["log"]["entries"].as_array().unwrap_or_else(|| panic!("{har:#}"));
    let path = |entry: &Value| entry["request"]["url"].as_str()?.splitn(4, '/').nth(3).map(str::to_owned);
    entries.iter().filter_map(path).collect()
}

async fn har_of(api: &EpisodeClient, id: &str) -> Value {
    let (status, har) = api.get(&format!("/v1/episodes/{id}/har")).await;
    assert_eq!(status, 200, "{har:#}");
    har
}

/// The beginnings that are kept for forks.
fn beginnings(world: &World) -> Vec<String> {
    let folder = std::fs::read_dir(world.state_dir().join("records/beginnings"));
    folder.into_iter().flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_of_a_child_begins_with_that_of_its_parent() {
    let world = with_stores(world("fork-record", 5));
    world.up();
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "record": "all", "wait_seconds": 120, "labels": { "task": "21" } })).await;
    let (parent, server) = (id(&started), started["proxy"]["server"].as_str().unwrap().to_owned());
    let of = |started: &Value| client(&server, &id(started), started["token"].as_str().unwrap());
    let write = async |client: &reqwest::Client, word: &str| {
        let url = format!("http://toy.arena.test/cgi-bin/write?{word}");
        assert_eq!(fetch(client, &url).await, (200, "written\n".to_owned()));
    };
    // Requests go on during the fork. Those that the client has read by then are in the record of the child, and those
    // that it sends after the answer are not.
    let (is_over, read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (writer, stop, count) = (of(&started), is_over.clone(), read.clone());
    let writer = tokio::spawn(async move {
        while !stop.load(Ordering::SeqCst) {
            let number = count.load(Ordering::SeqCst);
            let url = format!("http://toy.arena.test/cgi-bin/write?{number}&token=hunter2");
            assert_eq!(fetch(&writer, &url).await.0, 200, "{number}");
            count.store(number + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    until("requests", PATIENCE, || read.load(Ordering::SeqCst), |read| *read >= 5);
    let before = read.load(Ordering::SeqCst);
    let (status, forked) = fork(&api, &parent, json!({ "children": 2, "wait_seconds": 120 })).await;
    let sent = read.load(Ordering::SeqCst) + 1;
    assert_eq!(status, 201, "{forked:#}");
    is_over.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    write(&of(&started), "of-the-parent").await;
    let children = forked["children"].as_array().unwrap();
    write(&of(&children[0]), "of-the-child").await;

    let numbered = |count: usize| -> Vec<String> {
        (0..count).map(|number| format!("cgi-bin/write?{number}&token=[redacted]")).collect()
    };
    let (one, other) = (har_of(&api, &id(&children[0])).await, har_of(&api, &id(&children[1])).await);
    let begun = recorded_paths(&other);
    assert_eq!(begun, numbered(begun.len()), "in order, without any of later");
    assert!((before..=sent).contains(&begun.len()), "{before} were read, {sent} were sent, {} are there", begun.len());
    let own = [begun.clone(), vec!["cgi-bin/write?of-the-child".to_owned()]].concat();
    assert_eq!(recorded_paths(&one), own);
    for har in [&one, &other] {
        let record = &har["log"]["_arenad"];
        assert_eq!((&record["beginnings"][0]["episode"], &record["records"]), (&json!(parent), &json!("all")));
        assert_eq!(record["sites"][0]["lacks"], Value::Null, "{record:#}");
    }
    // The content of the child is what its record says.
    let page = fetch(&of(&children[1]), PAGE).await.1;
    assert_eq!(page.lines().count() - BASELINE.lines().count(), begun.len(), "{page}");

    // The record of the parent is not needed any more, and a fork of a fork begins with both.
    api.end(&parent).await;
    assert!(recorded_paths(&har_of(&api, &parent).await).contains(&"cgi-bin/write?of-the-parent".to_owned()));
    std::fs::remove_dir_all(world.state_dir().join("records").join(&parent)).unwrap();
    let (status, forked) = fork(&api, &id(&children[0]), json!({ "wait_seconds": 120 })).await;
    assert_eq!(status, 201, "{forked:#}");
    let grandchild = &forked["children"][0];
    write(&of(grandchild), "of-the-grandchild").await;
    let expected = [own.clone(), vec!["cgi-bin/write?of-the-grandchild".to_owned()]].concat();
    let running = har_of(&api, &id(grandchild)).await;
    assert_eq!(recorded_paths(&running), expected);
    assert_eq!(running["log"]["_arenad"]["beginnings"][1]["episode"], json!(id(&children[0])));

    // A child that records more than its parent says what is missing.
    let (status, forked) = fork(&api, &id(&children[1]), json!({ "record": "none", "wait_seconds": 120 })).await;
    assert_eq!(status, 201, "{forked:#}");
    let silent = id(&forked["children"][0]);
    assert!(!world.state_dir().join("records").join(&silent).exists());
    api.end(&id(&children[1])).await;
    let (status, forked) = fork(&api, &silent, json!({ "record": "all", "wait_seconds": 120 })).await;
    assert_eq!(status, 201, "{forked:#}");
    let late = har_of(&api, &id(&forked["children"][0])).await;
    let lacks = late["log"]["_arenad"]["sites"][0]["lacks"].as_str().unwrap();
    assert!(lacks.starts_with(&format!("all requests of {silent} before its fork at ")), "{lacks}");

    let (_, live) = api.get("/v1/episodes?live=true").await;
    for id in list(&live["episodes"], "id") {
        api.end(&id).await;
    }
    // Ended, exported, and scored as a whole.
    assert_eq!(recorded_paths(&har_of(&api, &id(grandchild)).await), expected);
    let folder = tempfile::tempdir().unwrap();
    let (output, response) = (folder.path().join("runs"), folder.path().join("answer.json"));
    std::fs::write(&response, r#"{"task_type": "NAVIGATE", "status": "SUCCESS"}"#).unwrap();
    let args = ["episode", "export", &id(grandchild), "--format", "webarena-verified", "--task", "21", "--response"];
    let args = [&args[..], &[response.to_str().unwrap(), "-o", output.to_str().unwrap()]].concat();
    world.run(&args).code(0).prints("21/network.har");
    let exported = std::fs::read_to_string(output.join("21/network.har")).unwrap();
    assert_eq!(recorded_paths(&serde_json::from_str(&exported).unwrap()), expected);
    assert!(!exported.contains("hunter2"));
    until("nothing is kept for forks", PATIENCE, || beginnings(&world), Vec::is_empty);
    world.run(&["down"]).code(0);
    world.assert_down();
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
    let up = || drop(world.start_with_faults(&["up", &world.name], &faults).ended().code(0));
    up();
    let parent = ProxiedEpisode::recorded(&EpisodeClient::of(&world), "all").await;
    parent.write("before").await;
    let slot = parent.started["episode"]["sites"][0]["slot"].clone();
    let known = snapshots(&world);
    // Before the copy has a row, after its last step, and when the record is copied as well.
    for point in ["snapshot-saved", "copy-taken", "fork-copied"] {
        std::fs::write(faults.join(point), "").unwrap();
        let (api, id) = (EpisodeClient::of(&world), parent.id.clone());
        let cut = tokio::spawn(async move {
            let forked = api.client.post(format!("http://arenad/v1/episodes/{id}/fork")).json(&json!({})).send().await;
            forked.is_err()
        });
        until("the fork", PATIENCE, || faults.join(format!("{point}.reached")).exists(), |is_there| *is_there);
        assert!(!trees(&world).is_subset(&known), "{point}: nothing has been copied");
        assert_eq!(beginnings(&world).len(), usize::from(point == "fork-copied"), "{point}");
        world.signal_daemon(Signal::KILL);
        assert!(cut.await.unwrap(), "{point}: the request was answered");
        for file in [point.to_owned(), format!("{point}.reached")] {
            std::fs::remove_file(faults.join(file)).unwrap();
        }
        up();
        within("the copy is removed", PATIENCE, || trees(&world).is_subset(&known).then_some(()));
        until("the copy of the record is removed", PATIENCE, || beginnings(&world), Vec::is_empty);
        let api = EpisodeClient::of(&world);
        let (_, live) = api.get("/v1/episodes?live=true").await;
        assert_eq!(list(&live["episodes"], "id"), std::slice::from_ref(&parent.id), "{point}: {live:#}");
        api.until(&parent.id, "active", PATIENCE).await;
        let stored = until("the slot", PATIENCE, || notes(&world, &slot), Option::is_some);
        assert_eq!(stored.as_deref(), Some(format!("{BASELINE}before").as_str()), "{point}");
    }
    // Its containers were adopted, so what they hold outside of their stores is unknown, and the site is stopped.
    let api = EpisodeClient::of(&world);
    let (status, forked) = fork(&api, &parent.id, json!({ "children": 2, "wait_seconds": 600, "detach": true })).await;
    assert_eq!(status, 202, "{forked:#}");
    let children: Vec<String> = forked["children"].as_array().unwrap().iter().map(id).collect();
    api.until(&children[0], "active", PATIENCE).await;
    let slot_of = async |child: &String| {
        EpisodeClient::of(&world).get(&format!("/v1/episodes/{child}")).await.1["sites"][0]["slot"].clone()
    };
    let child = notes(&world, &slot_of(&children[0]).await);
    assert_eq!(child.as_deref(), Some(format!("{BASELINE}before").as_str()));

    // The other child waits, and gets its slot and its beginning from a later daemon, without its parent's record.
    world.signal_daemon(Signal::KILL);
    up();
    let api = EpisodeClient::of(&world);
    assert_eq!(api.waiting().await, children[1..]);
    api.until(&parent.id, "active", PATIENCE).await;
    api.end(&parent.id).await;
    std::fs::remove_dir_all(world.state_dir().join("records").join(&parent.id)).unwrap();
    api.until(&children[1], "active", PATIENCE).await;
    let child = notes(&world, &slot_of(&children[1]).await);
    assert_eq!(child.as_deref(), Some(format!("{BASELINE}before").as_str()));
    for child in &children {
        let har = har_of(&api, child).await;
        assert_eq!(recorded_paths(&har), ["cgi-bin/write?before"], "{har:#}");
        assert_eq!(har["log"]["_arenad"]["beginnings"][0]["episode"], json!(parent.id));
        api.end(child).await;
    }
    until("nothing is kept for forks", PATIENCE, || beginnings(&world), Vec::is_empty);
    world.run(&["down"]).code(0);
    world.assert_down();
    assert!(trees(&world).is_subset(&known));
}
