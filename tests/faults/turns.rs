//! Many sites on few processors: the number of sites that boot at once is limited, no site exceeds its time limit while
//! it waits for others, and a reset waits for no build.

use std::collections::BTreeSet;

use crate::support::world::{RunningCommand, free_port};
use crate::support::{World, within};
use serde_json::Value;

/// The boot time of each toy, and its limit: four consecutive boots take longer than the limit.
const BOOT: &str = "BOOT_SECONDS: \"2\"";
const TIMEOUT: &str = "timeout: 5s";

/// Four sites of one container each, all with one image.
fn four() -> World {
    let world = World::single("turns");
    world.edit("compose", "    mem_limit: 48m", &format!("    mem_limit: 48m\n    environment: {{ {BOOT} }}"));
    world.edit("environment", "timeout: 20s", TIMEOUT);
    let service = section(&world, "compose", "  toy:\n");
    let site = section(&world, "environment", "  toy:\n");
    for number in 1..4 {
        let port = free_port().to_string();
        let other = |text: &str| {
            let text = text.replacen("toy:", &format!("toy{number}:"), 1).replace(", variable: SHOPPING", "");
            text.replace(&world.port.to_string(), &port)
        };
        append(&world, "compose", &other(&service));
        append(&world, "environment", &other(&site));
    }
    world
}

/// Returns the definition file from this line on.
fn section(world: &World, kind: &str, from: &str) -> String {
    let text = std::fs::read_to_string(world.file(kind)).unwrap();
    text[text.find(from).unwrap()..].to_owned()
}

fn append(world: &World, kind: &str, more: &str) {
    let text = std::fs::read_to_string(world.file(kind)).unwrap();
    std::fs::write(world.file(kind), text + more).unwrap();
}

fn sites(world: &World) -> Vec<Value> {
    let status = world.api("/v1/status").unwrap_or_default();
    status["environments"][0]["sites"].as_array().cloned().unwrap_or_default()
}

/// Returns the number of sites that wait to boot, and the number of those that have running containers without being
/// ready.
fn waiting_and_booting(world: &World) -> (usize, usize) {
    // The containers are counted first: a site that becomes ready in between is not counted together with the one that
    // starts then.
    let label = format!("label={}", world.label());
    let running = world.engine.docker(&["ps", "--filter", &label, "--format", "{{.Label \"dev.arenad.site\"}}"]);
    let running: BTreeSet<&str> = running.lines().collect();
    let shown = sites(world);
    let is_ready = |name: &str| shown.iter().any(|site| site["name"] == name && site["state"] == "ready");
    let waiting = shown.iter().filter(|site| site["stage"] == "waiting for its turn").count();
    (waiting, running.into_iter().filter(|site| !is_ready(site)).count())
}

/// Follows a command to its end; returns the largest numbers of waiting and of booting sites.
fn most(world: &World, mut command: RunningCommand) -> (usize, usize) {
    let mut most = (0, 0);
    while !command.has_ended() {
        let (waiting, booting) = waiting_and_booting(world);
        most = (most.0.max(waiting), most.1.max(booting));
    }
    command.ended().code(0);
    most
}

#[test]
fn sites_boot_in_turns_and_their_time_outs_begin_with_them() {
    let world = four();
    let mut up = world.command(&["up", &world.name]);
    up.env("ARENAD_PARALLEL", "1");
    // Four baselines and four boots take two seconds each, with a limit of five.
    let (waiting, booting) = most(&world, world.start_command(up));
    // Between two boots all four sites wait for an instant.
    assert!((3..=4).contains(&waiting) && booting == 1, "most that waited: {waiting}, most that booted: {booting}");
    assert!(sites(&world).len() == 4 && sites(&world).iter().all(|site| site["state"] == "ready"));

    // Here the old containers of waiting sites run on, so only the waiting sites can be counted.
    let (waiting, _) = most(&world, world.start(&["reset", "--all"]));
    assert!((3..=4).contains(&waiting), "most that waited: {waiting}");
    assert!(sites(&world).iter().all(|site| site["last_reset"]["outcome"] == "done"));
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_reset_waits_for_no_build() {
    let world = World::single("builds");
    let mut up = world.command(&["up", &world.name]);
    up.env("ARENAD_PARALLEL", "1");
    world.start_command(up).ended().code(0);

    let slow = World::single("slow");
    let dockerfile = slow.root().join("compose/toy/Dockerfile");
    let text = std::fs::read_to_string(&dockerfile).unwrap();
    let text = text.replacen("COPY root /\n", "COPY root /\nRUN [\"/bin/sleep\", \"20\"]\n", 1);
    std::fs::write(dockerfile, text).unwrap();
    let mut building = slow.command(&["up", &slow.name, "--wait-timeout", "90s"]);
    building.env("ARENAD_STATE_DIR", world.state_dir());
    let mut building = slow.start_command(building);
    within("the build", std::time::Duration::from_secs(30), || {
        let status = world.api("/v1/status")?;
        let environments = status["environments"].as_array()?.clone();
        let other = environments.iter().find(|environment| environment["name"] == slow.name.as_str())?;
        other["sites"][0]["stage"].as_str()?.starts_with("building").then_some(())
    });
    world.run(&["reset", "toy", "--environment", &world.name]).code(0);
    assert!(!building.has_ended(), "the build goes on");
    building.ended().code(0);
    world.run(&["down"]).code(0);
}
