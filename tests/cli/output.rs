//! The human-readable output of commands at a width of 100. A reader that closes its pipe early causes no error.

use std::process::Stdio;

use super::snapshot::{check, normalized};
use crate::support::World;
use crate::support::world::CommandOutput;

/// Returns a command's output at a width of 100, which no line of a table may exceed.
#[track_caller]
fn at_100(world: &World, words: &[&str], code: i32) -> CommandOutput {
    let mut command = world.command(words);
    command.env("COLUMNS", "100");
    world.start_command(command).ended().code(code)
}

#[track_caller]
fn check_output(world: &World, name: &str, words: &[&str], code: i32) {
    let ran = at_100(world, words, code);
    let table = ran.out.lines().take_while(|line| !line.is_empty() && !line.starts_with("note: "));
    for line in table {
        assert!(line.chars().count() <= 100, "{words:?}: {line}");
    }
    let port = world.port.to_string();
    let state = world.state_dir().display().to_string();
    let names = [(state.as_str(), "STATE"), (world.name.as_str(), "NAME"), (port.as_str(), "PORT")];
    // Notes about missing features differ between hosts.
    let out: String =
        ran.out.lines().filter(|line| !line.starts_with("note: ")).map(|line| format!("{line}\n")).collect();
    check(&format!("output/{name}"), &normalized(&out, &names));
}

/// A task of the site.
const TASKS: &str = "
environment: @NAME@
tasks:
  - name: toy.write
    kind: content
    sites: [toy]
    start: { path: /cgi-bin/page }
    intent: Make the site remember pears, and then apples, and after that all the other fruit that the market has had since May
    check: { locate: 'http: /cgi-bin/page', contains: pears }
";

#[test]
fn the_main_commands_print_what_was_written_down() {
    let world = World::single("shown");
    world.edit(
        "environment",
        "    baseline:\n",
        "    stores: { notes: { kind: directory, path: /srv/state } }\n    baseline:\n",
    );
    world.write_tasks(TASKS);
    check_output(&world, "validate", &["validate", &world.name], 0);
    check_output(&world, "env", &["env", &world.name], 0);
    check_output(&world, "up-dry-run", &["up", &world.name, "--dry-run"], 0);
    check_output(&world, "tasks-ls", &["tasks", "ls", &world.name], 0);
    check_output(&world, "tasks-show", &["tasks", "show", "toy.write", "-e", &world.name], 0);
    check_output(&world, "up", &["up", &world.name], 0);
    check_output(&world, "status", &["status"], 0);
    check_output(&world, "ps", &["ps"], 0);
    world.write("pears");
    check_output(&world, "verify-differs", &["verify", "toy"], 1);
    check_output(&world, "reset", &["reset", "toy"], 0);
    let verbose = at_100(&world, &["reset", "toy", "-v"], 0);
    assert!(verbose.out.contains("\ntoy:\n  ") && verbose.out.contains(" ms"), "{}", verbose.out);
    assert!(verbose.out.lines().all(|line| line.chars().count() <= 100), "{}", verbose.out);
    // The state of a site is not shown before its reset begins.
    assert!(!verbose.err.contains("toy: ready"), "{}", verbose.err);
    let untouched = at_100(&world, &["reset", "toy", "--if-dirty"], 0);
    let told = untouched.err.contains("unchanged: ") || untouched.out.contains("recreate");
    assert!(told && !untouched.err.contains("reset in") || untouched.out.contains("recreate"), "{}", untouched.err);
    let verbose = at_100(&world, &["status", "-v"], 0);
    for told in ["/toy  Toy\n", "\n  url  ", "\n  instance  ", "\n  snapshot  ", "\n  last reset  "] {
        let out = normalized(&verbose.out, &[]);
        assert!(out.contains(told), "{told:?}: {out}");
    }
    check_output(&world, "verify", &["verify"], 0);
    check_output(&world, "snapshot-ls", &["snapshot", "ls"], 0);
    check_output(&world, "prune", &["prune"], 0);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_reader_that_has_gone_away_ends_a_command_quietly() {
    let world = World::bare("pipe");
    for words in [["completions", "bash"].as_slice(), &["schema", "environment"], &["help", "up"], &["version"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = world.command(words);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().expect("run the program");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{words:?}: {:?} {said}", output.status);
    }
    // Standard error behaves in the same way.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = world.command(&["status"]).stdout(Stdio::null()).stderr(writer).status().expect("run the program");
    assert!(status.code().is_some_and(|code| code != 101), "{status}");
}
