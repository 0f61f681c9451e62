//! Ports in use, routes into arenad's block, blocks that are too small.

use std::net::TcpListener;

use super::examined::{command, examine, examine_by, examine_within, within};
use crate::cli::second::Second;
use crate::support::World;
use crate::support::world::free_port;

#[test]
fn a_busy_port_is_a_problem_and_its_owner_is_named() {
    let world = World::single("busy");
    let taken = TcpListener::bind(("127.0.0.1", world.port)).unwrap();
    let held = format!("127.0.0.1:{} (for toy) is held by", world.port);
    let found = examine(&world).found("port").is("problem", &held, "public.port");
    assert!(found.seen.contains(&format!("(pid {})", std::process::id())), "{found:?}");
    drop(taken);
    examine(&world).is_fine("port");

    // A port that arenad itself serves is all right, and a running site needs no further addresses.
    world.up();
    let found = examine(&world).found("port");
    assert!(found.level == "ok" && found.seen.contains("served by arenad's daemon"), "{found:?}");
    let daemon = examine(&world).found("daemon");
    assert!(daemon.seen.contains("arenad's daemon runs (pid "), "{daemon:?}");
    world.run(&["down"]).code(0);
}

#[test]
fn own_ports_of_slots_are_examined_and_uses_of_the_daemon_are_named() {
    let world = World::single("ranges");
    let base = free_ports(3);
    let slots = format!("title: Toy\n    slots: {{ max: 3 }}\n    ports: {{ base: {base} }}");
    world.edit("environment", "title: Toy", &slots);
    let fine = examine(&world).found("slot-ports");
    let range = format!("127.0.0.1:{base} to {} (own ports of slots 1 to 3 of toy)", base + 2);
    assert!(fine.level == "ok" && fine.seen == format!("{range} are available"), "{fine:?}");

    let taken = TcpListener::bind(("127.0.0.1", base + 1)).unwrap();
    let held = format!("127.0.0.1:{} (own port of slot 2 of toy) is held by", base + 1);
    examine(&world).found("slot-ports").is("problem", &held, "`ports` of the site");
    drop(taken);
    let mut proxied = command(&world);
    proxied.env("ARENAD_PROXY", format!("127.0.0.1:{}", base + 2));
    let own = "(own port of slot 3 of toy) is used by arenad's daemon for the episode proxy";
    examine_by(&world, proxied).found("slot-ports").is("problem", own, "`ports` of the site");

    world.up();
    let served = examine(&world).found("slot-ports");
    assert!(served.level == "ok" && served.seen == format!("{range} are served by arenad's daemon"), "{served:?}");
    // An environment that has the same ports cannot come up beside it, and is told why.
    let other = Second::of(&world);
    let taken =
        format!("127.0.0.1:{base} (for {}/toy/1) is held by this daemon, as the port of slot 1 of toy of", other.name);
    world.run(&["up", &other.name]).says(&format!("{taken} {}", world.name));
    world.run(&["down"]).code(0);
}

/// Returns the first of so many consecutive ports that are free.
fn free_ports(count: u16) -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    std::iter::repeat_with(free_port).find(|first| (*first..*first + count).all(is_free)).unwrap()
}

#[test]
fn a_port_that_root_alone_may_have_is_told_as_such() {
    let world = World::single("low");
    world.edit("environment", &format!("port: {}", world.port), "port: 81");
    world.edit("compose", &format!("\"{}:80\"", world.port), "\"81:80\"");
    let script = "sysctl -q -w net.ipv4.ip_unprivileged_port_start=1024; ip link set lo up";
    let program = "setpriv --bounding-set=-net_bind_service --inh-caps=-all sh -c 'exec \"$0\" \"$@\"'";
    let command =
        within(command(&world), &["--net"], &format!("{script}; set -- \"$0\" \"$@\"; exec {program} \"$@\""));
    examine_by(&world, command).found("port").is("problem", "may not listen on 127.0.0.1:81", "1024");
}

#[test]
fn a_route_into_our_block_is_a_problem_and_the_block_that_is_proposed_cures_it() {
    let world = World::single("route");
    let vpn =
        "ip link set lo up; ip link add vpn0 type bridge; ip link set vpn0 up; ip route add 10.231.7.0/24 dev vpn0";
    let examined = examine_within(&world, &["--net"], vpn);
    let found = examined.found("address-block");
    let found = found.is("problem", "a route to 10.231.7.0/24 through vpn0", "export ARENAD_SUBNETS=10.232.0.0/16");
    // The engine's chains are in its own namespace, so its networks do not look closed from here.
    examined.found("filters").is("warning", "filter chains are not there", "daemon.json");

    let proposed = found.cure.split('`').nth(1).unwrap();
    examine_within(&world, &["--net"], &format!("{vpn}; {proposed}")).is_fine("address-block");

    let around = vpn.replace("10.231.7.0/24", "10.0.0.0/8");
    let examined = examine_within(&world, &["--net"], &around);
    examined.found("address-block").is("warning", "a route to 10.0.0.0/8 through vpn0", "ARENAD_SUBNETS=172.30.0.0/16");
}

#[test]
fn a_block_that_is_too_small_is_told_with_another() {
    let world = World::single("block");
    let mut command = command(&world);
    command.env("ARENAD_SUBNETS", "10.9.0.0/28");
    let found = examine_by(&world, command).found("address-block");
    found.is("warning", "room for 1 more instance networks", "ARENAD_SUBNETS=");
}
