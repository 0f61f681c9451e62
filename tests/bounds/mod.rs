//! Bounded growth and untouched foreign objects: other engines, foreign objects in the way, and endless logs and
//! events, on toy sites and real engines.

#![allow(clippy::unwrap_used)]

mod copies;
mod engines;
mod events;
mod leftovers;
mod logs;
mod pages;

use serde_json::Value;
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

use crate::support::World;

/// The store of a world, which its daemon may have open.
async fn store(world: &World) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(world.state_dir().join("arenad.db"));
    SqlitePool::connect_with(options).await.unwrap()
}

/// The kernel's figures of a daemon's memory, in bytes: `VmRSS` is the current size, `VmHWM` the peak.
fn memory(world: &World, which: &str) -> u64 {
    let pid = world.daemon().expect("the daemon runs").as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// The messages of all events of a kind.
fn told(world: &World, kind: &str) -> Vec<String> {
    let events = world.api("/v1/events?limit=1000").unwrap_or_default();
    let events = events["events"].as_array().cloned().unwrap_or_default();
    let of_kind = events.iter().filter(|event| event["kind"] == kind);
    of_kind.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

/// The snapshot with this name, as the API returns it.
fn named(world: &World, name: &str) -> Option<Value> {
    let shown = world.api("/v1/snapshots")?;
    shown["snapshots"].as_array()?.iter().find(|snapshot| snapshot["name"] == name).cloned()
}

/// A site that keeps its state in a declared store.
fn with_store(label: &str) -> World {
    let world = World::single(label);
    let stores = "    stores: { notes: { kind: directory, path: /srv/state } }\n    writers:\n      stop: [ { command: [/bin/true] } ]\n      \
                  start: [ { command: [/bin/true] } ]\n    baseline:\n";
    world.edit("environment", "    baseline:\n", stores);
    world
}
