//! Entering containers by hand: output, exit codes, and the loss of the proof that the site is unchanged.

use std::io::Write;
use std::process::Stdio;

use crate::support::wait::PATIENCE;
use crate::support::{World, within};

#[test]
fn a_command_runs_in_the_container_and_the_next_reset_makes_new_ones() {
    let world = World::single("entered");
    world.edit(
        "environment",
        "    baseline:\n",
        "    stores: { notes: { kind: directory, path: /srv/state } }\n    baseline:\n",
    );
    world.up();
    let whole = format!("{}/toy", world.name);
    let ran = world.run(&["exec", &whole, "--", "cat", "/srv/state/notes"]).code(0);
    assert!(ran.out.ends_with("configured\n"), "{}", ran.out);
    assert!(ran.err.contains("are not verified"), "{}", ran.err);
    world.run(&["exec", "toy", "--", "/bin/sh", "-c", "echo no >&2; exit 7"]).code(7).says("no");
    let mut child = world
        .command(&["exec", "toy", "--", "/bin/sh", "-c", "cat >/tmp-note; cat /tmp-note"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"by hand\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), "by hand\n"));

    assert_eq!(world.site().unwrap()["has_been_entered"], true);
    world.run(&["status"]).code(0).prints("was entered with `arenad exec` or `shell`");
    world.run(&["events", "toy"]).code(0).prints("instance.entered");
    let before = crate::support::world::list(&world.site().unwrap()["containers"], "id");
    let answer = world.run(&["reset", "toy", "--if-dirty", "--json"]).code(0).json();
    assert_eq!(answer["operations"][0]["reset"]["strategy"], "recreate", "{answer:#}");
    let site = world.site().unwrap();
    assert!(site["has_been_entered"].is_null(), "{site:#}");
    assert_ne!(crate::support::world::list(&site["containers"], "id"), before);

    world
        .run(&["exec", "toy", "--service", "shop", "--", "true"])
        .code(2)
        .says("has no service `shop`")
        .says("it has toy");
    world.run(&["exec", "toi", "--", "true"]).code(2).says("did you mean `toy`?");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_command_waits_for_the_end_of_a_reset() {
    let world = World::single("reentered");
    let slow = "probes:\n        - exec: { command: [/bin/sh, -c, sleep 2] }\n          name: slow\n        - http: { path: /cgi-bin/healthz";
    world.edit("environment", "probes:\n        - http: { path: /cgi-bin/healthz", slow);
    world.up();
    world.write("scribble");
    let reset = world.start(&["reset", "toy"]);
    within("the reset", PATIENCE, || (world.state() == "resetting").then_some(()));
    let ran = world.run(&["exec", "toy", "--", "cat", "/srv/state/notes"]).code(0);
    assert!(ran.out.ends_with("configured\n"), "it is of the new container: {}", ran.out);
    reset.ended().code(0);
    world.run(&["down"]).code(0);
}

#[test]
fn the_containers_of_a_baseline_that_fails_are_kept_on_request_until_they_are_pruned() {
    let world = World::single("kept");
    world.edit(
        "environment",
        "exec: { command: [/bin/sh, -c, echo configured >>/srv/state/notes] }",
        "retry_for: 0s\n          exec: { command: [/bin/sh, -c, echo half >>/srv/state/notes; exit 3] }",
    );
    let failed = world.run(&["up", &world.name, "--keep-failed"]).code(1);
    failed.says(&format!("`arenad shell {}/toy` looks into the kept containers", world.name));
    let ran = world.run(&["exec", "toy", "--", "cat", "/srv/state/notes"]).code(0);
    assert!(ran.out.ends_with("half\n"), "{}", ran.out);
    assert!(ran.err.contains("kept after its baseline failed"), "{}", ran.err);
    world.run(&["prune"]).code(0).prints("kept from a baseline that could not be made").prints("nothing was removed");
    world.run(&["prune", "--yes"]).code(0).prints("removed");
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
    world.run(&["exec", "toy", "--", "true"]).code(1).says("--keep-failed");

    // `down` removes kept containers as well; without the option none is kept.
    world.run(&["up", &world.name, "--keep-failed"]).code(1);
    assert_eq!(world.engine.containers(&world.label()).len(), 1);
    world.run(&["up", &world.name]).code(1);
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
    world.run(&["up", &world.name, "--keep-failed"]).code(1);
    world.run(&["down"]).code(0);
    world.assert_down();
}
