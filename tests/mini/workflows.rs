//! The recorded workflows of `examples/webcanvas`: each reaches all key nodes of its task, and its near miss does not. A
//! page or a task that has changed is named with the cause.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::arena::Arena;
use crate::arena::shared::{SITES, SharedArena};
use crate::browser::HeadlessBrowser;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/webcanvas");

/// Workflows on two sites whose pages take little time.
const FEW: [&str; 6] = ["calculator", "manual-forge", "scratchpad", "wiki-capital", "wiki-founding", "wiki-parks"];

/// Replays workflows, and returns the exit code and the results.
fn checked(arena: &Arena, files: &[PathBuf], options: &[&str]) -> (Option<i32>, Vec<Value>) {
    let files: Vec<&str> = files.iter().map(|path| path.to_str().expect("a path of text")).collect();
    let output = arena.arenad(&[&["workflow", "check", "--json"], options, &files].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let results = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code(), results)
}

fn examples(folder: &str, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| Path::new(EXAMPLES).join(folder).join(format!("{name}.json"))).collect()
}

fn all_reach_their_nodes_and_near_misses_do_not(arena: &Arena, names: &[&str]) {
    let (code, results) = checked(arena, &examples("workflows", names), &[]);
    for result in &results {
        assert_eq!((&result["health"], &result["is_flaky"]), (&json!("valid"), &json!(false)), "{result:#}");
    }
    assert_eq!((code, results.len()), (Some(0), names.len()));
    let (code, results) = checked(arena, &examples("misses", names), &[]);
    for result in &results {
        // Every step could be done, and at least one key node was not reached.
        assert_eq!((&result["health"], &result["broken_at"]), (&json!("broken"), &Value::Null), "{result:#}");
        let nodes = result["nodes"].as_array().expect("nodes");
        assert!(nodes.iter().any(|node| node["cause"]["kind"].is_string()), "{result:#}");
    }
    assert_eq!((code, results.len()), (Some(1), names.len()));
}

#[test]
fn recorded_workflows_reach_their_key_nodes_and_near_misses_do_not() {
    let arena = SharedArena::with(&["homepage", "wikipedia"]);
    all_reach_their_nodes_and_near_misses_do_not(&arena, &FEW);
}

#[test]
fn every_recorded_workflow_reaches_its_key_nodes_and_no_near_miss_does() {
    let arena = SharedArena::with(&SITES);
    let tasks: Value = read(&Path::new(EXAMPLES).join("tasks.json"));
    let names: Vec<&str> = tasks.as_array().expect("tasks").iter().filter_map(|task| task["index"].as_str()).collect();
    assert_eq!(names.len(), 30);
    all_reach_their_nodes_and_near_misses_do_not(&arena, &names);
}

/// A person's clicks and words become a workflow, which is replayed, and for which key nodes are chosen on a page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_visit_is_replayed_and_its_key_nodes_are_chosen() {
    let arena = Arena::up_with(&[("ARENAD_PROXY", "127.0.0.1:0")], &["homepage"]);
    let browser = HeadlessBrowser::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("visit.json");
    let start = "http://homepage.arena.test/";
    let arguments =
        ["--start", start, "--site", "homepage", "--task", "visit", "--title", "Compute", "--answer", "408"];
    let file_argument = file.to_str().expect("a path of text");
    let arguments = [&["workflow", "record", file_argument], &arguments[..]].concat();
    let mut recording = arena.begun(&[("ARENAD_CHROMIUM", &browser.address())], &arguments);
    let page = browser.foreign_page(start).await;
    page.click("a[href='/calculator.html']").await;
    page.wait_for("#expression").await;
    page.click("#expression").await;
    page.fill("#expression", "12*34").await;
    page.click("#calculate").await;
    page.wait_for_text("408").await;
    page.close().await;
    let ended = recording.wait().expect("the recording ends");
    assert!(ended.success(), "{ended:?}");

    let recorded = read(&file);
    let steps: Vec<(&Value, &Value)> = recorded["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| (&step["action"], &step["element"]["name"]))
        .collect();
    let wanted = [("click", "Calculator"), ("type", "Expression"), ("click", "Calculate")];
    let wanted: Vec<(Value, Value)> = wanted.map(|(action, name)| (json!(action), json!(name))).to_vec();
    assert_eq!(steps[..3], wanted.iter().map(|(action, name)| (action, name)).collect::<Vec<_>>()[..], "{recorded:#}");
    assert_eq!((&recorded["steps"][1]["value"], steps[3].0), (&json!("12*34"), &json!("stop")));

    let reviewed = arena.arenad(&["workflow", "review", file.to_str().expect("a path of text")]);
    assert!(reviewed.status.success(), "{reviewed:?}");
    let review = browser.page(&format!("file://{}", file.with_extension("html").display())).await;
    review.wait_for_text("element_value_exactly_match").await;
    let count: usize = review.eval("document.querySelectorAll('#nodes tr').length").await;
    let all: String = review.eval("document.getElementById('entry').textContent").await;
    let all: Value = serde_json::from_str(&all).expect("a task");
    assert_eq!(all["evaluation"].as_array().map(Vec::len), Some(count));
    review.click("#nodes tr:nth-child(2) input[type=checkbox]").await;
    let chosen: String = review.eval("document.getElementById('entry').textContent").await;
    let chosen: Value = serde_json::from_str(&chosen).expect("a task");
    assert_eq!(chosen["evaluation"].as_array().map(Vec::len), Some(count - 1));

    std::fs::write(folder.path().join("tasks.json"), json!([chosen]).to_string()).expect("write");
    let (code, results) = checked(&arena, &[file], &["--update"]);
    assert_eq!((code, &results[0]["health"]), (Some(0), &json!("valid")), "{results:#?}");
}

/// A recording begins signed in. A workflow with a typed password, which is not kept, is not replayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_begins_signed_in() {
    let arena = Arena::up_with(&[("ARENAD_PROXY", "127.0.0.1:0")], &["shopping"]);
    let browser = HeadlessBrowser::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profile.json");
    let file_argument = file.to_str().expect("a path of text");
    let start = "http://shopping.arena.test/accounts/profile/";
    let arguments = ["workflow", "record", file_argument, "--start", start, "--site", "shopping", "--account"];
    let refused = arena.arenad(&[&arguments[..], &["reddit"]].concat());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--site reddit"), "{refused:?}");
    let address = browser.address();
    let mut recording = arena.begun(&[("ARENAD_CHROMIUM", &address)], &[&arguments[..], &["shopping"]].concat());
    let page = browser.foreign_page(start).await;
    page.wait_for_text("emma.lopez@gmail.com").await;
    page.close().await;
    let ended = recording.wait().expect("the recording ends");
    assert!(ended.success(), "{ended:?}");

    let mut recorded = read(&file);
    assert_eq!(recorded["accounts"], json!({ "shopping": null }), "{recorded:#}");
    let field = json!({ "selector": "#id_password", "tag": "input" });
    recorded["steps"] = json!([{ "action": "type", "url": start, "element": field, "value": "[redacted]" }]);
    std::fs::write(&file, recorded.to_string()).expect("write");
    let refused = arena.arenad(&["workflow", "check", file_argument]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("step 1 types a password") && said.contains("--account"), "{refused:?}");
}

/// Sites that are not arenad's are reached directly.
#[test]
fn a_live_site_is_visited_without_an_episode() {
    let arena = SharedArena::with(&["homepage"]);
    let mut recorded = OutdatedWorkflow::new();
    let text =
        recorded.workflow.to_string().replace("http://homepage.arena.test/", &format!("{}/", arena.url("homepage")));
    recorded.workflow = serde_json::from_str(&text).expect("JSON");
    recorded.workflow["sites"] = json!([]);
    for node in recorded.task["evaluation"].as_array_mut().expect("nodes") {
        // The first word of the host is that of `127.0.0.1`, or nothing for `localhost`.
        if node["content"]["netloc"].is_string() {
            let host = arena.url("homepage").replace("http://", "");
            node["content"]["netloc"] = json!(host.split_once('.').map_or("", |(first, _)| first));
        }
    }
    recorded.write();
    let (code, results) = checked(&arena, &[recorded.workflow_path()], &["--live"]);
    assert_eq!((code, &results[0]["health"]), (Some(0), &json!("valid")), "{results:#?}");
    recorded.workflow["start"] = json!("http://127.0.0.1:9/");
    recorded.write();
    let (code, results) = checked(&arena, &[recorded.workflow_path()], &["--live"]);
    assert_eq!((code, &results[0]["cause"]["kind"]), (Some(6), &json!("site_down")), "{results:#?}");
    // A workflow without sites belongs to no episode.
    let refused = arena.arenad(&["workflow", "check", recorded.workflow_path().to_str().expect("a path of text")]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--live"), "{refused:?}");
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The calculator's workflow and task, changed as if the site had changed since the recording.
struct OutdatedWorkflow {
    folder: tempfile::TempDir,
    workflow: Value,
    task: Value,
}

impl OutdatedWorkflow {
    fn new() -> Self {
        let tasks = read(&Path::new(EXAMPLES).join("tasks.json"));
        let task = tasks.as_array().expect("tasks").iter().find(|task| task["index"] == "calculator").cloned();
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            workflow: read(&examples("workflows", &["calculator"])[0]),
            task: task.expect("the task of the calculator"),
        }
    }

    fn workflow_path(&self) -> PathBuf {
        self.folder.path().join("calculator.json")
    }

    fn tasks_path(&self) -> PathBuf {
        self.folder.path().join("tasks.json")
    }

    fn write(&self) {
        std::fs::write(self.workflow_path(), self.workflow.to_string()).expect("write");
        std::fs::write(self.tasks_path(), json!([self.task]).to_string()).expect("write");
    }

    fn check(&self, arena: &Arena, options: &[&str]) -> Value {
        let (_, results) = checked(arena, &[self.workflow_path()], options);
        results[0].clone()
    }
}

#[test]
fn a_changed_site_is_named_repaired_and_kept_as_a_version() {
    let arena = SharedArena::with(&["homepage"]);
    let mut outdated = OutdatedWorkflow::new();
    // The page of the recording had its field elsewhere, and the task knows the button by that place.
    outdated.workflow["steps"][1]["element"]["selector"] = json!("html > body:nth-child(2) > input:nth-child(9)");
    outdated.task["evaluation"][2]["content"]["reference_answer"] = json!("#compute");
    outdated.write();
    let history = outdated.folder.path().join("history.jsonl");
    let history_option = history.to_str().expect("a path of text");
    let broken = outdated.check(&arena, &["--write", "--update", "--history", history_option]);
    assert_eq!((&broken["health"], &broken["drifted"]), (&json!("broken"), &json!([1])), "{broken:#}");
    assert!(broken["drift"][0].as_str().is_some_and(|drift| drift.contains("found by its id")), "{broken:#}");
    let node = &broken["nodes"][2];
    assert_eq!((&node["cause"]["kind"], &node["repair"]["to"]), (&json!("element_gone"), &json!("#calculate")));
    assert_eq!(broken["version"], 2);

    let task = &read(&outdated.tasks_path())[0];
    assert_eq!((&task["version"], &task["versions"][0]["evaluation"]), (&json!(2), &outdated.task["evaluation"]));
    let (code, mended) = checked(&arena, &[outdated.workflow_path()], &["--history", history_option]);
    assert_eq!((code, &mended[0]["health"]), (Some(0), &json!("valid")), "{mended:#?}");
    let lines = std::fs::read_to_string(&history).expect("the history");
    let states: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let states: Vec<&Value> = states.iter().map(|line| &line["health"]).collect();
    assert_eq!(states, [&json!("broken"), &json!("valid")]);

    // A page that is gone, a redirect, and an element that nothing resembles.
    let start = outdated.workflow["start"].as_str().expect("an address").to_owned();
    outdated.workflow["start"] = json!(format!("{start}gone.html"));
    outdated.write();
    let gone = outdated.check(&arena, &[]);
    assert_eq!((&gone["broken_at"], &gone["cause"]["kind"]), (&json!(0), &json!("page_gone")), "{gone:#}");
    assert_eq!(gone["cause"]["status"], 404);
    outdated.workflow["start"] = json!(format!("{start}manuals/"));
    for (field, value) in [("name", "Sextant"), ("href", "/sextant.html"), ("near", "Nautical instruments")] {
        outdated.workflow["steps"][0]["element"][field] = json!(value);
    }
    outdated.write();
    let led = outdated.check(&arena, &[]);
    assert_eq!((&led["cause"]["kind"], &led["cause"]["from"]), (&json!("redirect"), &json!(start)), "{led:#}");
    outdated.workflow["start"] = json!("http://nowhere.arena.test/");
    outdated.write();
    // The proxy refuses hosts other than those of the episode.
    let refused = outdated.check(&arena, &[]);
    assert_eq!((&refused["health"], &refused["cause"]["status"]), (&json!("blocked"), &json!(403)), "{refused:#}");
}
