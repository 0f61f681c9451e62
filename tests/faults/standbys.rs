//! Standbys: a reset swaps one in, and clients lose the old containers. If a process dies in between, only containers that
//! are equal to the baseline serve, and no object is left behind.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::wait::PATIENCE;
use crate::support::world::list;
use crate::support::{World, within};

const BASELINE: &str = "toy\nconfigured\n";

/// A site that keeps this many standbys, brought up, written to and reset once, so that it needs them.
pub fn used(label: &str, standby: usize) -> World {
    let world = World::single(label);
    world.edit("environment", "    baseline:\n", &format!("    reset: {{ standby: {standby} }}\n    baseline:\n"));
    world.up();
    world.write("scribble");
    assert_eq!(world.reset(), "recreate", "there is no standby before the first reset");
    world
}

pub fn members(world: &World) -> Vec<Value> {
    let site = world.site().unwrap_or_default();
    site["standbys"]["members"].as_array().cloned().unwrap_or_default()
}

/// Waits for this number of standbys that are ready, and no others.
pub fn await_standbys(world: &World, count: usize) {
    within("the standbys", PATIENCE, || {
        let members = members(world);
        let ready = members.iter().filter(|member| member["state"] == "running" || member["state"] == "frozen");
        (members.len() == count && ready.count() == count).then_some(())
    });
}

/// Asserts that the engine has the serving containers and the standbys, and no other object of the site.
#[track_caller]
fn assert_whole(world: &World) {
    let site = world.site().expect("the site is up");
    let generations: Vec<u64> = members(world).iter().filter_map(|member| member["generation"].as_u64()).collect();
    let mut expected: Vec<String> = list(&site["containers"], "id");
    let label = format!("label={}", world.label());
    let format = "{{.ID}} {{.Label \"dev.arenad.generation\"}}";
    let found = world.engine.docker(&["ps", "--all", "--no-trunc", "--filter", &label, "--format", format]);
    for line in found.lines() {
        let (id, generation) = line.split_once(' ').expect("two words");
        if generations.contains(&generation.parse().expect("a number")) {
            expected.push(id.to_owned());
        }
    }
    expected.sort_unstable();
    assert_eq!(expected.len(), generations.len() + 1, "each standby has its container: {found}");
    assert_eq!(world.engine.containers(&world.label()), expected, "containers");
    assert_eq!(world.engine.networks(&world.label()).len(), expected.len(), "networks");
}

/// A site that declares its store, and the commands that stop and start its writers.
pub fn declared(label: &str, standby: usize, start: &str) -> World {
    let world = World::single(label);
    let stores = format!(
        "    reset: {{ standby: {standby} }}
    stores: {{ notes: {{ kind: directory, path: /srv/state }} }}
    writers:
      stop: [ {{ command: [/bin/sh, -c, 'echo stopped >>/srv/stops'] }} ]
      start: [ {{ command: [/bin/sh, -c, '{start}'] }} ]
    scratch: [ {{ path: /srv/stops, reason: the test counts rewinds by it }} ]
    baseline:\n"
    );
    world.edit("environment", "    baseline:\n", &stores);
    world
}

/// The same site, brought up.
pub fn rewindable(label: &str, standby: usize, start: &str) -> World {
    let world = declared(label, standby, start);
    world.up();
    world
}

#[test]
fn what_is_declared_is_put_back_into_running_containers() {
    let world = rewindable("rewind", 0, "true");
    let before = world.site().expect("the site");
    for round in 0..4 {
        world.write(&format!("round{round}"));
        assert_eq!(world.reset(), "rewind");
        assert_eq!(world.page(), BASELINE);
    }
    let after = world.site().expect("the site");
    assert_eq!(list(&after["containers"], "id"), list(&before["containers"], "id"), "the containers run on");
    assert_eq!(after["generation"].as_u64(), before["generation"].as_u64().map(|before| before + 4));
    // A stopped container cannot be rewound.
    world.write("stopped");
    world.engine.docker(&["kill", &list(&after["containers"], "id")[0]]);
    assert_eq!(world.reset(), "recreate");
    assert_eq!(world.page(), BASELINE);
    // Named snapshots contain the data in the state root.
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    assert!(world.page().contains("kept"), "it goes on from where it was");
    assert_eq!(world.reset(), "rewind");
    assert_eq!(world.page(), BASELINE);
    let baseline = world.site().expect("the site")["snapshot"].as_str().expect("an id").to_owned();
    world.run(&["snapshot", "diff", &baseline, "kept"]).code(1).prints("notes");
    world.run(&["snapshot", "diff", "kept", "kept"]).code(0).prints("are equal");

    world.run(&["reset", "toy", "--to", "kept"]).code(0);
    let kept = world.page();
    assert!(kept.contains("kept"), "{kept}");
    world.write("more");
    world.run(&["reset", "toy", "--to", "kept"]).code(0);
    assert_eq!(world.page(), kept);
    world.run(&["verify", "toy"]).code(0);
    world.run(&["snapshot", "rm", "kept"]).code(1).says("in use");
    world.run(&["reset", "toy", "--to", "nothing"]).code(2).says("there is no snapshot `nothing`");
    // A new daemon takes up the site with the requested snapshot, and a plain reset leads back to the baseline.
    world.signal_daemon(Signal::KILL);
    world.up();
    assert_eq!(world.page(), kept);
    world.reset();
    assert_eq!(world.page(), BASELINE);
    world.run(&["snapshot", "rm", "kept"]).code(0);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

#[test]
fn what_nobody_reached_while_it_served_stands_by_again_by_its_proof_alone() {
    let world = rewindable("untouched", 1, "true");
    world.write("scribble");
    world.reset();
    await_standbys(&world, 1);
    // Archives of the file, if there is one, because no command runs in a container that is paused.
    let rewinds = || {
        let stops =
            |id: &String| world.engine.try_docker(&["cp", &format!("{id}:/srv/stops"), "-"]).unwrap_or_default();
        let count = |id: &String| stops(id).matches("stopped\n").count();
        world.engine.containers(&world.label()).iter().map(count).sum::<usize>()
    };
    let swap = || {
        assert_eq!(world.reset(), "swap");
        await_standbys(&world, 1);
    };
    let before = rewinds();
    (0..3).for_each(|_| swap());
    assert_eq!(rewinds(), before, "there was nothing to bring back");
    // A client that only reads may change the memory of a site.
    assert_eq!(world.page(), BASELINE);
    swap();
    assert_eq!(rewinds(), before + 1);
    world.run(&["locate", "toy", "http: /cgi-bin/page"]).code(0);
    swap();
    assert_eq!(rewinds(), before + 2, "a locator is a visitor, too");
    // This write bypasses the gateway.
    let serving = list(&world.site().expect("the site")["containers"], "id").remove(0);
    world.engine.docker(&["exec", &serving, "/bin/sh", "-c", "echo sabotage >>/srv/state/notes"]);
    swap();
    assert_eq!(rewinds(), before + 3, "its proof failed");
    (0..2).for_each(|_| swap());
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn what_served_another_snapshot_is_no_standby_of_the_baseline() {
    let world = rewindable("other", 1, "true");
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    world.reset();
    await_standbys(&world, 1);
    world.run(&["reset", "toy", "--to", "kept"]).code(0);
    let served = list(&world.site().expect("the site")["containers"], "id").remove(0);
    await_standbys(&world, 1);
    assert_eq!(world.reset(), "swap");
    assert_eq!(world.page(), BASELINE);
    await_standbys(&world, 1);
    assert!(!world.engine.containers(&world.label()).contains(&served), "its containers are gone");
    assert_whole(&world);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn what_differs_is_named_and_what_does_not_is_left_alone() {
    let world = rewindable("proof", 0, "true");
    world.run(&["verify", "toy"]).code(0).prints("toy equals its snapshot");
    let untouched = world.run(&["reset", "toy", "--if-dirty", "--json"]).code(0).json();
    assert_eq!(untouched["operations"][0]["reset"]["strategy"], "untouched", "{untouched:#}");
    let before = world.site().expect("the site");

    world.write("scribble");
    let id = list(&before["containers"], "id").remove(0);
    world.engine.docker(&["exec", &id, "/bin/sh", "-c", "echo new >/srv/state/added; chmod 600 /srv/state/notes"]);
    let verified = world.run(&["verify", "toy", "--json"]).code(1).json();
    assert_eq!(verified[0]["equal"], false);
    assert_eq!(list(&verified[0]["differences"], "name"), ["added", "notes"], "{verified:#}");
    world.run(&["verify", "toy"]).code(1).prints("added").prints("notes");

    let dirty = world.run(&["reset", "toy", "--if-dirty", "--json"]).code(0).json();
    assert_eq!(dirty["operations"][0]["reset"]["strategy"], "rewind", "{dirty:#}");
    assert_eq!(world.page(), BASELINE);
    world.run(&["verify"]).code(0).prints("toy equals its snapshot");
    world.run(&["down"]).code(0);
}

#[test]
fn a_standby_that_was_changed_behind_our_back_is_not_handed_out() {
    let world = rewindable("sabotage", 1, "true");
    world.write("scribble");
    world.reset();
    await_standbys(&world, 1);
    let generation = members(&world)[0]["generation"].as_u64().expect("a number");
    let label = format!("label=dev.arenad.generation={generation}");
    let ours = format!("label={}", world.label());
    let id = world.engine.docker(&["ps", "--quiet", "--filter", &label, "--filter", &ours]);
    world.engine.docker(&["exec", id.trim(), "/bin/sh", "-c", "echo sabotage >>/srv/state/notes"]);
    assert_eq!(world.reset(), "rewind");
    assert_eq!(world.page(), BASELINE);
    world.run(&["events"]).code(0).prints("was discarded: differs from its snapshot: notes: notes");
    await_standbys(&world, 1);
    assert_whole(&world);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn nothing_is_served_from_a_snapshot_that_was_damaged() {
    let world = rewindable("damaged", 0, "true");
    let snapshot = world.site().expect("the site")["snapshot"].as_str().expect("an id").to_owned();
    let notes = world.state_dir().join("stores/snapshots").join(&snapshot).join("toy-srv-state/notes");
    std::fs::write(&notes, "configured, forged\n").expect("write into the snapshot");
    // Untouched files stay in place and are not copied from the snapshot.
    assert_eq!(world.reset(), "rewind");
    assert_eq!(world.page(), BASELINE);
    world.write("scribble");
    let refused = world.run(&["reset", "toy"]).code(1).says("differs from its snapshot").says("notes");
    refused.says("hint: ");
    assert_eq!(world.state(), "failed");
    assert_eq!(world.get("/cgi-bin/page").expect("an answer of the gateway").status, 503);
    // The damaged snapshot can be removed.
    world.run(&["snapshot", "rm", &snapshot]);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_rewind_that_fails_ends_as_a_recreate() {
    let world = rewindable("unwound", 0, "test ! -e /srv/refuses");
    let id = list(&world.site().expect("the site")["containers"], "id").remove(0);
    world.engine.docker(&["exec", &id, "/bin/sh", "-c", "echo >/srv/refuses"]);
    world.write("lost");
    assert_eq!(world.reset(), "recreate");
    assert_eq!(world.page(), BASELINE);
    world.run(&["events"]).code(0).prints("could not be rewound, so its containers are recreated");
    world.assert_whole(0);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn what_has_served_is_brought_back_as_the_next_standby() {
    let world = rewindable("renewed", 1, "true");
    world.write("scribble");
    world.reset();
    await_standbys(&world, 1);
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..5 {
        seen.insert(list(&world.site().expect("the site")["containers"], "id").remove(0));
        world.write(&format!("round{round}"));
        assert_eq!(world.reset(), "swap");
        assert_eq!(world.page(), BASELINE);
        await_standbys(&world, 1);
        assert_whole(&world);
    }
    assert_eq!(seen.len(), 2, "two containers take turns");
    world.run(&["down"]).code(0);
    world.assert_down();
    let left = std::fs::read_dir(world.state_dir().join("stores/instances")).expect("a folder").count();
    assert_eq!(left, 0, "no state of instances is left");
}

#[test]
fn a_reset_swaps_a_standby_in_and_another_is_made() {
    let world = used("swap", 1);
    for round in 0..3 {
        await_standbys(&world, 1);
        assert_whole(&world);
        let before = world.site().expect("the site");
        world.write(&format!("round{round}"));
        assert!(world.page().contains(&format!("round{round}")), "what is written is seen");
        assert_eq!(world.reset(), "swap");
        assert_eq!(world.page(), BASELINE);
        let after = world.site().expect("the site");
        assert!(after["generation"].as_u64() > before["generation"].as_u64(), "generations grow");
        assert_ne!(list(&after["containers"], "id"), list(&before["containers"], "id"));
        assert_eq!(after["last_reset"]["outcome"], "done");
    }
    await_standbys(&world, 1);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn without_a_standby_ready_it_is_made_anew() {
    let world = used("rows", 1);
    // Resets come faster than standbys can be prepared: whichever way is taken, the baseline is back.
    let mut ways = Vec::new();
    for round in 0..6 {
        world.write(&format!("row{round}"));
        ways.push(world.reset());
        assert_eq!(world.page(), BASELINE, "after {ways:?}");
    }
    assert!(ways.contains(&"recreate".to_owned()), "{ways:?}");
    await_standbys(&world, 1);
    assert_whole(&world);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_site_that_nobody_writes_to_has_no_standby_and_what_is_not_expected_to_be_reset_is_frozen() {
    let world = World::single("frozen");
    world.edit("environment", "    baseline:\n", "    reset: { standby: 1 }\n    baseline:\n");
    world.up();
    assert_eq!(world.page(), BASELINE);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(members(&world), [Value::Null; 0], "reading a page does not make arenad prepare a standby");
    // The toy site writes on GET, which real sites should not do; a form would use POST.
    let mut stream = TcpStream::connect(("127.0.0.1", world.port)).expect("connect");
    let request =
        "POST /cgi-bin/write?posted HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("send");
    stream.read_to_end(&mut Vec::new()).expect("an answer");
    await_standbys(&world, 1);
    // Clients have written to the site, so the next reset is expected and the standby runs.
    assert_eq!(members(&world)[0]["state"], "running");
    assert_eq!(world.reset(), "swap");
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_standby_that_died_is_not_handed_out() {
    let world = used("dead", 1);
    await_standbys(&world, 1);
    let generation = members(&world)[0]["generation"].as_u64().expect("a number");
    let label = format!("label=dev.arenad.generation={generation}");
    let ours = format!("label={}", world.label());
    let id = world.engine.docker(&["ps", "--quiet", "--filter", &label, "--filter", &ours]);
    world.engine.docker(&["kill", id.trim()]);
    // The reset comes at once. Whether or not the daemon knows that the container ended, it does not answer.
    assert_eq!(world.reset(), "recreate");
    assert_eq!(world.page(), BASELINE);
    await_standbys(&world, 1);
    assert_whole(&world);
    world.run(&["down"]).code(0);
    world.assert_down();
}

/// The containers of standbys.
fn standbys(world: &World) -> Vec<String> {
    let serving = list(&world.site().expect("the site is up")["containers"], "id");
    let mut all = world.engine.containers(&world.label());
    all.retain(|id| !serving.contains(id));
    all
}

#[test]
fn standbys_outlive_the_daemon_and_are_proven_again() {
    let world = rewindable("heirs", 2, "true");
    world.write("scribble");
    world.reset();
    await_standbys(&world, 2);
    let serving = list(&world.site().expect("the site")["containers"], "id");
    let before = standbys(&world);
    // A running daemon gives up a standby that another process has paused.
    world.signal_daemon(Signal::KILL);
    // The next daemon treats paused and running standbys alike.
    for id in &before {
        let _ = world.engine.try_docker(&["unpause", id]);
    }
    world.engine.docker(&["pause", &before[0]]);
    world.up();
    assert_eq!(list(&world.site().expect("the site")["containers"], "id"), serving, "what served is taken up");
    await_standbys(&world, 2);
    assert_eq!(standbys(&world), before, "so are its standbys");
    assert_whole(&world);
    world.write("scribble");
    assert_eq!(world.reset(), "swap");
    assert_eq!(world.page(), BASELINE);

    // A standby that was changed or killed while no daemon ran is not used.
    await_standbys(&world, 2);
    let before = standbys(&world);
    world.signal_daemon(Signal::KILL);
    let _ = world.engine.try_docker(&["unpause", &before[0]]);
    world.engine.docker(&["exec", &before[0], "/bin/sh", "-c", "echo sabotage >>/srv/state/notes"]);
    world.engine.docker(&["kill", &before[1]]);
    world.up();
    await_standbys(&world, 2);
    assert!(standbys(&world).iter().all(|id| !before.contains(id)), "both are new");
    world.run(&["events"]).code(0).prints("differs from its snapshot: notes: notes");
    // An object that the engine was still creating when the daemon died is found by a later pass.
    within("what was left over to be removed", PATIENCE * 4, || {
        (world.engine.networks(&world.label()).len() == 3).then_some(())
    });
    assert_whole(&world);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_standby_that_is_changed_while_nobody_resets_is_found_by_the_next_look() {
    let world = rewindable("looks", 1, "true");
    world.write("scribble");
    world.reset();
    await_standbys(&world, 1);
    let changed = standbys(&world).remove(0);
    world.engine.docker(&["exec", &changed, "/bin/sh", "-c", "echo sabotage >/srv/state/added"]);
    within("another standby", PATIENCE * 2, || (!standbys(&world).contains(&changed)).then_some(()));
    await_standbys(&world, 1);
    world.run(&["events"]).code(0).prints("was discarded: differs from its snapshot: notes: added");
    assert_eq!(world.reset(), "swap");
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
    world.assert_down();
}

/// Returns the fields about verification from a reset's report.
#[track_caller]
fn verified(world: &World) -> (String, String) {
    let answer = world.run(&["reset", "toy", "--json"]).code(0).json();
    let reset = &answer["operations"][0]["reset"];
    let text = |key: &str| reset[key].as_str().unwrap_or_default().to_owned();
    (text("strategy"), text("verified"))
}

#[test]
fn how_much_is_compared_is_what_the_definition_says() {
    let world = rewindable("policy", 0, "true");
    let said = |way: &str, extent: &str| (way.to_owned(), extent.to_owned());
    assert_eq!(verified(&world), said("rewind", "everything"));
    assert_eq!(verified(&world), said("rewind", "everything"), "every one, unless the definition says otherwise");
    world.edit("environment", "standby: 0", "standby: 1, verify: full, verify_every: 2");
    world.up();
    let ways: Vec<(String, String)> = (0..2).map(|_| verified(&world)).collect();
    assert_eq!(ways[0], said("rewind", "everything"));
    let expected = if ways[1].0 == "swap" { "moved" } else { "nothing" };
    assert_eq!(ways[1].1, expected, "the second of two");
    await_standbys(&world, 1);
    assert_eq!(verified(&world), said("swap", "everything"));
    await_standbys(&world, 1);
    assert_eq!(verified(&world), said("swap", "moved"));
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_schedule_keeps_standbys_of_a_site_that_nobody_uses() {
    let world = World::single("schedule");
    // This schedule has begun at the last new year, whatever the current time is.
    let schedule =
        "    reset: { schedule: [ { cron: '0 0 1 1 *', time_zone: Europe/Berlin, standby: 1 } ] }\n    baseline:\n";
    world.edit("environment", "    baseline:\n", schedule);
    world.up();
    await_standbys(&world, 1);
    assert_eq!(world.site().expect("the site")["standbys"]["wanted"], 1);
    assert_eq!(world.reset(), "swap", "the first reset of all");
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn without_memory_for_a_standby_a_reset_goes_a_slower_way_and_says_why() {
    let world = declared("poor", 1, "true");
    let mut up = world.command(&["up", &world.name]);
    up.env("ARENAD_MEMORY_RESERVE", "4096g");
    world.start_command(up).ended().code(0);
    world.write("scribble");
    // Only now does the site need a standby.
    assert_eq!(world.reset(), "rewind");
    let lack = within("the lack of memory", PATIENCE, || world.site()?["standbys"]["lack"].as_str().map(str::to_owned));
    assert!(lack.contains("of memory are free, a standby needs"), "{lack}");
    assert_eq!(members(&world), [Value::Null; 0], "none is made");
    world.run(&["status"]).code(0).prints("0 of 1").prints("toy has too few standbys: ");
    world.run(&["events"]).code(0).prints("has too few standbys: ");

    world.write("scribble");
    let answer = world.run(&["reset", "toy", "--json"]).code(0).json();
    let reset = &answer["operations"][0]["reset"];
    assert_eq!(reset["strategy"], "rewind", "{reset:#}");
    let reason = reset["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("no standby: ") && reason.contains("of memory are free"), "{reason}");
    assert_eq!(world.page(), BASELINE);
    world.run(&["reset", "toy"]).code(0).prints("toy: no faster strategy was possible: no standby: ");
    world.run(&["down"]).code(0);
    world.assert_down();
}
