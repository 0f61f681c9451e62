//! The gateway on real sockets: raw clients in front, scripted sites behind.

#[macro_use]
mod doors;
mod limits;
mod passing;
mod recording;
mod smuggling;
mod storm;
mod support;
mod switching;
mod upgrades;
