//! The pool of a site serves all of its slots: a standby goes to whichever slot is reset, and the generation that it
//! replaces may come back in another slot.

use std::collections::BTreeSet;
use std::fs::File;
use std::time::Duration;

use arenad_seams::fault::Point;
use rustix::process::Signal;
use serde_json::Value;

use super::standbys::{await_standbys, declared, members};
use crate::support::wait::PATIENCE;
use crate::support::world::RunningCommand;
use crate::support::{World, until, within};

const BASELINE: &str = "toy\nconfigured\n";
/// The time limit for a reset to reach a fault point.
const COMES_WITHIN: Duration = Duration::from_secs(90);

/// A site with this many slots, one of its definition's standbys, and a declared store.
fn site(label: &str, slots: u32) -> World {
    let world = declared(label, 1, "true");
    world.edit("environment", "title: Toy", &format!("title: Toy\n    slots: {{ min: {slots} }}"));
    world
}

/// Waits until this many slots are free.
fn await_slots(world: &World, count: usize) {
    let slots = || world.site().and_then(|site| site["slots"].as_array().cloned()).unwrap_or_default();
    let is_free = |slot: &Value| slot["state"] == "ready" && slot["occupation"] == "free";
    until("the slots", PATIENCE, slots, |slots| slots.len() == count && slots.iter().all(is_free));
}

/// The container that serves in a slot.
#[track_caller]
fn serving(world: &World, slot: u64) -> String {
    let found = world.containers_of_slot(slot);
    let [container] = found.as_slice() else { panic!("slot {slot} has {found:?}") };
    container.clone()
}

/// The container of the only standby, once it is ready.
fn standby(world: &World) -> String {
    await_standbys(world, 1);
    let label = format!("label={}", world.label());
    let generation = format!("label=dev.arenad.generation={}", members(world)[0]["generation"]);
    let found = world.engine.docker(&["ps", "--quiet", "--no-trunc", "--filter", &label, "--filter", &generation]);
    found.trim().to_owned()
}

fn notes(world: &World, slot: u64) -> String {
    let text = world.engine.docker(&["exec", &serving(world, slot), "/bin/sh", "-c", "cat /srv/state/notes"]);
    text.trim_end().to_owned() + "\n"
}

/// Writes a line into a slot, and checks that no other slot has it.
fn write(world: &World, slot: u64, slots: u64) {
    let line = format!("by-{slot}");
    let command = format!("echo {line} >>/srv/state/notes");
    world.engine.docker(&["exec", &serving(world, slot), "/bin/sh", "-c", &command]);
    for other in (1..=slots).filter(|other| *other != slot) {
        assert!(!notes(world, other).contains(&line), "slot {other} shows what slot {slot} has");
    }
}

fn reset(world: &World, slot: u64) -> RunningCommand {
    world.start(&["reset", &format!("toy:{slot}")])
}

/// Asserts that each slot and the pool have a container of their own, and that there are no others.
#[track_caller]
fn assert_apart(world: &World, slots: u64, standbys: usize) {
    await_standbys(world, standbys);
    let in_slots: BTreeSet<String> = (1..=slots).map(|slot| serving(world, slot)).collect();
    let all: BTreeSet<String> = world.engine.containers(&world.label()).into_iter().collect();
    assert!(in_slots.is_subset(&all), "{in_slots:?} of {all:?}");
    assert_eq!((in_slots.len() as u64, all.len()), (slots, in_slots.len() + standbys), "{all:?}");
}

#[test]
fn slots_share_the_standbys_of_their_site() {
    let world = site("shared", 3);
    world.up();
    await_slots(&world, 3);
    world.write("scribble");
    world.reset();
    assert_apart(&world, 3, 1);

    // The standby serves in the slot that is reset, and what served there is the next standby, for any slot.
    let (first, third) = (standby(&world), serving(&world, 3));
    write(&world, 3, 3);
    reset(&world, 3).ended().code(0);
    assert_eq!((serving(&world, 3), notes(&world, 3).as_str()), (first, BASELINE));
    assert_eq!(standby(&world), third, "it was brought back");
    write(&world, 2, 3);
    reset(&world, 2).ended().code(0);
    assert_eq!((serving(&world, 2), notes(&world, 2).as_str()), (third, BASELINE));
    assert_apart(&world, 3, 1);

    // Disk usage is shown by site, with the slots in which generations serve.
    let df = world.run(&["df", "--json"]).code(0).json();
    let mut slots: Vec<Option<u64>> =
        df["generations"].as_array().into_iter().flatten().map(|generation| generation["slot"].as_u64()).collect();
    slots.sort_unstable();
    assert_eq!(slots, [None, Some(1), Some(2), Some(3)], "{df:#}");

    // Both get a pristine generation of their own, although there is one standby.
    write(&world, 1, 3);
    write(&world, 2, 3);
    let both = [reset(&world, 1), reset(&world, 2)];
    both.into_iter().for_each(|reset| drop(reset.ended().code(0)));
    assert_eq!([notes(&world, 1), notes(&world, 2), notes(&world, 3)], [BASELINE; 3]);
    assert_apart(&world, 3, 1);

    // The next daemon knows what serves where, and which is the standby.
    let before = ([1, 2, 3].map(|slot| serving(&world, slot)), standby(&world));
    world.signal_daemon(Signal::KILL);
    world.up();
    await_slots(&world, 3);
    assert_eq!(([1, 2, 3].map(|slot| serving(&world, slot)), standby(&world)), before);
    world.run(&["down"]).code(0);
    assert_eq!(world.engine.containers(&world.label()), [""; 0], "standbys go down with their site");
}

#[test]
fn a_pool_grows_with_the_number_of_slots() {
    let world = site("grown", 5);
    world.up();
    await_slots(&world, 5);
    world.write("scribble");
    world.reset();
    assert_apart(&world, 5, 2);
    assert_eq!(world.site().unwrap()["standbys"]["wanted"], 2);
    world.run(&["status"]).code(0).prints("2 of 2");
    // A slot that fails takes neither the standbys nor other slots with it.
    let (fifth, others) = (serving(&world, 5), [1, 2, 3, 4].map(|slot| serving(&world, slot)));
    world.engine.docker(&["kill", &fifth]);
    reset(&world, 5).ended().code(0);
    assert_eq!(notes(&world, 5), BASELINE);
    assert_apart(&world, 5, 2);
    assert_eq!([1, 2, 3, 4].map(|slot| serving(&world, slot)), others);
    world.run(&["down"]).code(0);
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
}

#[test]
fn a_standby_that_was_taken_when_the_daemon_died_is_in_one_place_only() {
    let world = site("taken", 2);
    let faults = world.root().join("faults");
    std::fs::create_dir(&faults).unwrap();
    let up = || {
        world.start_with_faults(&["up", &world.name], &faults).ended().code(0);
        await_slots(&world, 2);
    };
    up();
    world.write("scribble");
    world.reset();
    for (point, is_recorded) in [(Point::SwapChosen, false), (Point::SwapVerified, false), (Point::SwapRecorded, true)]
    {
        standby(&world);
        let old = serving(&world, 2);
        write(&world, 2, 2);
        let written = notes(&world, 2);
        File::create(faults.join(point.name())).unwrap();
        let client = reset(&world, 2);
        let reached = faults.join(format!("{point}.reached"));
        within(&format!("{point}"), COMES_WITHIN, || std::fs::remove_file(&reached).ok());
        world.signal_daemon(Signal::KILL);
        std::fs::remove_file(faults.join(point.name())).unwrap();
        client.ended();
        up();
        // Once the reset is recorded, the next daemon brings the slot back: no mark says that no client has reached it.
        let text = if is_recorded { BASELINE } else { &written };
        assert_eq!(notes(&world, 2), text, "after {point}");
        assert!(is_recorded || serving(&world, 2) == old, "after {point}");
        assert_apart(&world, 2, 1);
        reset(&world, 2).ended().code(0);
        assert_eq!((notes(&world, 1), notes(&world, 2)), (BASELINE.to_owned(), BASELINE.to_owned()), "after {point}");
        assert_apart(&world, 2, 1);
    }
    world.run(&["down"]).code(0);
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
}
