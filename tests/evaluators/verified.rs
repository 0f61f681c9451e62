//! Compares WebArena-Verified's evaluators with the answers of its own code.

use std::collections::BTreeMap;

use arenad_evaluators::text::patterns::Patterns;
use arenad_evaluators::webarena_verified::{
    ReadingOptions, Submission, TypedValue, UrlOptions, ValueKind, ValueOrigin, VerifiedTask, evaluate,
    extract_base64_query, normalize_query, read, retrieved_data,
};
use arenad_verdict::{Profile, Report, Verdict};
use serde_json::{Value, json};

use super::benchmark;
use super::vectors::{FunctionAnswer, run};

#[test]
fn webarena_verified_answers_as_the_benchmark_does() {
    run("webarena_verified.jsonl", ours);
}

fn ours(function: &str, input: &Value) -> FunctionAnswer {
    let patterns = Patterns::default();
    let reading = ReadingOptions::new(ValueOrigin::Expected, Profile::Compat, &patterns);
    let typed = |kind: &Value, value: &Value| {
        let kind = kind.as_str().and_then(ValueKind::named).ok_or_else(|| format!("no type {kind}"))?;
        TypedValue::read(kind, value, &reading).map_err(|trouble| trouble.to_string())
    };
    match function {
        "normalize" => {
            typed(&input["type"], &input["value"]).map(|typed| json!({ "alternatives": typed.alternatives() }))
        }
        "equal" => {
            let (one, other) = (typed(&input["type"], &input["a"])?, typed(&input["type"], &input["b"])?);
            one.equals(&other, &reading).map(Value::from).map_err(|trouble| trouble.to_string())
        }
        "url_equal_with_options" => {
            let texts = |key: &str| -> Vec<String> {
                serde_json::from_value(input["options"][key].clone()).unwrap_or_default()
            };
            let (ignored, patterns) = (texts("ignored_query_parameters"), texts("ignored_query_parameters_patterns"));
            let url = UrlOptions {
                decode_base64_query: input["options"]["decode_base64_query"].as_bool().unwrap_or_default(),
                ignored: &ignored,
                ignored_patterns: &patterns,
                ..UrlOptions::default()
            };
            let reading = ReadingOptions { url, ..reading };
            let url = |key: &str| {
                TypedValue::read(ValueKind::Url, &input[key], &reading).map_err(|trouble| trouble.to_string())
            };
            url("a")?.equals(&url("b")?, &reading).map(Value::from).map_err(|trouble| trouble.to_string())
        }
        "extract_base64_query" => Ok(json!(extract_base64_query(input["path"].as_str().unwrap_or_default()))),
        "normalize_query" => Ok(Value::Object(normalize_query(input["query"].as_str().unwrap_or_default()))),
        "retrieved_data" => {
            let ordered = input["ordered"].as_bool().unwrap_or_default();
            let (schema, expected, actual) = (&input["results_schema"], &input["expected"], &input["actual"]);
            let differences = retrieved_data(schema, expected, actual, ordered, &reading);
            let names: Vec<String> = differences
                .map_err(|trouble| trouble.to_string())?
                .into_iter()
                .map(|difference| difference.name)
                .collect();
            // The benchmark's code checks that data is present before the comparison whose assertions the cases
            // contain.
            let is_presence =
                |name: &String| name == "retrieved_data_missing_or_null" || name == "retrieved_data_unexpected";
            let pass = names.is_empty();
            let names: Vec<String> = names.into_iter().filter(|name| !is_presence(name)).collect();
            Ok(json!({ "pass": pass, "assertions": names }))
        }
        other => Err(format!("no function {other}")),
    }
}

pub const HAR: &str = r#"{"log": {"entries": [{"request": {"method": "GET", "url": "http://shopping.test/", "headers": []}, "response": {"status": 200}}]}}"#;

/// Every task of the benchmark loads and can be judged.
#[test]
#[ignore = "reads the benchmark's task file: set ARENAD_BENCHMARK_DATA"]
fn all_verified_tasks_are_understood() {
    let tasks = tasks();
    assert_eq!(tasks.len(), 812);
    for task in &tasks {
        let submission = Submission::read("{}", HAR.as_bytes());
        for profile in [Profile::Compat, Profile::Strict] {
            let report = evaluate(task, &submission, profile);
            assert_eq!(report.verdict, Verdict::Failed, "task {}: {report:?}", task.task_id);
            let is_open = |verdict| matches!(verdict, Verdict::Unsupported | Verdict::Inconclusive);
            assert!(!report.checks.iter().any(|check| is_open(check.verdict)), "task {}: {report:?}", task.task_id);
        }
    }
}

/// The expected answers of the tasks pass in both profiles if the traffic is not examined.
#[test]
#[ignore = "reads the benchmark's task file: set ARENAD_BENCHMARK_DATA"]
fn expected_answers_pass() {
    let raw: Vec<Value> =
        serde_json::from_str(&benchmark::file("webarena-verified/webarena-verified.json")).expect("a list of tasks");
    let mut passed = 0;
    for (task, raw) in tasks().iter().zip(&raw).filter(|(task, _)| task.eval.len() == 1) {
        let mut answer = raw["eval"][0]["expected"].clone();
        for item in answer["retrieved_data"].as_array_mut().into_iter().flatten() {
            // A list contains alternatives.
            if let Some(first) = item.as_array().and_then(|items| items.first()) {
                *item = first.clone();
            }
        }
        let submission = Submission::read(&answer.to_string(), HAR.as_bytes());
        for profile in [Profile::Compat, Profile::Strict] {
            let report = evaluate(task, &submission, profile);
            // In the strict profile, neither a pattern nor the alternatives of an object's field are an answer. The
            // benchmark's own code accepts no answer if the task does not mention data.
            let data = answer["retrieved_data"].to_string();
            let is_given = raw["eval"][0]["expected"].get("retrieved_data").is_some();
            let is_answer =
                if profile == Profile::Compat { is_given } else { !data.trim_start_matches('[').contains(['^', '[']) };
            assert!(!is_answer || report.verdict == Verdict::Passed, "task {}: {report:?}", task.task_id);
            passed += usize::from(report.verdict == Verdict::Passed);
        }
    }
    assert!(passed > 600, "{passed} passed");
}

/// The runs included with the benchmark get the verdicts included with it.
#[test]
#[ignore = "reads the benchmark's runs: set ARENAD_BENCHMARK_DATA"]
fn recorded_runs_have_their_verdicts() {
    let tasks = tasks();
    for id in [107, 108] {
        let file = |name: &str| benchmark::file(&format!("webarena-verified/runs/{id}/{name}"));
        let submission = Submission::read(&file("agent_response.json"), file("network.har").as_bytes());
        let expected: Value = serde_json::from_str(&file("eval_result.json")).expect("a result");
        let task = tasks.iter().find(|task| task.task_id == id).expect("a task");
        for profile in [Profile::Compat, Profile::Strict] {
            let report = evaluate(task, &submission, profile);
            assert_eq!(report.score, expected["score"].as_f64(), "task {id}: {report:?}");
            for evaluator in expected["evaluators_results"].as_array().into_iter().flatten() {
                for assertion in evaluator["assertions"].as_array().into_iter().flatten() {
                    let name = assertion["assertion_name"].as_str().unwrap_or_default();
                    let says = |report: &Report| {
                        report
                            .checks
                            .iter()
                            .any(|check| check.reason.as_deref().is_some_and(|reason| reason.contains(name)))
                    };
                    assert!(says(&report), "task {id}: {name} is not in {report:?}");
                }
            }
        }
    }
}

fn tasks() -> Vec<VerifiedTask> {
    let sites = ["gitlab", "map", "reddit", "shopping_admin", "shopping", "wikipedia"];
    let urls: BTreeMap<String, Vec<String>> = sites
        .into_iter()
        .map(|site| (format!("__{}__", site.to_uppercase()), vec![format!("http://{site}.test")]))
        .collect();
    read(&benchmark::file("webarena-verified/webarena-verified.json"), &urls).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the verdicts of both profiles on an answer to a task that expects data.
fn verdicts(expected: &Value, schema: &Value, answer: &Value) -> [Verdict; 2] {
    let task = json!([{
        "sites": ["shopping"], "task_id": 1, "intent_template_id": 1, "start_urls": ["__SHOPPING__"], "intent": "?",
        "intent_template": "?", "instantiation_dict": {}, "revision": 1,
        "eval": [{"evaluator": "AgentResponseEvaluator", "expected": expected, "results_schema": schema}],
    }]);
    judged(&task, answer, HAR)
}

fn judged(tasks: &Value, answer: &Value, har: &str) -> [Verdict; 2] {
    let urls = BTreeMap::from([("__SHOPPING__".to_owned(), vec!["http://shopping.test".to_owned()])]);
    let tasks = read(&tasks.to_string(), &urls).expect("tasks");
    let submission = Submission::read(&answer.to_string(), har.as_bytes());
    [Profile::Compat, Profile::Strict].map(|profile| evaluate(&tasks[0], &submission, profile).verdict)
}

/// Patterns that match anything pass with the benchmark's own code and fail in the strict profile.
#[test]
fn answers_that_fit_anything_fail_in_strict() {
    let expected = json!({"task_type": "retrieve", "status": "SUCCESS", "retrieved_data": ["Blue Mug"]});
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let right = json!({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["blue mug"]});
    assert_eq!(verdicts(&expected, &schema, &right), [Verdict::Passed, Verdict::Passed]);
    let exploits = [
        json!({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["^.*$"]}),
        json!({"task_type": "^.*$", "status": "SUCCESS", "retrieved_data": ["blue mug"]}),
        json!({"task_type": "RETRIEVE", "status": "^.*$", "retrieved_data": ["blue mug"]}),
        json!({"task_type": "^.*$", "status": "^.*$", "retrieved_data": ["^.*$"]}),
        json!({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": [["red mug", "blue mug", "green mug"]]}),
    ];
    for exploit in exploits {
        assert_eq!(verdicts(&expected, &schema, &exploit), [Verdict::Passed, Verdict::Failed], "{exploit}");
    }
}

/// A field does not match if the agent fills it with a pattern or sends it twice.
#[test]
fn traffic_that_fits_anything_fails_in_strict() {
    let task = json!([{
        "sites": ["shopping"], "task_id": 1, "intent_template_id": 1, "start_urls": ["__SHOPPING__"], "intent": "?",
        "intent_template": "?", "instantiation_dict": {}, "revision": 1,
        "eval": [
            {"evaluator": "AgentResponseEvaluator", "expected": {"task_type": "mutate", "status": "SUCCESS",
             "retrieved_data": null}, "results_schema": {"type": "null"}},
            {"evaluator": "NetworkEventEvaluator", "expected": {"url": "__SHOPPING__/review", "http_method": "POST",
             "response_status": 302, "post_data": {"$.^title_\\d+$": "Good"}}},
        ],
    }]);
    let answer = json!({"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": null});
    let har = |body: &str| {
        json!({"log": {"entries": [{
            "request": {"method": "POST", "url": "http://shopping.test/review", "headers": [],
                "postData": {"mimeType": "application/x-www-form-urlencoded", "text": body}},
            "response": {"status": 302},
        }]}})
        .to_string()
    };
    let cases = [
        ("title_1=good", [Verdict::Passed, Verdict::Passed]),
        ("title_1=bad", [Verdict::Failed, Verdict::Failed]),
        ("title_1=%5E.*%24", [Verdict::Passed, Verdict::Failed]),
        ("title_1=bad&title_2=good", [Verdict::Passed, Verdict::Failed]),
    ];
    for (body, expected) in cases {
        assert_eq!(judged(&task, &answer, &har(body)), expected, "{body}");
    }
    // An agent can send an empty form. If the recording lost the form's content, its length shows it.
    assert_eq!(judged(&task, &answer, &har("")), [Verdict::Failed, Verdict::Failed]);
    let with_length = har("").replace("\"headers\":[]", r#""headers":[{"name":"Content-Length","value":"12"}]"#);
    assert_eq!(judged(&task, &answer, &with_length), [Verdict::Failed, Verdict::Inconclusive]);
    let elsewhere = har("").replace("\"text\":\"\"", r#""_sha1":"x""#);
    assert_eq!(judged(&task, &answer, &elsewhere), [Verdict::Failed, Verdict::Inconclusive]);
}

/// Both profiles decide on every answer.
#[test]
fn no_answer_leaves_a_verdict_open() {
    let expected = json!({"task_type": "retrieve", "status": "SUCCESS", "retrieved_data": ["May 31, 2023"]});
    let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
    let odd =
        ["NaN", "1e999", "-Infinity", r#""\ud800""#, r#""⡀🆗⟩""#, r#""May 2023""#, r#""2023""#, r#""^(a+)+$""#, &deep];
    for kind in [
        "currency",
        "date",
        "duration",
        "distance",
        "coordinates",
        "url",
        "boolean",
        "string",
        "string_list",
        "number",
        "month",
        "null",
        "json",
        "markdown",
        "base64",
        "location-name",
        "full_address",
    ] {
        let schema = json!({"type": "array", "items": {"type": "string", "format": kind}});
        for value in odd {
            let answer = format!(r#"{{"task_type": "RETRIEVE", "status": "SUCCESS 🆗", "retrieved_data": [{value}]}}"#);
            let mut task = json!([{
                "sites": ["shopping"], "task_id": 1, "intent_template_id": 1, "start_urls": ["__SHOPPING__"], "intent": "?",
                "intent_template": "?", "instantiation_dict": {}, "revision": 1,
                "eval": [{"evaluator": "AgentResponseEvaluator", "expected": expected, "results_schema": schema}],
            }]);
            // The expected value has the type, because otherwise the task itself would be at fault.
            task[0]["eval"][0]["expected"]["retrieved_data"] = match kind {
                "date" => json!(["May 31, 2023"]),
                "number" | "currency" | "month" | "boolean" => json!([1]),
                "duration" => json!(["1 h"]),
                "distance" => json!(["1 km"]),
                "coordinates" => json!(["1, 2"]),
                "url" => json!(["http://shopping.test/"]),
                "null" => json!(["none"]),
                "json" => json!(["[1]"]),
                "base64" => json!(["YQ=="]),
                "full_address" => {
                    json!([{"house_number": "1", "street": "Main St", "city": "A", "state": "PA", "postcode": "15213"}])
                }
                _ => json!(["a"]),
            };
            let tasks = read(
                &task.to_string(),
                &BTreeMap::from([("__SHOPPING__".to_owned(), vec!["http://shopping.test".to_owned()])]),
            );
            let submission = Submission::read(&answer, HAR.as_bytes());
            for profile in [Profile::Compat, Profile::Strict] {
                let report = evaluate(&tasks.as_ref().expect("tasks")[0], &submission, profile);
                assert!(report.score.is_some(), "{kind} {answer:.200}: {report:?}");
            }
        }
    }
}

/// An incomplete date is completed with the day of the evaluation, as in the benchmark; in the strict profile it is
/// invalid.
#[test]
fn incomplete_dates_are_of_the_day() {
    let task = json!([{
        "sites": ["shopping"], "task_id": 1, "intent_template_id": 1, "start_urls": ["__SHOPPING__"], "intent": "?",
        "intent_template": "?", "instantiation_dict": {}, "revision": 1,
        "eval": [{"evaluator": "AgentResponseEvaluator", "results_schema": {"type": "array", "items": {"type": "string", "format": "date"}},
                  "expected": {"task_type": "retrieve", "status": "SUCCESS", "retrieved_data": ["May 31, 2023"]}}],
    }]);
    let urls = BTreeMap::from([("__SHOPPING__".to_owned(), vec!["http://shopping.test".to_owned()])]);
    let tasks = read(&task.to_string(), &urls).expect("tasks");
    let answer = r#"{"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["May 2023"]}"#;
    for (today, expected) in [((2026, 3, 31), Verdict::Passed), ((2026, 3, 30), Verdict::Failed)] {
        let submission = Submission { today, ..Submission::read(answer, HAR.as_bytes()) };
        assert_eq!(evaluate(&tasks[0], &submission, Profile::Compat).verdict, expected);
        assert_eq!(evaluate(&tasks[0], &submission, Profile::Strict).verdict, Verdict::Failed);
    }
}
