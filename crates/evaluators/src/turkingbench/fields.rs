//! The scores of single fields and of whole instances. Source: `calculate_metrics` and `score_outputs` in
//! `src/evaluation_class.py`.

use std::collections::BTreeMap;

use super::label::{Label, clean_values, try_numeric};
use super::rouge::{Prediction, normalize_answer};
use crate::text::numbers::float;
use crate::text::raised::Raised;

/// Names of fields that never count.
pub const EXCLUDED: [&str; 4] = ["csrfmiddlewaretoken", "worker_ip", "ee", "submit"];

/// A field of a page as the agent left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldState {
    /// Name of the field.
    pub name: String,
    /// `text`, `textarea`, `select`, or the type of the `input`.
    pub kind: String,
    /// The values that the page reported.
    pub values: Vec<Option<String>>,
    /// Whether the field is displayed; fields that are not do not count.
    pub displayed: bool,
}

/// Whether fields of a kind hold free text.
#[must_use]
pub fn is_text(kind: &str) -> bool {
    matches!(kind, "text" | "textarea" | "hidden")
}

/// `calculate_metrics`: the score of one field.
///
/// # Errors
///
/// Returns an error if the benchmark's code raises: for unknown kinds, and for texts whose labels are all empty.
pub fn calculate_metrics(labels: &[Label], kind: &str, output: &str) -> Result<f64, Raised> {
    let is_empty = |label: &Label| *label == Label::Text(String::new());
    if labels.is_empty() || (labels.len() == 1 && is_empty(&labels[0])) {
        return Ok(as_score(matches!(output, "" | "[]" | "['']")));
    }
    match kind {
        text if is_text(text) => {
            let plain = |text: &str| text.replace("&amp;", "&");
            let prediction = try_numeric(&plain(output));
            let prediction = Prediction::new(&prediction);
            let labels = labels.iter().map(Label::text).filter(|label| !label.is_empty());
            let scores = labels.map(|label| prediction.rouge(&try_numeric(&plain(&label))));
            scores.reduce(f64::max).ok_or_else(|| Raised::new("ValueError", "all labels are empty".to_owned()))
        }
        "radio" | "select" => {
            let majority = majority(labels).map(Label::text).unwrap_or_default();
            Ok(as_score(is_equal(output, &majority)))
        }
        "checkbox" => Ok(as_score(labels.iter().any(|label| is_equal(output, &label.text())))),
        "range" => Ok(range(labels, output)),
        other => Err(Raised::new("Exception", format!("to be implemented for type `{other}`"))),
    }
}

fn as_score(fits: bool) -> f64 {
    if fits { 1.0 } else { 0.0 }
}

/// `exact_match` after `try_numeric` of both sides.
pub(super) fn is_equal(output: &str, label: &str) -> bool {
    output == label || normalize_answer(&try_numeric(output)) == normalize_answer(&try_numeric(label))
}

/// The label with the most votes, and among equals the first one.
pub(super) fn majority(labels: &[Label]) -> Option<&Label> {
    let mut votes: Vec<(&Label, usize)> = Vec::new();
    for label in labels {
        match votes.iter_mut().find(|(known, _)| known.is_same(label)) {
            Some((_, count)) => *count += 1,
            None => votes.push((label, 1)),
        }
    }
    let most = votes.iter().map(|(_, count)| *count).max()?;
    votes.into_iter().find(|(_, count)| *count == most).map(|(label, _)| label)
}

/// One minus the mean distance to the annotators, by the largest number involved. NaN stays NaN.
fn range(labels: &[Label], output: &str) -> f64 {
    let numbers: Option<Vec<f64>> = labels.iter().map(Label::float).collect();
    let texts: Vec<String> = match (&numbers, float(output)) {
        (Some(numbers), Some(output)) => {
            let mean = mean(numbers.iter().map(|number| (number - output).abs()));
            // numpy's maximum of numbers with a NaN is NaN.
            let largest = numbers.iter().fold(0.0_f64, |largest, number| {
                if largest.is_nan() || number.is_nan() { f64::NAN } else { largest.max(number.abs()) }
            });
            let denominator = if output.abs() > largest { output.abs() } else { largest };
            return 1.0 - if denominator > 0.0 { mean / denominator } else { mean };
        }
        // The labels have been converted before the output failed.
        (Some(numbers), None) => numbers
            .iter()
            .map(|number| if number.is_nan() { "nan".to_owned() } else { Label::Float(*number).text() })
            .collect(),
        (None, _) => labels.iter().map(Label::text).collect(),
    };
    mean(texts.iter().map(|label| as_score(is_equal(output, label))))
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    sum / count
}

/// The score of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceScore {
    /// The mean over the fields that count; 0 without any.
    pub score: f64,
    /// The scores of the fields, by kind, in the order of the fields.
    pub by_kind: BTreeMap<String, Vec<f64>>,
    /// The scores of the fields that count.
    pub fields: Vec<FieldScore>,
}

/// The score of a field that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldScore {
    /// Name of the field.
    pub name: String,
    /// Kind of the field.
    pub kind: String,
    /// The value that was compared.
    pub output: String,
    /// The labels that it was compared with, in the form that was compared.
    pub labels: Vec<Label>,
    /// The score of the field. It is NaN for a range whose labels are empty.
    pub score: f64,
}

/// `score_outputs`: the score of an instance. `labels` gives the answers of the annotators by field.
///
/// # Errors
///
/// Returns an error if the benchmark's code raises.
pub fn score_outputs(fields: &[FieldState], labels: &BTreeMap<String, Vec<Label>>) -> Result<InstanceScore, Raised> {
    fields.iter().try_for_each(extract)?;
    let (mut sum, mut count) = (0.0, 0.0);
    let mut by_kind: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut scored = Vec::new();
    for field in fields {
        let Some(counted) = counted(field, labels)? else { continue };
        let score = calculate_metrics(&counted.labels, &field.kind, &counted.output)?;
        by_kind.entry(field.kind.clone()).or_default().push(score);
        // A range counts as answered in full.
        sum += if field.kind == "range" { 1.0 } else { score };
        count += 1.0;
        scored.push(FieldScore { score, ..counted });
    }
    let score = if count > 0.0 { sum / count } else { 0.0 };
    Ok(InstanceScore { score, by_kind, fields: scored })
}

/// The kinds of fields that the benchmark's code reads from pages.
const READ: [&str; 19] = [
    "textarea",
    "text",
    "password",
    "email",
    "number",
    "tel",
    "url",
    "button",
    "color",
    "date",
    "datetime-local",
    "file",
    "image",
    "range",
    "hidden",
    "select",
    "radio",
    "checkbox",
    "submit",
];

/// `extract_values` of one field, which is done for all of them before the first one is scored.
fn extract(field: &FieldState) -> Result<(), Raised> {
    if !READ.contains(&field.kind.as_str()) {
        return Err(Raised::new("Exception", format!("to be implemented for type `{}`", field.kind)));
    }
    if field.kind == "radio" && field.values.len() > 1 {
        return Err(Raised::new("AssertionError", format!("`{}` has {} values", field.name, field.values.len())));
    }
    Ok(())
}

/// Returns what is compared of a field, without a score; `None` if the field does not count.
pub(super) fn counted(field: &FieldState, labels: &BTreeMap<String, Vec<Label>>) -> Result<Option<FieldScore>, Raised> {
    if EXCLUDED.contains(&field.name.as_str()) || field.kind == "submit" || !field.displayed {
        return Ok(None);
    }
    let known = labels.get(&field.name).ok_or_else(|| Raised::new("KeyError", field.name.clone()))?;
    if known.is_empty() && is_text(&field.kind) {
        return Ok(None);
    }
    let mut values = clean_values(&field.values);
    let (output, labels) = match field.kind.as_str() {
        "checkbox" => {
            values.sort_unstable();
            (values.join("|"), known.iter().map(sorted).collect())
        }
        text if is_text(text) => {
            let mut cleaned: Vec<String> = known.iter().map(without_placeholder).collect();
            cleaned.sort_unstable();
            cleaned.dedup();
            if cleaned.iter().all(String::is_empty) {
                return Ok(None);
            }
            (values.first().cloned().unwrap_or_default(), cleaned.into_iter().map(Label::Text).collect())
        }
        _ => (values.first().cloned().unwrap_or_default(), known.clone()),
    };
    Ok(Some(FieldScore { name: field.name.clone(), kind: field.kind.clone(), output, labels, score: 0.0 }))
}

/// The parts of a set in order.
fn sorted(label: &Label) -> Label {
    match label {
        Label::Text(text) if text.contains('|') => {
            let mut parts: Vec<&str> = text.split('|').collect();
            parts.sort_unstable();
            Label::Text(parts.join("|"))
        }
        other => other.clone(),
    }
}

/// The label of a text; words that stand for an empty cell become empty.
fn without_placeholder(label: &Label) -> String {
    match label {
        Label::Nan | Label::SharedNan => String::new(),
        Label::Text(text) if matches!(text.as_str(), "nan" | "{}" | "'{}'") => String::new(),
        other => other.cleaned(),
    }
}
