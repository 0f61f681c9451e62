//! Builds the help: the commands by group, and examples below the options of each command.

use clap::{Command, CommandFactory};

use super::{Cli, examples};

/// The maximum width of help lines, in columns; narrower terminals reduce it.
const WIDTH_MAX: usize = 100;

/// The commands by group, in the order in which the help lists them.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Sites",
        &[
            "up", "down", "reset", "verify", "changes", "look", "status", "health", "ps", "logs", "events", "open",
            "exec", "shell",
        ],
    ),
    ("Episodes", &["run", "episode", "queue"]),
    ("Environments", &["init", "validate", "config", "env", "schema", "images", "replay", "ca"]),
    ("Tasks and reading", &["tasks", "turkle", "workflow", "check", "eval", "verdict", "login", "locate", "har"]),
    ("Snapshots and disk", &["snapshot", "df", "prune", "storage"]),
    ("Host and shell", &["doctor", "serve", "completions", "version", "help"]),
];

/// Returns the command line with its help.
pub fn command() -> Command {
    let command = Cli::command().max_term_width(WIDTH_MAX);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        grouped(&command)
    );
    with_examples(command.help_template(template), "")
}

fn grouped(command: &Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text.push_str(&format!("{heading}:\n"));
        for name in names {
            let known = command.find_subcommand(name);
            let about = known.and_then(Command::get_about).map(ToString::to_string);
            // clap adds `help` when the command line is parsed.
            let about = about.unwrap_or_else(|| "Print this message, or the help of a command".to_owned());
            text.push_str(&format!("  {name:12} {about}\n"));
        }
        text.push('\n');
    }
    text
}

/// Adds the examples of a command and of its subcommands. `path` names the command, such as `snapshot take`.
fn with_examples(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
    let mut command = command;
    for name in names {
        let inner = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command = command.mut_subcommand(&name, |known| with_examples(known, &inner));
    }
    let Some(examples) = examples::of(path) else { return command };
    let mut text = String::from("Examples:\n");
    for (line, what) in examples {
        text.push_str(&format!("  {line}\n"));
        if !what.is_empty() {
            text.push_str(&format!("      {what}\n"));
        }
    }
    let more = command.get_after_help().map(|more| format!("\n{more}")).unwrap_or_default();
    command.after_help(format!("{text}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every command with its path, such as `snapshot take`.
    fn all(command: &Command, path: &str) -> Vec<(String, Command)> {
        let mut found = Vec::new();
        for known in command.get_subcommands().filter(|known| !known.is_hide_set() && known.get_name() != "help") {
            let inner =
                if path.is_empty() { known.get_name().to_owned() } else { format!("{path} {}", known.get_name()) };
            found.extend(all(known, &inner));
            found.push((inner, known.clone()));
        }
        found
    }

    #[test]
    fn every_command_is_in_one_group_and_nothing_else_is() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        listed.sort_unstable();
        let command = command();
        let visible = command.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name);
        let mut known: Vec<&str> = visible.filter(|name| *name != "help").chain(["help"]).collect();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn every_command_has_examples_that_are_understood() {
        for (path, _) in all(&command(), "") {
            let examples = examples::of(&path).unwrap_or_default();
            assert!(!examples.is_empty(), "`arenad {path}` has no examples");
            let mut own = 0;
            for (line, _) in examples {
                let words = examples::words(line);
                let after = words.iter().skip_while(|word| *word != "arenad").skip(1);
                let after: Vec<&String> =
                    after.take_while(|word| !matches!(word.as_str(), "|" | ">" | ")" | "&&")).collect();
                own += usize::from(
                    after.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(" ").starts_with(&path),
                );
                let line_up = ["arenad"].into_iter().chain(after.iter().map(|word| word.as_str()));
                if let Err(error) = command().try_get_matches_from(line_up) {
                    panic!("`{line}`: {error}");
                }
            }
            assert!(own > 0, "no example of `arenad {path}` calls it");
        }
    }
}
