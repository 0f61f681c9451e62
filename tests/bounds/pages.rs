//! A page that is small to send and large to read: the process that reads it ends, and the daemon continues.

use super::memory;
use crate::support::World;

/// The maximum of the daemon's peak memory, in bytes.
const MEMORY_MAX: u64 = 300 << 20;

/// A page of about 100 KB whose elements together have a gigabyte of text: the text of each includes that of its
/// descendants.
fn bomb() -> String {
    format!("<!doctype html>{}{}", "<div>".repeat(12_000), "text ".repeat(20_000))
}

#[test]
fn a_page_that_explodes_ends_its_reader() {
    let world = World::single("bomb");
    std::fs::write(world.root().join("compose/toy/root/srv/www/bomb.html"), bomb()).unwrap();
    world.up();
    for locator in
        ["http(timeout=8s): /bomb.html | css(all): div", "http(timeout=8s): /bomb.html | css(all): div div div"]
    {
        let said = world.run(&["locate", "toy", locator]).code(1).err;
        assert!(said.contains("confined process") || said.contains("no value within"), "{said}");
    }
    let told = world.run(&["locate", "toy", "http: /cgi-bin/page | status"]).code(0).out;
    assert!(told.contains("200"), "{told}");
    let peak = memory(&world, "VmHWM");
    assert!(peak < MEMORY_MAX, "the daemon took {} MiB", peak >> 20);
    world.run(&["down"]).code(0);
}
