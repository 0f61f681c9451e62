//! A site with several slots: several episodes have it at once, and none sees another one's writes.

use std::net::TcpListener;

use super::daemon::EpisodeDaemon;
use super::leases::{BASELINE, is_people_s_again};
use crate::support::wait::PATIENCE;
use crate::support::{World, until, within};
use serde_json::Value;

/// The containers that serve in a slot.
fn containers(world: &World, slot: u32) -> Vec<String> {
    world.containers_of_slot(slot.into())
}

/// Runs a command in the only container of a slot.
fn execute(world: &World, slot: u32, command: &str) -> Option<String> {
    let found = containers(world, slot);
    let [container] = found.as_slice() else { return None };
    world.engine.try_docker(&["exec", container, "/bin/sh", "-c", command]).ok()
}

/// The slots of the site as the API shows them.
fn slots_of(world: &World) -> Vec<Value> {
    world.site().and_then(|site| site["slots"].as_array().cloned()).unwrap_or_default()
}

fn notes(world: &World, slot: u32) -> Option<String> {
    execute(world, slot, "cat /srv/state/notes")
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
    let shown = slots_of(&world);
    assert_eq!(shown.len(), 3, "{shown:#?}");
    for slot in &shown {
        let holder = slots.iter().position(|number| slot["number"] == *number).map(|position| ids[position].as_str());
        assert_eq!((&slot["state"], &slot["occupation"]), (&"ready".into(), &"leased".into()), "{slot:#}");
        assert_eq!(slot["episode"].as_str(), holder);
    }
    let told = world.run(&["status"]).code(0).prints("toy:1").prints("toy:3");
    assert!(ids.iter().all(|id| told.out.contains(id)), "{}", told.out);
    for slot in &slots {
        assert_eq!(notes(&world, *slot).unwrap(), BASELINE.trim());
        execute(&world, *slot, &format!("echo by-{slot} >>/srv/state/notes")).unwrap();
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
    }
    // The episode of a further slot is in the way of a new definition, as that of slot 1 is.
    daemon.release(&ids[2]);
    world.edit("environment", "title: Toy", "title: Other");
    world.run(&["up", &world.name]).code(1).says(&format!("it belongs to episode {}", ids[1]));
    world.edit("environment", "title: Other", "title: Toy");
    daemon.release(&ids[1]);
    for slot in slots {
        until(
            "the slot is recycled",
            PATIENCE,
            || notes(&world, slot),
            |notes| notes.as_deref() == Some(BASELINE.trim()),
        );
    }
    is_people_s_again(&world);
    // The number of slots changes while the site is up. A slot above the new number goes as soon as it is free.
    let first = containers(&world, 1);
    world.edit("environment", "max: 3", "max: 2");
    world.up();
    until("slot 3 is removed", PATIENCE, || containers(&world, 3), Vec::is_empty);
    until("the slots", PATIENCE, || slots_of(&world), |slots| slots.len() == 2);
    assert_eq!((containers(&world, 1), containers(&world, 2).len()), (first, 1));
    world.run(&["down"]).code(0);
    assert_eq!(world.engine.containers(&world.label()), [""; 0], "further slots go down with their site");
}

#[test]
fn further_slots_of_a_site_that_cannot_be_restored_are_removed_with_it() {
    let world = World::single("severed");
    world.edit("environment", "title: Toy", "title: Toy\n    slots: { min: 2 }");
    let daemon = EpisodeDaemon::start(&world);
    world.up();
    let is_free = |slot: &Value| slot["state"] == "ready" && slot["occupation"] == "free";
    until("both slots", PATIENCE, || slots_of(&world), |slots| slots.len() == 2 && slots.iter().all(is_free));
    daemon.kill();
    let _taken = within("the port", PATIENCE, || TcpListener::bind(("127.0.0.1", world.port)).ok());
    let _daemon = EpisodeDaemon::start(&world);
    assert_eq!(world.state(), "failed");
    assert_eq!(world.engine.containers(&world.label()).len(), 2);
    world.run(&["down"]).code(0);
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
}
