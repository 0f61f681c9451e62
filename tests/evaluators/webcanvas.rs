//! Compares WebCanvas' evaluators with the answers of its own code.

use arenad_evaluators::webcanvas::matching::{self, Method, Page, PathMatch, Rule};
use arenad_evaluators::webcanvas::scores::{self, TaskScores};
use arenad_evaluators::webcanvas::{Observation, Progress, locate, read, read_one, workflow};
use arenad_verdict::question::KnownAnswers;
use serde_json::{Value, json};

use super::benchmark;
use super::vectors::{FunctionAnswer, run, run_further};

#[test]
fn webcanvas_answers_as_the_benchmark_does() {
    run("webcanvas.jsonl", ours);
}

/// Cases on which an earlier version differed from the benchmark's code.
#[test]
fn webcanvas_answers_as_the_benchmark_does_where_it_once_did_not() {
    run_further("webcanvas.jsonl", ours);
}

/// Every task of both files loads, and no node is of an unknown kind.
#[test]
#[ignore = "reads the benchmark's task files: set ARENAD_BENCHMARK_DATA"]
fn all_tasks_are_understood() {
    let counts = [("mind2web-live_test_20241024", 104, 443), ("example_130", 130, 588)].map(|(file, tasks, nodes)| {
        let read = read(&benchmark::file(&format!("webcanvas/{file}.json"))).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.len(), tasks, "{file}");
        assert_eq!(read.iter().map(|task| task.nodes.len()).sum::<usize>(), nodes, "{file}");
        assert!(read.iter().all(|task| task.left_out.is_empty()));
        let findings: Vec<_> = read.iter().flat_map(arenad_evaluators::webcanvas::lint).collect();
        let of = |kind: &str| findings.iter().filter(|finding| finding.kind == kind).count();
        assert_eq!(["selector", "netloc", "unknown_function", "method"].map(of), [0; 4], "{findings:?}");
        of("own_url")
    });
    assert_eq!(counts, [17, 22], "nodes that the address of their recording does not satisfy");
}

fn ours(function: &str, input: &Value) -> FunctionAnswer {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let number = |key: &str| input[key].as_f64().unwrap_or_default();
    let score = |fits: bool| Ok(json!(u8::from(fits)));
    let said = |error: &dyn std::fmt::Display| error.to_string();
    match function {
        "url_exact_match" => {
            score(matching::url_matches(text("url"), text("reference_answer"), text("key"), Rule::Exact))
        }
        "url_include_match" => {
            score(matching::url_matches(text("url"), text("reference_answer"), text("key"), Rule::Included))
        }
        "get_netloc" => matching::get_netloc(text("url")).map(Value::from).map_err(|error| said(&error)),
        "path_exact_match" => {
            let page = Page::new(text("html"));
            let paths = PathMatch {
                page: &page,
                method: Method::named(text("method")),
                found: input["input_answer"].as_str(),
                reference: text("reference_answer"),
                found_netloc: text("input_netloc"),
                reference_netloc: text("reference_netloc"),
            };
            matching::path_matches(paths).map_err(|error| said(&error)).and_then(score)
        }
        "element_value_exact_match" | "element_value_include_match" => {
            let rule = if function.contains("exact") { Rule::Exact } else { Rule::Included };
            let sites = (text("input_netloc"), text("reference_netloc"));
            score(matching::value_matches(text("value"), text("reference_answer"), sites.0, sites.1, rule))
        }
        "text_exact_match" => score(matching::text_matches(text("text"), text("reference_answer"), Rule::Exact)),
        "text_included_match" => score(matching::text_matches(text("text"), text("reference_answer"), Rule::Included)),
        "step_evaluate" => step_evaluate(input),
        "task_length_score" => {
            let [reference, current, alpha] = ["reference_length", "current_task_length", "alpha"].map(number);
            scores::task_length_score(reference, current, alpha).map(Value::from).map_err(|error| said(&error))
        }
        "finish_task_score" => {
            Ok(json!(scores::finish_task_score(number("reference_step_score"), number("step_score"))))
        }
        "summarize_results" => {
            let tasks = input["tasks"].as_array().cloned().unwrap_or_default();
            let scores_of = |task: &Value| TaskScores {
                status: task["status"].as_str().unwrap_or_default().to_owned(),
                scores: serde_json::from_value(task["scores"].clone()).unwrap_or_default(),
            };
            let tasks: Vec<TaskScores> = tasks.iter().map(scores_of).collect();
            scores::summarize(&tasks, number("total_token_cost")).map(|sums| json!(sums)).map_err(|error| said(&error))
        }
        "process_raw_workflow" => workflow::process_raw_workflow(&input["workflow"]).map_err(|error| said(&error)),
        "stringfy_selector" => locate::stringfy_selector(text("text")).map(Value::from).map_err(|error| said(&error)),
        "selector_and_xpath" => {
            let index = input["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
            let located = locate::selector_and_xpath(text("html"), index).map_err(|error| said(&error))?;
            Ok(json!({ "tag": located.tag, "selector": located.selector, "xpath": located.xpath }))
        }
        other => Err(format!("no function {other}")),
    }
}

fn step_evaluate(input: &Value) -> FunctionAnswer {
    let task = json!({ "index": 0, "task": "", "reference_task_length": 1, "evaluation": input["evaluation"] });
    let task = read_one(&task, 0).map_err(|error| error.to_string())?;
    let mut progress = Progress::new(&task.nodes);
    let mut out = Vec::new();
    for seen in input["observations"].as_array().into_iter().flatten() {
        let text = |name: &str| seen[name].as_str().map(str::to_owned);
        let step = Observation {
            url: text("url").unwrap_or_default(),
            // The stub of a page without HTML has none.
            html: Some(text("html").unwrap_or_default()),
            selector: text("selector"),
            element_value: text("element_value"),
            text_content: text("text_content"),
        };
        progress.see(&step, &KnownAnswers::default()).map_err(|error| error.to_string())?;
        let reached: Vec<Value> =
            progress.reached().map(|node| json!({ node.function.as_str(): node.reference })).collect();
        out.push(json!({ "scores": progress.scores(), "match_result": reached, "total": progress.total() }));
    }
    Ok(Value::Array(out))
}

/// Each loophole passes in compat and not in strict.
#[test]
fn strict_closes_the_loopholes() {
    let page = "<body id=all><a id=link><b id=icon>x</b><span id=word>Go</span></a></body>";
    let node = |function: &str, reference: &str| {
        let content =
            json!({ "key": "", "reference_answer": reference, "netloc": "m", "url": "https://m.shop.example/" });
        json!({ "match_function_name": function, "method": "selector", "content": content })
    };
    let reached = |node: &Value, step: &Observation, is_strict: bool| {
        let task = json!({ "index": 0, "task": "", "reference_task_length": 1, "evaluation": [node] });
        let task = read_one(&task, 0).expect("a task");
        let mut progress = if is_strict { Progress::strict(&task.nodes) } else { Progress::new(&task.nodes) };
        let _ = progress.see(step, &KnownAnswers::default());
        progress.is_finished()
    };
    let step = |url: &str, selector: &str| Observation {
        url: url.to_owned(),
        html: Some(page.to_owned()),
        selector: Some(selector.to_owned()),
        element_value: Some("Go".to_owned()),
        text_content: None,
    };
    let own = "https://m.shop.example/";
    let path = node("element_path_exactly_match", "#word");
    for (selector, url, compat, strict) in [
        ("#word", own, true, true),
        ("#link", own, true, true),
        ("#all", own, true, false),
        ("#word", "https://m.other.test/", true, false),
        ("#icon", own, false, false),
    ] {
        let step = step(url, selector);
        assert_eq!(
            [reached(&path, &step, false), reached(&path, &step, true)],
            [compat, strict],
            "{selector} at {url}"
        );
    }
    let empty = node("url_included_match", "");
    assert_eq!([reached(&empty, &step(own, ""), false), reached(&empty, &step(own, ""), true)], [true, false]);
}

/// Scores never fall, whatever is seen later.
#[test]
fn scores_never_fall() {
    let urls = ["http://a.b/x", "http://[::1", "", "https://www.a.b/y?q=1", "http://a.b/x#y"];
    let nodes: Vec<Value> = ["/x", "y", "1"]
        .iter()
        .map(|reference| {
            let content = json!({ "key": if *reference == "1" { "q" } else { "" }, "reference_answer": reference });
            json!({ "match_function_name": "url_included_match", "content": content })
        })
        .collect();
    let task = json!({ "index": 0, "task": "", "reference_task_length": 1, "evaluation": nodes });
    let task = read_one(&task, 0).expect("a task");
    for order in 0..urls.len() {
        let mut progress = Progress::new(&task.nodes);
        let mut before = vec![0.0; 3];
        for at in 0..urls.len() {
            let url = urls[(order + at) % urls.len()].to_owned();
            progress
                .see(&Observation { url, ..Observation::default() }, &KnownAnswers::default())
                .expect("plain nodes");
            assert!(progress.scores().iter().zip(&before).all(|(now, before)| now >= before));
            before = progress.scores().to_vec();
        }
        assert_eq!(progress.total(), 3.0);
    }
}
