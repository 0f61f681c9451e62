//! What the tests of the real program share: a project folder with toy sites, an installation of arenad of its own,
//! a Docker engine to look into, and waiting for conditions. Everything made here goes again, also when a test panics.

pub mod engine;
pub mod http;
pub mod own_engine;
pub mod wait;
pub mod world;

pub use engine::Engine;
pub use own_engine::OwnEngine;
pub use wait::{until, within};
pub use world::World;
