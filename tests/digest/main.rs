//! Digests of real stores: of folders and SQLite files that the tests make, and of the sites of the mini environment.

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
