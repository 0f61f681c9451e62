//! `arenad run`: exit codes, variables, and ends of the wrapper.

use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::{FREE_WITHIN, kill_container};
use crate::support::World;
use crate::support::wait::{PATIENCE, within};

/// Returns the live episodes of a world.
fn live(world: &World) -> Vec<Value> {
    let found = world.api("/v1/episodes?live=true").unwrap();
    found["episodes"].as_array().unwrap().clone()
}

/// Waits until the only live episode is active, and returns its id.
#[track_caller]
fn active(world: &World) -> String {
    within("an active episode", PATIENCE, || {
        let episodes = live(world);
        let episode = episodes.first().filter(|episode| episode["state"] == "active")?;
        Some(episode["id"].as_str()?.to_owned())
    })
}

/// Returns the code of the ending of an episode, once it has ended.
#[track_caller]
fn ending(world: &World, id: &str, limit: Duration) -> String {
    within("the end of the episode", limit, || {
        let episode = world.api(&format!("/v1/episodes/{id}"))?;
        episode["ending"]["code"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_command_runs_with_sites_of_its_own_and_its_code_is_returned() {
    let world = World::single("run");
    world.up();
    world.write("people");
    let script = "echo $ARENAD_EPISODE; echo $ARENAD_URL_TOY; echo $SHOPPING $WA_REDDIT $ARENAD_RUN; \
                  test ${#ARENAD_EPISODE_TOKEN} = 64 || exit 3; \
                  ! wget -q -O - $ARENAD_URL_TOY/cgi-bin/page | grep people || exit 4; exit 7";
    let ran = world.run(&["run", "--sites", "toy", "--", "/bin/sh", "-c", script]).code(7);
    let url = format!("http://localhost:{}", world.port);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[1..], [url.clone(), format!("{url} todo 1")], "{}", ran.out);
    assert_eq!(ending(&world, lines[0], FREE_WITHIN), "client");

    let whole = format!("{}/toy", world.name);
    world.run(&["run", "-s", &whole, "--", "true"]).code(0);
    world.run(&["run", "-s", "toi", "--", "true"]).code(2).says("did you mean `toy`?");
    world.run(&["run", "--", "/nowhere/at/all"]).code(127).says("/nowhere/at/all");
    world.run(&["run", "--wait", "0s", "--slot", "toy=2", "--", "true"]).code(2).says("has no slot 2");
    // Two runs share the only slot, one after the other.
    let twice = world.run(&[
        "run",
        "-n",
        "2",
        "--wait",
        "2m",
        "--",
        "/bin/sh",
        "-c",
        "echo $ARENAD_RUN; exit $((ARENAD_RUN + 1))",
    ]);
    let mut numbers: Vec<&str> = twice.out.lines().collect();
    numbers.sort_unstable();
    assert_eq!((twice.code, numbers), (2, vec!["1", "2"]), "{}", twice.err);
    assert!(live(&world).is_empty(), "{:#?}", live(&world));

    // An episode that someone else has: no slot in time.
    let other = world.run(&["episode", "start", "--sites", "toy", "--json"]).code(0).json();
    world.run(&["run", "--wait", "1s", "--", "true"]).code(4).says("no slots came free");
    world.run(&["episode", "end", other["episode"]["id"].as_str().unwrap()]).code(0);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn the_episode_ends_with_the_wrapper_however_that_ends() {
    let world = World::single("wrapper");
    world.up();
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("command");
    let script = format!("trap 'exit 9' TERM; echo >{}; sleep 600 & wait", mark.display());
    let start = || world.start(&["run", "--", "/bin/sh", "-c", &script]);
    let begun = || within("the command has begun", PATIENCE, || mark.exists().then_some(()));
    // Killed while its command runs.
    let wrapper = start();
    let first = active(&world);
    begun();
    kill_process(wrapper.pid(), Signal::KILL).unwrap();
    assert_eq!(ending(&world, &first, FREE_WITHIN), "hold_closed");
    assert_eq!(wrapper.ended().code, -1);

    // Asked to end: the command ends first, and its code is returned.
    std::fs::remove_file(&mark).unwrap();
    let wrapper = start();
    let second = active(&world);
    begun();
    kill_process(wrapper.pid(), Signal::TERM).unwrap();
    assert_eq!(wrapper.ended().code, 9);
    assert_eq!(ending(&world, &second, FREE_WITHIN), "client");

    // Killed while it waits for a slot.
    let holder = start();
    let third = active(&world);
    let waiting = start();
    within("a request that waits", PATIENCE, || (live(&world).len() == 2).then_some(()));
    kill_process(waiting.pid(), Signal::KILL).unwrap();
    within("the request is withdrawn", FREE_WITHIN, || (live(&world).len() == 1).then_some(()));
    waiting.ended();
    // Ctrl-C while it waits.
    let waiting = start();
    within("a request that waits", PATIENCE, || (live(&world).len() == 2).then_some(()));
    kill_process(waiting.pid(), Signal::INT).unwrap();
    assert_eq!(waiting.ended().code, 130);
    within("the request is withdrawn", FREE_WITHIN, || (live(&world).len() == 1).then_some(()));
    world.run(&["episode", "end", &third]).code(0);
    // The command of an episode that someone else ended is ended too.
    holder.ended().code(1).says("the client released it");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_void_episode_ends_the_command_with_a_reason_and_a_code_of_its_own() {
    let world = World::single("voidrun");
    world.up();
    let wrapper = world.start(&["run", "--", "sleep", "600"]);
    let id = active(&world);
    kill_container(&world);
    let ended = wrapper.ended().code(75).says("hint: repeat the episode").says(&id);
    assert!(ended.err.contains("a container of"), "{}", ended.err);
    world.run(&["run", "--", "true"]).code(0);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_run_survives_a_restart_of_the_daemon() {
    let world = World::single("rerun");
    world.up();
    for signal in [Signal::KILL, Signal::TERM] {
        let marker = world.root().join("go");
        let script = format!("while ! test -e {}; do sleep 0.1; done; exit 5", marker.display());
        let mut wrapper = world.start(&["run", "--", "/bin/sh", "-c", &script]);
        let id = active(&world);
        world.signal_daemon(signal);
        world.up();
        within("the episode is held again", PATIENCE, || {
            assert!(!wrapper.has_ended(), "the run ended");
            let episode = world.api(&format!("/v1/episodes/{id}"))?;
            (episode["is_held"] == true && episode["state"] == "active").then_some(())
        });
        std::fs::write(&marker, "").unwrap();
        wrapper.ended().code(5);
        assert_eq!(ending(&world, &id, FREE_WITHIN), "client", "{signal:?}");
        std::fs::remove_file(&marker).unwrap();
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}
