//! Native tasks on a real site: checks distinguish the right actions of an agent from nearly right ones, and a site
//! that was reset or died in between gives no verdict on the agent.

use serde_json::Value;

use crate::support::World;
use crate::support::world::list;

const TASKS: &str = r#"
environment: @NAME@
tasks:
  - name: toy.write
    kind: content
    sites: [toy]
    intent: Make the site remember {{word}}
    each: [ { word: apples }, { word: pears } ]
    before:
      lines: { locate: "exec: toy: wc -l /srv/state/notes" }
    check:
      all:
        - { name: one line more, locate: "exec: toy: wc -l /srv/state/notes", difference: { from: lines, by: 1 } }
        - { name: the word, locate: "http: /cgi-bin/page", contains: "{{word}}" }
  - name: toy.go
    kind: navigation
    sites: [toy]
    start: { path: /cgi-bin/healthz }
    intent: Go to the page
    check: { url: { path: /cgi-bin/page } }
  - name: toy.count
    kind: information
    sites: [toy]
    intent: How many lines does the site remember?
    check: { answer: { number: 2 } }
  - name: toy.late
    kind: content
    sites: [toy]
    snapshots: { toy: late }
    intent: Do nothing
    check: { locate: "http: /cgi-bin/page", contains: later }
"#;

/// A world whose environment has tasks.
fn world_with_tasks(label: &str) -> World {
    let world = World::single(label);
    world.write_tasks(TASKS);
    world
}

/// Begins an episode of a task at its start state.
#[track_caller]
fn begin(world: &World, task: &str) {
    world.run(&["check", "begin", task, "--reset", "--out", "begun.json"]).code(0);
}

/// Judges the episode and asserts the exit code.
#[track_caller]
fn check(world: &World, task: &str, code: i32) -> Value {
    let checked = world.run(&["check", task, "--begun", "begun.json", "--json"]).code(code).json();
    checked["report"].clone()
}

#[test]
fn what_was_done_is_told_from_what_was_nearly_done() {
    let world = world_with_tasks("checks");
    world.run(&["tasks", "lint", &world.name]).code(0).prints("no problems in 5 tasks of 1 files");
    world.run(&["tasks", "ls", &world.name]).code(0).prints("Make the site remember pears");
    world.run(&["tasks", "show", "toy.late", "-e", &world.name]).code(0).prints("arenad reset toy --to late");
    world.up();

    // Values captured at the beginning are required, and must belong to this task.
    world
        .run(&["check", "toy.write.1"])
        .code(2)
        .says("compares with values of the beginning: lines")
        .says("check begin");
    world.run(&["check", "toy.wrote.1"]).code(2).says("did you mean `toy.write.1`?");
    begin(&world, "toy.write.1");
    world.run(&["check", "toy.write.2", "--begun", "begun.json"]).code(2).says("what began is toy.write.1");

    // The agent does nothing, then the wrong thing, then the right thing together with another one.
    assert_eq!(check(&world, "toy.write.1", 5)["checks"][0]["reason"], "it was 2, so the difference is 0, not 1");
    world.write("pineapples");
    let report = check(&world, "toy.write.1", 5);
    assert_eq!(
        (&report["checks"][0]["verdict"], &report["checks"][1]["verdict"]),
        (&"passed".into(), &"failed".into())
    );
    world.write("apples");
    let report = check(&world, "toy.write.1", 5);
    assert_eq!(
        (&report["checks"][0]["verdict"], &report["checks"][1]["verdict"]),
        (&"failed".into(), &"passed".into())
    );
    let said = world.run(&["check", "toy.write.1", "--begun", "begun.json"]).code(5);
    said.prints("failed").prints("one line more: site difference").prints("found     \"4 /srv/state/notes\"");

    begin(&world, "toy.write.1");
    world.write("apples");
    let report = check(&world, "toy.write.1", 0);
    assert_eq!((&report["verdict"], &report["score"]), (&"passed".into(), &1.0.into()));
    assert!(report["checks"][0]["duration_ms"].as_f64().is_some_and(|took| took > 0.0), "{report:#}");

    // The agent's last page and its answer.
    let page = format!("http://localhost:{}/cgi-bin/page", world.port);
    world.run(&["check", "toy.go", "--url", &page]).code(0);
    world.run(&["check", "toy.go", "--url", &format!("{page}s")]).code(5);
    world.run(&["check", "toy.go"]).code(6).prints("the URL where the agent ended is not known");
    world.run(&["check", "toy.count", "--answer", "There are 2."]).code(0);
    world.run(&["check", "toy.count", "--answer", "2 or 3"]).code(5).prints("more than one");

    // A task may start at a snapshot of its own.
    world.run(&["check", "begin", "toy.late", "--reset"]).code(1).says("no snapshot named late");
    world.write("later");
    world.run(&["snapshot", "take", "toy", "--name", "late"]).code(0);
    world.run(&["reset", "toy"]).code(0);
    world.run(&["check", "begin", "toy.late"]).code(1).says("stands at its baseline, and starts at snapshot late");
    begin(&world, "toy.late");
    check(&world, "toy.late", 0);
    world.run(&["check", "begin", "toy.write.1"]).code(1).says("stands at snapshot late, and starts at its baseline");

    // If the agent does nothing, no check may pass.
    world.run(&["reset", "toy"]).code(0);
    let lint = world.run(&["tasks", "lint", &world.name, "--live"]).code(2);
    assert_eq!(lint.out.lines().count(), 1, "{}", lint.out);
    lint.prints("toy.late: begin toy.late: toy stands at its baseline");
    let file = world.root().join("one.yaml");
    let one = "  - { name: toy.easy, kind: content, sites: [toy], intent: x, check: { locate: 'http: /cgi-bin/page', contains: toy } }";
    let other = "  - { name: toy.broken, kind: content, sites: [toy], intent: x, check: { locate: 'exec: toy: false', equals: 1 } }";
    std::fs::write(&file, format!("environment: {}\ntasks:\n{one}\n{other}\n", world.name)).unwrap();
    let lint = world.run(&["tasks", "lint", "one.yaml", "--live"]).code(2);
    lint.prints("toy.easy: its check passes although nothing has been done")
        .prints("toy.broken: toy: exec: toy: false cannot be checked");
    // One of the site's snapshots depends on another.
    world.run(&["down", "--purge", "--yes"]).code(0);
}

#[test]
fn a_site_that_was_reset_or_died_says_nothing_about_the_agent() {
    let world = world_with_tasks("checks-gone");
    world.up();
    begin(&world, "toy.write.1");
    world.write("apples");
    world.run(&["reset", "toy"]).code(0);
    let report = check(&world, "toy.write.1", 6);
    assert_eq!((&report["verdict"], &report["score"]), (&"inconclusive".into(), &Value::Null));
    assert_eq!(report["checks"][0]["reason"], "toy was reset since the episode began");

    begin(&world, "toy.write.1");
    world.write("apples");
    for container in list(&world.site().expect("a site")["containers"], "id") {
        world.engine.docker(&["kill", &container]);
    }
    let report = check(&world, "toy.write.1", 6);
    assert_eq!(report["verdict"], "inconclusive", "{report:#}");
    world.run(&["down"]).code(0);
}
