//! WebCanvas, TurkingBench and Mind2Web, judged by the command from files.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

fn arenad(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arenad"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ARENAD_")) {
        command.env_remove(name);
    }
    command.args(args).current_dir(folder).env("ARENAD_BENCHMARK_DATA", folder.join("data"));
    command.env("ARENAD_STATE_DIR", folder.join("state")).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn write(folder: &TempDir, path: &str, content: &str) {
    let path = folder.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn webcanvas() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let node = |function: &str, content: Value| json!({ "match_function_name": function, "content": content });
    let url = |function: &str, reference: &str| {
        node(function, json!({ "key": "", "reference_answer": reference, "url": "https://www.mini.example/" }))
    };
    let mut path = node(
        "element_path_exactly_match",
        json!({ "reference_answer": "#q ", "netloc": "mini", "url": "https://www.mini.example/" }),
    );
    path["method"] = json!("selector");
    let tasks = json!([
        { "index": 0, "task": "Find shoes", "reference_task_length": 3, "evaluation": [path, url("url_included_match", "/shoes")] },
        { "index": 1, "task": "Find a town", "reference_task_length": 2, "evaluation": [url("url_semantic_match", "Decide whether it is a town")] },
        { "index": 2, "task": "Never", "reference_task_length": 2, "evaluation": [url("url_included_match", "/item?x"), url("url_foo_match", "x")] },
    ]);
    write(&folder, "data/webcanvas/tasks.json", &tasks.to_string());
    let page = "<form><label><span id=w>Search</span><input id=q></label></form>";
    let run = json!({
        "task": 0, "declared_done": true, "cost_usd": 0.5,
        "steps": [
            { "url": "https://www.mini.example/", "html": page, "selector": "#q", "element_value": "shoes" },
            { "url": "https://www.mini.example/list" },
        ],
        "after": { "url": "https://www.mini.example/shoes" },
    });
    write(&folder, "runs/a.json", &run.to_string());
    write(
        &folder,
        "runs/b.json",
        &json!({ "task": 1, "steps": [{ "url": "https://www.mini.example/paris" }] }).to_string(),
    );
    write(&folder, "runs/out.json", "[]");
    folder
}

#[test]
fn trajectories_are_judged_by_key_nodes() {
    let folder = webcanvas();
    let batch = json(&arenad(
        folder.path(),
        &["eval", "--benchmark", "webcanvas", "--results", "runs", "--profile", "both", "--evidence", "seen", "--json"],
    ));
    let verdicts = |batch: &Value, result: usize| -> Vec<String> {
        let reports = batch["results"][result]["evaluated"]["reports"].as_array().unwrap().clone();
        reports.iter().map(|report| report["verdict"].as_str().unwrap().to_owned()).collect()
    };
    // Only strict looks at the state after the last action.
    assert_eq!(verdicts(&batch, 0), ["failed", "passed"]);
    assert_eq!(verdicts(&batch, 1), ["needs_judge", "needs_judge"]);
    assert_eq!(batch["results"][0]["evaluated"]["reports"][0]["score"], 0.5);
    let measures = &batch["measures"]["compat"];
    assert_eq!(measures["key_node_completion_rate"], 1.0 / 3.0);
    assert_eq!(measures["usd_efficiency_score"], 0.5);
    assert_eq!(batch["measures"]["strict"]["task_success_rate"], 0.5);

    // The same verdicts follow from the evidence, without the tasks.
    let again = json(&arenad(
        folder.path(),
        &["eval", "--benchmark", "webcanvas", "--from", "seen", "--profile", "both", "--json"],
    ));
    assert_eq!(again["measures"], batch["measures"]);
    assert_eq!([verdicts(&again, 0), verdicts(&again, 1)], [verdicts(&batch, 0), verdicts(&batch, 1)]);

    // A recorded judge decides the open node.
    let reply = json!({
        "about": { "rule": { "rule": "Decide whether it is a town", "answer": "https://www.mini.example/paris", "strict": false } },
        "reply": "```0.855```, a town",
    });
    write(&folder, "replies.jsonl", &reply.to_string());
    let args = [
        "eval",
        "--benchmark",
        "webcanvas",
        "--task",
        "1",
        "--answer-file",
        "runs/b.json",
        "--judge",
        "recorded:replies.jsonl",
        "--json",
    ];
    let judged = arenad(folder.path(), &args);
    assert_eq!(judged.status.code(), Some(5));
    let check = &json(&judged)["reports"][0]["checks"][0];
    assert!(check["reason"].as_str().unwrap().contains("0.85"), "{check}");
}

#[test]
fn key_nodes_are_listed_and_linted() {
    let folder = webcanvas();
    let listed = json(&arenad(folder.path(), &["tasks", "ls", "--benchmark", "webcanvas", "--json"]));
    assert_eq!(listed[0], json!({ "id": "0", "size": "2 key nodes", "intent": "Find shoes" }));
    let shown = json(&arenad(folder.path(), &["tasks", "show", "1", "--benchmark", "webcanvas"]));
    assert_eq!(shown["task"], "Find a town");
    let linted = arenad(folder.path(), &["tasks", "lint", "--benchmark", "webcanvas", "--json"]);
    assert_eq!(linted.status.code(), Some(2));
    let kinds: Vec<String> =
        json(&linted).as_array().unwrap().iter().map(|problem| problem["kind"].as_str().unwrap().to_owned()).collect();
    for kind in ["unreachable", "unknown_function", "own_url"] {
        assert!(kinds.iter().any(|own| own == kind), "{kind} in {kinds:?}");
    }
    let unknown = arenad(folder.path(), &["eval", "--benchmark", "webcanvas", "--task", "9", "--answer", "{}"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no task 9: it has 3 tasks, 0 to 2"));
}

fn turkingbench() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let template = "<p>${photo}</p><input name=city value=''><select name=size><option>small</option><option>big</option></select>\
                    <input type=checkbox name=tags value=a><input type=checkbox name=tags value=b>\
                    <input type=range name=mood value=50><input type=hidden name=ip value=1>";
    let csv = "photo,Answer.city,Answer.size,Answer.tags,Answer.mood,Answer.ip\n\
               \"a\nphoto\",Paris,small,a|b,50,1\n\"a\nphoto\",Paris France,big,a,100,1\nMünchen,Munich,big,,10,1\n";
    write(&folder, "data/turkingbench/tasks/City of a photo/template.html", template);
    write(&folder, "data/turkingbench/tasks/City of a photo/batch.csv", csv);
    let answers = [
        json!({ "task": "City of a photo", "instance": 0, "answers": { "city": "paris", "size": "small", "tags": ["b"], "mood": "75" } }),
        json!({ "task": "City of a photo", "instance": 1, "answers": { "city": "Munich", "size": "big" } }),
    ];
    write(&folder, "answers.jsonl", &answers.map(|answer| answer.to_string()).join("\n"));
    let turkle = "Title,Input.photo,Answer.city,Answer.size,Answer.tags,Answer.mood\n\
                  City of a photo,München,Munich,big,,10\n";
    write(&folder, "turkle.csv", turkle);
    folder
}

#[test]
fn forms_are_scored_field_by_field() {
    let folder = turkingbench();
    let args = ["eval", "--benchmark", "turkingbench", "--results", "answers.jsonl", "--profile", "both", "--json"];
    let batch = json(&arenad(folder.path(), &args));
    let report = |result: usize, profile: usize| batch["results"][result]["evaluated"]["reports"][profile].clone();
    // A tie goes to the label that comes first, and sets are all or nothing.
    let compat = report(0, 0);
    let found: Vec<(&str, &str)> = compat["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| (check["name"].as_str().unwrap(), check["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [("city", "passed"), ("size", "passed"), ("tags", "failed"), ("mood", "passed")]);
    assert_eq!(compat["score"], 0.75);
    // The overlap of {b} with {a, b} is a half, and the range is 25 away from labels of at most 100.
    assert_eq!(report(0, 1)["score"], (1.0 + 1.0 + 0.5 + 0.75) / 4.0);
    let tasks = &batch["measures"]["compat"]["tasks"]["City of a photo"];
    assert_eq!(tasks["checkbox"], 0.5, "the empty set of the second instance is right: {tasks}");

    let turkle = ["eval", "--benchmark", "turkingbench", "--results", "turkle.csv", "--json"];
    let batch = json(&arenad(folder.path(), &turkle));
    assert_eq!(batch["results"][0]["evaluated"]["task"], "City of a photo/1");
    assert_eq!(batch["results"][0]["evaluated"]["reports"][0]["verdict"], "passed");
}

#[test]
fn tasks_of_forms_are_listed_and_shown() {
    let folder = turkingbench();
    let listed = json(&arenad(folder.path(), &["tasks", "ls", "--benchmark", "turkingbench", "--json"]));
    assert_eq!(listed[0]["size"], "2 instances, 5 fields");
    let shown = json(&arenad(folder.path(), &["tasks", "show", "City of a photo/0", "--benchmark", "turkingbench"]));
    assert_eq!(shown["input"], json!([["photo", "a\nphoto"]]));
    assert_eq!(shown["labels"]["mood"], json!([50, 100]));
    let linted = arenad(folder.path(), &["tasks", "lint", "--benchmark", "turkingbench"]);
    assert_eq!(linted.status.code(), Some(0), "{}", String::from_utf8_lossy(&linted.stdout));
}

fn mind2web() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let candidate =
        |id: &str, rank: u64| json!({ "tag": "a", "attributes": "{}", "backend_node_id": id, "rank": rank });
    let action = |uid: &str, op: &str, value: &str, positive: Value| {
        json!({
            "action_uid": uid, "operation": { "op": op, "original_op": op, "value": value }, "cleaned_html": "<html/>",
            "pos_candidates": positive, "neg_candidates": [candidate("8", 1), candidate("9", 2)],
        })
    };
    let task = |id: &str, actions: Value| {
        json!({
            "annotation_id": id, "website": "air", "domain": "Travel", "subdomain": "Airlines",
            "confirmed_task": "Fly", "action_reprs": [], "actions": actions,
        })
    };
    let right = json!([candidate("7", 0)]);
    let tasks = json!([
        task("t1", json!([action("u1", "CLICK", "", right.clone()), action("u2", "TYPE", "new york", right.clone())])),
        task("t2", json!([action("u3", "SELECT", "2", right), action("u4", "CLICK", "", json!([]))])),
    ]);
    write(&folder, "data/mind2web/test_task/test_task_0.json", &tasks.to_string());
    let predictions = json!([
        ["t1_u1", "7", "CLICK "],
        ["t1_u2", "7", "TYPE york new"],
        ["t2_u3", "8", "SELECT 2"],
        ["t2_u4", "", ""],
    ]);
    write(&folder, "out/test_task_predictions_top50.json", &predictions.to_string());
    folder
}

#[test]
fn predictions_are_judged_step_by_step() {
    let folder = mind2web();
    let args = ["eval", "--benchmark", "mind2web", "--results", "out", "--profile", "both", "--json"];
    let batch = json(&arenad(folder.path(), &args));
    let compat = &batch["measures"]["compat"];
    assert_eq!([&compat["element_acc"], &compat["step_acc"]], [0.5, 0.5]);
    assert_eq!(compat["action_f1"], 0.75);
    // The last step has no right element, so that the published macro measures lack it.
    assert_eq!(compat["marco_action_f1"], 1.0);
    assert_eq!(compat["macro_over_all_steps"]["action_f1"], 0.75);
    assert_eq!(compat["error_ratio"], json!({ "0": 0.5, "1": 0.5 }));
    assert_eq!(compat["candidates"]["recall@5"], 0.75);
    // `york new` is not what was typed, and the step without an element is not counted.
    let strict = &batch["measures"]["strict"];
    assert_eq!((&strict["steps"], &strict["task_success"]), (&json!(3.0), &json!(0.0)));
    let linted = json(&arenad(folder.path(), &["tasks", "lint", "--benchmark", "mind2web", "--json"]));
    assert_eq!(linted.as_array().unwrap().len(), 1);
    assert_eq!(linted[0]["kind"], "no_element");
}
