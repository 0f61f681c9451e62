//! Compares VisualWebArena's evaluators with the answers of its own code.

use arenad_evaluators::visualwebarena::similarity::{Pixels, similarity};
use arenad_evaluators::visualwebarena::{EpisodeContext, Eval, evaluate, questions, read, satisfies, strings};
use arenad_verdict::Profile;
use arenad_verdict::question::{Answer, KnownAnswers, Question};
use serde_json::{Value, json};

use super::benchmark;
use super::seen::{bytes, look, picture};
use super::vectors::{self, FunctionAnswer, run};

#[test]
fn visualwebarena_answers_as_the_benchmark_does() {
    run("visualwebarena.jsonl", ours);
}

/// Every task of the benchmark loads, and every locator, helper, inequality and placeholder in it is understood.
#[test]
#[ignore = "reads the benchmark's task files: set ARENAD_BENCHMARK_DATA"]
fn all_tasks_are_understood() {
    let names = ["SHOPPING", "REDDIT", "WIKIPEDIA", "HOMEPAGE", "CLASSIFIEDS"];
    let urls = names.map(|name| (format!("__{name}__"), format!("http://{}.test", name.to_lowercase()))).into();
    let (mut all, mut asked) = (0, [0, 0]);
    for site in ["classifieds", "shopping", "reddit"] {
        let text = benchmark::file(&format!("visualwebarena/test_{site}.raw.json"));
        for task in read(&text, &urls).unwrap_or_else(|error| panic!("{site}: {error}")) {
            all += 1;
            let url = "http://reddit.test/f/books/1/x".to_owned();
            let context = EpisodeContext { intent: task.intent, answer: "x".to_owned(), url };
            for (at, profile) in [Profile::Compat, Profile::Strict].into_iter().enumerate() {
                let here = format!("{site} {}", task.task_id);
                let mut told = KnownAnswers::default();
                // Answers every question that a page may raise, so that each rule and each inequality is reached.
                loop {
                    let open = questions(&context, &task.eval, &told, profile)
                        .unwrap_or_else(|error| panic!("{here}: {error}"));
                    if open.is_empty() {
                        break;
                    }
                    asked[at] += open.len();
                    for question in open {
                        let seen = anything(&question);
                        told.tell(question, seen);
                    }
                }
                let report =
                    evaluate(&context, &task.eval, &told, profile).unwrap_or_else(|error| panic!("{here}: {error}"));
                assert!(report.score.is_some(), "{here}: {report:?}");
            }
        }
    }
    assert_eq!(all, 910);
    // 554 targets, 46 queries with pictures to examine or to compare with, and questions for a judge.
    assert!(asked.iter().all(|asked| *asked > 600), "{asked:?} questions");
}

/// Returns an answer of the right kind.
fn anything(question: &Question) -> Answer {
    match question {
        Question::Content { .. } | Question::Script { .. } => Answer::Value(json!("7")),
        Question::Helper { call, .. } if call.name.contains("quantity") || call.name.contains("num_reviews") => {
            Answer::Value(json!(7))
        }
        Question::Helper { call, .. } if call.name.contains("price") => Answer::Value(json!(7.5)),
        Question::Helper { .. } => Answer::Value(json!("7")),
        Question::Pictures { .. } | Question::Reference { .. } => {
            Answer::Pictures(vec![picture(&bytes(&SQUARE.into()))])
        }
        Question::Look { .. } => Answer::Value(json!(["yes"])),
        Question::Judge(_) => Answer::Value(json!(true)),
        Question::Rule(_) => unreachable!("VisualWebArena has no rules in words"),
    }
}

fn ours(function: &str, input: &Value) -> FunctionAnswer {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    match function {
        "clean_answer" => Ok(json!(strings::clean_answer(text("answer")))),
        "exact_match" => Ok(score(strings::exact_match(text("ref"), text("pred")))),
        "must_include" => Ok(score(strings::must_include(text("ref"), text("pred")))),
        "must_exclude" => Ok(score(!strings::must_include(text("ref"), text("pred")))),
        "compare_inequality" => {
            let value = input["value"].as_f64().unwrap_or(f64::NAN);
            satisfies(value, text("inequality")).map(Value::from).map_err(|error| error.to_string())
        }
        "url_evaluator" => {
            let eval = json!({ "eval_types": ["url_match"], "reference_url": input["reference_url"], "url_note": input["url_note"] });
            judge(&eval, input)
        }
        "string_evaluator" => {
            let mut eval = json!({ "eval_types": ["string_match"], "reference_answers": input["reference_answers"] });
            eval["string_note"] = input["string_note"].clone();
            judge(&eval, input)
        }
        "html_content_evaluator" => {
            judge(&json!({ "eval_types": ["program_html"], "program_html": input["program_html"] }), input)
        }
        "page_image_evaluator" => {
            judge(&json!({ "eval_types": ["page_image_query"], "page_image_query": input["page_image_query"] }), input)
        }
        "ssim" => {
            let [one, other] = [&input["one"], &input["other"]].map(|hex| Pixels::decode(&bytes(hex)));
            let (one, other) = (one.map_err(|e| e.to_string())?, other.map_err(|e| e.to_string())?);
            similarity(&one, &other).map(Value::from).ok_or_else(|| "too small".to_owned())
        }
        other => Err(format!("no function {other}")),
    }
}

fn score(fits: bool) -> Value {
    json!(if fits { 1.0 } else { 0.0 })
}

fn judge(eval: &Value, input: &Value) -> FunctionAnswer {
    let eval: Eval = serde_json::from_value(eval.clone()).map_err(|error| error.to_string())?;
    let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
    let context = EpisodeContext { intent: "the intent".to_owned(), answer: text("answer"), url: text("url") };
    let mut told = KnownAnswers::default();
    loop {
        let open = questions(&context, &eval, &told, Profile::Compat).map_err(|error| error.to_string())?;
        if open.is_empty() {
            break;
        }
        for question in open {
            let seen = look(&question, input);
            told.tell(question, seen);
        }
    }
    let report = evaluate(&context, &eval, &told, Profile::Compat).map_err(|error| error.to_string())?;
    vectors::score(&report)
}

/// A PNG file of eight by eight pixels in one shade of grey.
pub const SQUARE: &str = "89504e470d0a1a0a0000000d4948445200000008000000080800000000e164e157000000104944415478\
    9c638c62800026068a18001b7e006a10c7eb540000000049454e44ae426082";
