//! A site with stores, and the installations in which it is brought up.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::World;
use crate::support::world::CommandOutput;

pub const BASELINE: &str = "toy\nconfigured\n";

/// Declares a site's store and its writers.
pub fn declare_stores(world: &World) {
    world.edit(
        "environment",
        "    baseline:\n",
        "    stores: { notes: { kind: directory, path: /srv/state } }
    writers:
      stop: [ { command: [/bin/true] } ]
      start: [ { command: [/bin/true] } ]
    baseline:\n",
    );
}

/// Creates a site with stores that has not been brought up yet.
pub fn with_stores(label: &str) -> World {
    let world = World::single(label);
    declare_stores(&world);
    world
}

/// Another installation for the same definitions, with its own state directory.
pub struct OtherInstallation<'a> {
    pub world: &'a World,
    pub state_dir: PathBuf,
}

impl<'a> OtherInstallation<'a> {
    pub fn new(world: &'a World, name: &str) -> Self {
        Self { world, state_dir: world.root().join(name) }
    }

    /// Runs a command to its end.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> CommandOutput {
        let mut command = self.world.command(args);
        command.env("ARENAD_STATE_DIR", &self.state_dir);
        self.world.start_command(command).ended()
    }

    /// The ids of the installation's snapshots.
    pub fn snapshots(&self) -> Vec<String> {
        let found = crate::support::http::get_unix(&self.state_dir.join("arenad.sock"), "/v1/snapshots").unwrap();
        let found: Value = serde_json::from_str(&found.body).unwrap();
        crate::support::world::list(&found["snapshots"], "id")
    }

    /// Asserts that no part of a snapshot exists.
    #[track_caller]
    pub fn assert_empty(&self) {
        for folder in ["volumes", "stores/snapshots"] {
            let left: Vec<String> = names(&self.state_dir.join(folder));
            assert!(left.is_empty(), "{folder}: {left:?}");
        }
    }
}

/// The names in a folder; none if it does not exist.
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
