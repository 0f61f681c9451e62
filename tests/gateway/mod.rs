//! The gateway on real sockets: raw clients in front, scripted sites behind.

mod arena;
#[macro_use]
mod doors;
mod episode_records;
mod limits;
mod passing;
mod proxy;
mod proxy_model;
mod proxy_storm;
mod recording;
mod slot_bodies;
mod slot_ports;
mod smuggling;
mod storm;
mod support;
mod switching;
mod upgrades;
