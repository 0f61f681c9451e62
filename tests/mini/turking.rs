//! TurkingBench on the real Turkle: task folders are loaded, done in an episode, judged, and still there after a reset.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenad_evaluation::stored::StoredTasks;
use arenad_evaluators::turkingbench::{Baseline, FieldState, Instance, baseline, evaluate};
use arenad_verdict::{Benchmark, Profile};
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::tasks::crowd;
use crate::tasks::visitor::{PageForm, TaskVisitor};

/// The token of the administrator for the REST API.
const TOKEN: &str = "Authorization: Token larkmoorlarkmoorlarkmoorlarkmoorlarkmoor";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/turkingbench")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// A visitor without an account.
fn visitor(origin: &str) -> TaskVisitor {
    TaskVisitor::new(String::leak(origin.trim_end_matches('/').to_owned()), &[])
}

/// Loads folders, and returns which of them were unchanged.
fn load(arena: &Arena, folder: &Path, further: &[&str]) -> BTreeMap<String, bool> {
    let args = [&["turkle", "load", text(folder), "--json"], further].concat();
    let loaded = arena.json(&args);
    assert_eq!(loaded["operations"][0]["state"], "done", "{loaded:#}");
    let tasks = loaded["tasks"].as_array().expect("tasks").iter();
    tasks.map(|task| (task["name"].as_str().expect("a name").to_owned(), task["unchanged"] == true)).collect()
}

/// The snapshot from which the site was made.
fn snapshot(arena: &Arena) -> Value {
    arena.json(&["status", "turkle", "--json"])["environments"][0]["sites"][0]["snapshot"].clone()
}

/// Fills a form as a person does who leaves out fields that are not displayed.
fn filled(mut form: PageForm, fields: &[FieldState]) -> PageForm {
    for field in fields.iter().filter(|field| field.displayed) {
        let values: Vec<&str> = field.values.iter().flatten().map(String::as_str).collect();
        form = match (field.kind.as_str(), values.as_slice()) {
            ("checkbox", ticked) => {
                ticked.iter().fold(form.untick(&field.name), |form, value| form.tick(&field.name, value))
            }
            (_, []) => form,
            (_, [first, ..]) => form.set(&field.name, first),
        };
    }
    form
}

/// Submits the labels of every HIT of every task, and returns the expected scores by instance.
async fn do_everything(origin: &str, tasks: &StoredTasks) -> BTreeMap<String, f64> {
    let visitor = visitor(origin);
    let published = visitor.json("/get_tasks/").await;
    let mut scores = BTreeMap::new();
    for line in tasks.lines() {
        let hits = published[&line.id].as_array().unwrap_or_else(|| panic!("{} is published", line.id));
        for (number, hit) in hits.iter().enumerate() {
            let id = format!("{}/{number}", line.id);
            let instance = Instance::read(&tasks.find(&id).expect("a task")).expect("an instance");
            let oracle = baseline(&instance, Baseline::Oracle);
            let form = crowd::accept(&visitor, hit.as_u64().expect("a number")).await;
            let next = visitor.send(filled(form, &oracle)).await;
            // Turkle has accepted the next HIT of the batch by itself.
            if next.url.path().contains("/assignment/") {
                crowd::give_back(&visitor, &next).await;
            }
            let report = evaluate(&instance, &oracle, Profile::Compat);
            scores.insert(id, report.score.expect("a score"));
        }
    }
    scores
}

/// The scores of a batch by instance.
fn scores(batch: &Value) -> BTreeMap<String, f64> {
    let results = batch["results"].as_array().unwrap_or_else(|| panic!("{batch:#}")).iter();
    let score = |result: &Value| {
        let evaluated = &result["evaluated"];
        let id = evaluated["task"].as_str().unwrap_or_else(|| panic!("{result:#}")).to_owned();
        (id, evaluated["reports"][0]["score"].as_f64().expect("a score"))
    };
    results.map(score).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loaded_tasks_are_done_judged_and_there_again_after_a_reset() {
    let arena = Arena::up(&["turkle"]);
    let (data, folders) = (examples(), examples().join("tasks"));
    let tasks = StoredTasks::open(Benchmark::TurkingBench, &data).expect("the examples");
    let plain = snapshot(&arena);
    let loaded = load(&arena, &folders, &[]);
    assert_eq!((loaded.len(), loaded.values().any(|is_unchanged| *is_unchanged)), (20, false));
    let baseline = snapshot(&arena);
    assert_ne!(baseline, plain, "the tasks are part of a new baseline");
    let before = arena.exec("turkle", &["/srv/turkle/dump"]);

    // The same content makes no other baseline.
    assert!(load(&arena, &folders, &[]).values().all(|is_unchanged| *is_unchanged));
    assert_eq!(snapshot(&arena), baseline);

    let started = arena.json(&["episode", "start", "turkle", "--ttl", "20m", "--json"]);
    let episode = started["episode"]["id"].as_str().expect("an id").to_owned();
    let own = started["episode"]["sites"][0]["port_url"].as_str().expect("an address").to_owned();
    let eval = |further: &[&str]| {
        let common = ["eval", "--benchmark", "turkingbench", "--tasks", text(&data), "--json"];
        arena.arenad(&[&common[..], further].concat())
    };
    let judged = |further: &[&str]| -> Value {
        let output = eval(further);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    };
    // Without a form the page counts as it is at the beginning: the first option is the right one here.
    let nothing = eval(&["--episode", &episode, "--task", "Parcel Size/0"]);
    assert_eq!(nothing.status.code(), Some(0), "{}", String::from_utf8_lossy(&nothing.stderr));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no form of Parcel Size/0 was submitted"));
    assert_eq!(eval(&["--episode", &episode, "--task", "Parcel Size/1"]).status.code(), Some(5));
    assert!(String::from_utf8_lossy(&eval(&["--episode", &episode]).stderr).contains("nothing was submitted"));

    let expected = do_everything(&own, &tasks).await;
    let batch = judged(&["--episode", &episode]);
    assert_eq!(scores(&batch), expected);
    let imperfect: Vec<&str> = expected.iter().filter(|(_, score)| **score < 1.0).map(|(id, _)| id.as_str()).collect();
    assert_eq!(imperfect, ["Scripted Rating/0", "Scripted Rating/1", "Shop Opening/0"], "the code allows no more");
    let one = judged(&["--episode", &episode, "--task", "Notice Summary/0"]);
    assert_eq!(one["reports"][0]["verdict"], "passed", "{one:#}");

    // Turkle's own results of a batch say the same.
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let (name, token) = TOKEN.split_once(": ").expect("a header");
    let get = async |path: &str| {
        let url = format!("{}{path}", own.trim_end_matches('/'));
        let answer = client.get(url).header(name, token).send().await.expect("an answer");
        answer.text().await.expect("a body")
    };
    let batches: Value = serde_json::from_str(&get("/api/batches/?page_size=100").await).expect("JSON");
    let batches = batches["results"].as_array().or(batches.as_array()).cloned().unwrap_or_default();
    let boats = batches.iter().find(|batch| batch["name"] == "Boat Tags").expect("the batch");
    let results = tempfile::tempdir().expect("a folder");
    let file = results.path().join("boats.csv");
    std::fs::write(&file, get(&format!("/api/batches/{}/results/", boats["id"])).await).expect("written");
    let boats: Vec<f64> = scores(&judged(&["--results", text(&file)])).into_values().collect();
    assert_eq!(boats, [1.0, 1.0, 1.0]);

    let ended = arena.arenad(&["episode", "end", &episode]);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    arena.json(&["reset", "turkle", "--json"]);
    assert!(arena.exec("turkle", &["/srv/turkle/dump"]) == before, "the loaded tasks are there, and no form is");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_are_assigned_to_workers_and_texts_arrive_as_they_are() {
    let arena = Arena::up(&["turkle"]);
    load(&arena, &examples().join("tasks/Proverb Translation"), &["--workers", "worker,worker2"]);
    let script = "import json, sqlite3; database = sqlite3.connect('file:/data/turkle.sqlite3?mode=ro', uri=True); \
                  print(json.dumps(database.execute(\"select username, a.completed, json_extract(input_csv_fields, '$.proverb') \
                  from turkle_taskassignment a join turkle_task t on t.id = task_id join turkle_batch b on b.id = batch_id \
                  join auth_user u on u.id = assigned_to_id where b.name = 'Proverb Translation' and login_required \
                  order by t.id\").fetchall()))";
    let found: Value = serde_json::from_str(&arena.exec("turkle", &["python", "-c", script])).expect("JSON");
    let expected = [
        ("worker", 0, "Más vale pájaro en mano"),
        ("worker2", 0, "猿も木から落ちる"),
        ("worker", 0, "Übung macht den Meister, heißt es"),
    ];
    assert_eq!(found, json!(expected));
}
