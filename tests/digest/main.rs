//! Digests of real stores: of folders and SQLite files that the tests make, and of the sites of the mini environment.

#[path = "../mini/arena.rs"]
mod arena;
mod files;
mod hostile;
mod hostile_redis;
mod instance;
mod servers;
mod sites;
mod sqlite;
mod subject;
mod visitor;
