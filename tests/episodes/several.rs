//! A site with several slots: several episodes have it at once, and none sees another one's writes.

use super::daemon::EpisodeDaemon;
use super::leases::{BASELINE, is_people_s_again};
use crate::support::wait::PATIENCE;
use crate::support::{World, until};

/// The containers of a slot. After a reset there may be two for a moment.
fn containers(world: &World, slot: u32) -> Vec<String> {
    world.engine.containers(&format!("dev.arenad.instance={}/toy/{slot}", world.name))
}

/// Runs a command in the only container of a slot.
fn within(world: &World, slot: u32, command: &str) -> Option<String> {
    let found = containers(world, slot);
    let [container] = found.as_slice() else { return None };
    world.engine.try_docker(&["exec", container, "/bin/sh", "-c", command]).ok()
}

fn notes(world: &World, slot: u32) -> Option<String> {
    within(world, slot, "cat /srv/state/notes")
}

#[test]
fn several_episodes_have_a_site_at_once() {
    let world = World::single("several");
    world.edit("environment", "title: Toy", "title: Toy\n    slots: { max: 3 }");
    let mut daemon = EpisodeDaemon::start(&world);
    world.up();
    world.write("by-a-person");
    let ids = [daemon.ask("toy"), daemon.ask("toy"), daemon.ask("toy:1")];
    let mut slots = Vec::new();
    for id in &ids {
        let episode = daemon.wait(id);
        assert_eq!(episode["status"], "active", "{episode:#}");
        let slot = episode["slots"][0][0].as_str().unwrap().rsplit('/').next().unwrap().parse::<u32>().unwrap();
        slots.push(slot);
    }
    let mut sorted = slots.clone();
    sorted.sort_unstable();
    assert_eq!((sorted, slots[2]), (vec![1, 2, 3], 1), "slot 1 is given by name only");
    for slot in &slots {
        assert_eq!(notes(&world, *slot).unwrap(), BASELINE.trim());
        within(&world, *slot, &format!("echo by-{slot} >>/srv/state/notes")).unwrap();
    }
    for slot in &slots {
        assert_eq!(notes(&world, *slot).unwrap(), format!("{BASELINE}by-{slot}"));
    }
    // A container that ends makes its own episode void, and no other.
    world.engine.docker(&["kill", &containers(&world, slots[0])[0]]);
    let ended = until("the episode ends", PATIENCE, || daemon.get(&ids[0]), |episode| episode["status"] != "active");
    assert_eq!(ended["cause"], "container_died", "{ended:#}");
    assert_eq!(daemon.get(&ids[1])["status"], "active");
    daemon.kill();
    let mut daemon = EpisodeDaemon::start(&world);
    for (id, slot) in ids.iter().zip(&slots).skip(1) {
        assert_eq!(daemon.get(id)["status"], "active");
        until(
            "the slot",
            PATIENCE,
            || notes(&world, *slot),
            |notes| notes.as_ref().is_some_and(|notes| notes.contains("by-")),
        );
        daemon.release(id);
    }
    for slot in slots {
        until(
            "the slot is recycled",
            PATIENCE,
            || notes(&world, slot),
            |notes| notes.as_deref() == Some(BASELINE.trim()),
        );
    }
    is_people_s_again(&world);
    world.run(&["down"]).code(0);
    assert_eq!(world.engine.containers(&world.label()), [""; 0], "further slots go down with their site");
}
