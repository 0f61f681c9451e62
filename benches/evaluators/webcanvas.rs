//! WebCanvas: both published task files, with a generated trajectory of ten steps for each task.
//!
//! Each step has a page of 50 to 300 KB that contains the elements of the task's selectors. Most trajectories reach every
//! key node, one after the other; in every third one, the node in the middle is never reached.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use arenad_evaluators::webcanvas::{KeyNode, Target, Trajectory, WebCanvasTask, evaluate, questions, read};
use arenad_verdict::Profile;
use arenad_verdict::question::{Answer, KnownAnswers, Question, RuleQuestion};
use serde_json::{Value, json};

use super::inputs::Source;
use super::{Scores, Settings, compare, measure, number, size, spread};

const FILES: [&str; 2] = ["mind2web-live_test_20241024", "example_130"];

const STEPS: usize = 10;

/// Sizes of the pages in KB, in turn.
const SIZES: [usize; 8] = [50, 120, 60, 200, 80, 100, 300, 150];

/// The files that both sides read.
struct Inputs {
    tasks: Vec<PathBuf>,
    judge: PathBuf,
    /// The paths of trajectories, by the task that each belongs to.
    runs: BTreeMap<String, PathBuf>,
}

pub(super) fn run(settings: &Settings) {
    let Some(data) = &settings.data else {
        println!("webcanvas: ARENAD_BENCHMARK_DATA is not set, so there are no tasks to judge");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let inputs = Inputs::write(data, folder.path());
    let ours = measure(settings.rounds, |threads| judge(&inputs, threads));
    let bytes = inputs.runs.values().map(|file| size(file)).sum();
    let asked = json!({
        "benchmark": "webcanvas", "tasks": inputs.tasks, "judge": inputs.judge, "runs": inputs.runs,
    });
    let name = format!("WebCanvas, {} tasks", inputs.runs.len());
    compare(settings, &name, bytes, &ours, settings.rounds, asked);
}

fn judge(inputs: &Inputs, threads: usize) -> Scores {
    let mut tasks: BTreeMap<String, WebCanvasTask> = BTreeMap::new();
    for file in &inputs.tasks {
        tasks.extend(named(file));
    }
    let judged: Vec<(String, String, f64)> =
        serde_json::from_str(&super::read(&inputs.judge)).expect("answers of the judge");
    let told: Vec<(Question, Answer)> = judged
        .into_iter()
        .map(|(rule, answer, score)| {
            (Question::Rule(RuleQuestion { rule, answer, strict: false }), Answer::Value(json!(score)))
        })
        .collect();
    let told = KnownAnswers::from(told);
    let runs: Vec<(&String, &PathBuf)> = inputs.runs.iter().collect();
    let one = |(name, file): &(&String, &PathBuf)| {
        let trajectory = Trajectory::read(&super::read(file)).expect("a trajectory");
        let report = evaluate(&tasks[*name], &trajectory, &told, Profile::Compat);
        ((*name).clone(), report.score.map_or(Value::Null, number))
    };
    spread(&runs, threads, one).into_iter().collect()
}

/// The tasks of a file, by the names of the file and the task.
fn named(file: &Path) -> Vec<(String, WebCanvasTask)> {
    let stem = file.file_stem().expect("a name").to_string_lossy().into_owned();
    let tasks = read(&super::read(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    tasks.into_iter().map(|task| (format!("{stem}/{}", task.id), task)).collect()
}

impl Inputs {
    fn write(data: &Path, folder: &Path) -> Self {
        let tasks: Vec<PathBuf> = FILES.map(|file| data.join(format!("webcanvas/{file}.json"))).into();
        let (mut runs, mut judged) = (BTreeMap::new(), Vec::new());
        for (at, (name, task)) in tasks.iter().flat_map(|file| named(file)).enumerate() {
            let file = folder.join(format!("{at}.json"));
            let trajectory = trajectory(&task, at).to_string();
            judged.extend(answers(&task, &trajectory));
            super::write(&file, &trajectory);
            runs.insert(name, file);
        }
        let judge = folder.join("judge.json");
        super::write(&judge, &json!(judged).to_string());
        Self { tasks, judge, runs }
    }
}

/// Returns the judge's answers to all questions of a trajectory.
fn answers(task: &WebCanvasTask, trajectory: &str) -> Vec<(String, String, f64)> {
    const SCORES: [f64; 5] = [1.0, 0.85, 1.0, 0.333, 0.0];
    let trajectory = Trajectory::read(trajectory).expect("a trajectory");
    let (mut told, mut out) = (KnownAnswers::default(), Vec::new());
    loop {
        let asked = questions(task, &trajectory, &told, Profile::Compat);
        if asked.is_empty() {
            return out;
        }
        for question in asked {
            let Question::Rule(rule) = &question else { panic!("key nodes ask for rules only: {question:?}") };
            let score = SCORES[(rule.rule.len() + rule.answer.len()) % SCORES.len()];
            out.push((rule.rule.clone(), rule.answer.clone(), score));
            told.tell(question, Answer::Value(json!(score)));
        }
    }
}

fn trajectory(task: &WebCanvasTask, at: usize) -> Value {
    let nodes = &task.nodes;
    let never = (at % 3 == 2).then_some(nodes.len() / 2);
    let elements: String = nodes.iter().filter_map(selector).map(markup).collect();
    let steps: Vec<Value> = (0..STEPS)
        .map(|step| {
            let mut source = Source::new(u64::try_from(at * STEPS + step).expect("a seed"));
            let html = page(&elements, SIZES[(at + step) % SIZES.len()] << 10, &mut source);
            // The nodes are reached at equal distances, the last one in the last step.
            let next = (step * nodes.len()) / STEPS;
            let is_reached = ((step + 1) * nodes.len()) / STEPS > next && never != Some(next);
            let node = &nodes[next];
            let address = node.recorded_url.clone().unwrap_or_default();
            let host = address.split('/').nth(2).unwrap_or_default();
            let item = source.below(20);
            let mut own = json!({
                "url": format!("https://{host}/browse?page={step}&sort=price%20up"), "html": html,
                "selector": format!("#f-item-{item} > div:nth-child(2) > h3 > a"), "element_value": "something else",
                "text_content": null,
            });
            if !is_reached {
                return own;
            }
            own["url"] = json!(address);
            if let Some(selector) = selector(node) {
                own["selector"] = json!(parent(selector).filter(|_| step % 2 == 0).unwrap_or(selector));
            }
            if matches!(node.target, Target::Value { .. }) {
                own["element_value"] = json!(node.reference);
            }
            own
        })
        .collect();
    json!({ "task": task.id, "steps": steps })
}

/// The selector of a node, if it has one.
fn selector(node: &KeyNode) -> Option<&str> {
    match &node.target {
        Target::Path { .. } => Some(&node.reference),
        Target::Value { path, .. } => path.as_deref(),
        _ => None,
    }
}

/// The selector without its last part, if that part is a child.
fn parent(selector: &str) -> Option<&str> {
    selector.rsplit_once('>').map(|(parent, _)| parent).filter(|parent| !parent.trim().is_empty())
}

/// Markup with the element that a selector names: the published ones have tags, identifiers, classes, places among
/// siblings, children and descendants.
fn markup(selector: &str) -> String {
    let (mut before, mut after) = (String::new(), String::new());
    let spaced = selector.replace('>', " > ");
    let mut is_child = true;
    for part in spaced.split_whitespace() {
        if part == ">" {
            is_child = true;
            continue;
        }
        if !std::mem::take(&mut is_child) {
            before.push_str("<div class=\"f-inner\">");
            after.insert_str(0, "</div>");
        }
        let end = part.find(['.', '#', ':']).unwrap_or(part.len());
        let tag = if end == 0 { "div" } else { &part[..end] };
        let (named, place) = part[end..].split_once(":nth-child(").unwrap_or((&part[end..], "1)"));
        let place: usize = place.trim_end_matches(')').parse().expect("a place among siblings");
        before.extend((1..place).map(|_| format!("<{tag} class=\"f-sibling\"></{tag}>")));
        let (classes, id) = named.split_once('#').map_or((named, None), |(classes, id)| (classes, Some(id)));
        let (id, more) =
            id.map_or((None, ""), |id| id.split_once('.').map_or((Some(id), ""), |(id, more)| (Some(id), more)));
        let classes: Vec<&str> = classes.split('.').chain(more.split('.')).filter(|class| !class.is_empty()).collect();
        let id = id.map(|id| format!(" id=\"{id}\"")).unwrap_or_default();
        let _ = write!(before, "<{tag}{id} class=\"{}\" data-track=\"click\">", classes.join(" "));
        after.insert_str(0, &format!("</{tag}>"));
    }
    format!("{before}Choose{after}\n")
}

/// A page of at least some length with given elements in its middle, with markup as shops have it: styles and data in
/// scripts, links, cards with pictures and buttons, character references, comments.
fn page(elements: &str, length: usize, source: &mut Source) -> String {
    let mut out =
        String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Shop</title>\n");
    for number in 0..12 {
        let _ = writeln!(out, "<link rel=\"stylesheet preload\" href=\"/static/css/theme-{number}.css?v=3&amp;m=1\">");
        let _ = writeln!(out, "<meta property=\"og:part:{number}\" content=\"{}\">", source.words(8));
    }
    out.push_str("<style>\n");
    while out.len() < length / 12 {
        let (number, width) = (source.below(500), source.below(90));
        let _ =
            writeln!(out, ".f-part-{number} > .f-link:hover {{ width: {width}%; margin: 0 4px; color: #0a{width} }}");
    }
    out.push_str("</style>\n<script type=\"application/json\">\n");
    while out.len() < length / 4 {
        let (number, words) = (source.below(9000), source.words(6));
        let _ = writeln!(
            out,
            "{{\"sku\": \"A-{number}\", \"name\": \"{words}\", \"html\": \"<b>x<\\/b>\", \"next\": [1, 2]}},"
        );
    }
    out.push_str("</script></head>\n<body class=\"f-page\"><header role=\"banner\"><ul class=\"f-menu f-wide\">\n");
    for number in 0..40 {
        let words = source.words(2);
        let _ = writeln!(
            out,
            "<li class=\"f-entry\"><a class=\"f-link\" href=\"/c/{number}?a=1&amp;b=2\">{words}</a></li>"
        );
    }
    out.push_str("</ul></header>\n<main>\n");
    let (mut number, mut is_placed) = (0, false);
    while out.len() < length || number < 20 || !is_placed {
        if !is_placed && out.len() > length / 2 {
            out.push_str(elements);
            is_placed = true;
        }
        card(&mut out, number, source);
        number += 1;
    }
    out.push_str("</main><footer><p>&copy; 2026 Shop &amp; Sons</p></footer></body></html>\n");
    out
}

fn card(out: &mut String, number: usize, source: &mut Source) {
    let (name, text, price) = (source.words(4), source.words(18), source.below(900));
    let _ = writeln!(
        out,
        "<div class=\"f-card f-col-4 f-shadow\" id=\"f-item-{number}\" data-sku=\"A-{price}\" \
         data-event=\"{{&quot;list&quot;:&quot;main&quot;,&quot;place&quot;:{number}}}\">\n  \
         <a class=\"f-link f-picture\" href=\"/p/{number}?from=list&amp;place={number}\" tabindex=\"-1\"><img \
         class=\"f-thumb\" src=\"/media/{price}-small.jpg\" srcset=\"/media/{price}.jpg 2x\" alt=\"{name}\" \
         loading=\"lazy\"></a>\n  <div class=\"f-body\"><h3 class=\"f-name\"><a href=\"/p/{number}\">{name}</a></h3>\n  \
         <span class=\"f-price\" aria-label='price'>&pound;{price}.99</span><br/>\n  <p class=\"f-text f-small\">{text} \
         &mdash; {name}&nbsp;&hellip;</p>\n  <button type=\"button\" class=\"f-button f-add\" disabled \
         aria-label=\"Add {name}\"><svg viewBox=\"0 0 24 24\" width=24><path d=\"M3 3h2l.4 2M7 13h10l4-8H5.4\"/></svg>\
         <span>Add to basket</span></button></div>\n</div><!-- end of card {number} -->"
    );
}
