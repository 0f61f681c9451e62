//! Folders of results, judged without a running site.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The folder in which `tests/fixtures/results/make.py` has put its results.
fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results")
}

/// Returns a folder without a daemon and definitions.
fn nowhere() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let url = |id: u32, reference: &str| {
        json!({
            "task_id": id, "sites": ["shopping"], "start_url": "__SHOPPING__", "intent": "Find it",
            "eval": { "eval_types": ["url_match"], "reference_url": reference, "url_note": "GOLD in PRED" },
        })
    };
    let said = |id: u32, rule: Value| {
        json!({
            "task_id": id, "sites": ["shopping"], "start_url": "__SHOPPING__", "intent": "Name it", "intent_template_id": 1,
            "eval": { "eval_types": ["string_match"], "reference_answers": rule, "string_note": "there is none" },
        })
    };
    let tasks = json!([
        said(1, json!({ "exact_match": "Blue mug" })),
        url(2, "__SHOPPING__/mugs/81"),
        said(3, json!({ "fuzzy_match": "N/A" })),
        said(4, json!({ "exact_match": "x" })),
    ]);
    std::fs::write(folder.path().join("tasks.json"), tasks.to_string()).unwrap();
    folder
}

fn eval(folder: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arenad"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ARENAD_")) {
        command.env_remove(name);
    }
    command.arg("eval").args(args).current_dir(folder.path());
    command.env("ARENAD_STATE_DIR", folder.path().join("state")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns folder, task, verdicts and recorded score of each result that could be judged.
fn verdicts(batch: &Value) -> Vec<(String, String, Vec<String>, Option<f64>)> {
    let judged = batch["results"].as_array().unwrap().iter().filter(|result| result["evaluated"].is_object());
    let of = |result: &Value| {
        let path = PathBuf::from(result["path"].as_str().unwrap());
        let place = path.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
        let reports = result["evaluated"]["reports"].as_array().unwrap();
        let verdicts = reports.iter().map(|report| report["verdict"].as_str().unwrap().to_owned()).collect();
        (place, result["evaluated"]["task"].as_str().unwrap().to_owned(), verdicts, result["recorded"].as_f64())
    };
    judged.map(of).collect()
}

#[test]
fn results_of_each_harness_are_judged_and_a_broken_one_is_named() {
    let folder = nowhere();
    let results = results();
    let args =
        ["--results", results.to_str().unwrap(), "--tasks", "tasks.json", "--site", "SHOPPING=http://shopping.test"];
    let output = eval(&folder, &[&args[..], &["--profile", "both", "--json", "--evidence", "seen"]].concat());
    assert_eq!(output.status.code(), Some(1), "one result was cut off: {}", text(&output.stderr));
    let batch: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |place: &str, task: &str, verdicts: [&str; 2], recorded: Option<f64>| {
        (place.to_owned(), task.to_owned(), verdicts.map(str::to_owned).to_vec(), recorded)
    };
    let expected = [
        row("rendered", "1", ["failed", "failed"], None),
        // The published rule finds /mugs/81 in /mugs/8137.
        row("rendered", "2", ["passed", "failed"], None),
        row("study", "1", ["passed", "passed"], Some(1.0)),
        // The published rule accepts an agent that gives up.
        row("study", "3", ["passed", "failed"], Some(0.0)),
        row("study", "2", ["passed", "passed"], Some(1.0)),
    ];
    assert_eq!(verdicts(&batch), expected);
    let broken = batch["results"].as_array().unwrap().iter().find(|result| result["error"].is_string()).unwrap();
    let said = broken["error"].as_str().unwrap();
    assert!(said.contains("on_webarena.4_7") && said.contains("cut off"), "{said}");
    assert_eq!(batch["summary"]["results"], 6);
    assert_eq!(batch["summary"]["unreadable"], 1);
    assert_eq!(batch["summary"]["sites"]["shopping"]["strict"]["passed"], 2);
    let strict = &batch["summary"]["profiles"]["strict"];
    assert_eq!((&strict["total"], &strict["unreadable"]), (&json!(6), &json!(1)));
    assert!(strict["success_rate"].as_f64().is_some_and(|rate| (rate - 2.0 / 6.0).abs() < 1e-9), "{strict}");

    // The table is on standard output, and errors are separate from it.
    let output = eval(&folder, &args);
    let table = text(&output.stdout);
    assert!(
        table.contains("RECORDED") && table.contains("compat: 4 of 6 passed (66.7 %), 1 failed, 1 could not be judged"),
        "{table}"
    );
    assert!(text(&output.stderr).contains("on_webarena.4_7"), "{}", text(&output.stderr));

    // The recorded observations are judged again without the results.
    let output = eval(&folder, &["--from", "seen", "--json", "--profile", "strict"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    let again: Vec<_> =
        verdicts(&again).into_iter().map(|(_, task, verdicts, _)| (task, verdicts[0].clone())).collect();
    assert_eq!(again.len(), 5, "{again:?}");
    assert!(again.contains(&("3".to_owned(), "failed".to_owned())), "{again:?}");
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let folder = nowhere();
    let says = |args: &[&str], code: i32, expected: &[&str]| {
        let output = eval(&folder, args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        for part in expected {
            assert!(said.contains(part), "{args:?}: no {part:?} in {said}");
        }
    };
    says(
        &["--benchmark", "webarena", "--task", "1"],
        2,
        &["the location of the tasks of webarena is unknown", "--tasks"],
    );
    says(&["--benchmark", "webarena", "--task", "9", "--tasks", "tasks.json"], 2, &["has no task 9", "1 to 4"]);
    says(&["--benchmark", "webarean", "--task", "9"], 2, &["expected webarena, visualwebarena, webarena-verified"]);
    says(&["--benchmark", "webarena", "--task", "1", "--tasks", "tasks.json"], 2, &["__SHOPPING__", "--site"]);
    says(&["--results", "none"], 2, &["none"]);
    says(&["--results", "."], 2, &["contains no results", "render_NUMBER.html"]);
    says(&["--from", "tasks.json"], 1, &["tasks.json is not evidence that arenad has written"]);
    let site =
        ["--tasks", "tasks.json", "--site", "SHOPPING=http://shopping.test", "--benchmark", "webarena", "--task", "1"];
    says(&[&site[..], &["--judge", "gpt"]].concat(), 2, &["unknown judge", "recorded:FILE"]);
    says(&[&site[..], &["--judge", "http://localhost:1/v1"]].concat(), 2, &["--judge-model"]);
    says(&[&site[..], &["--judge", "recorded:none.jsonl"]].concat(), 1, &["none.jsonl"]);
}

/// Recorded replies decide checks that depend on meaning; without a judge these checks stay open and can be judged
/// later.
#[test]
fn a_judge_can_be_asked_later() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, value: Value| std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    write(
        "tasks.json",
        json!([{
            "task_id": 1, "sites": ["map"], "start_url": "", "intent": "Which?",
            "eval": { "eval_types": ["string_match"], "reference_answers": { "fuzzy_match": ["the blue one"] } },
        }]),
    );
    let args = [
        "--benchmark",
        "webarena",
        "--tasks",
        "tasks.json",
        "--task",
        "1",
        "--answer",
        "blue",
        "--evidence",
        "seen.json",
    ];
    let output = eval(&folder, &args);
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("needs_judge"), "{}", text(&output.stdout));
    write(
        "replies.jsonl",
        json!({
            "about": { "comparison": { "kind": "answer", "wording": "webarena", "intent": "Which?", "reference": "the blue one", "answer": "blue" } },
            "reply": "That is correct.",
        }),
    );
    let output = eval(&folder, &["--from", "seen.json", "--judge", "recorded:replies.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// The two runs included in WebArena-Verified get the verdicts included with them.
#[test]
#[ignore = "reads the benchmark's runs: set ARENAD_BENCHMARK_DATA"]
fn recorded_runs_have_their_verdicts() {
    let data = PathBuf::from(std::env::var_os("ARENAD_BENCHMARK_DATA").unwrap());
    let folder = tempfile::tempdir().unwrap();
    let runs = data.join("webarena-verified/runs");
    let args = ["--results", runs.to_str().unwrap(), "--tasks", data.to_str().unwrap(), "--profile", "both", "--json"];
    let output = eval(&folder, &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let batch: Value = serde_json::from_slice(&output.stdout).unwrap();
    let judged = verdicts(&batch);
    assert_eq!(judged.len(), 2);
    for (_, task, verdicts, recorded) in judged {
        let expected = if recorded == Some(1.0) { "passed" } else { "failed" };
        assert!(
            recorded.is_some() && verdicts.iter().all(|verdict| verdict == expected),
            "{task}: {verdicts:?} {recorded:?}"
        );
    }
}

/// Every task of the benchmark's file is written, each as the benchmark's own script writes it.
#[test]
#[ignore = "reads the benchmark's task file: set ARENAD_BENCHMARK_DATA"]
fn all_tasks_are_rendered() {
    let data = std::env::var("ARENAD_BENCHMARK_DATA").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let names = ["SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "MAP", "WIKIPEDIA"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_arenad"));
    command.args(["tasks", "render", "--tasks", &data, "--out", "config_files"]).current_dir(folder.path());
    command.args(
        names.iter().flat_map(|name| ["--site".to_owned(), format!("{name}=http://{}.test", name.to_lowercase())]),
    );
    let output = command.env("ARENAD_STATE_DIR", folder.path().join("state")).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    let file = |name: &str| std::fs::read_to_string(folder.path().join("config_files").join(name)).unwrap();
    let raw = std::fs::read_to_string(Path::new(&data).join("webarena/test.raw.json")).unwrap();
    let replaced = names
        .iter()
        .fold(raw, |text, name| text.replace(&format!("__{name}__"), &format!("http://{}.test", name.to_lowercase())));
    assert!(file("test.json") == replaced, "the whole text, replaced");
    let all: Vec<Value> = serde_json::from_str(&replaced).unwrap();
    for (index, task) in all.iter().enumerate() {
        assert_eq!(serde_json::from_str::<Value>(&file(&format!("{index}.json"))).unwrap(), *task);
    }
    assert_eq!(all.len(), 812);
}
