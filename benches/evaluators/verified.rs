//! WebArena-Verified: all tasks on given traffic, against the benchmark's own package.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use arenad_evaluators::webarena_verified::{Submission, VerifiedTask, evaluate, read};
use arenad_verdict::Profile;
use serde_json::{Value, json};

use super::{Settings, ask_python, spread};

const SITES: [&str; 6] = ["gitlab", "map", "reddit", "shopping_admin", "shopping", "wikipedia"];

/// Numbers of requests in the traffic of a task.
const SIZES: [usize; 3] = [20, 200, 1000];

/// A Python program that judges the same files with the benchmark's own code and prints the total time and the scores.
const THEIRS: &str = r#"
import json, logging, sys, time
from pathlib import Path
logging.disable(logging.CRITICAL)
from webarena_verified.api import WebArenaVerified
from webarena_verified.types.config import EnvironmentConfig, WebArenaVerifiedConfig
asked = json.load(sys.stdin)
logging.disable(logging.CRITICAL)
config = WebArenaVerifiedConfig(
    test_data_file=Path(asked["tasks"]),
    environments={name: EnvironmentConfig(urls=urls) for name, urls in asked["urls"].items()},
)
wav = WebArenaVerified(config=config)
logging.disable(logging.CRITICAL)
best, scores = None, {}
for _ in range(asked["rounds"]):
    begun = time.perf_counter()
    for task, (answer, har) in asked["runs"].items():
        result = wav.evaluate_task(task_id=int(task), agent_response=answer, network_trace=Path(har))
        scores[task] = result.score
    took = time.perf_counter() - begun
    best = took if best is None else min(best, took)
json.dump({"seconds": best, "scores": scores}, sys.stdout)
"#;

pub(super) fn run(settings: &Settings) {
    let Some(data) = &settings.data else {
        println!("webarena-verified: ARENAD_BENCHMARK_DATA is not set, so there are no tasks to judge");
        return;
    };
    let python = std::env::var_os("ARENAD_WAV_PYTHON").map(PathBuf::from);
    let rounds = settings.rounds;
    let file = data.join("webarena-verified/webarena-verified.json");
    let text = super::read(&file);
    let raw: Vec<Value> = serde_json::from_str(&text).expect("a list of tasks");
    let urls: BTreeMap<String, Vec<String>> = SITES
        .into_iter()
        .map(|site| (format!("__{}__", site.to_uppercase()), vec![format!("http://{site}.test")]))
        .collect();
    println!("\nWebArena-Verified: 812 tasks from their files, fastest of {rounds} rounds\n");
    println!(
        "{:>9} {:>9} {:>12} {:>12} {:>12} {:>8} {:>8}  same scores",
        "requests", "MB", "one thread", "all threads", "Python", "ratio", "ratio"
    );
    for size in SIZES {
        let folder = tempfile::tempdir().expect("a folder");
        let runs = write_runs(&raw, size, folder.path());
        measure(&text, &file, &urls, &runs, size, rounds, python.as_deref());
    }
    if python.is_none() {
        println!("\nARENAD_WAV_PYTHON names no Python with webarena-verified 1.2.3: arenad was measured alone");
    }
}

/// A task's answer and the file with its traffic.
type Runs = BTreeMap<u32, (String, PathBuf)>;

fn measure(
    text: &str,
    file: &Path,
    urls: &BTreeMap<String, Vec<String>>,
    runs: &Runs,
    size: usize,
    rounds: usize,
    python: Option<&Path>,
) {
    let tasks = read(text, urls).expect("tasks");
    let measured = super::measure(rounds, |threads| judge(&tasks, runs, threads));
    let scores: Scores =
        measured.scores.iter().filter_map(|(id, score)| Some((id.parse().ok()?, score.as_f64()))).collect();
    let bytes: u64 = runs.values().map(|(_, har)| super::size(har)).sum();
    let [one, all] = measured.seconds;
    #[allow(clippy::cast_precision_loss)]
    let megabytes = bytes as f64 / 1e6;
    let theirs = python.map(|python| run_python(python, file, urls, runs, rounds));
    let (seconds, ratios, same) = match &theirs {
        Some(theirs) => {
            let seconds = theirs["seconds"].as_f64().expect("seconds");
            let same = scores.iter().filter(|(id, score)| theirs["scores"][id.to_string()].as_f64() == **score).count();
            let right = scores.values().filter(|score| **score == Some(1.0)).count();
            (
                format!("{seconds:.3} s"),
                [one, all].map(|ours| format!("{:.1}x", seconds / ours)),
                format!("{same} of {} ({right} pass)", scores.len()),
            )
        }
        None => ("-".to_owned(), [const { String::new() }; 2], "-".to_owned()),
    };
    let [one, all] = [one, all].map(|ours| format!("{ours:.3} s"));
    let [of_one, of_all] = ratios;
    println!("{size:>9} {megabytes:>9.1} {one:>12} {all:>12} {seconds:>12} {of_one:>8} {of_all:>8}  {same}");
    for (id, score) in &scores {
        let other = theirs.as_ref().and_then(|theirs| theirs["scores"][id.to_string()].as_f64());
        if other.is_some() && other != *score {
            println!("          task {id}: arenad {score:?}, Python {other:?}");
        }
    }
}

type Scores = BTreeMap<u32, Option<f64>>;

/// Reads each task's answer and traffic and judges them.
fn judge(tasks: &[VerifiedTask], runs: &Runs, threads: usize) -> super::Scores {
    let one = |task: &VerifiedTask| {
        let (answer, har) = &runs[&task.task_id];
        let bytes = std::fs::read(har).expect("a HAR");
        let report = evaluate(task, &Submission::read(answer, &bytes), Profile::Compat);
        (task.task_id.to_string(), json!(report.score))
    };
    spread(tasks, threads, one).into_iter().collect()
}

fn run_python(python: &Path, file: &Path, urls: &BTreeMap<String, Vec<String>>, runs: &Runs, rounds: usize) -> Value {
    let asked = json!({ "tasks": file, "urls": urls, "runs": runs, "rounds": rounds });
    ask_python(python, &["-c", THEIRS].map(OsStr::new), &asked, Stdio::null())
}

/// Writes the traffic of each task: requests like those of a browser, followed by the requests that the task expects.
/// Every third task has an error in its answer or in its requests, so that both verdicts occur.
fn write_runs(tasks: &[Value], size: usize, folder: &Path) -> Runs {
    let mut runs = Runs::new();
    for (index, task) in tasks.iter().enumerate() {
        let id = u32::try_from(task["task_id"].as_u64().expect("a number")).expect("a number");
        let site = task["sites"][0].as_str().unwrap_or_default();
        let mut entries: Vec<Value> = (0..size).map(|number| page(site, number)).collect();
        let mut answer = json!({});
        for evaluator in task["eval"].as_array().into_iter().flatten() {
            if evaluator["evaluator"] == "AgentResponseEvaluator" {
                answer = answer_of(&evaluator["expected"], index % 3 == 1);
            } else if evaluator["should_not_exist"] != true {
                entries.push(event_of(&evaluator["expected"], index % 3 == 2));
            }
        }
        let har = folder.join(format!("{id}.har"));
        let content = json!({ "log": { "version": "1.2", "entries": entries } });
        std::fs::write(&har, content.to_string()).expect("a HAR");
        runs.insert(id, (answer.to_string(), har));
    }
    runs
}

fn answer_of(expected: &Value, is_wrong: bool) -> Value {
    let mut answer = expected.clone();
    if let Some(items) = answer["retrieved_data"].as_array_mut() {
        for item in items.iter_mut() {
            if let Some(first) = item.as_array().and_then(|items| items.first()).filter(|first| !first.is_array()) {
                *item = first.clone();
            }
        }
        if is_wrong {
            items.push(json!("something else"));
        }
    }
    answer
}

fn address(template: &str) -> String {
    let url = SITES.iter().fold(template.to_owned(), |url, site| {
        url.replace(&format!("__{}__", site.to_uppercase()), &format!("http://{site}.test"))
    });
    match url.strip_prefix('^').and_then(|url| url.strip_suffix('$')) {
        Some(pattern) => pattern.replace(r"\d+", "7").replace(".*", "x").replace('\\', ""),
        None => url,
    }
}

fn event_of(expected: &Value, is_wrong: bool) -> Value {
    let url = expected["url"].as_str().or(expected["url"][0].as_str()).unwrap_or_default();
    let mut url = address(url);
    if let Some(query) = expected["query_params"].as_object() {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        for (name, values) in query {
            pairs.append_pair(name, values[0].as_str().unwrap_or_default());
        }
        let base = url.split('?').next().unwrap_or_default().to_owned();
        url = format!("{base}?{}", pairs.finish());
    }
    let mut headers = vec![json!({"name": "Accept", "value": "text/html,application/xhtml+xml"})];
    for (name, value) in expected["headers"].as_object().into_iter().flatten() {
        headers.push(json!({"name": name, "value": address(value.as_str().unwrap_or_default())}));
    }
    let method = expected["http_method"].as_str().unwrap_or("GET");
    let mut request = json!({ "method": method, "url": url, "headers": headers });
    if let Some(fields) = expected["post_data"].as_object() {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
        request["postData"] = json!({ "mimeType": "application/json", "text": Value::Object(fields).to_string() });
    }
    let status = expected["response_status"].as_i64().unwrap_or(200) + i64::from(is_wrong);
    let mut response = json!({ "status": status, "headers": [], "cookies": [] });
    if expected["response_content"].is_object() {
        let text = expected["response_content"].to_string();
        response["content"] = json!({ "mimeType": "application/json", "text": text });
    }
    json!({ "request": request, "response": response })
}

/// Replaces each list of alternatives in a value by its first alternative.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(items) if items.len() > 1 => items[0].clone(),
        other => other.clone(),
    }
}

/// A request such as a browser makes while a page loads.
fn page(site: &str, number: usize) -> Value {
    const LINES: &str = "<li class=\"item\"><a href=\"/product/view/id/1\">A thing, in blue</a> $10.50</li>\n";
    let (path, kind) = match number % 5 {
        0 => (format!("/catalog/category/view/id/{number}?p={number}&sort=price"), "text/html"),
        1 => (format!("/static/frontend/module-{number}.js"), "application/javascript"),
        2 => (format!("/media/picture-{number}.jpg"), "image/jpeg"),
        3 => (format!("/api/graphql/{number}?query=%7Bitems%7D"), "application/json"),
        _ => (format!("/static/theme-{number}.css"), "text/css"),
    };
    let text = if kind == "text/html" { LINES.repeat(40) } else { "{}".to_owned() };
    json!({
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "time": 12.5,
        "request": {
            "method": "GET", "url": format!("http://{site}.test{path}"), "httpVersion": "HTTP/1.1", "cookies": [],
            "headers": [
                {"name": "Accept", "value": if kind == "text/html" { "text/html,*/*" } else { "*/*" }},
                {"name": "Referer", "value": format!("http://{site}.test/")},
                {"name": "User-Agent", "value": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0"},
            ],
            "queryString": [], "headersSize": -1, "bodySize": 0,
        },
        "response": {
            "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [],
            "headers": [{"name": "Content-Type", "value": kind}, {"name": "Server", "value": "nginx"}],
            "content": {"size": text.len(), "mimeType": kind, "text": text}, "redirectURL": "", "headersSize": -1, "bodySize": -1,
        },
        "cache": {}, "timings": {"send": 0, "wait": 10, "receive": 2},
    })
}
