//! The targets, one file each.

mod answers;
mod archives;
mod browsers;
mod definitions;
mod episodes;
mod hars;
mod judges;
mod locators;
mod logins;
mod pages;
mod pickles;
mod pipes;
mod proxied;
mod recordings;
mod redis;
mod replays;
mod requests;
mod schedules;
mod servers;
mod slotted;
mod snapshots;
mod sql;
mod tasks;
mod trees;
mod wire;

use crate::target::FuzzTarget;

pub const TARGETS: [FuzzTarget; 24] = [
    requests::TARGET,
    proxied::TARGET,
    slotted::TARGET,
    answers::TARGET,
    sql::TARGET,
    servers::TARGET,
    archives::TARGET,
    snapshots::TARGET,
    trees::TARGET,
    pickles::TARGET,
    recordings::TARGET,
    hars::TARGET,
    replays::TARGET,
    episodes::TARGET,
    redis::TARGET,
    browsers::TARGET,
    pipes::TARGET,
    pages::TARGET,
    logins::TARGET,
    judges::TARGET,
    definitions::TARGET,
    tasks::TARGET,
    locators::TARGET,
    schedules::TARGET,
];
