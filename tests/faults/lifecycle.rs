//! Up, status, reset and down without failures.

use serde_json::Value;

use crate::support::World;
use crate::support::world::list;

#[test]
fn a_site_comes_up_is_reset_and_goes_down_without_a_trace() {
    let world = World::single("life");
    let up = world.up();
    assert!(up.out.contains(&format!("http://localhost:{}", world.port)), "{}", up.out);
    assert!(up.out.contains("somebody") && up.out.contains("secret"), "{}", up.out);
    assert_eq!(world.page(), "toy\nconfigured\n");
    world.assert_whole(0);

    let containers = world.engine.containers(&world.label());
    world.up();
    assert_eq!(world.engine.containers(&world.label()), containers, "a second up makes nothing anew");

    world.write("scribble");
    let before = world.site().expect("the site");
    let reset = world.run(&["reset", "toy", "--json"]).code(0).json();
    let operation = &reset["operations"][0];
    assert_eq!(operation["state"], "done", "{operation:#}");
    assert_eq!(operation["reset"]["outcome"], "done", "{operation:#}");
    let stages = list(&operation["reset"]["stages"], "stage");
    for stage in ["hold", "remove", "create", "start", "ready"] {
        assert!(stages.iter().any(|known| known == stage), "no stage {stage} in {stages:?}");
    }
    assert_eq!(world.page(), "toy\nconfigured\n");
    let after = world.site().expect("the site");
    assert_eq!(after["generation"], before["generation"].as_u64().unwrap() + 1);
    assert_eq!(after["last_reset"]["outcome"], "done");
    assert_eq!(after["snapshot"], before["snapshot"]);
    world.assert_whole(0);

    world.run(&["down"]).code(0);
    world.assert_down();
    assert_eq!(world.engine.images(&world.label()).len(), 1, "the baseline is kept");

    // From the stored baseline, no image is built and no configuration step runs.
    let up = world.up();
    assert!(!up.err.contains("configuring"), "{}", up.err);
    assert_eq!(world.page(), "toy\nconfigured\n");
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
    let built = format!("arenad-toy/{}", world.name);
    assert_eq!(world.engine.docker(&["images", "--quiet", &built]), "");
    assert!(!world.state_dir().exists(), "the state directory is gone");
}

#[test]
fn every_command_has_a_table_and_json() {
    let world = World::single("looks");
    world.run(&["status"]).code(3).says("no daemon runs");
    assert_eq!(world.run(&["status", "--json"]).code(3).json()["daemon"], Value::Null);
    let up = world.run(&["up", &world.name, "--json"]).code(0).json();
    assert_eq!(up["operations"][0]["state"], "done", "{up:#}");
    let url = format!("http://localhost:{}", world.port);

    let status = world.run(&["status", "--json"]).code(0).json();
    assert_eq!(status["environments"][0]["name"], world.name.as_str());
    let conditions = status["conditions"].as_array().expect("conditions");
    assert!(conditions.iter().all(|condition| condition["status"] == "True"), "{conditions:#?}");
    let site = &status["environments"][0]["sites"][0];
    assert_eq!((&site["url"], &site["state"]), (&Value::from(url.clone()), &Value::from("ready")));
    world.run(&["status"]).code(0).prints("ready").prints(&url);

    let container = site["containers"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(list(&world.run(&["ps", "--json"]).code(0).json(), "container"), std::slice::from_ref(&container));
    world.run(&["ps"]).code(0).prints(&container[..12]);
    world.run(&["logs", "toy"]).code(0).prints("the toy serves");
    world.run(&["logs", "toy", "--tail", "1"]).code(0).prints("the toy serves");
    world.run(&["events"]).code(0).prints("instance.ready").prints("snapshot.stored");
    let events = world.run(&["events", "--json"]).code(0).out;
    let last: Value = serde_json::from_str(events.lines().last().expect("an event")).expect("a line of JSON");
    assert_eq!(last["kind"], "instance.ready");

    let env = world.run(&["env", &world.name]).code(0);
    let env = env.prints(&format!("export SHOPPING='{url}'\n")).prints(&format!("export WA_SHOPPING='{url}'\n"));
    env.prints("export WA_GITLAB='todo'\n");
    assert_eq!(world.run(&["env", &world.name, "--json"]).code(0).json()["SHOPPING"], url.as_str());
    world.run(&["config", &world.name]).code(0).prints("greet");
    world.run(&["open", "toy", "--print"]).code(0).prints(&url);
    world.run(&["version"]).code(0).prints("arenad");
    world.run(&["validate", &world.name]).code(0).prints("is valid: toy");
    world.run(&["down"]).code(0);
}

#[test]
fn snapshots_are_listed_taken_and_removed_unless_in_use() {
    let world = World::single("snap");
    world.up();
    let listed = world.run(&["snapshot", "ls", "--json"]).code(0).json();
    let baseline = &listed["snapshots"][0];
    assert_eq!((&baseline["kind"], &baseline["site"]), (&Value::from("baseline"), &Value::from("toy")));
    let id = baseline["id"].as_str().expect("an id");
    world.run(&["snapshot", "rm", id]).code(1).says("in use by").says("hint: ");

    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "first"]).code(0);
    assert!(world.page().contains("kept"), "taking a snapshot changes nothing");
    world.run(&["snapshot", "ls"]).code(0).prints("first").prints("baseline");
    world.run(&["snapshot", "take", "toy", "--name", "first"]).code(1).says("already has a snapshot");
    world.run(&["snapshot", "take", "toy", "--name", "a b"]).code(2).says("invalid snapshot name");
    world.run(&["snapshot", "take", "nothing", "--name", "x"]).code(2).says("site `nothing` is not up");

    world.run(&["reset", "toy"]).code(0);
    assert!(!world.page().contains("kept"), "a reset goes to the baseline");
    world.run(&["snapshot", "rm", "first"]).code(0);
    world.run(&["snapshot", "rm", "first"]).code(2).says("there is no snapshot `first`");
    world.assert_whole(0);
    world.run(&["down"]).code(0);
}

#[test]
fn a_second_reset_joins_the_first() {
    let world = World::single("join");
    world.up();
    let generation = world.site().expect("the site")["generation"].as_u64().unwrap();
    let first = world.run(&["reset", "toy", "--detach", "--json"]).code(0).json();
    let second = world.run(&["reset", "toy", "--json"]).code(0).json();
    let (first, second) = (&first["operations"][0], &second["operations"][0]);
    assert_eq!(first["id"], second["id"]);
    assert_eq!((&first["joined"], &second["joined"]), (&Value::from(false), &Value::from(true)));
    assert_eq!(world.site().expect("the site")["generation"], generation + 1);
    world.assert_whole(0);
    world.run(&["reset", "--all"]).code(0);
    world.run(&["down"]).code(0);
}
