//! An installation that meets another engine, and an engine that has lost images: arenad reports both and removes
//! nothing.

use std::path::PathBuf;

use rustix::process::{Signal, kill_process};

use super::{named, told, with_store};
use crate::support::wait::PATIENCE;
use crate::support::world::RunningCommand;
use crate::support::{OwnEngine, World, until, within};

/// Starts a daemon in the foreground that uses an engine.
fn serve(world: &World, endpoint: Option<&str>) -> RunningCommand {
    let mut args = vec!["serve"];
    args.extend(endpoint.map(|endpoint| ["--engine", endpoint]).into_iter().flatten());
    let daemon = world.start(&args);
    within("the API", PATIENCE, || world.api("/v1/status"));
    daemon
}

fn stop(world: &World, daemon: RunningCommand) {
    kill_process(daemon.pid(), Signal::TERM).unwrap();
    daemon.ended().code(0);
    assert!(world.api("/v1/status").is_none(), "it has ended");
}

/// The trees of snapshots in the state root.
fn trees(world: &World) -> Vec<PathBuf> {
    let folder = world.state_dir().join("stores/snapshots");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

#[test]
fn another_engine_and_back_leaves_everything() {
    let other = OwnEngine::start();
    let endpoint = other.client().host().unwrap().to_owned();
    let world = with_store("two-engines");
    world.up();
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "keep"]).code(0);
    let kept = world.page();
    world.run(&["down"]).code(0);
    let (before, images) = (trees(&world), world.engine.images(&world.label()));
    assert!(before.len() >= 2 && images.len() >= 2, "{before:?} {images:?}");

    let daemon = serve(&world, Some(&endpoint));
    let shown = named(&world, "keep").expect("a row stays");
    assert!(shown["other_engine"].as_str().is_some_and(|at| at.contains("docker.sock")), "{shown:#}");
    assert!(shown.get("missing_since").is_none(), "it is not missing where it never was");
    world.run(&["snapshot", "ls"]).code(0).prints("(its images are on the engine at ");
    assert_eq!(told(&world, "engine.changed").len(), 1);
    stop(&world, daemon);
    assert_eq!((trees(&world), world.engine.images(&world.label())), (before, images));

    world.up();
    let shown = named(&world, "keep").expect("it is there");
    assert!(shown.get("other_engine").is_none() && shown.get("missing_since").is_none(), "{shown:#}");
    assert_eq!(told(&world, "snapshot.missing"), [""; 0]);
    world.run(&["reset", "toy", "--to", "keep"]).code(0);
    assert_eq!(world.page(), kept);

    // While the site is up, its containers belong to the other engine only.
    world.signal_daemon(Signal::TERM);
    let containers = world.engine.containers(&world.label());
    let daemon = serve(&world, Some(&endpoint));
    let failed = told(&world, "environment.elsewhere");
    assert!(failed.len() == 1 && failed[0].contains("docker.sock"), "{failed:?}");
    stop(&world, daemon);
    assert_eq!(world.engine.containers(&world.label()), containers);
    let daemon = serve(&world, None);
    until("the site", PATIENCE, || world.state(), |state| state == "ready");
    assert_eq!(world.engine.containers(&world.label()), containers, "taken up again");
    assert_eq!(world.page(), kept);
    stop(&world, daemon);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

#[test]
fn images_that_are_gone_are_told_once_and_their_snapshot_stays() {
    let world = with_store("lost-images");
    world.up();
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "keep"]).code(0);
    let image = named(&world, "keep").unwrap()["images"]["toy"].as_str().unwrap().to_owned();
    world.run(&["down"]).code(0);
    let before = trees(&world);
    world.engine.docker(&["rmi", &image]);
    for _ in 0..2 {
        let daemon = serve(&world, None);
        let shown = named(&world, "keep").expect("the row stays");
        assert!(shown["missing_since"].is_string(), "{shown:#}");
        world.run(&["snapshot", "ls"]).code(0).prints("(its images are missing)");
        let missing = told(&world, "snapshot.missing");
        assert!(missing.len() == 1 && missing[0].contains("arenad snapshot rm"), "{missing:?}");
        stop(&world, daemon);
    }
    assert_eq!(trees(&world), before);
    world.up();
    world.run(&["snapshot", "rm", "keep"]).code(0);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
    assert!(trees(&world).is_empty());
}
