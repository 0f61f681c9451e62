//! Values and decisions. Nothing in this crate performs I/O, reads a clock, or depends on SQL, HTTP or asynchronous
//! code, and no type derives the traits of serde. Time is an argument, and every decision is a function that a unit
//! test can call.
//!
//! The crate depends on no other crate of arenad. Start reading at [`site`] and [`instance`], then [`request_queue`],
//! [`pool`] and [`episode`].

pub mod archive;
pub mod browser;
pub mod cause;
pub mod clock;
pub mod configure;
pub mod coverage;
#[cfg(test)]
mod diagram;
pub mod episode;
pub mod error;
pub mod event;
pub mod flow;
pub mod harness_variables;
pub mod health;
pub mod helper;
pub mod hex;
pub mod ids;
pub mod instance;
pub mod lines;
pub mod locator;
pub mod login;
pub mod pool;
pub mod probe;
pub mod proxy_address;
pub mod prune;
pub mod reconcile;
pub mod record_retention;
pub mod request_queue;
pub mod reset;
pub mod reset_scope;
pub mod schedule;
pub mod service;
pub mod site;
pub mod slot_name;
pub mod snapshot;
pub mod standby_schedule;
pub mod store;
pub mod subnet;
pub mod task;
pub mod verify;
