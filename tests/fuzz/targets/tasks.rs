//! Files of native tasks: they become tasks or diagnostics, and a task judges any answer of an agent.

use std::collections::BTreeMap;
use std::path::Path;

use arenad_definition::{self as definition, SourceFile, Style, tasks};
use arenad_evaluators::native::{Episode, judge, readings};

use super::definitions::{LONGEST_BYTES, check_problems};
use crate::target::{FuzzTarget, InputCheck, parts};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "environment: mini\n",
        "tasks:\n",
        "  - name: ",
        "    each:\n",
        "      - { a: 1 }\n",
        "{{a}}",
        "{{",
        "}}",
        "check: ",
        "{ answer: { number: \"{{total}}\", tolerance: 0 } }",
        "{ all: [",
        "{ any: [",
        "{ not: ",
        "{ site: ",
        "{ url: ",
        "pattern: \"(a{1,1000}){1,1000}\"",
        "sql(shop): SELECT 1",
        "http: GET / | jq: .",
        "trace: POST /* | jsonpath: $.body",
        "&a ",
        "*a",
        "<<: ",
        ": ",
        "- ",
        "\n",
        "  ",
        "\"",
        "'",
        "[",
        "]",
        "{",
        "}",
        "null",
        ".nan",
        "1e999",
    ],
    ..FuzzTarget::new("tasks", open)
};

fn open() -> InputCheck {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let located = definition::locate_file(&root.join("environments/mini.yaml")).expect("it is there");
    let sources = definition::read(&located).expect("it reads");
    let environment = definition::load(&sources, &BTreeMap::new()).expect("it is sound").environment;
    Box::new(move |input| {
        let [text, answer] = parts::<2>(input);
        let loaded = tasks::load(&[SourceFile::new("environments/mini/tasks/x.yaml", text)], &environment);
        for task in &loaded.tasks {
            let _ = readings(task);
            let captured = BTreeMap::new();
            let episode = Episode { answer: &answer, url: Some(&task.start), no_url: None, captured: &captured };
            assert_eq!(
                judge(&task.criterion, &episode, &[]),
                judge(&task.criterion, &episode, &[]),
                "two verdicts on one episode"
            );
        }
        match &loaded.problems {
            None => format!("{} tasks", loaded.tasks.len().min(9)),
            Some(problems) => {
                let text = problems.render(Style::default());
                assert!(text.len() < LONGEST_BYTES, "{} bytes", text.len());
                check_problems(problems)
            }
        }
    })
}
