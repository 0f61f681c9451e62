//! The daemon is killed at every step of every operation. The next `arenad up` ends with every site ready, from the
//! baseline, with no leftovers and no duplicates.
//!
//! The moments are states in the status, not times. Each step of an operation has a rank, and the daemon is killed as soon
//! as the status shows the wanted rank or a higher one, so that a step too short to be seen is not missed.

use std::fs::File;

use arenad_seams::fault::Point;
use rustix::process::{Signal, kill_process};

use crate::support::wait::PATIENCE;
use crate::support::world::RunningCommand;
use crate::support::{World, until, within};

/// The text that the site's baseline contains.
const BASELINE: &str = "toy\nconfigured\n";

/// The number of volumes of an instance of the pair: a named one, and one that its image declares.
const VOLUMES: usize = 2;

/// The steps of bringing a site up, from the first to the last.
const UP_STEPS: [&str; 15] = [
    "daemon",
    "preparing",
    "waiting for its turn",
    "image",
    "building",
    "baseline: starting",
    "baseline: configuring",
    "baseline: waiting",
    "baseline: warming",
    "baseline: stopping",
    "baseline: taking",
    "creating",
    "starting containers",
    "waiting for the site",
    "ready",
];

/// The rank among `steps` of the site's current step.
fn rank(world: &World, steps: &[&str]) -> usize {
    let site = world.site().unwrap_or_default();
    let find = |shown: &str| steps.iter().rposition(|step| shown.starts_with(step));
    let stage = site["stage"].as_str().and_then(find);
    let state = site["state"].as_str().and_then(find);
    stage.or(state).unwrap_or_default()
}

/// Kills the daemon as soon as `seen` holds, and waits for the client to notice.
fn kill_when(world: &World, what: &str, mut client: RunningCommand, seen: impl Fn() -> bool) {
    within(what, PATIENCE, || (seen() || client.has_ended()).then_some(()));
    world.signal_daemon(Signal::KILL);
    let ran = client.ended();
    if ran.code != 0 {
        ran.code(1).says("error: ").says("hint: ");
    }
}

fn assert_recovers(world: &World, moment: &str) {
    let up = world.run(&["up", &world.name]);
    assert_eq!(up.code, 0, "up after a kill at {moment}: {}", up.err);
    assert_eq!(world.page(), BASELINE, "after a kill at {moment}");
    world.assert_whole(VOLUMES);
}

/// Kills the daemon at every second step of the way up; two tests share the steps.
fn killed_on_the_way_up(label: &str, first: usize) {
    let world = World::pair(label);
    let mut round = 0;
    for wanted in (first..UP_STEPS.len()).step_by(2) {
        // Steps that provide the image need a new image, and all steps need a new baseline.
        if wanted < 5 {
            let name = world.root().join("compose/toy/root/srv/name");
            std::fs::write(name, format!("{label} {wanted}")).unwrap();
        }
        world.edit("environment", &format!(": round {round} &&"), &format!(": round {} &&", wanted + 1));
        round = wanted + 1;
        let client = world.start(&["up", &world.name]);
        kill_when(&world, UP_STEPS[wanted], client, || match wanted {
            0 => world.daemon().is_some(),
            _ => rank(&world, &UP_STEPS) >= wanted,
        });
        assert_recovers(&world, UP_STEPS[wanted]);
        world.run(&["down"]).code(0);
        world.assert_down();
    }
}

#[test]
fn a_daemon_killed_at_even_steps_of_up_leaves_nothing_behind() {
    killed_on_the_way_up("up-even", 0);
}

#[test]
fn a_daemon_killed_at_odd_steps_of_up_leaves_nothing_behind() {
    killed_on_the_way_up("up-odd", 1);
}

#[test]
fn a_daemon_killed_during_a_reset_leaves_the_site_reset() {
    let world = World::pair("reset");
    world.up();
    let steps = ["ready", "resetting", "creating", "starting containers", "waiting for the site"];
    for wanted in 1..=steps.len() {
        world.write("scribble");
        let generation = world.site().unwrap()["generation"].as_u64().unwrap();
        let client = world.start(&["reset", "toy"]);
        let moment = steps.get(wanted).copied().unwrap_or("done");
        kill_when(&world, moment, client, || {
            let site = world.site().unwrap_or_default();
            let is_done = site["state"] == "ready" && site["generation"] == generation + 1;
            is_done || (wanted < steps.len() && rank(&world, &steps) >= wanted)
        });
        assert_recovers(&world, moment);
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_daemon_killed_on_the_way_down_is_no_hindrance_to_up_or_down() {
    let world = World::pair("down");
    let containers = || world.engine.containers(&world.label()).is_empty();
    let networks = || world.engine.networks(&world.label()).is_empty();
    let volumes = || world.engine.volumes(&world.label()).is_empty();
    let stopping = || world.state() == "stopping";
    let moments: [(&str, &dyn Fn() -> bool); 4] = [
        ("stopping", &stopping),
        ("containers gone", &containers),
        ("networks gone", &networks),
        ("volumes gone", &volumes),
    ];
    for (moment, seen) in moments {
        assert_recovers(&world, moment);
        let client = world.start(&["down"]);
        kill_when(&world, moment, client, seen);
        assert_recovers(&world, moment);
        let client = world.start(&["down"]);
        kill_when(&world, moment, client, seen);
        world.run(&["down"]).code(0);
        world.assert_down();
    }
}

#[test]
fn a_daemon_told_to_stop_says_so_to_those_who_wait() {
    let world = World::single("term");
    for wanted in ["baseline: starting", "baseline: waiting", "creating"] {
        let wanted = UP_STEPS.iter().position(|step| *step == wanted).unwrap();
        let client = world.start(&["up", &world.name]);
        within(UP_STEPS[wanted], PATIENCE, || (rank(&world, &UP_STEPS) >= wanted).then_some(()));
        world.signal_daemon(Signal::TERM);
        client.ended().code(1).says("told to stop").says("goes on with it");
        assert!(!world.state_dir().join("arenad.sock").exists());
    }
    world.up();
    assert_eq!(world.page(), BASELINE);
    world.assert_whole(0);

    // A daemon that is asked to stop leaves the site unchanged for the next daemon.
    world.write("scribble");
    let containers = world.engine.containers(&world.label());
    world.signal_daemon(Signal::TERM);
    world.run(&["status"]).code(3);
    world.up();
    assert_eq!(world.engine.containers(&world.label()), containers);
    assert!(world.page().contains("scribble"));
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_daemon_killed_in_peace_is_followed_by_one_that_takes_its_sites_up() {
    let world = World::pair("peace");
    world.up();
    world.write("scribble");
    let containers = world.engine.containers(&world.label());
    world.signal_daemon(Signal::KILL);
    world.run(&["reset", "toy"]).code(1).says("no daemon runs").says("hint: `arenad up` starts one");
    world.up();
    assert_eq!(world.engine.containers(&world.label()), containers, "nothing was made anew");
    assert!(world.page().contains("scribble"), "up does not reset the site");
    world.signal_daemon(Signal::KILL);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn down_removes_what_a_new_daemon_cannot_serve_any_more() {
    let world = World::single("strand");
    world.up();
    world.signal_daemon(Signal::KILL);
    // The kernel releases the lock of a killed process before its sockets.
    let thief = within("the port", PATIENCE, || std::net::TcpListener::bind(("127.0.0.1", world.port)).ok());
    world.run(&["up", &world.name]).code(1).says("is held by");
    assert_eq!(world.engine.containers(&world.label()).len(), 1, "it waits for its port");
    let status = world.run(&["status"]).code(3);
    assert!(status.out.contains("toy") && status.out.contains("hint: "), "{}", status.out);
    world.run(&["down"]).code(0);
    drop(thief);
    world.assert_down();
}

#[test]
fn two_ups_at_once_make_one_site() {
    let world = World::single("two");
    let both = [world.start(&["up", &world.name]), world.start(&["up", &world.name])];
    for up in both {
        up.ended().code(0);
    }
    assert_eq!(world.site().unwrap()["generation"], 1);
    world.assert_whole(0);
    // The same with containers to take up.
    world.signal_daemon(Signal::KILL);
    let both = [world.start(&["up", &world.name]), world.start(&["up", &world.name])];
    for up in both {
        up.ended().code(0);
    }
    world.assert_whole(0);
    // The same while a daemon shuts down.
    let down = world.start(&["down"]);
    let up = world.start(&["up", &world.name]);
    let (down, up) = (down.ended(), up.ended());
    assert!(down.code == 0 || down.err.contains("error: "), "{}", down.err);
    assert!(up.code == 0 || up.err.contains("hint: "), "{}", up.err);
    world.up();
    world.assert_whole(0);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn interrupting_a_command_ends_the_waiting_not_the_work() {
    let world = World::single("ctrlc");
    let faults = world.root().join("faults");
    std::fs::create_dir(&faults).unwrap();
    // The operation waits at this point while its client gives up.
    let hold = |point: Point| drop(File::create(faults.join(point.name())).unwrap());
    let go_on = |point: Point| std::fs::remove_file(faults.join(point.name())).unwrap();
    let reached = |point: Point| {
        let file = faults.join(format!("{point}.reached"));
        within(&format!("{point}"), PATIENCE, || file.exists().then_some(()));
    };

    hold(Point::MakeCreated);
    let client = world.start_with_faults(&["up", &world.name], &faults);
    reached(Point::MakeCreated);
    kill_process(client.pid(), Signal::INT).unwrap();
    client.ended().code(130).says("interrupted").says("continues in the background");
    go_on(Point::MakeCreated);
    until("the site", PATIENCE, || world.state(), |state| state == "ready");
    assert_eq!(world.page(), BASELINE);

    hold(Point::RecreateRecorded);
    world.run(&["reset", "toy", "--wait-timeout", "0s"]).code(124).says("not done within 0s").says("hint: ");
    reached(Point::RecreateRecorded);
    go_on(Point::RecreateRecorded);
    until("the site", PATIENCE, || world.state(), |state| state == "ready");
    world.assert_whole(0);

    // A client that follows the events does not delay the daemon: no task of it has to be given up.
    let mut follower = world.start(&["events", "--follow"]);
    world.run(&["down"]).code(0);
    within("the follower's end", PATIENCE, || follower.has_ended().then_some(()));
    world.assert_down();
    let log = std::fs::read_to_string(world.state_dir().join("arenad.log")).unwrap();
    assert!(!log.contains("did not come to their end"), "{log}");
}
