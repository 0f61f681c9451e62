//! Tasks and prediction files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::steps::{Candidate, Prediction, RecordedStep};
use super::text::{postprocess_action, postprocess_action_free_text};
use crate::text::python::to_str;

/// A task or a prediction file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Mind2Web task {task}: `{place}` is missing or malformed; expected {expected}")]
pub struct Mind2WebFileError {
    /// Identifier of the task.
    pub task: String,
    /// The field at fault.
    pub place: String,
    /// Description of the expected content.
    pub expected: &'static str,
}

/// A task with its recorded steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Mind2WebTask {
    /// The `annotation_id` of the data.
    pub id: String,
    /// The instruction, `confirmed_task` in the data.
    pub intent: String,
    /// Name of the website.
    pub website: String,
    /// The steps, in order.
    pub steps: Vec<RecordedStep>,
}

/// Reads a data file: a list of tasks.
///
/// # Errors
///
/// Returns an error that names the task and the field at fault.
pub fn read(text: &str) -> Result<Vec<Mind2WebTask>, Mind2WebFileError> {
    let wrong = |expected| Mind2WebFileError { task: "list".into(), place: "the file".into(), expected };
    let value = slim(text).map_err(|_| wrong("JSON"))?;
    value.as_array().ok_or_else(|| wrong("a list of tasks"))?.iter().map(read_one).collect()
}

/// Reads one task.
///
/// # Errors
///
/// Returns an error that names the field at fault.
pub fn read_one(task: &Value) -> Result<Mind2WebTask, Mind2WebFileError> {
    let id = task["annotation_id"].as_str().unwrap_or_default().to_owned();
    let wrong = |place: String, expected| Mind2WebFileError { task: id.clone(), place, expected };
    let text = |name: &str| task[name].as_str().map(str::to_owned).ok_or_else(|| wrong(name.to_owned(), "a text"));
    let website = text("website")?;
    let actions = task["actions"].as_array().ok_or_else(|| wrong("actions".to_owned(), "a list"))?;
    let mut steps = Vec::new();
    for (at, action) in actions.iter().enumerate() {
        let field = |name: &str| format!("actions[{at}].{name}");
        let word =
            |value: &Value, name: &str| value.as_str().map(str::to_owned).ok_or_else(|| wrong(field(name), "a text"));
        let mut candidates = Vec::new();
        for (list, is_positive) in [("pos_candidates", true), ("neg_candidates", false)] {
            for entry in action[list].as_array().ok_or_else(|| wrong(field(list), "a list"))? {
                let id = word(&entry["backend_node_id"], &format!("{list}.backend_node_id"))?;
                candidates.push(Candidate { id, rank: entry["rank"].as_u64(), is_positive });
            }
        }
        steps.push(RecordedStep {
            task: id.clone(),
            action: word(&action["action_uid"], "action_uid")?,
            website: website.clone(),
            operation: word(&action["operation"]["op"], "operation.op")?,
            // As in the benchmark's code, a number or `null` becomes a text.
            value: action["operation"].get("value").map(to_str).unwrap_or_default(),
            candidates,
        });
    }
    text("annotation_id")?;
    Ok(Mind2WebTask { intent: text("confirmed_task")?, website, steps, id })
}

/// Reads the part of a data file that judging needs, which is a thousandth of it: pages and attributes are skipped, so
/// that they take no memory. A file without a list of tasks is returned as it is.
///
/// # Errors
///
/// Returns an error if the text is not JSON.
pub fn slim(text: &str) -> Result<Value, serde_json::Error> {
    if let Ok(tasks) = serde_json::from_str::<Vec<Object<SlimTask>>>(text) {
        return serde_json::to_value(tasks);
    }
    // A field has another type than in the published data. The reader of the tasks names it.
    let mut value: Value = serde_json::from_str(text)?;
    if let Value::Array(tasks) = &mut value {
        for task in tasks {
            let actions = task.get_mut("actions").and_then(Value::as_array_mut).into_iter().flatten();
            actions.filter_map(Value::as_object_mut).for_each(|action| {
                action.retain(|name, _| !matches!(name.as_str(), "raw_html" | "cleaned_html"));
            });
        }
    }
    Ok(value)
}

/// A value that is read from a JSON object only. A list of its fields would do otherwise, so that a prediction would be
/// read as a task.
#[derive(Serialize)]
#[serde(transparent)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// The part of a task that judging needs.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct SlimTask {
    annotation_id: Value,
    website: Value,
    domain: Value,
    subdomain: Value,
    confirmed_task: Value,
    actions: Option<Vec<Object<SlimAction>>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct SlimAction {
    action_uid: Value,
    operation: Value,
    pos_candidates: Option<Vec<Object<SlimCandidate>>>,
    neg_candidates: Option<Vec<Object<SlimCandidate>>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct SlimCandidate {
    backend_node_id: Value,
    rank: Value,
}

/// The predictions of a file, by task and action.
pub type Predictions = BTreeMap<String, BTreeMap<String, Prediction>>;

/// Reads a prediction file of the published code: `*_predictions_top*.json`, with an element and an action for each step,
/// or `*_outputs_top*.json`, with the replies of the model. Replies of language models name their choice by `Answer: `.
///
/// # Errors
///
/// Returns an error that names the entry at fault.
pub fn predictions(text: &str) -> Result<Predictions, Mind2WebFileError> {
    let wrong = |at: usize, expected| Mind2WebFileError { task: "list".into(), place: format!("[{at}]"), expected };
    let is_free = text.contains("Answer: ");
    let mut out = Predictions::new();
    if let Ok(entries) = serde_json::from_str::<Vec<RepliesEntry<'_>>>(text) {
        for (at, RepliesEntry(id, rounds)) in entries.iter().enumerate() {
            let (task, action) = id.split_once('_').ok_or_else(|| wrong(at, JOINED))?;
            out.entry(task.to_owned()).or_default().insert(action.to_owned(), replies(rounds, is_free));
        }
        return Ok(out);
    }
    let value: Value = serde_json::from_str(text).map_err(|_| wrong(0, "JSON"))?;
    let entries = value.as_array().ok_or_else(|| wrong(0, "a list of predictions"))?;
    for (at, entry) in entries.iter().enumerate() {
        let id = entry[0].as_str().ok_or_else(|| wrong(at, "`[\"TASK_ACTION\", …]`"))?;
        let (task, action) = id.split_once('_').ok_or_else(|| wrong(at, JOINED))?;
        let prediction = match (&entry[1], &entry[2]) {
            (Value::Array(rounds), _) => {
                let rounds: Vec<Round<'_>> = rounds.iter().map(Round::of).collect();
                replies(&rounds, is_free)
            }
            (element, action) => {
                let element = match element {
                    Value::String(element) => Some(element.clone()).filter(|element| !element.is_empty()),
                    Value::Number(element) => Some(element.to_string()),
                    Value::Null => None,
                    _ => return Err(wrong(at, "an element, or a list of replies")),
                };
                Prediction { element, action: action.as_str().unwrap_or_default().to_owned() }
            }
        };
        out.entry(task.to_owned()).or_default().insert(action.to_owned(), prediction);
    }
    Ok(out)
}

const JOINED: &str = "a task and an action, joined by `_`";

/// An entry of a file with the replies of a model, in the form in which the published code writes it. The texts that the
/// model was given, which are most of the file, are skipped.
#[derive(Deserialize)]
struct RepliesEntry<'a>(#[serde(borrow)] Cow<'a, str>, #[serde(borrow)] Vec<Round<'a>>);

/// The group of candidates; two texts that the model was given, and the choices; the reply.
#[derive(Deserialize)]
struct Round<'a>(IgnoredAny, #[serde(borrow)] RoundInput<'a>, #[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct RoundInput<'a>(IgnoredAny, IgnoredAny, #[serde(borrow)] Vec<Choice<'a>>);

/// An element, if it is a text, and its description.
#[derive(Deserialize)]
struct Choice<'a>(#[serde(borrow)] Option<Cow<'a, str>>, IgnoredAny);

impl<'a> Round<'a> {
    /// Reads a round that may have another form; what is missing is empty.
    fn of(round: &'a Value) -> Self {
        let choices = round[1][2].as_array().map(Vec::as_slice).unwrap_or_default();
        let choices = choices.iter().map(|choice| Choice(choice[0].as_str().map(Cow::Borrowed), IgnoredAny)).collect();
        let reply = Cow::Borrowed(round[2].as_str().unwrap_or_default());
        Self(IgnoredAny, RoundInput(IgnoredAny, IgnoredAny, choices), reply)
    }
}

/// The prediction that follows from the rounds of replies: the last choice of an element. In the published code for
/// language models, a letter beyond the choices drops the choice so far.
fn replies(rounds: &[Round<'_>], is_free: bool) -> Prediction {
    let mut prediction = Prediction { element: None, action: String::new() };
    for Round(_, RoundInput(_, _, choices), reply) in rounds {
        let parsed = if is_free { Ok(postprocess_action_free_text(reply)) } else { postprocess_action(reply) };
        let Ok(parsed) = parsed else { continue };
        let letter = parsed.choice.chars().next().map_or(0, u32::from);
        if letter == u32::from('A') {
            continue;
        }
        // Python counts negative places from the end.
        let place = i64::from(letter) - i64::from(u32::from('B'));
        let length = i64::try_from(choices.len()).unwrap_or(i64::MAX);
        let at = usize::try_from(if place < 0 { place + length } else { place });
        match at.ok().and_then(|at| choices.get(at)).and_then(|Choice(element, _)| element.as_deref()) {
            Some(element) => prediction = Prediction { element: Some(element.to_owned()), action: parsed.action },
            None if is_free => prediction = Prediction { element: None, action: String::new() },
            None => {}
        }
    }
    prediction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_form_lose_their_pages_as_well() {
        let task = |candidates: &str| {
            format!(
                r#"[{{"annotation_id": "t", "website": "w", "confirmed_task": "c", "actions": [{{"action_uid": "u",
                "raw_html": "<p>", "cleaned_html": "<p>", "operation": {{"op": "CLICK", "value": ""}},
                "neg_candidates": [{{"backend_node_id": "7", "rank": 2, "attributes": "{{}}"}}]{candidates}}}]}}]"#
            )
        };
        let usual = task(r#", "pos_candidates": [{"backend_node_id": "9"}]"#);
        // A repeated name is an error to the reader of the published form.
        let repeated = task(r#", "pos_candidates": [], "pos_candidates": [{"backend_node_id": "9"}]"#);
        for text in [&usual, &repeated] {
            let slim = slim(text).expect("JSON").to_string();
            assert!(!slim.contains("<p>"), "{slim}");
        }
        let tasks = read(&usual).expect("a task");
        assert_eq!(tasks, read(&repeated).expect("a task"));
        let ids: Vec<&str> = tasks[0].steps[0].candidates.iter().map(|candidate| candidate.id.as_str()).collect();
        assert_eq!(ids, ["9", "7"]);
        for wrong in ["", r#", "pos_candidates": null"#, r#", "pos_candidates": {}"#] {
            let error = read(&task(wrong)).expect_err(wrong);
            assert_eq!((error.place.as_str(), error.expected), ("actions[0].pos_candidates", "a list"));
        }
        assert_eq!(read(r#"["t"]"#).expect_err("a text").place, "website");
        // Files of predictions may lie beside those of tasks.
        for other in ["{}", r#"[["t_u", "12", "TYPE x"]]"#, r#"[{"actions": [["u"]]}]"#] {
            assert_eq!(slim(other).expect("JSON").to_string(), other.replace(": ", ":").replace(", ", ","));
        }
    }

    #[test]
    fn prediction_files_have_two_forms() {
        let read = |text: &str| predictions(text).expect("predictions").remove("t").and_then(|mut own| own.remove("u"));
        let direct = read(r#"[["t_u", "12", "TYPE x"]]"#).expect("a prediction");
        assert_eq!((direct.element.as_deref(), direct.action.as_str()), (Some("12"), "TYPE x"));
        let none = read(r#"[["t_u", "", ""]]"#).expect("a prediction");
        assert_eq!(none.element, None);
        let rounds = r#"[["t_u", [[["7","9"], ["", "", [["7","a"],["9","b"]]], "C.\nAction: CLICK"], [["9","8"], ["", "", [["9","b"],["8","c"]]], "A."]]]]"#;
        let chosen = read(rounds).expect("a prediction");
        assert_eq!((chosen.element.as_deref(), chosen.action.as_str()), (Some("9"), "CLICK "));
        let free = rounds.replace("C.\\nAction", "Answer: C.\\nAction");
        assert_eq!(read(&free).expect("a prediction").element.as_deref(), Some("9"));
        // An entry of another form changes nothing for the others.
        let mixed = format!("{}, [\"t_v\", \"3\", \"\"]]", &rounds[..rounds.len() - 1]);
        assert_eq!(predictions(&mixed).expect("predictions")["t"]["u"], chosen);
        assert!(predictions(r#"[["t", "", ""]]"#).is_err());
    }
}
