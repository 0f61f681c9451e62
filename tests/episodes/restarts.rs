//! The daemon is killed while an episode has a slot. The episode goes on with its generation, or is void.

use super::daemon::EpisodeDaemon;
use super::leases::{BASELINE, is_people_s_again};
use crate::support::wait::PATIENCE;
use crate::support::{World, until};

#[test]
fn an_episode_goes_on_after_a_kill_of_the_daemon() {
    let world = World::single("goes-on");
    let mut daemon = EpisodeDaemon::start(&world);
    world.up();
    let id = daemon.active("toy");
    let before = daemon.get(&id);
    world.write("by-the-episode");
    daemon.kill();
    let mut daemon = EpisodeDaemon::start(&world);
    until("the site", PATIENCE, || world.state(), |state| state == "ready");
    assert_eq!(daemon.get(&id), before, "the same state and the same generation");
    assert_eq!(world.page(), format!("{BASELINE}by-the-episode\n"));
    world.run(&["reset", "toy"]).code(1).says("belongs to episode");
    daemon.release(&id);
    is_people_s_again(&world);

    // No client sees the writes of an ended episode, however early the daemon dies after the end.
    let id = daemon.active("toy");
    world.write("of-the-past");
    daemon.release(&id);
    daemon.kill();
    let mut daemon = EpisodeDaemon::start(&world);
    is_people_s_again(&world);
    let id = daemon.active("toy");
    assert_eq!(world.page(), BASELINE);
    daemon.release(&id);
    world.run(&["down"]).code(0);
}

#[test]
fn an_episode_whose_generation_is_gone_is_void() {
    let world = World::single("gone");
    let mut daemon = EpisodeDaemon::start(&world);
    world.up();
    let id = daemon.active("toy");
    world.write("by-the-episode");
    let container = world.site().unwrap()["containers"][0]["id"].as_str().unwrap().to_owned();
    daemon.kill();
    world.engine.docker(&["rm", "--force", &container]);
    let mut daemon = EpisodeDaemon::start(&world);
    // The site comes up in a new generation, which never serves the episode.
    let episode = until(
        "the episode ends",
        PATIENCE,
        || daemon.get(&id),
        |episode| {
            let served = world.get("/cgi-bin/page").is_some_and(|answer| answer.status == 200);
            assert!(!(served && episode["status"] == "active"), "another generation serves the episode");
            episode["status"] != "active"
        },
    );
    assert_eq!(episode["status"], "void", "{episode:#}");
    assert!(episode["detail"].as_str().unwrap().contains("took the place of generation"), "{episode:#}");
    is_people_s_again(&world);
    world.run(&["down"]).code(0);
}

#[test]
fn what_people_wrote_outlives_the_daemon() {
    let world = World::single("people");
    let daemon = EpisodeDaemon::start(&world);
    world.up();
    world.write("by-a-person");
    daemon.kill();
    let mut daemon = EpisodeDaemon::start(&world);
    until("the site", PATIENCE, || world.state(), |state| state == "ready");
    assert!(world.page().contains("by-a-person"), "only an episode resets it");
    let id = daemon.active("toy");
    assert_eq!(world.page(), BASELINE);
    daemon.release(&id);
    world.run(&["down"]).code(0);
}
