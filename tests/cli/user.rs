//! Commands of a user without an account and without groups.

use std::process::{Command, Stdio};

use crate::support::World;
use crate::support::world::{CommandOutput, RunningCommand};

/// A user id without any group, including the engine's.
pub const USER: u32 = 47_211;

/// A command of that user on a world's installation.
pub fn command(world: &World, args: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"]);
    command.arg(env!("CARGO_BIN_EXE_arenad")).args(args);
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ARENAD_") || name == "DOCKER_HOST") {
        command.env_remove(variable);
    }
    command.current_dir(world.root()).env("ARENAD_STATE_DIR", world.state_dir()).stdin(Stdio::null());
    command
}

/// Starts a command of that user.
pub fn start(world: &World, args: &[&str]) -> RunningCommand {
    world.start_command(command(world, args))
}

/// Runs one to its end.
#[track_caller]
pub fn run(world: &World, args: &[&str]) -> CommandOutput {
    start(world, args).ended()
}
