//! The task folders of `examples/turkingbench`: what they score, and how they are checked before they are loaded.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arenad_evaluation::stored::{StoredTasks, TaskFolder};
use arenad_evaluators::turkingbench::{Baseline, Instance, baseline, evaluate};
use arenad_verdict::{Benchmark, Profile};
use serde_json::{Value, json};

/// The scores of an instance by the published rules: of the gold labels, and of the page as it is at the beginning.
type Scores = (f64, f64);

/// The scores of each HIT. Texts, radio buttons, checkboxes and lists that are filled with labels are right; exceptions are
/// explained where they stand.
const EXPECTED: [(&str, &[Scores]); 20] = [
    ("Boat Tags", &[(1.0, 0.0), (1.0, 0.0), (1.0, 1.0)]),
    ("Duck Count", &[(1.0, 0.0), (1.0, 0.0), (1.0, 0.0)]),
    ("Ferry Timetable", &[(1.0, 0.0), (1.0, 0.0)]),
    ("Harbour Name", &[(1.0, 0.0), (1.0, 0.0)]),
    // A range is right whatever its value is.
    ("Letter Mood", &[(1.0, 1.0), (1.0, 1.0)]),
    ("Lost Property", &[(1.0, 0.0), (1.0, 0.0)]),
    ("Museum Poster", &[(1.0, 0.0), (1.0, 0.0)]),
    ("Notice Summary", &[(1.0, 0.0), (1.0, 0.0)]),
    ("Optional Remark", &[(1.0, 0.0), (1.0, 0.0)]),
    ("Order Form", &[(1.0, 1.0), (1.0, 0.0)]),
    ("Parcel Size", &[(1.0, 1.0), (1.0, 0.0)]),
    ("Postcard Weather", &[(1.0, 0.0), (1.0, 0.0), (1.0, 1.0)]),
    ("Proverb Translation", &[(1.0, 0.0), (1.0, 0.0), (1.0, 0.0)]),
    // The page has one of two words of the label, whose `&amp;` is read as `&`.
    ("Raw Values", &[(1.0, 0.0), (1.0, 2.0 / 3.0)]),
    ("Résumé & Street (5 point)", &[(1.0, 0.0), (1.0, 0.0)]),
    // The fields exist only once the script has run, so none counts.
    ("Scripted Rating", &[(0.0, 0.0), (0.0, 0.0)]),
    ("Session Marker", &[(1.0, 0.0), (1.0, 0.0)]),
    // The code has no score for a date and a number.
    ("Shop Opening", &[(1.0 / 3.0, 0.0)]),
    ("Ticket Price", &[(1.0, 0.0), (1.0, 0.0)]),
    ("Two Signatures", &[(1.0, 0.0), (1.0, 0.0)]),
];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/turkingbench")
}

fn instances() -> impl Iterator<Item = (String, Instance, Scores)> {
    let tasks = StoredTasks::open(Benchmark::TurkingBench, &examples()).unwrap();
    EXPECTED.into_iter().flat_map(|(name, scores)| (0..).zip(scores).map(move |at| (name, at))).map(
        move |(name, (number, scores))| {
            let id = format!("{name}/{number}");
            let instance = Instance::read(&tasks.find(&id).unwrap()).unwrap();
            (id, instance, *scores)
        },
    )
}

fn arenad(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arenad"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ARENAD_")) {
        command.env_remove(name);
    }
    command.args(args).current_dir(folder).env("ARENAD_BENCHMARK_DATA", examples());
    command.env("ARENAD_STATE_DIR", folder.join("state")).output().unwrap()
}

#[test]
fn labels_are_right_wherever_the_code_allows_it() {
    for (id, instance, (oracle, nothing)) in instances() {
        for (how, expected) in [(Baseline::Oracle, oracle), (Baseline::DoNothing, nothing)] {
            let report = evaluate(&instance, &baseline(&instance, how), Profile::Compat);
            let score = report.score.unwrap();
            assert!(
                (score - expected).abs() < 1e-9,
                "{id} {how:?}: {score}, expected {expected}: {:#?}",
                report.checks
            );
        }
    }
}

/// The same fields as a browser submits them: unticked boxes are left out, and several values are a list.
#[test]
fn submitted_forms_score_as_the_page_that_they_were_sent_from() {
    for (id, instance, (oracle, nothing)) in instances() {
        for (how, expected) in [(Baseline::Oracle, oracle), (Baseline::DoNothing, nothing)] {
            let mut form = serde_json::Map::new();
            for field in baseline(&instance, how) {
                let values: Vec<String> = field.values.into_iter().flatten().collect();
                match values.as_slice() {
                    [] => {}
                    [only] => drop(form.insert(field.name, json!(only))),
                    several => drop(form.insert(field.name, json!(several))),
                }
            }
            let fields = instance.states(&json!({ "submitted": form }).to_string()).unwrap();
            let score = evaluate(&instance, &fields, Profile::Compat).score.unwrap();
            assert!((score - expected).abs() < 1e-9, "{id} {how:?}: {score}, expected {expected}");
        }
    }
}

#[test]
fn an_unticked_box_of_a_submitted_form_is_empty() {
    let (_, order, _) = instances().find(|(id, _, _)| id == "Order Form/1").unwrap();
    let form = json!({ "address": "9 Quay Street", "post": "cart" });
    let score = |answer: Value| {
        let fields = order.states(&answer.to_string()).unwrap();
        evaluate(&order, &fields, Profile::Compat).score.unwrap()
    };
    assert_eq!(score(json!({ "submitted": form })), 1.0);
    assert_eq!(score(json!({ "answers": form })), 2.0 / 3.0, "an answer leaves the ticked box as it was");
}

#[test]
fn results_of_turkle_have_lists_of_python() {
    let folder = tempfile::tempdir().unwrap();
    let csv = "\"Title\",\"Input.boat\",\"Answer.tags\",\"Turkle.Username\"\r\n\
               \"Boat Tags\",\"herring boat\",\"['sails', 'nets']\",\"\"\r\n\"Boat Tags\",\"ferry\",\"engine\",\"\"\r\n";
    std::fs::write(folder.path().join("results.csv"), csv).unwrap();
    let args = ["eval", "--benchmark", "turkingbench", "--results", "results.csv", "--json"];
    let batch: Value = serde_json::from_slice(&arenad(folder.path(), &args).stdout).unwrap();
    assert_eq!(batch["measures"]["compat"]["mean_of_fields"], 1.0, "{batch:#}");
}

#[test]
fn the_examples_can_be_loaded() {
    let found = TaskFolder::read_all(&[examples().join("tasks")]).unwrap();
    let hits: Vec<(&str, usize)> = found.iter().map(|task| (task.name.as_str(), task.hits)).collect();
    assert_eq!(hits, EXPECTED.map(|(name, scores)| (name, scores.len())));
    let price = found.iter().find(|task| task.name == "Ticket Price").unwrap();
    assert_eq!(price.input, "line,price,extra,sunday\n1,2.5, ,True\n2,3.1,with a dog,False\n");
    let poster = found.iter().find(|task| task.name == "Museum Poster").unwrap();
    assert!(poster.template.starts_with("<!--") && poster.input.contains("\"Sala de\nrelojes\""), "{poster:?}");
    assert!(
        poster.warnings[0].to_string().contains("load from scripts.example, styles.example"),
        "{:?}",
        poster.warnings
    );
}

#[test]
fn broken_folders_are_named_with_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let root = env!("CARGO_MANIFEST_DIR");
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("tasks/No Column/template.html", "<p>\n${town}</p><input name=a>");
    write("tasks/No Column/batch.csv", "city,Answer.a\nx,y\n");
    write("tasks/Open Quote/template.html", "<input name=a>");
    write("tasks/Open Quote/batch.csv", "city,Answer.a\n\"x,y\n");
    let load = ["turkle", "load", "tasks", "--root", root];
    let refused = arenad(folder.path(), &load);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    for expected in [
        "the folders have 2 problems",
        "tasks/No Column/template.html:2:1: the placeholder `town` has no column in batch.csv",
        "tasks/Open Quote/batch.csv:2:1: the quotes of this cell are never closed",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }

    let tasks = examples().join("tasks");
    let check =
        arenad(folder.path(), &["turkle", "load", tasks.to_str().unwrap(), "--check", "--json", "--root", root]);
    let checked: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!((checked["tasks"].as_array().unwrap().len(), &checked["operations"]), (20, &json!([])));
    let stranger = arenad(folder.path(), &[&load[..], &["--workers", "worker,nobody"]].concat());
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(said.contains("no account with the username `nobody`") && said.contains("worker2"), "{said}");
    let other = arenad(folder.path(), &[&load[..], &["--site", "reddit"]].concat());
    assert!(String::from_utf8_lossy(&other.stderr).contains("no configuration step of mini/reddit has an `input`"));
}

#[test]
fn episodes_are_judged_for_these_benchmarks_alone() {
    let folder = tempfile::tempdir().unwrap();
    let other = arenad(folder.path(), &["eval", "--benchmark", "webarena", "--episode", "e"]);
    assert_eq!(other.status.code(), Some(2));
    let refusal = "--episode judges tasks of webcanvas and turkingbench, not of webarena";
    assert!(String::from_utf8_lossy(&other.stderr).contains(refusal), "{other:?}");
    let unknown = ["eval", "--benchmark", "turkingbench", "--episode", "e", "--task", "Boat Tags/9"];
    let unknown = arenad(folder.path(), &unknown);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("Boat Tags/0 to Boat Tags/2"), "{unknown:?}");
}
