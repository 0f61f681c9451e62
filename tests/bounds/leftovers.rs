//! Leftovers that cannot be removed do not block other work, and serving objects are never treated as leftovers.

use std::time::Duration;

use rustix::process::Signal;

use super::{store, told};
use crate::support::wait::PATIENCE;
use crate::support::{World, until};

/// Longer than two passes of reconciliation, including their interval.
const TWO_PASSES: Duration = Duration::from_secs(135);

#[tokio::test]
async fn a_foreign_endpoint_blocks_nothing_else_and_what_serves_stays_whatever_is_wanted() {
    let world = World::single("blocked");
    world.up();
    let container = world.engine.containers(&world.label())[0].clone();
    let image = world.engine.docker(&["inspect", "--format", "{{.Image}}", &container]);
    let installation = world.api("/v1/status").unwrap()["daemon"]["installation"].as_str().unwrap().to_owned();
    world.signal_daemon(Signal::KILL);
    // The objects that a crash would leave. Another process has added a container to their network since.
    let instance = format!("{}/toy/1", world.name);
    let labels: Vec<String> = [
        ("installation", installation.as_str()),
        ("environment", &world.name),
        ("site", "toy"),
        ("instance", &instance),
        ("generation", "999"),
        ("role", "instance"),
    ]
    .iter()
    .flat_map(|(key, value)| ["--label".to_owned(), format!("dev.arenad.{key}={value}")])
    .collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let (network, foreign) = (format!("{}-blocked", world.name), format!("{}-foreign", world.name));
    world.engine.docker(&[&["network", "create"], labels.as_slice(), &[&network]].concat());
    world.engine.docker(&[&["volume", "create"], labels.as_slice(), &[&format!("{}-left", world.name)]].concat());
    let theirs = world.engine.docker(&["run", "--detach", "--name", &foreign, "--network", &network, &image]);
    std::fs::create_dir_all(world.state_dir().join("volumes")).unwrap();
    std::fs::write(world.state_dir().join("volumes/left.tar"), "left").unwrap();

    world.up();
    assert_eq!(world.engine.volumes(&world.label()), [""; 0], "the volume comes after the network");
    assert_eq!(world.archives(), [""; 0], "so does the archive");
    let failures = told(&world, "reconcile.failed");
    assert!(failures.len() == 1 && failures[0].contains(&network), "{failures:?}");
    // The foreign container has the labels of its image.
    let ours = || -> Vec<String> {
        let all = world.engine.containers(&world.label()).into_iter();
        all.filter(|id| *id != theirs).collect()
    };
    assert_eq!(ours(), std::slice::from_ref(&container), "taken up again");

    // A failed `down` leaves the site unwanted; objects that became ready afterwards serve.
    let unwanted = "UPDATE instances SET desired = 'down'";
    sqlx::query(unwanted).execute(&store(&world).await).await.unwrap();
    tokio::time::sleep(TWO_PASSES).await;
    assert_eq!(ours(), [container], "what serves stays");
    assert_eq!(world.page(), "toy\nconfigured\n");
    assert_eq!(told(&world, "reconcile.failed").len(), 1, "it is told once");

    world.engine.docker(&["rm", "--force", &foreign]);
    let find = || world.engine.networks(&world.label()).contains(&network);
    until("the network goes", PATIENCE + PATIENCE, find, |is_there| !is_there);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}
