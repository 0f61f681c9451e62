//! Recordings: HAR files, and the archives of Playwright's traces, as evaluators read them.

use arenad_evaluators::webarena_verified::Submission;
use arenad_verdict::Profile;
use arenad_verdict::{Benchmark, EpisodeEvidence, Traffic};
use serde_json::json;

use super::episodes::verdicts;
use crate::target::{FuzzTarget, InputCheck};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "{\"log\":{\"entries\":[",
        "\"request\":{\"method\":\"POST\",\"url\":\"http://shopping.test/a\",\"headers\":[]}",
        "\"response\":{\"status\":200}",
        "\"postData\":{\"mimeType\":\"application/json\",\"text\":\"{}\"}",
        "\"mimeType\":\"application/x-www-form-urlencoded\"",
        "\"mimeType\":\"multipart/form-data; boundary=x\"",
        "\"encoding\":\"base64\"",
        "\"_arenad\":{\"sites\":[]}",
        "\"_lost\":[\"body\"]",
        "\"lacks\":\"\"",
        "\\u0000",
        "\\ud800",
        "null",
        "[]",
        "{}",
        "%",
        "&a[]=",
        "PK\u{3}\u{4}",
        "trace.network",
        "{\"type\":\"resource-snapshot\",\"snapshot\":{",
    ],
    ..FuzzTarget::new("recordings", open)
};

fn open() -> InputCheck {
    Box::new(|input| {
        let traffic = Traffic::of(input.to_vec());
        let read = Submission::read("{}", traffic.bytes()).trace.map(|trace| trace.warnings().len());
        let evidence = EpisodeEvidence {
            benchmark: Benchmark::WebArenaVerified,
            id: "1".to_owned(),
            task: json!({
                "task_id": 1, "intent_template_id": 1, "revision": 1, "sites": ["shopping"], "start_urls": ["__SHOPPING__"], "intent": "?",
                "intent_template": "?", "instantiation_dict": {}, "eval": [
                    { "evaluator": "AgentResponseEvaluator", "expected": { "task_type": "mutate", "status": "SUCCESS", "retrieved_data": null }, "results_schema": { "type": "null" } },
                    { "evaluator": "NetworkEventEvaluator", "expected": { "url": "__SHOPPING__/a", "http_method": "POST", "response_status": 200, "post_data": { "a": "b" } } },
                ],
            }),
            urls: [("__SHOPPING__".to_owned(), vec!["http://shopping.test".to_owned()])].into_iter().collect(),
            answer: r#"{"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": null}"#.to_owned(),
            url: String::new(),
            told: Default::default(),
            traffic: Some(traffic),
            looked_at: Vec::new(),
        };
        let judged = arenad_evaluation::evaluate(&evidence, &[Profile::Compat, Profile::Strict]);
        let judged = judged.map(|judged| verdicts(&judged.reports));
        let judged =
            judged.unwrap_or_else(|error| panic!("the task is sound: {}", arenad_model::error::describe(&error)));
        let why =
            read.map_or_else(|error| arenad_model::error::describe(&error), |warnings| format!("{warnings} warnings"));
        format!("{} {judged}", why.split('`').step_by(2).collect::<String>())
    })
}
