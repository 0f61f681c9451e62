//! Reports are true: a reset that has succeeded leaves no earlier write, a ready site is served, and after a `down`
//! nothing runs. Each test covers an interaction of two features that once violated this.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Signal, kill_process};

use super::standbys::rewindable;
use crate::support::wait::PATIENCE;
use crate::support::{World, http, within};

const BASELINE: &str = "toy\nconfigured\n";

/// Makes the build of the site's image impossible, or possible again.
fn break_build(world: &World, is_broken: bool) {
    let path = world.root().join("compose/toy/Dockerfile");
    let text = std::fs::read_to_string(&path).unwrap();
    let (works, fails) = ("COPY root /\n", "COPY nothing-like-it /\n");
    let text = if is_broken { text.replace(works, fails) } else { text.replace(fails, works) };
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_reset_after_a_daemons_crash_is_no_adoption() {
    let world = World::single("retried");
    // Taking up takes some time, so that the reset is requested meanwhile.
    let slow = "probes:\n        - exec: { command: [/bin/sh, -c, sleep 3] }\n          name: slow\n        - http: { path: /cgi-bin/healthz";
    world.edit("environment", "probes:\n        - http: { path: /cgi-bin/healthz", slow);
    world.up();
    world.write("scribble");
    world.signal_daemon(Signal::KILL);
    let _daemon = world.start(&["serve"]);
    within("the new daemon's API", PATIENCE, || world.site());
    let answer = world.run(&["reset", "toy", "--json"]).code(0).json();
    assert_eq!(answer["operations"][0]["joined"], false, "{answer:#}");
    assert_eq!(answer["operations"][0]["reset"]["outcome"], "done", "{answer:#}");
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
}

#[test]
fn resets_that_are_asked_for_during_a_down_start_nothing() {
    let world = World::single("downed");
    world.up();
    let path = format!("/v1/environments/{}/resets", world.name);
    let socket = world.state_dir().join("arenad.sock");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let _ = http::post_unix(&socket, &path, r#"{"sites": ["toy"]}"#);
            }
        });
        let down = world.run(&["down"]);
        is_over.store(true, Ordering::SeqCst);
        down.code(0);
    });
    world.assert_down();
}

#[test]
fn a_build_that_fails_leaves_what_serves() {
    let world = World::single("unbuilt");
    world.up();
    world.write("scribble");
    let page = world.page();
    break_build(&world, true);
    world.run(&["up", &world.name]).code(1);
    assert_eq!((world.page(), world.state().as_str()), (page.clone(), "ready"));
    // A new daemon also takes up the running containers before it builds.
    world.signal_daemon(Signal::KILL);
    let _daemon = world.start(&["serve"]);
    within("the site", PATIENCE, || (world.state() == "ready").then_some(()));
    assert_eq!(world.page(), page);
    break_build(&world, false);
    world.up();
    assert_eq!(world.page(), page, "the image is the one that it was");
    world.reset();
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
}

#[test]
fn a_new_baseline_takes_over() {
    let world = World::single("renewed");
    world.up();
    world.write("scribble");
    let name = world.root().join("compose/toy/root/srv/name");
    std::fs::write(&name, "another").unwrap();
    world.up();
    assert!(!world.page().contains("scribble"), "it is of the new baseline");
    // The old containers are removed in the background.
    within("the end of the old ones", PATIENCE, || (world.engine.containers(&world.label()).len() == 1).then_some(()));
    world.assert_whole(0);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_new_daemon_knows_whether_a_client_has_been_there() {
    let world = rewindable("unreached", 0, "true");
    let start = || {
        let daemon = world.start(&["serve"]);
        within("the site", PATIENCE, || (world.state() == "ready").then_some(()));
        daemon
    };
    let reset_if_dirty = || {
        let answer = world.run(&["reset", "toy", "--if-dirty", "--json"]).code(0).json();
        answer["operations"][0]["reset"]["strategy"].as_str().expect("a way").to_owned()
    };
    world.reset();
    world.signal_daemon(Signal::KILL);
    let daemon = start();
    assert_eq!(reset_if_dirty(), "untouched", "no client has been there");
    // A rewind is possible only if all its facts are known.
    world.write("scribble");
    assert_eq!(world.reset(), "rewind");
    // A reading client may have written; that is unknown once the daemon that counted requests has ended.
    assert_eq!(world.page(), BASELINE);
    kill_process(daemon.pid(), Signal::KILL).expect("the daemon runs");
    daemon.ended();
    let _daemon = start();
    assert_ne!(reset_if_dirty(), "untouched");
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
    let marks = std::fs::read_dir(world.state_dir().join("pristine")).expect("a folder").count();
    assert_eq!(marks, 0, "nothing serves");
}

#[test]
fn a_port_that_is_taken_does_not_take_a_running_site_down() {
    let world = World::single("moved");
    world.up();
    world.write("scribble");
    let page = world.page();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for kind in ["environment", "compose"] {
        world.edit(kind, &world.port.to_string(), &port.to_string());
    }
    world.run(&["up", &world.name]).code(1).says("is held by");
    assert_eq!((world.page(), world.state().as_str()), (page, "ready"));
    for kind in ["environment", "compose"] {
        world.edit(kind, &port.to_string(), &world.port.to_string());
    }
    world.run(&["down"]).code(0);
}

#[test]
fn the_baseline_stays_while_a_named_snapshot_serves() {
    let world = rewindable("based", 0, "true");
    let baseline = world.site().expect("the site")["snapshot"].as_str().expect("an id").to_owned();
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "a"]).code(0);
    world.run(&["reset", "toy", "--to", "a"]).code(0);
    world.run(&["snapshot", "rm", &baseline]).code(1).says("in use");
    world.reset();
    assert_eq!(world.page(), BASELINE);
    world.run(&["snapshot", "rm", "a"]).code(0);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

#[test]
fn a_snapshot_that_cannot_be_taken_leaves_what_its_clients_wrote() {
    let world = World::single("untaken");
    let quiesce =
        "      quiesce:\n        - { command: [/bin/sh, -c, '! grep -q scribble /srv/state/notes'] }\n      warm:\n";
    world.edit("environment", "      warm:\n", quiesce);
    world.up();
    world.write("scribble");
    let page = world.page();
    world.run(&["snapshot", "take", "toy", "--name", "a"]).code(1).says("bring the writers to rest");
    assert_eq!((world.page(), world.state().as_str()), (page, "ready"));
    world.run(&["down"]).code(0);
}
