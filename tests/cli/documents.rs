//! The commands of the documents, run as written, on a toy site that has the name of mini's shop.
//!
//! Blocks are marked in Markdown: `<!-- test: run -->` (or `<!-- test: run, exit 3 -->`) before a block of shell runs
//! it. `<!-- test: columns -->` before a block of output expects that the preceding commands have printed a table with
//! the block's first line as its head.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::World;
use crate::support::world::CommandOutput;

/// The tested pages, each with whether it expects the environment to be up at its beginning.
const PAGES: [(&str, bool); 2] = [("docs/guides/first-run.md", false), ("README.md", true)];

/// A block of a page that a comment marks for testing.
#[derive(Debug, PartialEq, Eq)]
struct Marked {
    line: usize,
    test: Test,
    text: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Test {
    /// The shell runs the block, which exits with this code.
    Run(i32),
    /// The block's first line has been printed.
    Columns,
}

/// Returns the marked blocks of a page. Panics at an unknown mark, or at a mark without a block.
fn marked(page: &str) -> Vec<Marked> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(mark) = line.strip_prefix("<!-- test: ").and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let test = match mark.split_once(", exit ") {
            Some(("run", code)) => Test::Run(code.parse().expect("an exit code")),
            None if mark == "run" => Test::Run(0),
            None if mark == "columns" => Test::Columns,
            _ => panic!("line {}: unknown test {mark:?}", number + 1),
        };
        let fence = lines.next().map(|(_, line)| line).unwrap_or_default();
        let expected = if test == Test::Columns { "```text" } else { "```sh" };
        assert_eq!(fence, expected, "line {}: no block of that kind follows", number + 2);
        let text = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        found.push(Marked { line: number + 1, test, text: text.map(|line| format!("{line}\n")).collect() });
    }
    found
}

/// Takes everything down, even after a failed assertion: the environment's name is not the world's.
struct Up<'a>(&'a World);

impl Drop for Up<'_> {
    fn drop(&mut self) {
        let _ = self.0.start(&["down", "--purge", "--yes"]).ended();
    }
}

/// Names a toy like mini and its shop, with stores and an account that signs in.
fn mini(world: &World) {
    world.edit("environment", "  toy:\n", "  shopping:\n");
    world.edit("environment", &format!("name: {}\n", world.name), "name: mini\n");
    world.edit(
        "environment",
        "    baseline:\n",
        "    stores: { notes: { kind: directory, path: /srv/state } }
    writers:
      stop: [ { command: [/bin/true] } ]
      start: [ { command: [/bin/true] } ]
    baseline:\n",
    );
    world.edit("compose", "  toy:\n", "  shopping:\n");
    for kind in ["environment", "compose"] {
        let from = world.file(kind);
        std::fs::rename(&from, from.with_file_name("mini.yaml")).unwrap();
    }
}

/// Runs a script as a reader's shell would, with the program on its path.
fn shell(world: &World, script: &str) -> CommandOutput {
    let program = Path::new(env!("CARGO_BIN_EXE_arenad"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ARENAD_") || name == "DOCKER_HOST") {
        command.env_remove(variable);
    }
    command
        .args(["-eu", "-c", script])
        .current_dir(world.root())
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .env("ARENAD_STATE_DIR", world.state_dir())
        .env("ARENAD_STORAGE", "plain")
        .env("ARENAD_PROXY", "127.0.0.1:0")
        .env("ARENAD_COMPAT", "127.0.0.1:0")
        .stdin(Stdio::null());
    world.start_command(command).ended()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn commands_of_the_documents_do_what_the_documents_say() {
    let world = World::single("documents");
    mini(&world);
    let _up = Up(&world);
    for (name, begins_up) in PAGES {
        let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
        let blocks = marked(&page);
        assert!(blocks.iter().any(|block| matches!(block.test, Test::Run(_))), "{name} runs nothing");
        if begins_up {
            world.run(&["up"]).code(0);
        }
        let mut printed = String::new();
        for Marked { line, test, text } in blocks {
            match test {
                Test::Run(code) => {
                    let ran = shell(&world, &text);
                    assert_eq!(ran.code, code, "{name}:{line}:\n{text}\nstdout:\n{}\nstderr:\n{}", ran.out, ran.err);
                    printed.push_str(&ran.out);
                }
                Test::Columns => {
                    let head = text.lines().next().unwrap_or_default();
                    let is_printed = printed.lines().any(|line| words(line) == words(head));
                    assert!(is_printed, "{name}:{line}: no table has the head {head:?} in:\n{printed}");
                }
            }
        }
        world.run(&["down"]);
    }
}

#[test]
fn marks_are_read_with_what_they_expect() {
    let page =
        "a\n<!-- test: run, exit 3 -->\n```sh\narenad status\n```\n<!-- test: columns -->\n```text\nA  B\n1  2\n```\n";
    let expected = [
        Marked { line: 2, test: Test::Run(3), text: "arenad status\n".to_owned() },
        Marked { line: 6, test: Test::Columns, text: "A  B\n1  2\n".to_owned() },
    ];
    assert_eq!(marked(page), expected);
    assert!(std::panic::catch_unwind(|| marked("<!-- test: runs -->\n```sh\n```\n")).is_err(), "a misspelt mark");
    assert!(std::panic::catch_unwind(|| marked("<!-- test: run -->\ntext\n")).is_err(), "a mark without a block");
}
