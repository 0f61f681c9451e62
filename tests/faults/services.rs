//! Sites of several containers: they start in order, and their volumes are part of every snapshot.

use crate::support::World;

/// Every file of both volumes, with owner, mode, time and content.
fn manifest(world: &World) -> String {
    let id = world.engine.docker(&[
        "ps",
        "--quiet",
        "--filter",
        &format!("label={}", world.label()),
        "--filter",
        "label=dev.arenad.service=db",
    ]);
    world.engine.docker(&["exec", &id, "/bin/sh", "/srv/www/cgi-bin/manifest"])
}

fn in_database(world: &World, script: &str) {
    let id = world.engine.docker(&[
        "ps",
        "--quiet",
        "--filter",
        &format!("label={}", world.label()),
        "--filter",
        "label=dev.arenad.service=db",
    ]);
    world.engine.docker(&["exec", &id, "/bin/sh", "-c", script]);
}

#[test]
fn an_application_and_its_database_are_one_site() {
    let world = World::pair("pair");
    world.up();
    assert_eq!(world.page(), "toy\nconfigured\n");
    world.assert_whole(2);
    let logs = world.run(&["logs", "toy"]).code(0).out;
    assert!(logs.contains("app") && logs.contains("db"), "{logs}");
    let of_database = world.run(&["logs", "toy", "--service", "db"]).code(0).out;
    assert!(of_database.contains("the toy serves"), "{of_database}");
    let rows = world.run(&["ps", "--json"]).code(0).json();
    assert_eq!(rows.as_array().map(Vec::len), Some(2), "{rows:#}");

    let baseline = manifest(&world);
    for owned in
        ["-r-------- 1234:5678", "drwxrws--- 1234:5678", "drwxr-s--- 900:901", "'state/with spaces/link' -> '../notes'"]
    {
        assert!(baseline.contains(owned), "no {owned:?} in:\n{baseline}");
    }
    world.write("scribble");
    in_database(
        &world,
        "cd /srv && rm -r state/private && rm 'state/with spaces/old' && chmod 0700 state && chown 7:7 declared && \
         echo new >state/new && mkdir declared/more && echo changed >declared/deep/notes && ln -sf /etc 'state/with spaces/link'",
    );
    assert_ne!(manifest(&world), baseline);
    world.run(&["reset", "toy"]).code(0);
    assert_eq!(manifest(&world), baseline);
    assert_eq!(world.page(), "toy\nconfigured\n");
    world.assert_whole(2);

    // A named snapshot contains the volumes too; the baseline of a new installation would not.
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    assert!(world.page().contains("kept"));
    let archives = world.archives().len();
    world.run(&["snapshot", "rm", "kept"]).code(0);
    assert!(world.archives().len() < archives, "its archive goes with it");
    world.run(&["reset", "toy"]).code(0);
    assert_eq!(manifest(&world), baseline);

    world.run(&["down"]).code(0);
    world.assert_down();
    world.up();
    assert_eq!(manifest(&world), baseline, "a later up starts from the same state");
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
    assert!(!world.state_dir().exists());
}

#[test]
fn a_database_that_never_gets_healthy_is_named() {
    let world = World::pair("sick");
    world.edit("environment", "timeout: 20s", "timeout: 3s");
    world.edit("compose", "http://127.0.0.1/cgi-bin/healthz", "http://127.0.0.1/nothing");
    world.run(&["up", &world.name]).code(1).says("start app: db is not healthy in time").says("hint: ");
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
    world.edit("compose", "http://127.0.0.1/nothing", "http://127.0.0.1/cgi-bin/healthz");
    world.edit("environment", "timeout: 3s", "timeout: 20s");
    world.up();
    world.assert_whole(2);
}
