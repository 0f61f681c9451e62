//! Helpers of the benchmarks on the mini sites, and the answers that evaluators get.

use arenad_verdict::EpisodeEvidence;
use arenad_verdict::question::{Answer, BenchmarkCall, PagePlace, Question};
use serde_json::{Value, json};

use super::{locate_with, refused, value};
use crate::arena::Arena;

const PRODUCT: &str = "/catalogue/elsing-audio-skylark-wireless-headphones-ivory_1/";

pub fn helpers_find_what_tasks_ask_for(arena: &Arena) {
    let is = |call: &str, expected: Value| {
        assert_eq!(value(arena, "shopping", &format!("helper: {call}")), expected, "{call}")
    };
    let origin = arena.url("shopping");
    is("shopping_get_latest_order_url()", json!(format!("{origin}/accounts/orders/100300/")));
    is("shopping_get_sku_latest_review_author('OSM00198')", json!("Ava Winslow"));
    is("shopping_get_sku_latest_review_rating(\"OSM00198\")", json!("100"));
    is("shopping_get_sku_latest_review_title('OSM00198')", json!("The best one yet"));
    is("shopping_get_sku_latest_review_text('x\\' OR 1=1 -- ')", json!(""));
    is("shopping_get_sku_product_page_url('OSM00001')", json!(format!("{origin}{PRODUCT}")));
    let on_page = |call: &str, page: &str| {
        locate_with(arena, "shopping", &format!("helper: {call}"), &["--page", page])["value"].clone()
    };
    assert_eq!(on_page("shopping_get_product_price(__page__)", PRODUCT), json!(168.99));
    assert_eq!(on_page("shopping_get_num_reviews(__page__)", PRODUCT), json!(2));
    assert_eq!(
        on_page("shopping_get_product_attributes(__page__, 'color |OR| Material')", PRODUCT),
        json!("Ivory, aluminium and leather")
    );
    assert_eq!(on_page("get_query_text(__page__, '.price_color')", PRODUCT), json!("$168.99"));
    assert_eq!(on_page("get_query_text(__page__, '.no-such')", PRODUCT), json!(""));
    assert!(refused(arena, "shopping", "helper: nothing()").contains("it has shopping_get_latest_order_url"));
    assert!(
        refused(arena, "shopping", "helper: shopping_get_sku_latest_review_title()").contains("takes 1 argument (sku)")
    );
    assert!(refused(arena, "shopping", "helper: __import__('os').system('x')").contains("column"));
}

/// A target of a task's `program_html`, and the question that evaluators ask about it.
type ProgramTarget = (Value, Question);

/// The daemon's answers to the questions of evaluators, as an evaluation keeps them.
pub fn evaluators_get_their_answers(arena: &Arena) {
    // A new daemon replaces the container that was killed.
    arena.stop_daemon();
    arena.json(&["up", "mini", "shopping", "--json"]);
    let origin = arena.url("shopping");
    let url = |path: &str| format!("{origin}{path}");
    let page = |path: &str| PagePlace::Url(url(path));
    let call = |name: &str, arguments: &[&str]| BenchmarkCall {
        name: name.to_owned(),
        arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
    };
    let target = |url: &str, locator: &str, prepare: &[&str], question: Question| -> ProgramTarget {
        let required = json!({ "must_include": ["x"] });
        (json!({ "url": url, "locator": locator, "prep_actions": prepare, "required_contents": required }), question)
    };
    let script = |url: &str, place: PagePlace, expression: &str, prepare: &[&str]| {
        let prepared = prepare.iter().map(|text| (*text).to_owned()).collect();
        let question = Question::Script { place, prepare: prepared, expression: expression.to_owned() };
        target(url, expression, prepare, question)
    };
    let helper = |url: &str, place: PagePlace, locator: &str, call: BenchmarkCall| {
        target(url, locator, &[], Question::Helper { place, call })
    };
    let title = script(&url("/"), page("/"), "document.title", &[]);
    let author = helper(
        "last",
        PagePlace::Last,
        "func:shopping_get_sku_latest_review_author('OSM00198')",
        call("shopping_get_sku_latest_review_author", &["OSM00198"]),
    );

    let targets = [
        target(&url("/accounts/profile/"), "", &[], Question::Content { place: page("/accounts/profile/") }),
        title.clone(),
        script(&url("/"), page("/"), "document.title", &["null.x", "document.title = 'prepared'"]),
        script(&url("/"), page("/"), "document.querySelector('#none').value", &[]),
        author.clone(),
        helper(
            &url(PRODUCT),
            page(PRODUCT),
            "func:shopping_get_product_price(__page__)",
            call("shopping_get_product_price", &[]),
        ),
        // The latest order is another customer's, so its page is not this account's.
        script(
            "func:shopping_get_latest_order_url()",
            PagePlace::Found(call("shopping_get_latest_order_url", &[])),
            "document.title",
            &[],
        ),
        script("http://example.com/", PagePlace::Url("http://example.com/".to_owned()), "document.title", &[]),
        helper(
            "last",
            PagePlace::Last,
            "func:gitlab_get_project_memeber_role(__page__, 'emma')",
            call("gitlab_get_project_memeber_role", &["emma"]),
        ),
        script("last", PagePlace::Last, "document.title", &[]),
    ];
    let [html, plain, prepared, threw, author_answer, price, order, foreign, unknown, last] =
        <[Answer; 10]>::try_from(answers(arena, &targets)).expect("an answer for each target");
    let Answer::Value(Value::String(html)) = html else { panic!("{html:?} is not a page") };
    assert!(
        html.starts_with("<!DOCTYPE html>") && html.contains("emma.lopez@gmail.com"),
        "signed in as the first account"
    );
    assert_eq!(plain, Answer::Value(json!("One Stop Market")));
    assert_eq!(prepared, Answer::Value(json!("prepared")));
    assert!(matches!(threw, Answer::Threw(_)), "{threw:?}");
    assert_eq!(author_answer, Answer::Value(json!("Ava Winslow")));
    assert_eq!(price, Answer::Value(json!(168.99)));
    assert!(matches!(order, Answer::Value(Value::String(_))), "{order:?}");
    assert!(matches!(foreign, Answer::Unsupported(_)), "{foreign:?}");
    assert!(matches!(unknown, Answer::Unsupported(_)), "no site has this helper: {unknown:?}");
    assert!(matches!(last, Answer::Unavailable(_)), "no browser of an agent was named: {last:?}");

    arena.kill("shopping");
    for down in answers(arena, &[title, author]) {
        assert!(matches!(down, Answer::Unavailable(_)), "{down:?}");
    }
    // A new daemon replaces the container that was killed.
    arena.stop_daemon();
    arena.json(&["up", "mini", "shopping", "--json"]);
}

/// Evaluates a task with these targets, and returns the answers to their questions, in order.
fn answers(arena: &Arena, targets: &[ProgramTarget]) -> Vec<Answer> {
    let folder = tempfile::tempdir().expect("a folder");
    let [tasks, evidence] = ["tasks.json", "evidence.json"].map(|file| folder.path().join(file).display().to_string());
    let written: Vec<&Value> = targets.iter().map(|(target, _)| target).collect();
    let eval = json!({ "eval_types": ["program_html"], "program_html": written });
    let task =
        json!({ "task_id": 1, "sites": ["shopping"], "start_url": "__SHOPPING__", "intent": "Look", "eval": eval });
    std::fs::write(&tasks, json!([task]).to_string()).expect("write the task");
    let options = ["--benchmark", "visualwebarena", "--tasks", &tasks, "--task", "1", "--environment", "mini"];
    let output = arena.arenad(&[&["eval", "--evidence", &evidence], &options[..]].concat());
    let evidence =
        std::fs::read(&evidence).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let evidence: EpisodeEvidence = serde_json::from_slice(&evidence).expect("evidence");
    let told: Vec<(Question, Answer)> = evidence.told.into();
    let answer_to = |question: &Question| told.iter().find(|(asked, _)| asked == question).map(|(_, it)| it.clone());
    targets.iter().map(|(_, question)| answer_to(question).expect("the question was asked")).collect()
}
