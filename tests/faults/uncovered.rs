//! A rewind restores the declared stores. State that a client leaves elsewhere, on disk, in memory or in processes,
//! must not reach the next client: the containers are recreated, and the reset reports why.

use serde_json::Value;

use super::standbys::{await_standbys, declared, rewindable};
use crate::support::World;
use crate::support::world::list;

/// State that a client with a shell leaves behind.
struct Leftover {
    what: &'static str,
    /// The script runs in the container as its user, in the background if a process must keep running.
    script: &'static str,
    is_process: bool,
    /// The name in the reason.
    named: &'static str,
}

const fn file(what: &'static str, script: &'static str, named: &'static str) -> Leftover {
    Leftover { what, script, is_process: false, named }
}

const fn process(what: &'static str, script: &'static str, named: &'static str) -> Leftover {
    Leftover { what, script, is_process: true, named }
}

const LEFTOVERS: [Leftover; 8] = [
    file("a file in a home folder", "mkdir -p /root && echo x >/root/y", "/root/y"),
    file("a changed file of the image", "echo x >>/srv/name", "/srv/name"),
    file("a removed file of the image", "rm /srv/www/cgi-bin/manifest", "/srv/www/cgi-bin/manifest"),
    file("a file in memory", "echo x >/srv/memory/x", "/srv/memory/x"),
    file("a file in shared memory", "echo x >/dev/shm/x", "/dev/shm/x"),
    process("a shell", "exec sleep 1001", "`sleep 1001`"),
    process("an open file", "exec 3>>/srv/state/notes; exec sleep 1002", "/srv/state/notes open"),
    process("a working directory", "cd /srv/state && exec sleep 1003", "/srv/state open"),
];

/// A site with memory file systems, one of which a rewind empties.
fn with_memory(label: &str, standby: usize) -> World {
    let world = declared(label, standby, "true");
    let memory = "    tmpfs: [/srv/memory, /srv/tmp]\n    stop_grace_period: 5s\n";
    world.edit("compose", "    stop_grace_period: 5s\n", memory);
    let emptied = "    scratch: [ { path: /srv/tmp, rewind: empty, reason: a test }, {";
    world.edit("environment", "    scratch: [ {", emptied);
    world.up();
    world
}

fn serving(world: &World) -> String {
    list(&world.site().expect("the site")["containers"], "id").remove(0)
}

fn exec(world: &World, id: &str, script: &str) -> String {
    world.engine.docker(&["exec", id, "/bin/sh", "-c", script])
}

fn leave(world: &World, id: &str, leftover: &Leftover) {
    if leftover.is_process {
        world.engine.docker(&["exec", "--detach", id, "/bin/sh", "-c", leftover.script]);
    } else {
        exec(world, id, leftover.script);
    }
}

/// Resets and returns the report.
#[track_caller]
fn reset(world: &World) -> Value {
    let answer = world.run(&["reset", "toy", "--json"]).code(0).json();
    let operation = &answer["operations"][0];
    assert_eq!(operation["state"], "done", "{operation:#}");
    operation["reset"].clone()
}

#[test]
fn what_a_client_leaves_outside_of_the_stores_ends_the_containers() {
    let world = with_memory("uncovered", 0);
    for leftover in &LEFTOVERS {
        let before = serving(&world);
        world.write("scribble");
        leave(&world, &before, leftover);
        let reset = reset(&world);
        let reason = reset["reason"].as_str().unwrap_or_default();
        assert_eq!(reset["strategy"], "recreate", "{}: {reset:#}", leftover.what);
        assert!(reason.starts_with("no rewind: ") && reason.contains(leftover.named), "{}: {reason}", leftover.what);
        world.run(&["status"]).prints(leftover.named);
        assert_ne!(serving(&world), before, "{}: its containers are gone", leftover.what);
        // Writes through the site are still rewound, and the folder declared with `rewind: empty` is emptied.
        let now = serving(&world);
        world.write("scribble");
        exec(&world, &now, "mkdir -p /srv/tmp/a/b && echo x >/srv/tmp/a/b/c");
        assert_eq!(world.reset(), "rewind", "after {}", leftover.what);
        assert_eq!(exec(&world, &now, "ls -A /srv/tmp"), "", "emptied");
        assert_eq!(serving(&world), now);
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn what_a_client_leaves_does_not_come_back_with_a_standby() {
    let world = with_memory("renewed", 1);
    world.write("scribble");
    world.reset();
    await_standbys(&world, 1);
    for (index, is_visited) in [(0, false), (3, true), (7, true)] {
        let leftover = &LEFTOVERS[index];
        let before = serving(&world);
        if is_visited {
            world.write("scribble");
        }
        leave(&world, &before, leftover);
        assert_eq!(world.reset(), "swap", "{}", leftover.what);
        await_standbys(&world, 1);
        let found = world.engine.containers(&world.label());
        assert!(!found.contains(&before), "{}: its containers stand by again", leftover.what);
        world.run(&["events"]).code(0).prints("standby.discarded");
    }
    // Containers without leftovers become a standby again.
    let before = serving(&world);
    world.write("scribble");
    assert_eq!(world.reset(), "swap");
    await_standbys(&world, 1);
    assert!(world.engine.containers(&world.label()).contains(&before));
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_site_with_a_volume_that_is_no_store_is_never_rewound() {
    let world = declared("volume", 0, "true");
    let volume = "    volumes: [\"extra:/srv/extra\"]\n    stop_grace_period: 5s\nvolumes:\n  extra:\n";
    world.edit("compose", "    stop_grace_period: 5s\n", volume);
    world.run(&["doctor", &world.name]).prints("toy is never rewound: /srv/extra of toy is a writable volume");
    world.up();
    exec(&world, &serving(&world), "touch /srv/extra/x");
    let reset = reset(&world);
    assert_eq!(reset["strategy"], "recreate", "{reset:#}");
    assert!(reset["reason"].as_str().unwrap_or_default().contains("/srv/extra of toy"), "{reset:#}");
    assert_eq!(exec(&world, &serving(&world), "ls -A /srv/extra"), "");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_store_of_which_nothing_is_compared_is_not_called_verified() {
    let world = declared("partly", 0, "true");
    let pages =
        "{ kind: directory, path: /srv/www/cgi-bin, volatile: [ { file: \"**\", reason: no process writes there } ] }";
    let stores = format!("    stores:\n      pages: {pages}\n      notes: {{ kind: directory, path: /srv/state }}\n");
    world.edit("environment", "    stores: { notes: { kind: directory, path: /srv/state } }\n", &stores);
    world.up();
    world.write("scribble");
    let reset = reset(&world);
    assert_eq!((&reset["strategy"], &reset["verified"]), (&"rewind".into(), &"everything".into()), "{reset:#}");
    let compared = &reset["compared"];
    assert_eq!((&compared["declared"], &compared["stores"]), (&2.into(), &serde_json::json!(["notes"])), "{reset:#}");
    assert_eq!(compared["left_out"][0]["store"], "pages", "{reset:#}");
    world.run(&["reset", "toy"]).code(0).prints("compared 1 of 2 stores, without pages");
    world.run(&["status"]).prints("compared 1 of 2 stores, without pages");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_process_that_only_serves_may_stay() {
    // The site's own server survives the stop, as it does in every rewind of the toy.
    let world = rewindable("stays", 0, "true");
    let before = serving(&world);
    world.write("scribble");
    assert_eq!(world.reset(), "rewind");
    assert_eq!(serving(&world), before);
    world.run(&["down"]).code(0);
    world.assert_down();
}
