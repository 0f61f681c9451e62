//! TurkingBench: generated tasks in the published layout, of the published average size, and an answer to each instance.
//!
//! The published tasks have, on average, 218 instances, 519 responses and 29 columns of answers. These have 200
//! instances, up to three responses for each, and 28 fields of all types.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use arenad_evaluators::turkingbench::{Batch, FieldState, Instance, evaluate, field_scores, score_outputs};
use arenad_verdict::Profile;
use serde::Deserialize;
use serde_json::{Value, json};

use super::inputs::Source;
use super::{Scores, Settings, compare, measure, number, size, spread};

const TASKS: usize = 20;

const INSTANCES: usize = 200;

const RESPONSES_MAX: usize = 3;

/// The types of the fields of a task, with their numbers.
const KINDS: [(&str, usize); 7] =
    [("radio", 12), ("checkbox", 4), ("text", 4), ("textarea", 2), ("select", 3), ("range", 2), ("hidden", 1)];

const CHOICES: [&str; 5] = ["yes", "no", "not sure", "3", "A&B"];

/// The files that both sides read.
struct Inputs {
    tasks: PathBuf,
    answers: PathBuf,
}

/// Where the fields of an instance come from.
#[derive(Clone, Copy)]
enum Fields {
    /// The answer tells names, types and values, as a driver of the browser stored them. Each side scores them with its
    /// counterpart of the published functions.
    Stored,
    /// Each side fills the template of the task and finds the fields in the page. arenad judges the instance as
    /// `arenad eval` does, with a report. The published code asks a browser for the fields; the Python of the bench parses
    /// the page, which takes less time.
    OfPage,
}

pub(super) fn run(settings: &Settings) {
    let folder = tempfile::tempdir().expect("a folder");
    let inputs = Inputs::write(folder.path());
    let tables: u64 = (0..TASKS).map(|task| size(&inputs.tasks.join(task_name(task)).join("batch.csv"))).sum();
    let bytes = tables + size(&inputs.answers);
    for (fields, what) in [(Fields::Stored, "stored fields"), (Fields::OfPage, "fields of pages")] {
        let ours = measure(settings.rounds, |threads| judge(&inputs, fields, threads));
        let is_of_page = matches!(fields, Fields::OfPage);
        let asked = json!({
            "benchmark": "turkingbench", "tasks": inputs.tasks, "answers": inputs.answers, "of_page": is_of_page,
        });
        compare(settings, &format!("TurkingBench, {what}"), bytes, &ours, settings.rounds, asked);
    }
}

/// The part of an answer that tells its fields.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    fields: Vec<Given<'a>>,
}

/// A field of an answer.
#[derive(Deserialize)]
struct Given<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    values: Vec<Option<String>>,
    displayed: bool,
}

/// The part of an answer that tells its instance.
#[derive(Deserialize)]
struct AnswerPlace<'a> {
    task: &'a str,
    instance: usize,
}

fn judge(inputs: &Inputs, fields: Fields, threads: usize) -> Scores {
    let text = super::read(&inputs.answers);
    let mut by_task: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for line in text.lines() {
        let place: AnswerPlace<'_> = serde_json::from_str(line).expect("an answer");
        by_task.entry(place.task).or_default().push((place.instance, line));
    }
    let tasks: Vec<(&str, Vec<(usize, &str)>)> = by_task.into_iter().collect();
    let one = |(task, answers): &(&str, Vec<(usize, &str)>)| {
        let folder = inputs.tasks.join(task);
        let batch = Batch::read(&super::read(&folder.join("batch.csv"))).expect("a batch");
        let mut scores = Scores::new();
        match fields {
            Fields::Stored => {
                answers.iter().for_each(|(at, answer)| add_stored(&mut scores, &batch, (task, *at), answer));
            }
            Fields::OfPage => {
                let template = super::read(&folder.join("template.html"));
                for (at, answer) in answers {
                    let instance = Instance::load(task, &template, &batch, *at).expect("an instance");
                    add(&mut scores, &instance, &instance.states(answer).expect("an answer"));
                }
            }
        }
        scores
    };
    spread(&tasks, threads, one).into_iter().flatten().collect()
}

/// Adds the scores of an instance whose fields the answer tells.
fn add_stored(scores: &mut Scores, batch: &Batch, (task, instance): (&str, usize), answer: &str) {
    let answer: Answer<'_> = serde_json::from_str(answer).expect("an answer");
    let asked: Vec<(&str, &str)> = answer.fields.iter().map(|field| (field.name, field.kind)).collect();
    let labels = batch.labels(i64::try_from(instance).expect("a number"), &asked, None).expect("labels");
    let state = |field: Given<'_>| FieldState {
        name: field.name.to_owned(),
        kind: field.kind.to_owned(),
        values: field.values,
        displayed: field.displayed,
    };
    let fields: Vec<FieldState> = answer.fields.into_iter().map(state).collect();
    let scored = score_outputs(&fields, &labels).expect("scores");
    let name = format!("{task}/{instance}");
    for (kind, own) in scored.by_kind {
        for (at, score) in own.into_iter().enumerate() {
            scores.insert(format!("{name} {kind} {at}"), number(score));
        }
    }
    scores.insert(name, number(scored.score));
}

/// Adds the score of an instance, and those of its fields by type.
fn add(scores: &mut Scores, instance: &Instance, fields: &[FieldState]) {
    let name = format!("{}/{}", instance.task, instance.number);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (kind, score) in field_scores(instance, fields, Profile::Compat) {
        let count = counts.entry(kind.clone()).or_default();
        scores.insert(format!("{name} {kind} {count}"), number(score));
        *count += 1;
    }
    let report = evaluate(instance, fields, Profile::Compat);
    scores.insert(name, report.score.map_or(Value::Null, number));
}

fn task_name(task: usize) -> String {
    format!("Generated task {task:02}")
}

impl Inputs {
    fn write(folder: &Path) -> Self {
        let (tasks, answers) = (folder.join("tasks"), folder.join("answers.jsonl"));
        let mut lines = String::new();
        for task in 0..TASKS {
            let own = tasks.join(task_name(task));
            let mut source = Source::new(u64::try_from(task).expect("a seed"));
            super::write(&own.join("template.html"), &template(task, &mut source));
            super::write(&own.join("batch.csv"), &batch(task, &mut source, &mut lines));
        }
        super::write(&answers, &lines);
        Self { tasks, answers }
    }
}

/// The fields of a task: names and types.
fn fields() -> impl Iterator<Item = (String, &'static str)> {
    KINDS.into_iter().flat_map(|(kind, count)| (0..count).map(move |at| (format!("{kind}_{at}"), kind)))
}

fn template(task: usize, source: &mut Source) -> String {
    let mut out =
        format!("<h1>{}</h1>\n<style>.row {{ margin: 4px }}</style>\n<p>Read \"${{text}}\"</p>\n", task_name(task));
    for (name, kind) in fields() {
        let _ = writeln!(out, "<div class=\"row\"><label for=\"{name}\">{}</label>", source.words(8));
        let _ = match kind {
            "radio" | "checkbox" => CHOICES.iter().try_for_each(|choice| {
                let choice = choice.replace('&', "&amp;");
                writeln!(out, "<label><input type=\"{kind}\" name=\"{name}\" value=\"{choice}\"> {choice}</label>")
            }),
            "select" => {
                let options: String = CHOICES.iter().map(|choice| format!("<option>{choice}</option>")).collect();
                writeln!(out, "<select name=\"{name}\">{options}</select>")
            }
            "textarea" => writeln!(out, "<textarea name=\"{name}\" rows=\"4\"></textarea>"),
            kind => writeln!(out, "<input type=\"{kind}\" name=\"{name}\" id=\"{name}\" value=\"\">"),
        };
        out.push_str("</div>\n");
    }
    out.push_str("<input type=\"submit\" value=\"Send\">\n");
    out
}

/// A value as an annotator or an agent gives it; empty if the field was left alone. `near` is the right text of the
/// field, from which texts differ by a word or two.
fn value(kind: &str, near: &str, source: &mut Source) -> Option<String> {
    if source.one_in(12) {
        return None;
    }
    Some(match kind {
        "radio" | "select" => (*source.pick(&CHOICES[..3])).to_owned(),
        "checkbox" => {
            let chosen: Vec<&str> = CHOICES.iter().filter(|_| source.one_in(2)).copied().collect();
            chosen.join("|")
        }
        "range" => source.below(100).to_string(),
        _ if source.one_in(8) => format!("{}.0", source.below(50)),
        _ => {
            let kept = near.split(' ').filter(|_| !source.one_in(10)).collect::<Vec<_>>().join(" ");
            if source.one_in(3) { format!("{kept} & {}", source.words(2)) } else { kept }
        }
    })
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// The table of a task; adds the answers to its instances, one in each line.
fn batch(task: usize, source: &mut Source, answers: &mut String) -> String {
    let mut out = String::from("number,text,source");
    fields().for_each(|(name, _)| out.push_str(&format!(",Answer.{name}")));
    out.push('\n');
    for instance in 0..INSTANCES {
        let text = format!("{}, \"{}\"", source.words(25), source.words(3));
        let input = format!("{instance},{},https://pictures.example/{task}/{instance}.png", quoted(&text));
        let right: Vec<(String, &str, String)> = fields()
            .map(|(name, kind)| {
                let length = if kind == "textarea" { 20 } else { 5 };
                (name, kind, source.words(length))
            })
            .collect();
        for _ in 0..1 + source.below(RESPONSES_MAX) {
            out.push_str(&input);
            for (_, kind, near) in &right {
                let _ = write!(out, ",{}", quoted(&value(kind, near, source).unwrap_or_default()));
            }
            out.push('\n');
        }
        let states: Vec<Value> = right
            .iter()
            .map(|(name, kind, near)| {
                let given = value(kind, near, source);
                let values: Vec<String> = match (*kind, given) {
                    ("checkbox", given) => given
                        .iter()
                        .flat_map(|given| given.split('|'))
                        .filter(|part| !part.is_empty())
                        .map(str::to_owned)
                        .collect(),
                    (_, given) => given.into_iter().collect(),
                };
                json!({ "name": name, "type": kind, "values": values, "displayed": *kind != "hidden" })
            })
            .collect();
        let answer = json!({ "task": task_name(task), "instance": instance, "fields": states });
        let _ = writeln!(answers, "{answer}");
    }
    out
}
