//! Workflows become recorded tasks in the layout of Mind2Web: with right elements, judged step by step, and replayed under
//! the original names without the sites.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::arena::shared::{SITES, SharedArena};
use crate::browser::HeadlessBrowser;

const WORKFLOWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/webcanvas/workflows");

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A dump of workflows.
struct Dump {
    folder: tempfile::TempDir,
    tasks: Vec<Value>,
}

impl Dump {
    fn of(arena: &Arena, files: &[PathBuf]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("dump");
        let files: Vec<&str> = files.iter().map(|path| path.to_str().expect("a path of text")).collect();
        let options = ["workflow", "dump", "--json", "--output", out.to_str().expect("a path of text")];
        let results = arena.json(&[&options[..], &files].concat());
        for result in list(&results) {
            assert_eq!(result["error"], Value::Null, "{results:#}");
        }
        let tasks = list(&read(&out.join("data/recorded/recorded_0.json"))).to_vec();
        assert!(!tasks.is_empty(), "{results:#}");
        Self { folder, tasks }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("dump").join(name)
    }

    fn actions(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.tasks
            .iter()
            .flat_map(|task| list(&task["actions"]).iter().map(|action| (text(&task["annotation_id"]), action)))
    }

    /// Every action has its labelled element in both forms of the page, and both pages are archived.
    fn is_complete(&self) {
        let mut known = BTreeSet::new();
        for (task, action) in self.actions() {
            let uid = text(&action["action_uid"]);
            assert!(known.insert(uid), "an action has its identifier alone: {uid}");
            let (positive, negative) = (list(&action["pos_candidates"]), list(&action["neg_candidates"]));
            let original: Vec<&Value> = positive.iter().filter(|one| one["is_original_target"] == true).collect();
            let (raw, cleaned) = (text(&action["raw_html"]), text(&action["cleaned_html"]));
            assert_eq!(original.len(), 1, "{uid}: {}", action["operation"]);
            assert!(negative.len() > 3, "{uid} has other elements to choose from: {cleaned}");
            assert_eq!(raw.matches(&format!("data_pw_testid_buckeye=\"{uid}\"")).count(), 1, "{raw}");
            assert!(!cleaned.contains("data_pw_testid"), "the answer is not part of what a model sees: {cleaned}");
            for candidate in positive.iter().chain(negative) {
                let id = format!("backend_node_id=\"{}\"", text(&candidate["backend_node_id"]));
                assert!(cleaned.contains(&id) && raw.contains(&id), "{uid} lacks {id}: {cleaned}");
            }
            let folder = self.path(&format!("raw_dump/task/{task}/processed"));
            for when in ["before", "after"] {
                let path = folder.join(format!("snapshots/{uid}_{when}.mhtml"));
                let archive =
                    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert!(archive.contains("Snapshot-Content-Location: http://"), "{}", path.display());
            }
            let contents = read(&folder.join("dom_content.json"));
            let content = list(&contents).iter().find(|content| content["action_uid"] == uid).expect("its nodes");
            for when in ["before", "after"] {
                assert!(!list(&content[when]["dom"]["documents"]).is_empty(), "{uid} has nodes {when}");
            }
        }
    }

    /// Judges predictions, which `choose` makes from an action, and returns the measures by profile.
    fn judged(&self, arena: &Arena, choose: impl Fn(&Value) -> (String, String)) -> Value {
        let predictions: Vec<Value> = self
            .actions()
            .map(|(task, action)| {
                let (element, operation) = choose(action);
                json!([format!("{task}_{}", text(&action["action_uid"])), element, operation])
            })
            .collect();
        let file = self.folder.path().join("recorded_predictions_top50.json");
        std::fs::write(&file, Value::from(predictions).to_string()).expect("write");
        let options = ["eval", "--benchmark", "mind2web", "--profile", "both", "--json"];
        let (tasks, file) = (self.path(""), file.to_str().expect("a path of text"));
        let files = ["--tasks", tasks.to_str().expect("a path of text"), "--results", file];
        let output = arena.arenad(&[&options[..], &files].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
    }

    /// The bodies that were recorded for each address that was asked with GET.
    fn recorded(&self) -> BTreeMap<String, Vec<Vec<u8>>> {
        let mut found: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for session in self.path("raw_dump/session").read_dir().expect("sessions").flatten() {
            let har = read(&session.path().join("session.har"));
            for entry in list(&har["log"]["entries"]) {
                let (request, response) = (&entry["request"], &entry["response"]);
                if request["method"] != "GET" || response["status"] != 200 {
                    continue;
                }
                let content = &response["content"];
                let body = match text(&content["encoding"]) {
                    "base64" => STANDARD.decode(text(&content["text"])).expect("base64"),
                    _ => text(&content["text"]).as_bytes().to_vec(),
                };
                found.entry(text(&request["url"]).to_owned()).or_default().push(body);
            }
        }
        found
    }
}

fn right(action: &Value) -> (String, String) {
    let original = list(&action["pos_candidates"]).iter().find(|one| one["is_original_target"] == true);
    let element = original.map(|one| text(&one["backend_node_id"]).to_owned()).unwrap_or_default();
    let (op, value) = (text(&action["operation"]["op"]), text(&action["operation"]["value"]));
    (element, format!("{op} {value}"))
}

fn oracles_pass_and_near_misses_do_not(arena: &Arena, dump: &Dump) {
    let measure = |judged: &Value, profile: &str, name: &str| judged["measures"][profile][name].clone();
    let oracle = dump.judged(arena, right);
    for (profile, name) in [
        ("compat", "element_acc"),
        ("compat", "action_f1"),
        ("compat", "step_acc"),
        ("strict", "step_acc"),
        ("strict", "task_success"),
    ] {
        assert_eq!(measure(&oracle, profile, name), json!(1.0), "{profile} {name}: {:#}", oracle["measures"]);
    }
    let beside = dump
        .judged(arena, |action| (text(&action["neg_candidates"][0]["backend_node_id"]).to_owned(), right(action).1));
    let other = dump.judged(arena, |action| (right(action).0, format!("{} else", right(action).1)));
    for near_miss in [beside, other] {
        for (profile, name) in [("compat", "step_acc"), ("strict", "task_success")] {
            let share = measure(&near_miss, profile, name).as_f64();
            // Strict does not look at the value of a click.
            let most = if profile == "strict" { 0.99 } else { 0.0 };
            assert!(share.is_some_and(|share| share <= most), "{profile} {name}: {:#}", near_miss["measures"]);
        }
    }
}

/// The dump is a replay: every recorded answer comes back byte for byte, and a browser shows the recorded pages, without
/// the sites.
async fn is_replayed(arena: &Arena, dump: &Dump, pages: &[(&str, &str)]) {
    // A test that fails leaves its replay.
    let name = &format!("recorded-{}", dump.tasks.len());
    let folder = dump.path("raw_dump");
    let added = arena.json(&["replay", "add", name, folder.to_str().expect("a path of text"), "--json"]);
    assert!(list(&added["skipped"]).is_empty() && list(&added["problems"]).is_empty(), "{added:#}");
    let shown = arena.json(&["replay", "show", name, "--json"]);
    let (server, password) = (text(&shown["proxy"]["server"]), text(&shown["proxy"]["password"]));
    let proxy = server.replace("http://", &format!("http://replay.{name}:{password}@"));
    let recorded = dump.recorded();
    assert!(!recorded.is_empty(), "sites were asked");
    for (url, bodies) in &recorded {
        let output = Command::new("curl")
            .args([
                "--silent",
                "--globoff",
                "--compressed",
                "--noproxy",
                "",
                "--max-time",
                "60",
                "--proxy",
                &proxy,
                url,
            ])
            .output()
            .expect("curl");
        assert!(output.status.success(), "{url}: {output:?}");
        assert!(bodies.contains(&output.stdout), "{url}: {} bytes were not recorded", output.stdout.len());
    }
    let browser = HeadlessBrowser::start().await;
    for (url, said) in pages {
        let page = browser.proxied_page(server, &format!("replay.{name}"), password, url).await;
        page.wait_for_text(said).await;
        page.close().await;
    }
    let counts = arena.json(&["replay", "show", name, "--json"]);
    // The browser of the test also asks for services of its maker, which is forbidden.
    assert_eq!(counts["counts"]["misses"], 0, "{counts:#}");
    assert!(arena.arenad(&["replay", "rm", name]).status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_task_is_judged_and_replayed() {
    let arena = SharedArena::with(&["homepage", "wikipedia"]);
    let names = ["calculator", "manual-forge", "wiki-capital"];
    let files = names.map(|name| Path::new(WORKFLOWS).join(format!("{name}.json")));
    let dump = Dump::of(&arena, &files);
    dump.is_complete();
    let operations: Vec<&str> = list(&dump.tasks[0]["action_reprs"]).iter().map(text).collect();
    assert_eq!(
        operations,
        ["[link]  Calculator -> CLICK", "[textbox]  Expression -> TYPE: 12*34", "[button]  Calculate -> CLICK"]
    );
    oracles_pass_and_near_misses_do_not(&arena, &dump);
    let pages =
        [("http://homepage.arena.test/", "Calculator"), ("http://homepage.arena.test/calculator.html", "Calculate")];
    is_replayed(&arena, &dump, &pages).await;
    // A dump is not written into another one.
    let out = dump.path("");
    let refused = arena.arenad(&["workflow", "dump", WORKFLOWS, "--output", out.to_str().expect("a path of text")]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not empty"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_workflow_becomes_a_recorded_task() {
    let arena = SharedArena::with(&SITES);
    let dump = Dump::of(&arena, &[PathBuf::from(WORKFLOWS)]);
    assert_eq!(dump.tasks.len(), 30);
    dump.is_complete();
    oracles_pass_and_near_misses_do_not(&arena, &dump);
    let pages = [
        ("http://shopping.arena.test/", "Basket"),
        ("http://reddit.arena.test/", "Larkboard"),
        ("http://gitlab.arena.test/", "Larkmoor Forge"),
    ];
    is_replayed(&arena, &dump, &pages).await;
}
