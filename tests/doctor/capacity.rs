//! Definitions that need more resources than exist: the doctor reports it, and `up` refuses before it starts anything.

use super::examined::{examine, without_build};
use crate::support::World;

#[test]
fn more_memory_than_there_is_is_refused_before_anything_is_started_unless_forced() {
    let world = World::single("memory");
    world.edit("compose", "mem_limit: 48m", "mem_reservation: 900g");
    examine(&world).found("memory").is("problem", "900.0 GiB is needed at least: toy 900.0 GiB", "mem_reservation");

    let refused = world.run(&["up", &world.name]).code(1);
    refused.says("start the sites: ").says("toy 900.0 GiB").says("hint: ").says("--force");
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
    assert_eq!(world.engine.networks(&world.label()), [""; 0]);
    assert_eq!(world.state(), "-", "nothing of it is known to the daemon");

    let forced = world.run(&["up", &world.name, "--force"]).code(0).says("warning: ").says("900.0 GiB");
    assert!(forced.out.contains("toy"), "{}", forced.out);
    assert_eq!(world.state(), "ready");
    // A running site has its resources already, so another check reserves nothing for it.
    world.run(&["up", &world.name]).code(0);
    examine(&world).is_fine("memory");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn limits_that_add_up_to_more_than_there_is_are_warned_of_and_let_pass() {
    let world = World::single("limits");
    world.edit("compose", "mem_limit: 48m", "mem_limit: 900g");
    examine(&world).found("memory").is("warning", "`mem_limit` add up to 900.0 GiB", "mem_limit");
    world.run(&["up", &world.name]).code(0).says("warning: ").says("add up to 900.0 GiB");
    let up = world.run(&["up", &world.name, "--json"]).code(0).json();
    assert!(up["warnings"].is_null(), "it is up: {up:#}");
    world.run(&["down"]).code(0);
}

#[test]
fn more_processors_than_there_are_are_refused() {
    let world = World::single("cpus");
    world.edit("compose", "mem_limit: 48m", "mem_limit: 48m\n    cpus: 999");
    examine(&world).found("processors").is("problem", "a service of toy says `cpus: 999`", "lower `cpus`");
    world.run(&["up", &world.name]).code(1).says("`cpus: 999`").says("hint: lower `cpus`");
}

#[test]
fn images_whose_declared_size_does_not_fit_are_a_problem() {
    let world = World::single("space");
    without_build(&world);
    let reference = format!("arenad-toy/{}:1", world.name);
    let sizes = format!("images: {{ \"{reference}\": {{ archive: toy.tar, loaded_size: 60t }} }}\nsites:\n");
    world.edit("environment", "sites:\n", &sizes);
    let examined = examine(&world);
    examined.found("disk").is("problem", "what is still to be fetched takes 122880.0 GiB", "docker system df");
    examined.found("images").is("warning", "is not here", &format!("arenad images pull {} {reference}", world.name));
    world.run(&["up", &world.name]).code(1).says("what is still to be fetched takes").says("--force");
}
