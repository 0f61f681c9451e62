//! The output of a failing configuration step, and of hosts on which copies of state are full copies.

use crate::support::World;

#[test]
fn a_repeated_step_is_told_with_both_of_its_streams_and_how_often_it_was_tried() {
    let world = World::single("repeated");
    world.edit(
        "environment",
        "exec: { command: [/bin/sh, -c, echo configured >>/srv/state/notes] }",
        "retry_for: 2s\n          exec: { command: [/bin/sh, -c, echo half done; echo broken >&2; exit 7] }",
    );
    let ran = world.run(&["up", &world.name]).code(1);
    let ran = ran.says("toy: repeating step `greet` of the baseline").says("configure step `greet`: tried ");
    let ran = ran.says(" times in ").says("echo half done").says("exited with code 7");
    ran.says("stdout:\n      half done").says("stderr:\n      broken").says("correct the definition");
    world.run(&["status"]).code(3).prints("tried ").prints("half done").prints("broken");

    // A single attempt is reported without a count.
    world.edit("environment", "retry_for: 2s", "retry_for: 0s");
    let once = world.run(&["up", &world.name]).code(1).says("half done");
    assert!(!once.err.contains("tried ") && !once.err.contains("repeating"), "{}", once.err);
    world.run(&["down"]).code(0);
    world.assert_down();
}

/// A folder that a command gets is part of what the baseline is made from.
#[test]
fn another_content_of_an_input_makes_another_baseline() {
    let world = World::single("input");
    let write = |text: &str| {
        let folder = world.root().join("notes");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("one.txt"), text).unwrap();
    };
    write("configured first");
    world.edit(
        "environment",
        "exec: { command: [/bin/sh, -c, echo configured >>/srv/state/notes] }",
        "input: notes\n          exec: { command: [/bin/sh, -c, tar -xOf - >>/srv/state/notes] }",
    );
    let snapshot = || {
        world.up();
        world.run(&["status", "--json"]).code(0).json()["environments"][0]["sites"][0]["snapshot"].clone()
    };
    let notes = || world.run(&["exec", "toy", "--", "cat", "/srv/state/notes"]).code(0).out.clone();
    let first = snapshot();
    assert!(notes().contains("first"), "{}", notes());
    assert_eq!(snapshot(), first, "the same content is the same baseline");
    write("configured second");
    let second = snapshot();
    assert_ne!(second, first);
    world.run(&["reset", "toy"]).code(0);
    assert!(notes().contains("second") && !notes().contains("first"), "{}", notes());
    // The earlier content leads back to the earlier baseline.
    write("configured first");
    assert_eq!(snapshot(), first);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn full_copies_are_what_up_ends_with() {
    let world = World::single("copies");
    world.edit(
        "environment",
        "    baseline:\n",
        "    stores: { notes: { kind: directory, path: /srv/state } }\n    baseline:\n",
    );
    let mut command = world.command(&["up", &world.name]);
    command.env("ARENAD_STORAGE", "ask");
    let asked = world.start_command(command).ended().code(0);
    let shares = world.run(&["storage", "status", "--json"]).code(0).json()["clones"] == true;
    let last = asked.err.trim_end().lines().last().unwrap_or_default();
    assert_eq!(last.contains("full copies") && last.contains("arenad storage init"), !shares, "{}", asked.err);
    // A user who asked for full copies gets no note about them.
    let plain = world.up();
    assert!(!plain.err.contains("full copies"), "{}", plain.err);
    world.run(&["down"]).code(0);
    world.assert_down();
}
