//! Derives the command of an image from its Dockerfile: the last ENTRYPOINT and CMD of the last stage, which suffices
//! for a proposal.

use std::collections::BTreeMap;

/// The command and the ports of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DockerfileCommand {
    /// The entry point; empty means none.
    pub(super) entrypoint: Vec<String>,
    /// The command; empty means none.
    pub(super) command: Vec<String>,
    /// The ports that the image exposes.
    pub(super) ports: Vec<u16>,
}

/// One stage of a build.
#[derive(Default)]
struct BuildStage {
    image: DockerfileCommand,
    /// Whether this stage, or a stage that it is based on, sets an entry point or a command.
    is_known: bool,
}

/// Reads a Dockerfile up to a stage, or the last stage if none is named. Returns `None` if no stage sets a command,
/// because a base image from elsewhere does.
pub(super) fn read(text: &str, target: Option<&str>) -> Option<DockerfileCommand> {
    let mut named: BTreeMap<String, BuildStage> = BTreeMap::new();
    let mut name = String::new();
    let mut stage = BuildStage::default();
    for line in joined(text) {
        let Some((instruction, rest)) = line.trim().split_once(char::is_whitespace) else { continue };
        let rest = rest.trim();
        match instruction.to_ascii_uppercase().as_str() {
            "FROM" => {
                if target.is_some_and(|target| target == name) {
                    break;
                }
                let words: Vec<&str> = rest.split_whitespace().filter(|word| !word.starts_with("--")).collect();
                named.insert(std::mem::take(&mut name), std::mem::take(&mut stage));
                if let Some(base) = words.first().and_then(|base| named.get(*base)) {
                    stage = BuildStage { image: base.image.clone(), is_known: base.is_known };
                }
                name = words.get(2).map(|name| (*name).to_owned()).unwrap_or_default();
            }
            "ENTRYPOINT" => (stage.image.entrypoint, stage.is_known) = (words(rest), true),
            "CMD" => (stage.image.command, stage.is_known) = (words(rest), true),
            "EXPOSE" => {
                let ports = rest.split_whitespace().filter_map(|port| port.split('/').next()?.parse::<u16>().ok());
                stage.image.ports.extend(ports);
            }
            _ => {}
        }
    }
    stage.is_known.then_some(stage.image)
}

/// Joins lines that end in a backslash with their successors, and drops comments.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let part = line.strip_suffix('\\').unwrap_or(line);
        match lines.last_mut().filter(|_| is_open) {
            Some(last) => *last += part,
            None => lines.push(part.to_owned()),
        }
        is_open = line.ends_with('\\');
    }
    lines
}

/// Returns the exec form unchanged, and the shell form as Docker runs it.
fn words(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|_| vec!["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stage_counts() {
        let text = "FROM a AS build\nCMD [\"make\"]\nFROM b\n# CMD [\"no\"]\nEXPOSE 8000/tcp 9000\nENTRYPOINT [\"/entry\", \\\n  \"-x\"]\nCMD serve it\n";
        let found = read(text, None).expect("a command");
        assert_eq!(found.entrypoint, ["/entry", "-x"]);
        assert_eq!(found.command, ["/bin/sh", "-c", "serve it"]);
        assert_eq!(found.ports, [8000, 9000]);
        assert_eq!(read("FROM a\nCMD [\"x\"]\nFROM b\nRUN true\n", None), None);
        let stages = "FROM a AS toy\nCMD [\"x\"]\nFROM toy AS db\nVOLUME /d\n";
        assert_eq!(read(stages, None).expect("of the stage below").command, ["x"]);
        assert_eq!(
            read("FROM a AS one\nCMD [\"x\"]\nFROM b\nCMD [\"y\"]\n", Some("one")).expect("the stage").command,
            ["x"]
        );
    }
}
