//! Definitions that nobody would write: whatever the bytes, the answer comes soon, is bounded, and is no panic.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use arenad::definition::{self, SourceFile, Sources, Style};
use proptest::prelude::*;

/// What one definition may take in an unoptimised build on a busy machine. The bound catches what grows faster than the
/// input, not what is merely slow.
const SLOWEST: Duration = Duration::from_secs(10);

/// The longest answer: a hundred problems with their snippets.
const LONGEST_BYTES: usize = 512 * 1024;

fn good() -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good/mini-like");
    let located = definition::locate_file(&root.join("environments/x.yaml")).expect("the case exists");
    definition::read(&located).expect("the case reads")
}

fn survives(sources: &Sources) {
    let started = Instant::now();
    match definition::load(sources, &BTreeMap::new()) {
        Ok(loaded) => assert!(loaded.resolved.is_object()),
        Err(diagnostics) => {
            assert!(diagnostics.count() > 0);
            let text = diagnostics.render(Style::default());
            assert!(text.len() < LONGEST_BYTES, "{} bytes", text.len());
            for problem in diagnostics.iter() {
                assert!(problem.line > 0 && problem.column > 0 && !problem.message.is_empty(), "{problem:?}");
            }
        }
    }
    assert!(started.elapsed() < SLOWEST, "{:?}", started.elapsed());
}

fn with_environment(text: impl Into<String>) -> Sources {
    let mut sources = good();
    sources.environment = SourceFile::new("environments/x.yaml", text);
    sources
}

fn with_compose(text: impl Into<String>) -> Sources {
    let mut sources = good();
    sources.compose = SourceFile::new("compose/x.yaml", text);
    sources
}

/// One change of a text.
#[derive(Debug, Clone)]
enum Mutation {
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Insert(prop::sample::Index, String),
    SwapLines(prop::sample::Index, prop::sample::Index),
    Indent(prop::sample::Index, usize),
}

/// What breaks YAML, Compose and arenad best.
const FRAGMENTS: [&str; 42] = [
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
    "é",
    "\u{0}",
    "\u{feff}",
    "\u{2028}",
    "? ",
    "../",
    "true",
    "  ",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), 1..40_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        (index(), 1..60_usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        (index(), prop::sample::select(&FRAGMENTS[..])).prop_map(|(at, text)| Mutation::Insert(at, text.to_owned())),
        (index(), ".{0,6}").prop_map(|(at, text)| Mutation::Insert(at, text)),
        (index(), index()).prop_map(|(a, b)| Mutation::SwapLines(a, b)),
        (index(), 0..12_usize).prop_map(|(at, width)| Mutation::Indent(at, width)),
    ]
}

fn mutate(text: &str, mutations: &[Mutation]) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for mutation in mutations {
        let length = characters.len().max(1);
        match mutation {
            Mutation::Remove(at, count) => {
                let start = at.index(length).min(characters.len());
                let end = (start + count).min(characters.len());
                characters.drain(start..end);
            }
            Mutation::Repeat(at, count) => {
                let start = at.index(length).min(characters.len());
                let end = (start + count).min(characters.len());
                let piece: Vec<char> = characters[start..end].to_vec();
                characters.splice(start..start, piece);
            }
            Mutation::Insert(at, text) => {
                let start = at.index(length).min(characters.len());
                characters.splice(start..start, text.chars());
            }
            Mutation::SwapLines(a, b) => {
                let text: String = characters.iter().collect();
                let mut lines: Vec<&str> = text.split('\n').collect();
                let count = lines.len();
                lines.swap(a.index(count), b.index(count));
                characters = lines.join("\n").chars().collect();
            }
            Mutation::Indent(at, width) => {
                let text: String = characters.iter().collect();
                let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
                let line = at.index(lines.len());
                lines[line] = " ".repeat(*width) + lines[line].trim_start();
                characters = lines.join("\n").chars().collect();
            }
        }
    }
    characters.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_definitions_are_answered(
        environment in prop::collection::vec(mutation(), 0..6),
        compose in prop::collection::vec(mutation(), 0..6),
        dotenv in prop::collection::vec(mutation(), 0..4),
    ) {
        let mut sources = good();
        sources.environment.text = mutate(&sources.environment.text, &environment);
        sources.compose.text = mutate(&sources.compose.text, &compose);
        let text = "# variables\nA=1\nexport B=\"x $A\"\nC='d'\nSHOP_PASSWORD=${A:-b}\n";
        sources.dotenv = Some(SourceFile::new("compose/.env", mutate(text, &dotenv)));
        survives(&sources);
    }

    #[test]
    fn random_text_is_answered(text in "\\PC{0,300}") {
        survives(&with_environment(text.clone()));
        survives(&with_compose(text));
    }

    #[test]
    fn random_yaml_like_text_is_answered(pieces in prop::collection::vec(prop::sample::select(&FRAGMENTS[..]), 0..80)) {
        let text = pieces.concat();
        survives(&with_environment(format!("name: x\nsites: {text}")));
        survives(&with_compose(text));
    }

    #[test]
    fn random_bytes_in_files_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let folder = tempfile::tempdir().expect("a folder");
        for part in ["environments", "compose"] {
            fs::create_dir(folder.path().join(part)).expect("make a folder");
        }
        let file = folder.path().join("environments/x.yaml");
        fs::write(&file, &bytes).expect("write a file");
        fs::write(folder.path().join("compose/x.yaml"), &bytes).expect("write a file");
        fs::write(folder.path().join("compose/.env"), &bytes).expect("write a file");
        let located = definition::locate_file(&file).expect("it is there");
        if let Ok(sources) = definition::read(&located) {
            survives(&sources);
        }
    }
}

#[test]
fn deep_nesting_is_answered() {
    for depth in [41, 1_000, 100_000] {
        for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("!!seq [", "]"), ("[{", "}]")] {
            survives(&with_environment(format!("name: x\nsites:\n  {}{}", open.repeat(depth), close.repeat(depth))));
        }
    }
    let mut steps = String::new();
    for depth in 0..600 {
        steps += &format!("{}a:\n", " ".repeat(depth));
    }
    survives(&with_compose(steps));
}

#[test]
fn alias_bombs_are_answered() {
    let mut lists = "name: x\nx-0: &l0 [x]\n".to_owned();
    let mut merges = "x-0: &m0 { k0: v }\n".to_owned();
    for level in 1..60 {
        let before = level - 1;
        lists += &format!("x-{level}: &l{level} [{}]\n", vec![format!("*l{before}"); 20].join(", "));
        merges += &format!(
            "x-{level}: &m{level} {{ <<: [*m{before}, *m{before}], a{level}: *m{before}, b{level}: *m{before} }}\n"
        );
    }
    survives(&with_environment(lists + "sites: *l59\n"));
    survives(&with_compose(merges + "services: { shopping: *m59 }\n"));
    let long = format!("x-a: &a {}\nservices: [{}]\n", "x".repeat(100_000), vec!["*a"; 10_000].join(", "));
    survives(&with_compose(long));
}

#[test]
fn huge_files_are_answered() {
    let largest = definition::SOURCE_MAX_BYTES;
    survives(&with_environment("a".repeat(largest + 1)));
    survives(&with_environment("#".repeat(largest)));
    survives(&with_environment("\"".repeat(largest)));
    survives(&with_environment("a: b\n".repeat(largest / 5)));
    survives(&with_environment("- ".repeat(largest / 2)));
    survives(&with_compose(format!("services:\n  shopping:\n    command: [{}]\n", "a, ".repeat(largest / 4))));
    let unknown: String = (0..largest / 12).map(|number| format!("k{number}: 1\n")).take(19_000).collect();
    survives(&with_compose(unknown));
    let services: String =
        (0..6_000).map(|number| format!("  s{number}: {{ image: i, depends_on: [s{}] }}\n", number + 1)).collect();
    survives(&with_compose(format!("services:\n{services}")));
    let ports: String = (0..20_000).map(|number| format!("'{number}:80', ")).collect();
    survives(&with_compose(format!("services: {{ shopping: {{ image: i, ports: [{}] }} }}", &ports[..200_000])));
    survives(&with_environment(format!("name: {}", "${A:-".repeat(largest / 8))));
    survives(&with_environment(format!("name: '{}'", "$".repeat(largest / 2))));
    let mut sources = good();
    sources.dotenv = Some(SourceFile::new("compose/.env", "A=\"$A$A\"\n".repeat(20_000)));
    survives(&sources);
    let mut doubling = "A0=xxxxxxxxxxxxxxxx\n".to_owned();
    for level in 1..2_000 {
        doubling += &format!("A{level}=$A{}$A{}\n", level - 1, level - 1);
    }
    sources.dotenv = Some(SourceFile::new("compose/.env", doubling));
    survives(&sources);
    sources.dotenv = None;
    sources.environment.text =
        sources.environment.text.replace("ready for connections$$", &"(a{1,1000}){1,1000}".repeat(3));
    survives(&sources);
}

#[test]
fn long_chains_of_dependencies_are_answered_with_a_stack_to_spare() {
    // A chain through one site, in the order that nests deepest; as long as is accepted, and longer.
    for count in [490, 4_000] {
        survives(&chain(count));
    }
}

fn chain(count: usize) -> Sources {
    let mut services = String::new();
    for number in 0..count {
        services += &format!("  s{number}: {{ image: i, depends_on: [s{}] }}\n", number + 1);
    }
    services += &format!("  s{count}: {{ image: i }}\n");
    let names: Vec<String> = (0..=count).map(|number| format!("s{number}")).collect();
    let environment = format!(
        "name: x\nsites:\n  s0:\n    services: [{}]\n    entry: {{ service: s0, port: 80 }}\n    public: {{ port: 80 }}\n    ready: {{ probes: [ {{ tcp: {{ port: 80 }} }} ] }}\n",
        names.join(", ")
    );
    let mut sources = with_compose(format!("services:\n{services}"));
    sources.environment = SourceFile::new("environments/x.yaml", environment);
    sources
}
