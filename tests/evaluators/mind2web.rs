//! Compares Mind2Web's measures with the answers of its own code.

use std::collections::BTreeMap;

use arenad_evaluators::mind2web::ranking::{self, RankedStep, ScoredCandidate};
use arenad_evaluators::mind2web::text::{self, F1Version};
use arenad_evaluators::mind2web::{Candidate, MacroSteps, Prediction, RecordedStep, score_step, summarize};
use arenad_evaluators::text::python::to_str;
use serde_json::{Value, json};

use super::vectors::{FunctionAnswer, run, run_further};

#[test]
fn mind2web_answers_as_the_benchmark_does() {
    run("mind2web.jsonl", ours);
}

/// Cases on which an earlier version differed from the benchmark's code.
#[test]
fn mind2web_answers_as_the_benchmark_does_where_it_once_did_not() {
    run_further("mind2web.jsonl", ours);
}

fn ours(function: &str, input: &Value) -> FunctionAnswer {
    let own = |key: &str| input[key].as_str().ok_or_else(|| format!("{key} is not a text"));
    // Texts that are parts of formatted ones.
    let formatted = |key: &str| to_str(&input[key]);
    let said = |error: &dyn std::fmt::Display| error.to_string();
    match function {
        "calculate_f1" => Ok(json!(text::calculate_f1(own("prediction")?, own("label")?, F1Version::MultipleChoice))),
        "calculate_f1_generation" => {
            Ok(json!(text::calculate_f1(own("prediction")?, own("label")?, F1Version::Generation)))
        }
        "postprocess_action" => {
            let reply = text::postprocess_action(own("text")?).map_err(|error| said(&error))?;
            Ok(json!([reply.choice, reply.action]))
        }
        "postprocess_action_free_text" => {
            let reply = text::postprocess_action_free_text(own("text")?);
            Ok(json!([reply.choice, reply.action]))
        }
        "target_action" => Ok(json!({
            "target": text::target_text(&formatted("op"), &formatted("value")),
            "action": text::target_action(&formatted("op"), &formatted("value")),
        })),
        "evaluate_steps" => {
            let top_k = input["top_k"].as_u64().unwrap_or(50);
            let steps: Vec<(RecordedStep, Option<Prediction>)> =
                input["steps"].as_array().into_iter().flatten().map(step).collect();
            let scored: Vec<_> =
                steps.iter().map(|(step, own)| (step, score_step(step, own.as_ref(), top_k))).collect();
            summarize(&scored, MacroSteps::UpToLastCounted).map(|sums| json!(sums)).map_err(|error| said(&error))
        }
        "rank_candidates" => {
            let candidate = |entry: &Value| ScoredCandidate {
                id: entry[0].as_str().unwrap_or_default().to_owned(),
                text: entry[1].as_str().unwrap_or_default().to_owned(),
                score: entry[2].as_f64().unwrap_or_default(),
            };
            let list = |value: &Value| value.as_array().into_iter().flatten().map(candidate).collect();
            let steps: Vec<RankedStep> = input["instances"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|step| RankedStep { positive: list(&step["positive"]), negative: list(&step["negative"]) })
                .collect();
            let k = input["k"].as_u64().and_then(|k| usize::try_from(k).ok()).unwrap_or(10);
            let ranking = ranking::rank_candidates(&steps, k).ok_or("there are no instances")?;
            // The benchmark's code has no entry for an instance without candidates.
            let filled = ranking.ranks.iter().enumerate().filter(|(_, ranks)| !ranks.is_empty());
            let ranks: BTreeMap<String, _> = filled.map(|(at, ranks)| (format!("a{at}_u{at}"), ranks)).collect();
            Ok(json!({ "results": ranking.results, "ranks": ranks }))
        }
        other => Err(format!("no function {other}")),
    }
}

fn step(step: &Value) -> (RecordedStep, Option<Prediction>) {
    let own = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
    let texts = |key: &str| -> Vec<String> { serde_json::from_value(step[key].clone()).unwrap_or_default() };
    let positive = texts("acceptable");
    let candidates = texts("candidates").into_iter().enumerate().map(|(at, id)| Candidate {
        rank: step["ranks"].get(&id).map_or_else(|| u64::try_from(at).ok(), Value::as_u64),
        is_positive: positive.contains(&id),
        id,
    });
    let predicted = &step["prediction"];
    let prediction = Prediction::of(
        predicted["element"].as_str(),
        predicted["action"].as_str().unwrap_or_default(),
        predicted["value"].as_str(),
    );
    let recorded = RecordedStep {
        task: own("annotation_id"),
        action: String::new(),
        website: own("website"),
        operation: to_str(&step["op"]),
        value: to_str(&step["value"]),
        candidates: candidates.collect(),
    };
    (recorded, Some(prediction))
}
