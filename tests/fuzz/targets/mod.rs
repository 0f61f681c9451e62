//! The targets, one file each.

mod answers;
mod archives;
mod browsers;
mod definitions;
mod episodes;
mod locators;
mod pickles;
mod recordings;
mod redis;
mod requests;
mod schedules;
mod snapshots;
mod sql;
mod tasks;
mod trees;
mod wire;

use crate::target::Target;

/// All of them.
pub const TARGETS: [Target; 15] = [
    requests::TARGET,
    answers::TARGET,
    sql::TARGET,
    archives::TARGET,
    snapshots::TARGET,
    trees::TARGET,
    pickles::TARGET,
    recordings::TARGET,
    episodes::TARGET,
    redis::TARGET,
    browsers::TARGET,
    definitions::TARGET,
    tasks::TARGET,
    locators::TARGET,
    schedules::TARGET,
];
