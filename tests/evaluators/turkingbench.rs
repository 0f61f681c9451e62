//! Compares TurkingBench's evaluators with the answers of its own code.

use std::collections::BTreeMap;

use arenad_evaluators::text::python::to_str;
use arenad_evaluators::turkingbench as turking;
use arenad_evaluators::turkingbench::{Batch, FieldState, Label};
use serde_json::{Value, json};

use super::vectors::{FunctionAnswer, run, run_further};

#[test]
fn turkingbench_answers_as_the_benchmark_does() {
    run("turkingbench.jsonl", ours);
}

/// Cases on which an earlier version differed from the benchmark's code.
#[test]
fn turkingbench_answers_as_the_benchmark_does_where_it_once_did_not() {
    run_further("turkingbench.jsonl", ours);
}

fn labels(value: &Value) -> Vec<Label> {
    value.as_array().into_iter().flatten().map(Label::of).collect()
}

/// A cleaned value. Python leaves those that `float()` does not take unchanged.
fn cleaned(value: &Value) -> Value {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => value.clone(),
        other => json!(Label::of(other).cleaned()),
    }
}

/// A number; NaN is written as null.
fn number(value: f64) -> Value {
    if value.is_nan() { Value::Null } else { json!(value) }
}

fn ours(function: &str, input: &Value) -> FunctionAnswer {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let said = |error: &dyn std::fmt::Display| error.to_string();
    match function {
        "try_numeric" => Ok(match &input["value"] {
            Value::String(text) => json!(turking::try_numeric(text)),
            other => cleaned(other),
        }),
        "clean_values" => {
            let value = |value: &Value| match value {
                Value::Null => json!(""),
                other => cleaned(other),
            };
            Ok(input["values"].as_array().into_iter().flatten().map(value).collect())
        }
        "normalize_answer" => Ok(json!(turking::normalize_answer(text("text")))),
        "rouge_tokenize" => Ok(json!(turking::tokenize(text("text")))),
        "rouge" => Ok(json!(turking::rouge(text("prediction"), text("label")))),
        "calculate_metrics" => {
            let output = to_str(&input["output"]);
            turking::calculate_metrics(&labels(&input["answers"]), text("type"), &output)
                .map(number)
                .map_err(|error| said(&error))
        }
        "score_outputs" => {
            let field = |field: &Value| FieldState {
                name: field["name"].as_str().unwrap_or_default().to_owned(),
                kind: field["type"].as_str().unwrap_or_default().to_owned(),
                values: field["values"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|value| match value {
                        Value::Null => None,
                        Value::String(text) => Some(text.clone()),
                        other => Some(Label::of(other).cleaned()),
                    })
                    .collect(),
                displayed: field["displayed"].as_bool().unwrap_or(true),
            };
            let fields: Vec<FieldState> = input["fields"].as_array().into_iter().flatten().map(field).collect();
            let answers = input["answers"].as_object().cloned().unwrap_or_default();
            let answers: BTreeMap<String, Vec<Label>> =
                answers.iter().map(|(name, own)| (name.clone(), labels(own))).collect();
            let score = turking::score_outputs(&fields, &answers).map_err(|error| said(&error))?;
            let by_type: BTreeMap<&String, Vec<Value>> = score
                .by_kind
                .iter()
                .map(|(kind, scores)| (kind, scores.iter().copied().map(number).collect()))
                .collect();
            Ok(json!({ "score": number(score.score), "by_type": by_type }))
        }
        "retrieve_gold_labels" => {
            let batch = Batch::read(text("batch_csv")).map_err(|error| said(&error))?;
            let field = |field: &Value| {
                let text = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
                (text("name"), text("type"))
            };
            let fields: Vec<(String, String)> = input["fields"].as_array().into_iter().flatten().map(field).collect();
            let fields: Vec<(&str, &str)> = fields.iter().map(|(name, kind)| (name.as_str(), kind.as_str())).collect();
            let tasks = input["task_count"].as_u64().and_then(|count| usize::try_from(count).ok());
            let found = batch.labels(input["instance_index"].as_i64().unwrap_or_default(), &fields, tasks);
            let value = |labels: &Vec<Label>| Value::from(labels.iter().map(Label::value).collect::<Vec<_>>());
            let found = found.map_err(|error| said(&error))?;
            Ok(Value::Object(found.iter().map(|(name, labels)| (name.clone(), value(labels))).collect()))
        }
        "create_input_csv" => {
            turking::create_input_csv(text("batch_csv")).map(Value::from).map_err(|error| said(&error))
        }
        "populate_html_template" => {
            let fields: Vec<(String, String)> = serde_json::from_value(input["fields"].clone()).unwrap_or_default();
            Ok(json!(turking::populate_html_template(text("template"), &fields)))
        }
        "process_template" => {
            let found = turking::process_template(text("template")).map_err(|error| said(&error))?;
            Ok(json!({ "fieldnames": found.fieldnames, "has_submit_button": found.has_submit_button }))
        }
        other => Err(format!("no function {other}")),
    }
}

/// The oracle has 1 on every field that counts, and doing nothing has what the page's initial state has.
#[test]
fn the_oracle_is_right_and_doing_nothing_is_stable() {
    let template = "<p>${x}</p><input name=t><textarea name=a></textarea><input type=radio name=r value=yes>\
                    <input type=radio name=r value=no checked><input type=checkbox name=c value=1><select name=s>\
                    <option>no</option><option>yes</option></select><input type=range name=g><input type=hidden name=h>";
    let csv = "x,Answer.t,Answer.a,Answer.r,Answer.c,Answer.s,Answer.g,Answer.h,Answer.gone\n\
               1,Paris,\"two\nlines\",yes,1,yes,50,k,z\n1,,more,yes,,yes,70,k,z\n2,3.0,é,no,,no,10,k,\n";
    let batch = Batch::read(csv).expect("a batch");
    for (number, nothing) in [(0, 2.0 / 6.0), (1, 4.0 / 6.0)] {
        let instance = turking::Instance::load("t", template, &batch, number).expect("an instance");
        let score = |how| {
            let fields = turking::baseline(&instance, how);
            turking::evaluate(&instance, &fields, arenad_verdict::Profile::Compat).score.expect("a score")
        };
        assert_eq!(score(turking::Baseline::Oracle), 1.0, "instance {number}");
        assert!(
            (score(turking::Baseline::DoNothing) - nothing).abs() < 1e-9,
            "{number}: {}",
            score(turking::Baseline::DoNothing)
        );
        let kept = turking::Instance::read(&instance.value()).expect("evidence");
        assert_eq!(kept, instance, "evidence keeps every label");
    }
}
