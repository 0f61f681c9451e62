//! Digests of real stores: folders and SQLite files that the tests create, and the sites of the mini environment.

mod files;
mod hostile;
mod hostile_redis;
mod instance;
mod rows;
mod servers;
mod sites;
mod sqlite;
mod subject;
mod visitor;
