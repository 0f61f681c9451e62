//! Runs of `arenad doctor` under special conditions, and its findings.

use std::process::Command;

use serde_json::Value;

use crate::support::World;
use crate::support::world::CommandOutput;

/// The findings of one run.
pub struct Examined {
    findings: Vec<Value>,
}

/// A finding with its level and text.
#[derive(Debug, PartialEq, Eq)]
pub struct ExaminedFinding {
    pub level: String,
    pub seen: String,
    pub cure: String,
}

impl Examined {
    fn of(ran: CommandOutput) -> Self {
        let report = ran.json();
        let findings = report["findings"].as_array().expect("findings").clone();
        let has_problem = findings.iter().any(|finding| finding["level"] == "problem");
        assert_eq!(ran.code, i32::from(has_problem), "the exit code says whether there is a problem:\n{report:#}");
        let is_helpful = |finding: &Value| {
            let is_grave = finding["level"] == "problem" || finding["level"] == "warning";
            !is_grave || (finding["consequence"].is_string() && finding["cure"].is_string())
        };
        assert!(findings.iter().all(is_helpful), "what is wrong has a consequence and a cure:\n{report:#}");
        Self { findings }
    }

    /// Returns the most severe finding with this id.
    #[track_caller]
    pub fn found(&self, id: &str) -> ExaminedFinding {
        let rank = |finding: &&Value| {
            let level = finding["level"].as_str().unwrap_or_default();
            ["ok", "note", "warning", "problem"].iter().position(|known| *known == level)
        };
        let finding = self.findings.iter().filter(|finding| finding["id"] == id).max_by_key(rank);
        let finding = finding.unwrap_or_else(|| panic!("no {id} in {:#?}", self.findings));
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        ExaminedFinding { level: text("level"), seen: text("seen"), cure: text("cure") }
    }

    /// Asserts that a finding is all right.
    #[track_caller]
    pub fn is_fine(&self, id: &str) {
        let found = self.found(id);
        assert_eq!(found.level, "ok", "{found:?}");
    }

    pub fn is_silent_about(&self, id: &str) -> bool {
        !self.findings.iter().any(|finding| finding["id"] == id)
    }
}

impl ExaminedFinding {
    /// Asserts the level, the observation and the remedy of a finding.
    #[track_caller]
    pub fn is(self, level: &str, seen: &str, cure: &str) -> Self {
        assert!(self.level == level && self.seen.contains(seen) && self.cure.contains(cure), "{self:#?}");
        self
    }
}

/// Runs the doctor in the world's ordinary conditions.
#[track_caller]
pub fn examine(world: &World) -> Examined {
    examine_by(world, command(world))
}

/// Returns the command that runs the doctor.
pub fn command(world: &World) -> Command {
    world.command(&["doctor", &world.name, "--json"])
}

/// Runs a command that the test has prepared.
#[track_caller]
pub fn examine_by(world: &World, command: Command) -> Examined {
    Examined::of(world.start_command(command).ended())
}

/// Runs the doctor in namespaces of its own, after a script has caused a fault there; the fault ends with the run.
#[track_caller]
pub fn examine_within(world: &World, namespaces: &[&str], script: &str) -> Examined {
    examine_by(world, within(command(world), namespaces, script))
}

/// Puts a script in front of a command, in namespaces of their own.
pub fn within(inner: Command, namespaces: &[&str], script: &str) -> Command {
    let mut outer = Command::new("unshare");
    outer.args(namespaces).args(["sh", "-ec", &format!("{script}\nexec \"$0\" \"$@\"")]);
    outer.arg(inner.get_program()).args(inner.get_args());
    take_over(&mut outer, &inner);
    outer
}

/// Gives a command another command's variables and folder.
pub fn take_over(outer: &mut Command, inner: &Command) {
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    if let Some(folder) = inner.get_current_dir() {
        outer.current_dir(folder);
    }
}

/// Removes the build section, so that the site's image comes from another source.
pub fn without_build(world: &World) {
    let text = std::fs::read_to_string(world.file("compose")).expect("a definition");
    let (before, rest) = text.split_once("    build:\n").expect("a build");
    let (_, after) = rest.split_once("    ports:\n").expect("ports after it");
    std::fs::write(world.file("compose"), format!("{before}    ports:\n{after}")).expect("write a definition");
}
