//! Health checks: shallow and deep probes on their schedules, their history, and their effect on the state.

use serde_json::Value;

use super::containers::{TRUTH, ails, container, recovers};
use crate::support::world::list;
use crate::support::{World, until};

/// A world whose deep probe requests a page that exists as long as a file of the container does.
fn world(label: &str, deep: &str) -> World {
    let world = World::single(label);
    let shallow = "      shallow: { every: 1s }";
    let probe = "http: { path: /deep, contains: deep waters }";
    world.edit(
        "environment",
        shallow,
        &format!("{shallow}\n      deep: {{ {deep}, probes: [ {{ name: deep page, {probe} }} ] }}"),
    );
    std::fs::write(world.root().join("compose/toy/root/srv/www/deep"), "deep waters\n").expect("write a page");
    world
}

fn shell(world: &World, script: &str) {
    world.engine.docker(&["exec", &container(world), "/bin/sh", "-c", script]);
}

/// Returns the entry of `GET /v1/health` for one kind of the site's probes.
fn rounds(world: &World, kind: &str) -> Value {
    let health = world.api("/v1/health?site=toy").unwrap_or_default();
    let kinds = health["sites"][0]["probes"].as_array().cloned().unwrap_or_default();
    kinds.into_iter().find(|probes| probes["kind"] == kind).unwrap_or_default()
}

fn count(world: &World, kind: &str) -> u64 {
    rounds(world, kind)["count"].as_u64().unwrap_or_default()
}

#[test]
fn a_deep_probe_that_fails_makes_a_site_unhealthy_that_answers() {
    let world = world("deep", "every: 1s, timeout: 2s");
    world.up();
    until("deep rounds", TRUTH, || count(&world, "deep"), |count| *count >= 2);
    assert_eq!(world.state(), "ready");
    world.run(&["health"]).code(0).prints("every 1s").prints("100.0 %");

    shell(&world, "mv /srv/www/deep /srv/gone");
    let hint = ails(&world, "deep probe deep page: status 404");
    assert!(hint.contains("`arenad reset toy`"), "{hint}");
    let since = world.site().unwrap()["since"].clone();
    world.page();
    let shallow = rounds(&world, "shallow");
    assert_eq!(shallow["passed"], shallow["count"], "the shallow probes pass: {shallow:#}");
    until(
        "another deep round",
        TRUTH,
        || rounds(&world, "deep"),
        |deep| deep["rounds"][0]["ok"] == false && deep["rounds"][1]["ok"] == false,
    );
    assert_eq!(world.site().unwrap()["since"], since, "the same trouble began once");
    world.run(&["status"]).code(3).prints("toy is unhealthy (for ").prints("deep probe deep page");
    let said = world.run(&["health", "toy"]).code(3).prints("failed").prints("toy fails its deep probes: deep page: ");
    assert!(said.out.contains("last deep rounds: deep page"), "{}", said.out);

    shell(&world, "mv /srv/gone /srv/www/deep");
    recovers(&world);
    let deep = rounds(&world, "deep");
    let rate = deep["success_rate"].as_f64().unwrap();
    assert!(rate > 0.0 && rate < 1.0, "{deep:#}");
    assert_eq!(deep["rounds"][0]["reason"], Value::Null, "the newest comes first");
    let json = world.run(&["health", &world.name, "--json"]).code(0).json();
    assert_eq!(list(&json["sites"][0]["probes"], "kind"), ["shallow", "deep"]);
    world.run(&["health", &world.name, "nothing"]).code(2).says("site `nothing` is not up");

    // A reset also repairs the site. The history continues with the next generation and across a restart of the daemon.
    shell(&world, "rm /srv/www/deep");
    ails(&world, "deep probe deep page");
    world.run(&["reset", "toy"]).code(0);
    recovers(&world);
    let generation = world.site().unwrap()["generation"].clone();
    until(
        "a round of the new generation",
        TRUTH,
        || rounds(&world, "deep"),
        |deep| deep["rounds"][0]["generation"] == generation && deep["rounds"][0]["ok"] == true,
    );
    let before = count(&world, "shallow");
    world.signal_daemon(rustix::process::Signal::TERM);
    world.up();
    assert!(count(&world, "shallow") >= before, "the history is kept");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn deep_probes_wait_for_their_time_and_shallow_ones_go_on() {
    let world = world("cron", "cron: \"0 0 1 1 *\", time_zone: Europe/Berlin");
    world.up();
    shell(&world, "rm /srv/www/deep");
    until("shallow rounds", TRUTH, || count(&world, "shallow"), |count| *count >= 3);
    assert_eq!((count(&world, "deep"), world.state().as_str()), (0, "ready"));
    world.run(&["health"]).code(0).prints("0 0 1 1 * (Europe/Berlin)");
    world.run(&["down"]).code(0);
}

/// A command in a container is an event of the engine, and events interrupt the driver's work.
#[test]
fn probes_that_run_commands_come_to_their_end() {
    let world = World::single("exec");
    world.edit(
        "environment",
        "      shallow: { every: 1s }",
        "      shallow: { every: 1s, probes: [ { exec: { command: [/bin/sh, -c, \"sleep 0.5; echo done\"], contains: done } } ] }",
    );
    world.up();
    until(
        "rounds that passed",
        TRUTH,
        || rounds(&world, "shallow"),
        |shallow| shallow["passed"].as_u64().unwrap_or_default() >= 3,
    );
    world.run(&["down"]).code(0);
}
