//! Definitions: an environment file, a compose file and a `.env`, divided by lines of equals signs.

use std::collections::BTreeMap;
use std::path::Path;

use arenad_definition::{self as definition, DefinitionSources, Diagnostics, SOURCE_MAX_BYTES, SourceFile, Style};

use crate::target::{DIVIDER, FuzzTarget, InputCheck, parts};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        "\n",
        "\t",
        "#",
        "&a ",
        "*a",
        "*limits",
        "<<: ",
        "!!str ",
        "!x ",
        "| ",
        ">-\n",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "${",
        "${A:-",
        "}",
        "$",
        "$$",
        "null",
        "~",
        ".nan",
        "1e999",
        "0x",
        "-1",
        "99999999999999999999",
        "\u{e9}",
        "\0",
        "\u{feff}",
        "\u{2028}",
        "? ",
        "../",
        "true",
        "  ",
        "\n========\n",
        "export A=",
        "\"x $A\"",
        "depends_on: ",
        "stores: ",
        "probes: [ { tcp: { port: 80 } } ]",
        "every: 5m",
        "cron: '* * * * *'",
    ],
    made,
    slowest: std::time::Duration::from_secs(20),
    ..FuzzTarget::new("definitions", open)
};

/// The longest message: a hundred problems with their snippets.
pub const LONGEST_BYTES: usize = 512 * 1024;

fn open() -> InputCheck {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good/mini-like/environments/x.yaml");
    let located = definition::locate_file(&case).expect("the case exists");
    let good = definition::read(&located).expect("the case reads");
    Box::new(move |input| {
        let [environment, compose, dotenv] = parts::<3>(input);
        let mut sources = DefinitionSources { dotenv: Some(SourceFile::new("compose/.env", dotenv)), ..good.clone() };
        // A valid part replaces a missing one, so that the other parts are still examined.
        if !environment.is_empty() {
            sources.environment = SourceFile::new("environments/x.yaml", environment);
        }
        if !compose.is_empty() {
            sources.compose = SourceFile::new("compose/x.yaml", compose);
        }
        match definition::load(&sources, &BTreeMap::new()) {
            Ok(loaded) => {
                assert!(loaded.resolved.is_object());
                "sound".to_owned()
            }
            Err(problems) => {
                let text = problems.render(Style::default());
                assert!(text.len() < LONGEST_BYTES, "{} bytes", text.len());
                check_problems(&problems)
            }
        }
    })
}

/// Checks that every problem has a place and a message.
pub fn check_problems(problems: &Diagnostics) -> String {
    assert!(problems.count() > 0);
    for problem in problems.iter() {
        assert!(problem.line > 0 && problem.column > 0 && !problem.message.is_empty(), "{problem:?}");
    }
    problems.iter().take(3).map(|problem| problem.message.split('`').step_by(2).collect::<String>()).collect()
}

fn made() -> Vec<Vec<u8>> {
    let environment = |text: String| text.into_bytes();
    let compose = |text: String| format!("{DIVIDER}{text}").into_bytes();
    let dotenv = |text: String| format!("{DIVIDER}{DIVIDER}{text}").into_bytes();
    let mut made = Vec::new();
    for depth in [41, 1_000, 100_000] {
        for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("!!seq [", "]"), ("[{", "}]")] {
            made.push(environment(format!("name: x\nsites:\n  {}{}", open.repeat(depth), close.repeat(depth))));
        }
    }
    made.push(compose((0..600).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect()));
    let [lists, merges, long] = alias_bombs();
    made.extend([environment(lists), compose(merges), compose(long)]);
    let largest = SOURCE_MAX_BYTES;
    made.push(environment("a".repeat(largest + 1)));
    made.push(environment("#".repeat(largest)));
    made.push(environment("\"".repeat(largest)));
    made.push(environment("a: b\n".repeat(largest / 5)));
    made.push(environment("- ".repeat(largest / 2)));
    made.push(environment(format!("name: {}", "${A:-".repeat(largest / 8))));
    made.push(environment(format!("name: '{}'", "$".repeat(largest / 2))));
    made.push(compose(format!("services:\n  shopping:\n    command: [{}]\n", "a, ".repeat(largest / 4))));
    made.push(compose((0..19_000).map(|number| format!("k{number}: 1\n")).collect()));
    let services: String =
        (0..6_000).map(|number| format!("  s{number}: {{ image: i, depends_on: [s{}] }}\n", number + 1)).collect();
    made.push(compose(format!("services:\n{services}")));
    let ports: String = (0..20_000).map(|number| format!("'{number}:80', ")).collect();
    made.push(compose(format!("services: {{ shopping: {{ image: i, ports: [{}] }} }}", &ports[..200_000])));
    made.push(dotenv("A=\"$A$A\"\n".repeat(20_000)));
    let doubling = (1..2_000).map(|level| format!("A{level}=$A{}$A{}\n", level - 1, level - 1));
    made.push(dotenv(["A0=xxxxxxxxxxxxxxxx\n".to_owned()].into_iter().chain(doubling).collect()));
    // Chains through one site, in the order that nests deepest: with the greatest accepted length, and longer.
    made.extend([490, 4_000].map(|count| chain(count).into_bytes()));
    made
}

/// Lists, merged mappings and texts that grow with each alias.
fn alias_bombs() -> [String; 3] {
    let mut lists = "name: x\nx-0: &l0 [x]\n".to_owned();
    let mut merges = "x-0: &m0 { k0: v }\n".to_owned();
    for level in 1..60 {
        let before = level - 1;
        lists += &format!("x-{level}: &l{level} [{}]\n", vec![format!("*l{before}"); 20].join(", "));
        merges += &format!(
            "x-{level}: &m{level} {{ <<: [*m{before}, *m{before}], a{level}: *m{before}, b{level}: *m{before} }}\n"
        );
    }
    let long = format!("x-a: &a {}\nservices: [{}]\n", "x".repeat(100_000), vec!["*a"; 10_000].join(", "));
    [lists + "sites: *l59\n", merges + "services: { shopping: *m59 }\n", long]
}

fn chain(count: usize) -> String {
    let services = (0..count).map(|number| format!("  s{number}: {{ image: i, depends_on: [s{}] }}\n", number + 1));
    let services: String = services.chain([format!("  s{count}: {{ image: i }}\n")]).collect();
    let names: Vec<String> = (0..=count).map(|number| format!("s{number}")).collect();
    format!(
        "name: x\nsites:\n  s0:\n    services: [{}]\n    entry: {{ service: s0, port: 80 }}\n    public: {{ port: 80 }}\n    ready: {{ probes: [ {{ tcp: {{ port: 80 }} }} ] }}\n{DIVIDER}services:\n{services}",
        names.join(", ")
    )
}
