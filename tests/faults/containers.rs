//! Changes to a site's containers without arenad. The status is correct again within ten seconds, and its hint works.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{World, until};

/// The time limit for the status to become correct.
pub const TRUTH: Duration = Duration::from_secs(10);

/// The whole page of the baseline.
pub const BASELINE: &str = "toy\nconfigured\n";

/// The site's only container.
pub fn container(world: &World) -> String {
    world.site().unwrap()["containers"][0]["id"].as_str().unwrap().to_owned()
}

/// Waits until the site is unhealthy for a reason that contains a text, and returns its hint.
pub fn ails(world: &World, reason: &str) -> String {
    let says =
        |site: &Value| site["state"] == "unhealthy" && site["reason"].as_str().unwrap_or_default().contains(reason);
    let site = until(reason, TRUTH, || world.site().unwrap_or_default(), says);
    let hint = site["hint"].as_str().unwrap().to_owned();
    world.run(&["status"]).code(3).prints("unhealthy").prints(&format!("hint: {hint}"));
    assert_eq!(site["conditions"][0]["status"], "False");
    hint
}

/// Asserts that the site soon becomes ready again with its baseline.
pub fn recovers(world: &World) {
    until("the site", TRUTH, || world.state(), |state| state == "ready");
    assert_eq!(world.page(), BASELINE);
    world.assert_whole(0);
}

#[test]
fn a_killed_container_is_told_and_reset() {
    let world = World::single("kill");
    world.up();
    world.write("scribble");
    world.engine.docker(&["kill", &container(&world)]);
    let hint = ails(&world, "the container of toy exited with code 137");
    assert!(hint.contains("`arenad reset toy`"), "{hint}");
    let refused = world.get("/cgi-bin/page").expect("the gateway answers");
    assert_eq!(refused.status, 503, "{}", refused.head);
    assert!(refused.head.to_lowercase().contains("retry-after:"), "{}", refused.head);
    world.run(&["reset", "toy"]).code(0);
    recovers(&world);

    // A container that was started again by hand serves again, even at another address.
    world.engine.docker(&["kill", &container(&world)]);
    ails(&world, "exited with code 137");
    world.engine.docker(&["start", &container(&world)]);
    until("the site", TRUTH, || world.state(), |state| state == "ready");
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_paused_container_is_told_and_unpaused() {
    let world = World::single("pause");
    world.up();
    let id = container(&world);
    world.engine.docker(&["pause", &id]);
    let hint = ails(&world, "the container of toy is paused");
    assert!(hint.contains("`docker unpause`"), "{hint}");
    world.engine.docker(&["unpause", &id]);
    recovers(&world);
    assert_eq!(container(&world), id);
    world.engine.docker(&["pause", &id]);
    ails(&world, "paused");
    world.run(&["reset", "toy"]).code(0);
    recovers(&world);
    world.engine.docker(&["pause", &container(&world)]);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_removed_container_is_told_and_made_anew() {
    let world = World::single("remove");
    world.up();
    world.engine.docker(&["rm", "--force", &container(&world)]);
    ails(&world, "the container of toy is gone");
    world.up();
    recovers(&world);
    // The site recovers even if the snapshot's image was removed too: the baseline is built again.
    let image = world.engine.images(&world.label());
    world.engine.docker(&["rm", "--force", &container(&world)]);
    world.engine.docker(&["rmi", "--force", &image[0]]);
    ails(&world, "is gone");
    world.run(&["reset", "toy"]).code(0);
    assert_eq!(world.page(), BASELINE);
    // The missing images are reported at the next check of the engine, at the latest by a new daemon.
    world.signal_daemon(Signal::TERM);
    world.up();
    recovers(&world);
    world.run(&["down"]).code(0);
}

#[test]
fn a_container_that_took_too_much_memory_is_told_and_reset() {
    let world = World::single("memory");
    world.up();
    world.engine.docker(&["kill", "--signal", "USR1", &container(&world)]);
    let hint = ails(&world, "out of memory");
    assert!(hint.contains("mem_limit") && hint.contains("`arenad reset toy`"), "{hint}");
    world.run(&["reset", "toy"]).code(0);
    recovers(&world);
    world.run(&["down"]).code(0);
}

#[test]
fn a_site_that_answers_no_more_is_told_and_reset() {
    let world = World::single("mute");
    world.up();
    world.engine.docker(&["exec", &container(&world), "killall", "httpd"]);
    let hint = ails(&world, "health: ");
    assert!(hint.contains("`arenad logs toy`") && hint.contains("`arenad reset toy`"), "{hint}");
    world.run(&["logs", "toy"]).code(0).prints("the toy serves");
    world.run(&["reset", "toy"]).code(0);
    recovers(&world);
    world.run(&["down"]).code(0);
}
