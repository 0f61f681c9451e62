//! Digests of real stores: folders and SQLite files that the tests create, and the sites of the mini environment.

#[path = "../mini/arena.rs"]
mod arena;
mod files;
mod hostile;
mod hostile_redis;
mod instance;
#[path = "../support/hostile/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it has servers of other protocols too")]
mod kit;
mod servers;
mod sites;
mod sqlite;
mod subject;
mod visitor;
