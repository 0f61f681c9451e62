//! What the two files of a definition say, before it is believed.
//!
//! The JSON Schema generated from these types is what editors get and what [`super::check`] holds the files against,
//! so the doc comments here are the reference that authors read while they type.

pub(crate) mod compose;
pub(crate) mod compose_parts;
pub(crate) mod environment;
pub(crate) mod helpers;
pub(crate) mod images;
pub(crate) mod login;
mod refused;
pub(crate) mod steps;
pub(crate) mod stores;
pub mod tasks;
pub(crate) mod values;
