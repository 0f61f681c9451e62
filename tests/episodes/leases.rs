//! The start of an episode, its end, and the requests of others meanwhile.

use super::daemon::EpisodeDaemon;
use crate::support::wait::PATIENCE;
use crate::support::{World, until};

/// The whole page of the baseline.
pub const BASELINE: &str = "toy\nconfigured\n";

/// Waits until people reach the site again, as it is in the baseline. They never see anything else meanwhile.
#[track_caller]
pub fn is_people_s_again(world: &World) {
    let page = || world.get("/cgi-bin/page").map(|answer| (answer.status, answer.body));
    let served = until("the site is recycled", PATIENCE, page, |answer| {
        answer.as_ref().is_some_and(|(status, _)| *status == 200)
    });
    assert_eq!(served.unwrap().1, BASELINE);
}

fn container(world: &World) -> String {
    world.site().unwrap()["containers"][0]["id"].as_str().unwrap().to_owned()
}

fn generation(world: &World) -> u64 {
    world.site().unwrap()["generation"].as_u64().unwrap()
}

#[test]
fn an_episode_begins_at_the_baseline_and_leaves_nothing() {
    let world = World::single("lease");
    let mut daemon = EpisodeDaemon::start(&world);
    world.up();
    world.write("by-a-person");
    let id = daemon.active("toy");
    let episode = daemon.get(&id);
    assert_eq!(episode["slots"][0][1], generation(&world), "{episode:#}");
    assert_eq!(world.page(), BASELINE, "it began with a person's writes");
    world.write("by-the-episode");

    // Requests of others that would change the site of an episode are refused.
    let before = generation(&world);
    let held = format!("{}/toy/1 belongs to episode {id}", world.name);
    world.run(&["reset", "toy"]).code(1).says(&held).says("hint: end the episode first");
    world.run(&["snapshot", "take", "toy", "--name", "mine"]).code(1).says(&held);
    world.run(&["up", &world.name]).code(0);
    world.edit("environment", "title: Toy", "title: Other");
    world.run(&["up", &world.name]).code(1).says(&format!("it belongs to episode {id}"));
    world.edit("environment", "title: Other", "title: Toy");
    assert_eq!(generation(&world), before);
    assert!(world.page().contains("by-the-episode"));

    daemon.release(&id);
    is_people_s_again(&world);
    assert!(generation(&world) > before);
    // People can reset the free slot, and the next episode gets this generation if no client has reached it.
    world.run(&["reset", "toy"]).code(0);
    let fresh = generation(&world);
    let id = daemon.active("toy");
    assert_eq!(daemon.get(&id)["slots"][0][1], fresh);
    daemon.release(&id);
    world.run(&["down"]).code(0);
    drop(daemon);
}

#[test]
fn an_episode_begins_at_a_snapshot() {
    let world = World::single("from");
    let mut daemon = EpisodeDaemon::start(&world);
    world.up();
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "mine"]).code(0);
    let unknown = daemon.ask("toy@other");
    let episode = daemon.wait(&unknown);
    assert_eq!((&episode["status"], &episode["cause"]), (&"void".into(), &"reset_failed".into()), "{episode:#}");
    is_people_s_again(&world);
    let id = daemon.active("toy@mine");
    assert_eq!(world.page(), format!("{BASELINE}kept\n"));
    daemon.release(&id);
    is_people_s_again(&world);
    world.run(&["down"]).code(0);
}

#[test]
fn a_container_that_ends_makes_the_episode_void() {
    let world = World::single("died");
    let mut daemon = EpisodeDaemon::start(&world);
    world.up();
    let id = daemon.active("toy");
    world.write("by-the-episode");
    world.engine.docker(&["kill", &container(&world)]);
    let episode = until("the episode ends", PATIENCE, || daemon.get(&id), |episode| episode["status"] != "active");
    assert_eq!((&episode["status"], &episode["cause"]), (&"void".into(), &"container_died".into()), "{episode:#}");
    assert!(episode["detail"].as_str().unwrap().contains("exited with code 137"), "{episode:#}");
    is_people_s_again(&world);
    let id = daemon.active("toy");
    assert_eq!(world.page(), BASELINE);
    // A site that goes down takes its episode with it.
    world.run(&["down"]).code(0);
    let episode = daemon.get(&id);
    assert_eq!((&episode["status"], &episode["cause"]), (&"void".into(), &"environment_down".into()), "{episode:#}");
}
