//! `arenad df` and `arenad prune`, and a site whose state is on a disk of arenad's own.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::World;

/// A site that declares its store.
fn world(label: &str) -> World {
    let world = World::single(label);
    let stores = "    stores: { notes: { kind: directory, path: /srv/state } }\n    baseline:\n";
    world.edit("environment", "    baseline:\n", stores);
    world
}

fn df(world: &World) -> Value {
    world.run(&["df", "--json"]).code(0).json()
}

fn ids(df: &Value) -> Vec<String> {
    crate::support::world::list(&df["snapshots"], "id")
}

#[test]
fn a_site_on_a_disk_of_our_own_is_there_after_the_host_starts_anew() {
    let world = world("owndisk");
    world.run(&["storage", "init", "--size", "512m"]).code(0).prints("share blocks");
    world.up();
    let found = df(&world);
    assert_eq!((&found["state_root"]["file_system"], &found["state_root"]["clones"]), (&"xfs".into(), &true.into()));
    let (snapshot, generation) = (&found["snapshots"][0], &found["generations"][0]);
    assert!(snapshot["state"]["apparent_bytes"].as_u64().unwrap() > 0, "{found:#}");
    assert_eq!(
        (&generation["site"], &generation["slot"]),
        (&format!("{}/toy", world.name).into(), &1.into()),
        "{found:#}"
    );
    assert_eq!(generation["state"]["apparent_bytes"], snapshot["state"]["apparent_bytes"], "{found:#}");
    let text = world.run(&["df"]).code(0);
    text.prints("state root").prints("copies share blocks").prints(&format!("{}/toy", world.name));
    world.write("kept");
    // The mount is gone while the container runs on, which only a crash or an administrator can cause.
    world.signal_daemon(Signal::KILL);
    let stores = world.state_dir().join("stores");
    assert!(Command::new("umount").arg(&stores).status().unwrap().success());
    world.up();
    assert!(world.page().contains("kept"), "{}", world.page());
    assert_eq!(df(&world)["state_root"]["clones"], true);
    assert!(stores.join("snapshots").is_dir());
    let refused = world.run(&["storage", "init"]).code(4);
    refused.says("a daemon runs on it");
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
    assert!(!world.state_dir().exists(), "the disk goes with the rest");
}

#[test]
fn only_what_nothing_needs_is_pruned() {
    let world = world("prune");
    world.up();
    let first = ids(&df(&world));
    assert_eq!(first.len(), 1);
    let container = &world.engine.containers(&world.label())[0];
    world.engine.docker(&["exec", container, "/bin/sh", "-c", "echo mine >/srv/mine"]);
    world.run(&["snapshot", "take", "toy", "--name", "mine"]).code(0);
    world.run(&["prune", "--keep-bytes", "0", "--older", "0s", "--yes"]).code(0).prints("nothing to remove");
    // Another baseline replaces the first one.
    world.run(&["down"]).code(0);
    world.edit("environment", "echo configured >>", "echo configured anew >>");
    world.up();
    let before = df(&world);
    assert_eq!(ids(&before).len(), 3, "{before:#}");
    let shown = world.run(&["prune"]).code(0).prints(&first[0]).prints("a newer baseline has taken its place");
    shown.prints("nothing was removed; --yes removes it");
    assert_eq!(ids(&df(&world)), ids(&before));
    let removed = world.run(&["prune", "--yes", "--json"]).code(0).json();
    assert_eq!(crate::support::world::list(&removed["items"], "name"), first, "{removed:#}");
    let after = df(&world);
    assert!(ids(&after).len() == 2 && !ids(&after).contains(&first[0]), "{after:#}");
    assert!(!world.state_dir().join("stores/snapshots").join(&first[0]).exists());
    assert!(world.page().contains("anew"));
    // If no site is up, a daemon is started for the request and stopped again.
    world.run(&["down"]).code(0);
    assert_eq!(ids(&df(&world)), ids(&after));
    let removed = world.run(&["prune", "--older", "0s", "--yes", "--json"]).code(0).json();
    assert_eq!(removed["items"].as_array().unwrap().len(), 1, "{removed:#}");
    let left = df(&world);
    assert_eq!(left["snapshots"][0]["name"], "mine", "named snapshots stay: {left:#}");
    assert_eq!(ids(&left).len(), 1);
    world.assert_down();
    // Images on which others are based are removed only after those.
    world.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
}
