//! Shared support for tests of the real program: a project folder with toy sites, a separate installation of arenad,
//! access to a Docker engine, and waiting for conditions. Every object is removed at the end, even if a test panics.

pub mod engine;
pub mod http;
pub mod last_lines;
pub mod own_engine;
pub mod wait;
pub mod world;

pub use engine::TestEngine;
pub use own_engine::OwnEngine;
pub use wait::{until, within};
pub use world::World;
