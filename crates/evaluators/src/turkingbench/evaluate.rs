//! Judges the fields of one instance, and fills them as the baselines do.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use arenad_dom::{NodeId, Tree, soup};
use arenad_verdict::{Check, Profile, Report, Verdict, excerpt};
use serde_json::{Value, json};

use super::fields::{FieldScore, FieldState, calculate_metrics, counted, is_text, majority};
use super::gold::Batch;
use super::label::Label;
use super::strict;
use super::template::populate_html_template;
use crate::text::python_list;
use crate::text::raised::Raised;

/// An instance that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstanceError {
    /// The evidence does not have the form of an instance.
    #[error("the instance is malformed at `{place}`; expected {expected}")]
    Malformed {
        /// The field at fault.
        place: String,
        /// Description of the expected content.
        expected: &'static str,
    },
    /// The benchmark's code raises on the files of the task.
    #[error("task {task}")]
    Raised {
        /// Name of the task.
        task: String,
        /// The exception that the code raises.
        #[source]
        cause: Raised,
    },
}

/// One instance of a task: a row of inputs, its fields, and the answers of the annotators.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Name of the task.
    pub task: String,
    /// Number of the instance within its task, from 0.
    pub number: usize,
    /// The input by column, in order.
    pub input: Vec<(String, String)>,
    /// Names and kinds of the fields that have answers, in the order of the columns. Fields that scripts make are not in
    /// the template and have no kind.
    pub fields: Vec<(String, Option<String>)>,
    /// The answers by field.
    pub labels: BTreeMap<String, Vec<Label>>,
    /// The page before anything is done on it.
    pub initial: Vec<FieldState>,
}

impl Instance {
    /// Reads an instance from a task's files.
    ///
    /// # Errors
    ///
    /// Returns an error if the benchmark's code raises.
    pub fn load(task: &str, template: &str, batch: &Batch, number: usize) -> Result<Self, InstanceError> {
        let input = batch.input(number);
        let page = soup::parse(&populate_html_template(template, &input));
        let named = named(&page);
        let found = batch.fields().filter_map(|name| Some((name, named.get(name)?)));
        let initial: Vec<FieldState> = found.filter_map(|(name, nodes)| state(&page, name, nodes)).collect();
        let kind = |name: &str| initial.iter().find(|field| field.name == name).map(|field| field.kind.clone());
        let fields: Vec<(String, Option<String>)> = batch.fields().map(|name| (name.to_owned(), kind(name))).collect();
        let asked: Vec<(&str, &str)> =
            fields.iter().map(|(name, kind)| (name.as_str(), kind.as_deref().unwrap_or_default())).collect();
        let at = i64::try_from(number).unwrap_or(i64::MAX);
        let labels = batch
            .labels(at, &asked, None)
            .map_err(|cause| InstanceError::Raised { task: format!("{task}/{number}"), cause })?;
        Ok(Self { task: task.to_owned(), number, input, fields, labels, initial })
    }

    /// Returns the instance as JSON, for evidence.
    #[must_use]
    pub fn value(&self) -> Value {
        let labels = |labels: &Vec<Label>| labels.iter().map(Label::stored).collect::<Vec<_>>();
        json!({
            "task": self.task, "instance": self.number, "input": self.input,
            "fields": self.fields.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect::<Vec<_>>(),
            "labels": self.labels.iter().map(|(name, own)| (name.clone(), labels(own))).collect::<BTreeMap<_, _>>(),
            "initial": self.initial.iter().map(field_value).collect::<Vec<_>>(),
        })
    }

    /// Reads an instance from evidence.
    ///
    /// # Errors
    ///
    /// Returns an error that names the field at fault.
    pub fn read(value: &Value) -> Result<Self, InstanceError> {
        let wrong = |place: &str, expected| InstanceError::Malformed { place: place.to_owned(), expected };
        let list = |place: &'static str| value[place].as_array().ok_or_else(|| wrong(place, "a list"));
        let pair = |entry: &Value| Some((entry[0].as_str()?.to_owned(), entry[1].as_str()?.to_owned()));
        let field =
            |entry: &Value| Some((entry["name"].as_str()?.to_owned(), entry["type"].as_str().map(str::to_owned)));
        let labels = value["labels"].as_object().ok_or_else(|| wrong("labels", "an object"))?;
        let own = |own: &Value| own.as_array().map(|own| own.iter().map(Label::of).collect::<Vec<_>>());
        Ok(Self {
            task: value["task"].as_str().ok_or_else(|| wrong("task", "a name"))?.to_owned(),
            number: value["instance"]
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(|| wrong("instance", "a number"))?,
            input: list("input")?
                .iter()
                .map(pair)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("input", "pairs of texts"))?,
            fields: list("fields")?
                .iter()
                .map(field)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("fields", "names and types"))?,
            labels: labels
                .iter()
                .map(|(name, labels)| own(labels).map(|own| (name.clone(), own)))
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("labels", "lists"))?,
            initial: list("initial")?
                .iter()
                .map(read_field)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("initial", "fields"))?,
        })
    }

    /// Reads an agent's answer: `{"fields": [...]}` with the states of the page's fields, `{"answers": {...}}` with a text
    /// or a list of texts for each field, or `{"submitted": {...}}` with the same of a form that was sent. Fields that are
    /// not answered stay as they were; in a form that was sent, they are empty, because a browser leaves out what is not
    /// chosen.
    ///
    /// # Errors
    ///
    /// Returns an error that names the field at fault.
    pub fn states(&self, answer: &str) -> Result<Vec<FieldState>, InstanceError> {
        let wrong = |place: &str, expected| InstanceError::Malformed { place: place.to_owned(), expected };
        if answer.is_empty() {
            return Ok(self.initial.clone());
        }
        let value: Value = serde_json::from_str(answer).map_err(|_| wrong("the answer", "JSON"))?;
        if let Some(fields) = value["fields"].as_array() {
            return fields
                .iter()
                .map(read_field)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("fields", "`name`, `type` and `values`"));
        }
        let is_submitted = value["submitted"].is_object();
        let answers = value[if is_submitted { "submitted" } else { "answers" }].as_object();
        let answers = answers.ok_or_else(|| wrong("answers", "an object, or a list `fields`"))?;
        let mut out = Vec::new();
        for (name, kind) in &self.fields {
            let initial = self.initial.iter().find(|field| field.name == *name);
            let Some(answer) = answers.get(name).or(is_submitted.then_some(&Value::Null)) else {
                out.extend(initial.cloned());
                continue;
            };
            let Some(kind) = kind else { continue };
            let one = |value: &Value| {
                value.as_str().map_or_else(|| Some(Label::of(value).text()), |text| Some(text.to_owned()))
            };
            let values = match answer {
                Value::Null => Vec::new(),
                Value::Array(values) => values.iter().map(one).collect(),
                // A form that was sent has several values as a list, so a bar is part of a value.
                Value::String(text) if kind == "checkbox" && !is_submitted => several(text),
                Value::String(text) if kind == "select" && !is_submitted => match python_list::texts(text) {
                    Some(texts) => texts.into_iter().map(Some).collect(),
                    None => vec![Some(text.clone())],
                },
                other => vec![one(other)],
            };
            let displayed = initial.is_none_or(|field| field.displayed);
            out.push(FieldState { name: name.clone(), kind: kind.clone(), values, displayed });
        }
        Ok(out)
    }
}

/// The values of checkboxes in one cell of a table: parted by bars, or the list that Turkle's results have.
fn several(text: &str) -> Vec<Option<String>> {
    let parts = || text.split('|').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    python_list::texts(text).unwrap_or_else(parts).into_iter().map(Some).collect()
}

fn field_value(field: &FieldState) -> Value {
    json!({ "name": field.name, "type": field.kind, "values": field.values, "displayed": field.displayed })
}

fn read_field(entry: &Value) -> Option<FieldState> {
    let value = |value: &Value| value.as_str().map(str::to_owned);
    Some(FieldState {
        name: entry["name"].as_str()?.to_owned(),
        kind: entry["type"].as_str()?.to_owned(),
        values: entry["values"].as_array()?.iter().map(value).collect(),
        displayed: entry["displayed"].as_bool().unwrap_or(true),
    })
}

/// The elements of a page by the attribute `name`, in the order of the page.
fn named(page: &Tree) -> HashMap<&str, Vec<NodeId>> {
    let mut named: HashMap<&str, Vec<NodeId>> = HashMap::new();
    for node in page.descendants(Tree::DOCUMENT) {
        if let Some(name) = page.attribute(node, "name") {
            named.entry(name).or_default().push(node);
        }
    }
    named
}

/// The state of a field in the page's source, read as the published code reads pages; `None` if it is not one. `all` are
/// the elements of its name. A field of the type `hidden`, or within an element that a style hides, is not displayed.
fn state(page: &Tree, name: &str, all: &[NodeId]) -> Option<FieldState> {
    let first = *all.first()?;
    let kind = match page.name(first)? {
        "input" => page.attribute(first, "type").filter(|kind| !kind.is_empty()).unwrap_or("text").to_ascii_lowercase(),
        kind @ ("textarea" | "select") => kind.to_owned(),
        _ => return None,
    };
    let value = |node: NodeId| page.attribute(node, "value").map(str::to_owned);
    let values = match kind.as_str() {
        "textarea" => all
            .iter()
            .filter(|node| page.attribute(**node, "readonly").is_none())
            .map(|node| Some(page.text(*node)))
            .collect(),
        "select" => {
            let options: Vec<NodeId> = page.elements(first).filter(|node| page.name(*node) == Some("option")).collect();
            let chosen = options.iter().rev().find(|option| page.attribute(**option, "selected").is_some());
            let is_multiple = page.attribute(first, "multiple").is_some();
            let chosen = chosen.or(if is_multiple { None } else { options.first() });
            let text = |option: &NodeId| Some(value(*option).unwrap_or_else(|| page.text(*option).trim().to_owned()));
            chosen.map(text).into_iter().collect()
        }
        "radio" | "checkbox" => {
            let is_checked = |node: &&NodeId| page.attribute(**node, "checked").is_some();
            let checked =
                all.iter().filter(is_checked).map(|node| Some(value(*node).unwrap_or_else(|| "on".to_owned())));
            if kind == "radio" { checked.rev().take(1).collect() } else { checked.collect() }
        }
        _ => all.iter().map(|node| value(*node)).collect(),
    };
    let hides_by = |style: &str| {
        let style = style.replace(' ', "").to_ascii_lowercase();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    let hides =
        |node: NodeId| page.attribute(node, "style").is_some_and(hides_by) || page.attribute(node, "hidden").is_some();
    let displayed = kind != "hidden" && !std::iter::once(first).chain(page.ancestors(first)).any(hides);
    Some(FieldState { name: name.to_owned(), kind, values, displayed })
}

/// A way of answering without a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// Answers with the labels.
    Oracle,
    /// Leaves the page as it is.
    DoNothing,
}

/// Fills the fields of an instance. Where the published oracle draws a label at random, this one takes the first.
#[must_use]
pub fn baseline(instance: &Instance, baseline: Baseline) -> Vec<FieldState> {
    if baseline == Baseline::DoNothing {
        return instance.initial.clone();
    }
    let fill = |field: &FieldState| {
        let labels = instance.labels.get(&field.name).map(Vec::as_slice).unwrap_or_default();
        let mut filled = field.clone();
        let texts =
            || labels.iter().map(Label::cleaned).filter(|text| !text.is_empty() && text != "nan" && text != "{}");
        match field.kind.as_str() {
            _ if !field.displayed || labels.is_empty() => {}
            "checkbox" => {
                let first = labels.first().map(Label::text).unwrap_or_default();
                filled.values =
                    first.split('|').filter(|part| !part.is_empty()).map(|part| Some(part.to_owned())).collect();
            }
            "radio" | "select" => {
                filled.values = majority(labels).map(|label| Some(label.text())).into_iter().collect();
            }
            "range" => {
                let numbers: Vec<f64> =
                    labels.iter().filter_map(Label::float).filter(|number| !number.is_nan()).collect();
                #[expect(clippy::cast_precision_loss, reason = "there are few annotators")]
                let mean = numbers.iter().sum::<f64>() / numbers.len().max(1) as f64;
                filled.values = vec![Some(mean.to_string())];
            }
            kind if is_text(kind) || !matches!(kind, "submit" | "button") => {
                if let Some(text) = texts().next() {
                    filled.values = vec![Some(text)];
                }
            }
            _ => {}
        }
        filled
    };
    instance.initial.iter().map(fill).collect()
}

/// Judges an instance: each field that counts is a check, and the instance passes if all are 1. The score is their mean;
/// by the published rules a range counts as 1 in it whatever it is.
#[must_use]
pub fn evaluate(instance: &Instance, fields: &[FieldState], profile: Profile) -> Report {
    let (mut checks, mut scores) = (Vec::new(), Vec::new());
    for field in fields {
        let counted = match counted(field, &instance.labels) {
            Ok(Some(counted)) => counted,
            Ok(None) => continue,
            // A field without a column of answers is not one of the benchmark's.
            Err(_) => continue,
        };
        let scored = match profile {
            Profile::Compat => calculate_metrics(&counted.labels, &field.kind, &counted.output)
                .map(|score| if field.kind == "range" { 1.0 } else { score })
                .map_err(|raised| raised.to_string()),
            Profile::Strict => strict::score(&counted).map_err(str::to_owned),
        };
        let (check, score) = checked(&counted, scored, profile);
        scores.extend(score);
        checks.push(check);
    }
    if checks.is_empty() {
        let (verdict, reason) = match profile {
            Profile::Compat => (Verdict::Failed, "no field counts, which the published code scores 0"),
            Profile::Strict => (Verdict::Unsupported, "no field counts"),
        };
        checks.push(Check::open("field", "any", "", Value::Null, verdict, reason));
        scores.push(0.0);
    }
    let mut report = Report::of(profile, checks);
    if report.score.is_some() {
        #[expect(clippy::cast_precision_loss, reason = "a page has few fields")]
        let count = scores.len() as f64;
        report.score = Some(scores.iter().sum::<f64>() / count);
    }
    report
}

/// Returns the kinds and scores of the fields that count. A range has its true score here.
#[must_use]
pub fn field_scores(instance: &Instance, fields: &[FieldState], profile: Profile) -> Vec<(String, f64)> {
    let mut out = Vec::new();
    for field in fields {
        let Ok(Some(counted)) = counted(field, &instance.labels) else { continue };
        let score = match profile {
            Profile::Compat => calculate_metrics(&counted.labels, &field.kind, &counted.output).ok(),
            Profile::Strict => strict::score(&counted).ok(),
        };
        out.extend(score.map(|score| (field.kind.clone(), score)));
    }
    out
}

fn checked(field: &FieldScore, scored: Result<f64, String>, profile: Profile) -> (Check, Option<f64>) {
    let expected = Value::from(field.labels.iter().map(Label::value).collect::<Vec<_>>());
    let (verdict, reason, score) = match scored {
        Ok(score) if score >= 1.0 => (Verdict::Passed, None, Some(score)),
        Ok(score) => (Verdict::Failed, Some(format!("score {score:.4}")), Some(score)),
        Err(reason) => {
            (if profile == Profile::Compat { Verdict::Failed } else { Verdict::Unsupported }, Some(reason), None)
        }
    };
    let check = Check {
        name: Some(field.name.clone()),
        evaluator: Cow::Borrowed("field"),
        rule: field.kind.clone(),
        place: String::new(),
        expected,
        found: Some(excerpt(&field.output)),
        verdict,
        reason,
        duration_ms: None,
        parts: Vec::new(),
    };
    (check, score.or((profile == Profile::Compat).then_some(0.0)))
}
