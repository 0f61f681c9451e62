//! The raw content of the files, before validation.
//!
//! Editors use the JSON Schema that is generated from these types, and [`super::check`] compares the files with it. The
//! doc comments here are therefore the reference that authors read while they type.

pub(crate) mod compose;
pub(crate) mod compose_parts;
pub(crate) mod environment;
pub(crate) mod helpers;
pub(crate) mod images;
pub(crate) mod login;
mod refused;
pub(crate) mod steps;
pub(crate) mod stores;
pub(crate) mod tasks;
pub(crate) mod values;
