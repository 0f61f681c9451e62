//! Two environments with a site of the same name: a command chooses the environment that has the requested object, or
//! explains how to name it.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::second::Second;
use crate::support::World;

/// A task that only one environment has, and one that both have.
const OWN: &str = "
environment: @NAME@
tasks:
  - name: toy.write
    kind: content
    sites: [toy]
    start: { path: /cgi-bin/page }
    intent: Make the site remember pears
    check: { locate: 'http: /cgi-bin/page', contains: pears }
";
const COMMON: &str = "
environment: @NAME@
tasks:
  - name: toy.both
    kind: content
    sites: [toy]
    start: { path: /cgi-bin/page }
    intent: Make the site remember plums
    check: { locate: 'http: /cgi-bin/page', contains: plums }
";

#[test]
fn a_site_of_two_environments_is_not_meant_by_its_bare_name() {
    let world = World::single("names");
    let second = Second::of(&world);
    second.up();
    let both = format!("`toy` is a site of {} and {}", world.name, second.name);
    let how = format!("--environment {} or --environment {}", world.name, second.name);
    let commands: [&[&str]; 10] = [
        &["down", "toy"],
        &["reset", "toy"],
        &["verify", "toy"],
        &["open", "toy"],
        &["logs", "toy"],
        &["login", "toy"],
        &["har", "toy"],
        &["health", "toy"],
        &["locate", "toy", "http: /"],
        &["snapshot", "take", "toy", "--name", "x"],
    ];
    for command in commands {
        world.run(command).code(2).says(&both).says(&how);
    }
    world.run(&["har"]).code(2).says("several environments are up").says(&how);
    world.run(&["down", "-e", "nowhere"]).code(2).says("environment `nowhere` is not up").says("hint: ");
    assert_eq!(world.state(), "ready");
    assert!(second.page().is_some(), "nothing was taken down");

    let down = world.run(&["down", "toy", "-e", &second.name]).code(0);
    down.says(&format!("taking down {}: toy", second.name));
    assert_eq!((second.page(), world.state()), (None, "ready".to_owned()));
    // Once only one environment has the site, its name is enough.
    world.run(&["reset", "toy"]).code(0);
    let down = world.run(&["down", "toy"]).code(0);
    down.says(&format!("taking down {}: toy", world.name)).says("nothing is up any more");
    world.assert_down();
}

#[test]
fn an_episode_is_checked_in_the_environment_that_it_is_of() {
    let world = World::single("tasks");
    let second = Second::of(&world);
    world.write_tasks(COMMON);
    world.write_tasks_of(&second.name, &(OWN.to_owned() + COMMON.split_once("tasks:\n").unwrap().1));
    second.up();

    // One environment has the task, and the begun check names it.
    world.run(&["check", "begin", "toy.write", "--out", "begun"]).code(0);
    world.run(&["check", "toy.write", "--begun", "begun"]).code(5);
    crate::support::http::get(second.port, "/cgi-bin/write?pears").unwrap();
    world.run(&["check", "toy.write", "--begun", "begun"]).code(0);
    world.run(&["check", "toy.write"]).code(0);

    // Both have the task: the begun check decides, otherwise the user must name the environment.
    let refused = world.run(&["check", "begin", "toy.both"]).code(2);
    refused.says("task toy.both belongs to several environments").says(&format!("--environment {}", second.name));
    world.run(&["check", "begin", "toy.both", "-e", &world.name, "--out", "begun"]).code(0);
    crate::support::http::get(second.port, "/cgi-bin/write?plums").unwrap();
    world.run(&["check", "toy.both", "--begun", "begun"]).code(5);
    world.write("plums");
    world.run(&["check", "toy.both", "--begun", "begun"]).code(0);
    world.run(&["check", "toy.none"]).code(2).says("toy.none").says(&world.name).says(&second.name);

    // A benchmark's task belongs to the environment that has its sites.
    let task = |id: u32, start: &str| {
        let eval = json!({ "eval_types": ["string_match"], "reference_answers": { "exact_match": "five" } });
        json!({ "task_id": id, "sites": [], "start_url": start, "intent": "How many?", "eval": eval })
    };
    let tasks = json!([task(1, "__GITLAB__"), task(2, "__SHOPPING__/a"), task(3, "__REDDIT__")]);
    std::fs::write(world.root().join("tasks.json"), tasks.to_string()).unwrap();
    let eval = |task: &str| {
        world.run(&["eval", "--benchmark", "webarena", "--tasks", "tasks.json", "--task", task, "--answer", "five"])
    };
    eval("1").code(0).prints("passed");
    eval("2").code(0).prints("passed");
    eval("3").code(2).says("__REDDIT__").says("hint: bring its sites up");

    // The Python client resolves names in the same way.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python");
    let output = Command::new("python3")
        .args(["-B", "-W", "error", "-m", "unittest", "tests.test_environments"])
        .current_dir(&folder)
        .env("PYTHONPATH", folder.join("src"))
        .env("ARENAD_STATE_DIR", world.state_dir())
        .env("ARENAD_TEST_ENVIRONMENTS", format!("{},{}", world.name, second.name))
        .env_remove("ARENAD_HOST")
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("OK") && !said.contains("skipped"), "{said}");
    world.run(&["down"]).code(0);
    world.assert_down();
}
