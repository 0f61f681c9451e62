//! The complete help of every command at a width of 100.

use std::process::Command;

use super::snapshot::check;

/// Returns the help of a command, independent of this process's variables.
fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_arenad"))
        .args(words)
        .env_clear()
        .env("COLUMNS", "100")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("run the program");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Returns the commands that a help text lists, in lines of two spaces, a name and an explanation. The whole program's
/// commands are in groups before its options.
fn commands(help: &str, is_whole: bool) -> Vec<String> {
    let is_list = |heading: &str| {
        if is_whole { heading != "Options:" && heading != "Exit codes:" } else { heading == "Commands:" }
    };
    let mut found = Vec::new();
    let mut is_inside = false;
    for line in help.lines() {
        if line.ends_with(':') && !line.starts_with(' ') {
            is_inside = is_list(line);
        } else if line.is_empty() {
            is_inside = false;
        } else if is_inside && line.starts_with("  ") && !line.starts_with("   ") {
            found.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    found
}

#[test]
fn the_help_of_every_command_is_as_it_was_written_down() {
    let whole = help(&["--help"]);
    check("help/arenad", &whole);
    let names = commands(&whole, true);
    assert!(names.len() > 30, "{names:?}");
    for name in names.iter().filter(|name| *name != "help") {
        let text = help(&["help", name]);
        assert_eq!(text, help(&[name, "--help"]), "`arenad help {name}` says the same as its --help");
        check(&format!("help/{name}"), &text);
        let too_wide =
            text.lines().find(|line| line.chars().count() > 100 && !line.trim_start().starts_with("arenad "));
        assert!(too_wide.is_none(), "{name}: {too_wide:?}");
        for inner in commands(&text, false) {
            check(&format!("help/{name}-{inner}"), &help(&["help", name, &inner]));
        }
    }
}

#[test]
fn options_of_a_daemon_belong_to_the_commands_that_start_one_for_good() {
    for name in ["down", "df", "prune", "status", "images"] {
        let text = help(&["help", name]);
        assert!(!text.contains("--parallel") && !text.contains("--subnets"), "{text}");
    }
    for name in ["up", "serve"] {
        assert!(help(&["help", name]).contains("--subnets"), "{name}");
    }
}
