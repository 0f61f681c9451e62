//! Mind2Web: generated tasks and replies of a model in the published layout.
//!
//! Each of the seven steps of a task has 50 candidates, and the replies choose among five candidates at a time. Steps
//! have pages of a few KB; published ones are much larger, but neither side looks at them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenad_evaluators::mind2web::{
    MacroSteps, Mind2WebTask, Prediction, RecordedStep, StepScore, evaluate, predictions, read, score_step, steps,
    summarize,
};
use arenad_verdict::Profile;
use serde_json::{Value, json};

use super::inputs::Source;
use super::{Scores, Settings, compare, measure, size, spread};

const FILES: usize = 10;

const TASKS_PER_FILE: usize = 100;

const STEPS: usize = 7;

const CANDIDATES: usize = 50;

/// The number of candidates that a model chooses from at a time.
const GROUP: usize = 5;

const TOP_K: u64 = 50;

/// The files that both sides read.
struct Inputs {
    tasks: Vec<PathBuf>,
    outputs: PathBuf,
}

pub(super) fn run(settings: &Settings) {
    let folder = tempfile::tempdir().expect("a folder");
    let inputs = Inputs::write(folder.path());
    let ours = measure(settings.rounds, |threads| judge(&inputs, threads));
    let bytes = inputs.tasks.iter().map(|file| size(file)).sum::<u64>() + size(&inputs.outputs);
    // The published way takes minutes, so one round has to do.
    let ways = [("macro measures once", "once", settings.rounds), ("as published", "each step", 1)];
    for (what, way, rounds) in ways {
        let asked = json!({
            "benchmark": "mind2web", "tasks": inputs.tasks, "outputs": inputs.outputs, "macro": way,
        });
        compare(settings, &format!("Mind2Web, {what}"), bytes, &ours, rounds, asked);
        if settings.python.is_none() {
            return;
        }
    }
}

/// The tasks of a file with the scores of their steps.
type Judged = (Vec<Mind2WebTask>, Vec<StepScore>);

fn judge(inputs: &Inputs, threads: usize) -> Scores {
    let replies = predictions(&super::read(&inputs.outputs)).expect("predictions");
    let nothing = BTreeMap::new();
    let one = |file: &PathBuf| -> Judged {
        let tasks = read(&super::read(file)).expect("tasks");
        let mut scored = Vec::new();
        for task in &tasks {
            let own: &BTreeMap<String, Prediction> = replies.get(&task.id).unwrap_or(&nothing);
            let report = evaluate(task, own, TOP_K, Profile::Compat);
            assert_eq!(report.checks.len(), task.steps.len());
            scored.extend(task.steps.iter().map(|step| score_step(step, own.get(&step.action), TOP_K)));
        }
        (tasks, scored)
    };
    let judged = spread(&inputs.tasks, threads, one);
    let scored: Vec<(&RecordedStep, StepScore)> = judged
        .iter()
        .flat_map(|(tasks, scored)| tasks.iter().flat_map(|task| &task.steps).zip(scored.iter().copied()))
        .collect();
    let sums = summarize(&scored, MacroSteps::UpToLastCounted).expect("steps with a right candidate");
    let only: Vec<&RecordedStep> = scored.iter().map(|(step, _)| *step).collect();
    let mut scores: Scores = scored
        .iter()
        .map(|(step, score)| (format!("{}_{}", step.task, step.action), json!([score.element, score.f1, score.step])))
        .collect();
    scores.extend(steps::recall_caps(&only).into_iter().map(|(name, share)| (name, json!(share))));
    scores.extend(sums.error_ratio.iter().map(|(wrong, share)| (format!("error_ratio {wrong}"), json!(share))));
    let websites = sums.acc_per_website.iter();
    scores.extend(websites.map(|(website, (share, _))| (format!("acc_per_website {website}"), json!(share))));
    let named = [
        ("element_acc", sums.element_acc),
        ("action_f1", sums.action_f1),
        ("step_acc", sums.step_acc),
        ("marco_element_acc", sums.marco_element_acc),
        ("marco_action_f1", sums.marco_action_f1),
        ("marco_step_acc", sums.marco_step_acc),
    ];
    scores.extend(named.map(|(name, value)| (name.to_owned(), json!(value))));
    scores
}

impl Inputs {
    fn write(folder: &Path) -> Self {
        let mut outputs: Vec<Value> = Vec::new();
        let tasks = (0..FILES)
            .map(|number| {
                let tasks: Vec<Value> =
                    (0..TASKS_PER_FILE).map(|at| task(number * TASKS_PER_FILE + at, &mut outputs)).collect();
                let file = folder.join(format!("data/train/train_{number}.json"));
                super::write(&file, &Value::from(tasks).to_string());
                file
            })
            .collect();
        let file = folder.join("results/train_outputs_top50.json");
        super::write(&file, &Value::from(outputs).to_string());
        Self { tasks, outputs: file }
    }
}

fn task(number: usize, outputs: &mut Vec<Value>) -> Value {
    let mut source = Source::new(u64::try_from(number).expect("a seed"));
    let id = format!("{number:08x}-5c2a-4d7e-9f10-{:012x}", number * 7919);
    let (mut actions, mut reprs) = (Vec::new(), Vec::new());
    for step in 0..STEPS {
        let action = format!("{:08x}-1b3d-4c5e-8f70-{:012x}", number * STEPS + step, number * 104_729 + step);
        let operation = *source.pick(&["CLICK", "CLICK", "TYPE", "SELECT"]);
        let value = if operation == "CLICK" { String::new() } else { source.words(3) };
        let (candidates, right) = candidates(number * STEPS + step, &mut source);
        reprs.push(format!("[button]  {} -> {operation}", source.words(3)));
        outputs.push(json!([format!("{id}_{action}"), rounds(&candidates, &right, operation, &value, &mut source)]));
        let page = page(&candidates, &mut source);
        let (positive, negative): (Vec<Value>, Vec<Value>) =
            candidates.into_iter().partition(|candidate| right.contains(&candidate["backend_node_id"].to_string()));
        actions.push(json!({
            "action_uid": action, "raw_html": page, "cleaned_html": page,
            "operation": { "original_op": operation, "value": value, "op": operation },
            "pos_candidates": positive, "neg_candidates": negative,
        }));
    }
    json!({
        "website": format!("site{}", number % 73), "domain": "Travel", "subdomain": "Ground", "annotation_id": id,
        "confirmed_task": source.words(12), "action_reprs": reprs, "actions": actions,
    })
}

/// The candidates of a step, and the quoted identifiers of the right ones. Some steps have no right one, or only one
/// that is not among the best.
fn candidates(seed: usize, source: &mut Source) -> (Vec<Value>, Vec<String>) {
    let (count, first) = (if source.one_in(25) { 0 } else { 1 + source.below(2) }, source.below(CANDIDATES - 2));
    let is_late = source.one_in(20);
    let mut right = Vec::new();
    let all: Vec<Value> = (0..CANDIDATES)
        .map(|at| {
            let is_right = (first..first + count).contains(&at);
            let id = (seed % 977 * 100 + at).to_string();
            let (x, y) = (source.below(1200), source.below(4000));
            let attributes = json!({
                "backend_node_id": id, "bounding_box_rect": format!("{x},{y},120,32"), "class": source.words(3),
                "data_pw_testid_buckeye_candidate": "1", "is_clickable": "true", "aria_label": source.words(2),
            });
            let rank = if is_right && is_late { CANDIDATES + at } else { (at * 7 + seed) % CANDIDATES };
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let score = -(rank as f64) / 7.0;
            let mut candidate = json!({
                "tag": source.pick(&["a", "button", "input", "div", "span"]), "attributes": attributes.to_string(),
                "backend_node_id": id, "score": score, "rank": rank,
            });
            if is_right {
                candidate["is_original_target"] = json!(at == first);
                candidate["is_top_level_target"] = json!(true);
                right.push(candidate["backend_node_id"].to_string());
            }
            candidate
        })
        .collect();
    (all, right)
}

/// The rounds of a model that chooses among candidates until one is left: the group, the text and the choices that it
/// was given, and its reply.
fn rounds(all: &[Value], right: &[String], operation: &str, value: &str, source: &mut Source) -> Vec<Value> {
    let is_within = |candidate: &&Value| candidate["rank"].as_u64().is_some_and(|rank| rank < TOP_K);
    let is_right = |candidate: &Value| right.contains(&candidate["backend_node_id"].to_string());
    let (positive, negative): (Vec<&Value>, Vec<&Value>) = all.iter().filter(is_within).partition(|one| is_right(one));
    if positive.is_empty() {
        return Vec::new();
    }
    let favourite = if source.one_in(4) { negative[source.below(negative.len())] } else { positive[0] };
    let predicted = match source.below(8) {
        0 => source.words(3),
        1 => value.split(' ').rev().collect::<Vec<_>>().join(" "),
        2 => format!("{value} {}", source.words(1)),
        _ => value.to_owned(),
    };
    let mut open: Vec<&Value> = positive.into_iter().chain(negative).collect();
    let mut out = Vec::new();
    while open.len() > 1 {
        let group: Vec<&Value> = open.drain(..GROUP.min(open.len())).collect();
        let choices: Vec<Value> = group
            .iter()
            .map(|one| json!([one["backend_node_id"], format!("<{} {}>", one["tag"], source.words(5))]))
            .collect();
        let chosen = group.iter().position(|one| one["backend_node_id"] == favourite["backend_node_id"]);
        // A model may name a choice that does not exist, which counts for nothing.
        let letter = match chosen {
            Some(at) => char::from(b'B' + u8::try_from(at).expect("a letter")),
            None if source.one_in(30) => 'Z',
            None => 'A',
        };
        let reply = match letter {
            'A' => "A.".to_owned(),
            letter if operation == "CLICK" => format!("{letter}.\nAction: {operation}\n"),
            letter => format!("{letter}.\nAction: {operation}\nValue: {predicted}"),
        };
        let ids: Vec<&Value> = group.iter().map(|one| &one["backend_node_id"]).collect();
        out.push(json!([ids, [source.words(30), source.words(20), choices], reply]));
        if let Some(at) = chosen {
            open.push(group[at]);
        }
    }
    out
}

fn page(candidates: &[Value], source: &mut Source) -> String {
    let one = |candidate: &Value| {
        let (tag, id) = (candidate["tag"].as_str().unwrap_or_default(), &candidate["backend_node_id"]);
        format!(
            "<{tag} backend_node_id={id} class=\"item\"><text backend_node_id={id}>{}</text></{tag}>",
            source.words(3)
        )
    };
    format!("<html><body>{}</body></html>", candidates.iter().map(one).collect::<String>())
}
