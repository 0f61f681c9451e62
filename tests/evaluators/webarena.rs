//! Compares WebArena's evaluators with the answers of its own code.

use arenad_evaluators::webarena::{EpisodeContext, Eval, evaluate, questions, read, reddit_get_post_url, strings};
use arenad_verdict::Profile;
use arenad_verdict::question::KnownAnswers;
use serde_json::{Value, json};

use super::benchmark;
use super::seen::look;
use super::vectors::{self, FunctionAnswer, run};

#[test]
fn webarena_answers_as_the_benchmark_does() {
    run("webarena.jsonl", ours);
}

/// Every task of the benchmark loads, and every locator, helper and placeholder in it is understood.
#[test]
#[ignore = "reads the benchmark's task file: set ARENAD_BENCHMARK_DATA"]
fn all_tasks_are_understood() {
    let text = benchmark::file("webarena/test.raw.json");
    let names = ["SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "MAP", "WIKIPEDIA", "HOMEPAGE"];
    let urls = names.map(|name| (format!("__{name}__"), format!("http://{}.test", name.to_lowercase())));
    let tasks = read(&text, &urls.into()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(tasks.len(), 812);
    let mut asked = 0;
    for task in tasks {
        let context =
            EpisodeContext { intent: task.intent, answer: "x".into(), url: "http://reddit.test/f/books/1/x".into() };
        let told = KnownAnswers::default();
        let questions = |profile| {
            questions(&context, &task.eval, &told, profile)
                .unwrap_or_else(|error| panic!("task {}: {error}", task.task_id))
        };
        asked += questions(Profile::Compat).len();
        questions(Profile::Strict);
        for profile in [Profile::Compat, Profile::Strict] {
            evaluate(&context, &task.eval, &told, profile)
                .unwrap_or_else(|error| panic!("task {}: {error}", task.task_id));
        }
    }
    // 651 targets, some of them with the same page twice, and 181 questions for a judge.
    assert!(asked > 700, "{asked} questions");
}

fn ours(function: &str, input: &Value) -> FunctionAnswer {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    match function {
        "clean_answer" => Ok(json!(strings::clean_answer(text("answer")))),
        "exact_match" => Ok(score(strings::exact_match(text("ref"), text("pred")))),
        "must_include" => {
            let tokenize = input["tokenize"].as_bool().unwrap_or_default();
            Ok(score(strings::must_include(text("ref"), text("pred"), tokenize)))
        }
        "reddit_get_post_url" => Ok(json!(reddit_get_post_url(text("url")))),
        "string_evaluator" => {
            let mut eval = json!({ "eval_types": ["string_match"], "reference_answers": input["reference_answers"] });
            eval["string_note"] = input["string_note"].clone();
            judge(&eval, input)
        }
        "url_evaluator" => {
            let eval = json!({ "eval_types": ["url_match"], "reference_url": input["reference_url"], "url_note": input["url_note"] });
            judge(&eval, input)
        }
        "html_content_evaluator" => {
            judge(&json!({ "eval_types": ["program_html"], "program_html": input["program_html"] }), input)
        }
        "evaluator_comb" => {
            let mut eval = input["eval"].clone();
            eval["eval_types"] = input["eval_types"].clone();
            judge(&eval, input)
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
    let context = EpisodeContext { intent: String::new(), answer: text("answer"), url: text("url") };
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

/// A target's page is opened in the agent's own tab, where the next target finds it.
#[test]
fn last_is_the_page_that_was_visited() {
    let target = |url: &str, locator: &str, wanted: &str| json!({ "url": url, "locator": locator, "required_contents": { "must_include": [wanted] } });
    let input = |targets: &[Value]| {
        json!({
            "program_html": targets, "url": "http://reddit.test/f/books/1/x", "content": "where it ended",
            "pages": { "http://shopping.test/a": "visited", "http://reddit.test/f/books/1/": "the post" },
        })
    };
    let scored = |targets: &[Value]| ours("html_content_evaluator", &input(targets));
    let visit = target("http://shopping.test/a", "", "visited");
    assert_eq!(scored(&[target("last", "", "ended"), visit.clone()]), Ok(json!(1.0)));
    assert_eq!(scored(&[visit.clone(), target("last", "", "ended")]), Ok(json!(0.0)));
    assert_eq!(scored(&[visit, target("last", "", "visited")]), Ok(json!(1.0)));
    let post = target("func:reddit_get_post_url('__last_url__')", "", "the post");
    assert_eq!(scored(&[post.clone(), post]), Ok(json!(1.0)));
}
