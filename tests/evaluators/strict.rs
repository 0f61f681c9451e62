//! Loopholes that the strict profile closes: answers and pages that one profile accepts and the other rejects.

use arenad_evaluators::visualwebarena as visual;
use arenad_evaluators::webarena::{self, EpisodeContext, Eval, TaskError};
use arenad_verdict::question::{Answer, KnownAnswers, Question};
use arenad_verdict::{Profile, SideBySide, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::seen::look;
use Verdict::{Failed, NeedsJudge, Passed, Unsupported};

type QuestionsFunction = fn(&EpisodeContext, &Eval, &KnownAnswers, Profile) -> Result<Vec<Question>, TaskError>;
type EvaluateFunction = fn(&EpisodeContext, &Eval, &KnownAnswers, Profile) -> Result<arenad_verdict::Report, TaskError>;

/// Returns both verdicts on the observations of a case; a question that the case does not answer is undecided.
fn both(questions: QuestionsFunction, evaluate: EvaluateFunction, eval: &Value, case: &Value) -> (Verdict, Verdict) {
    let eval: Eval = serde_json::from_value(eval.clone()).expect("a task");
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    let intent = case["intent"].as_str().unwrap_or("Do it").to_owned();
    let context = EpisodeContext { intent, answer: text("answer"), url: text("url") };
    let mut told = KnownAnswers::default();
    for profile in [Profile::Compat, Profile::Strict] {
        loop {
            let open = questions(&context, &eval, &told, profile).expect("questions");
            if open.is_empty() {
                break;
            }
            for question in open {
                let seen = match &question {
                    Question::Judge(asked) if case["judge"].get(&asked.reference).is_none() => {
                        Answer::NoJudge("none".to_owned())
                    }
                    Question::Script { expression, .. } if expression.contains("document.body.innerText") => {
                        Answer::Value(case["shown"].clone())
                    }
                    other => look(other, case),
                };
                told.tell(question, seen);
            }
        }
    }
    let both = SideBySide::of(|profile| evaluate(&context, &eval, &told, profile)).expect("two reports");
    assert_eq!(both.differ(), both.compat.verdict != both.strict.verdict);
    (both.compat.verdict, both.strict.verdict)
}

fn webarena(eval: Value, case: Value) -> (Verdict, Verdict) {
    both(webarena::questions, webarena::evaluate, &eval, &case)
}

fn visual(eval: Value, case: Value) -> (Verdict, Verdict) {
    both(visual::questions, visual::evaluate, &eval, &case)
}

fn answer(references: Value, answer: &str) -> (Value, Value) {
    (json!({ "eval_types": ["string_match"], "reference_answers": references }), json!({ "answer": answer }))
}

fn page(contents: Value, found: Value) -> (Value, Value) {
    let target = json!({ "url": "last", "locator": "document.x", "required_contents": contents });
    let found = if found == "threw" { json!({}) } else { json!({ "document.x": found }) };
    (json!({ "eval_types": ["program_html"], "program_html": [target] }), json!({ "evaluate": found }))
}

#[test]
fn answers_say_words_and_numbers() {
    for (references, said, verdicts) in [
        (json!({ "must_include": ["10"] }), "it costs 100", (Passed, Failed)),
        (json!({ "must_include": ["0"] }), "it costs $0.00", (Failed, Failed)),
        (json!({ "must_include": ["2"] }), "total $2.00", (Failed, Failed)),
        (json!({ "must_include": ["2"] }), "order 000002", (Failed, Failed)),
        (json!({ "must_include": ["2"] }), "+2", (Failed, Failed)),
        (json!({ "must_include": ["2"] }), "1. a\n2. b\n3. c", (Failed, Failed)),
        (json!({ "must_include": ["2"] }), "two", (Failed, Passed)),
        (json!({ "must_include": ["0"] }), "None", (Failed, Passed)),
        (json!({ "must_include": ["6"] }), "Not 6, but 7", (Passed, Failed)),
        (json!({ "must_include": ["7"] }), "Not 6, but 7", (Passed, Passed)),
        (json!({ "must_include": ["Yes"] }), "Yes and No", (Passed, Failed)),
        (json!({ "exact_match": "748m" }), "748 meters", (Failed, Passed)),
        (json!({ "exact_match": "Sprite" }), "**Sprite**", (Failed, Passed)),
        (json!({ "exact_match": "Sprite" }), "The answer is Sprite.", (Failed, Passed)),
        (json!({ "exact_match": "Sprite" }), "The answer is not Sprite.", (Failed, Failed)),
        (json!({ "exact_match": "4125785000" }), "(412) 578-5000", (Failed, Passed)),
        (json!({ "exact_match": "http://web.cmoa.org/" }), "https://web.cmoa.org", (Failed, Passed)),
        (json!({ "must_include": ["Joust", "Antonia"] }), "Joustiness by Antonia", (Passed, Failed)),
        (json!({ "must_include": ["1.7km"] }), "It is 1.7 km away.", (Failed, Passed)),
        (json!({ "exact_match": "Yes" }), "Yes.", (Failed, Passed)),
        (json!({ "exact_match": "06516" }), "6516", (Failed, Failed)),
        (json!({ "must_includes": ["10"] }), "anything", (Passed, Unsupported)),
        (json!({ "must_include": [""] }), "anything", (Passed, Unsupported)),
        (json!({ "must_include": [] }), "anything", (Passed, Unsupported)),
        (json!({}), "anything", (Passed, Unsupported)),
        (json!({ "exact_match": "a" }), "\"'a'\"", (Passed, Passed)),
        (json!({ "fuzzy_match": ["five stars"] }), "", (NeedsJudge, Failed)),
        (json!({ "fuzzy_match": ["five stars"] }), "Five stars.", (NeedsJudge, Passed)),
        (json!({ "fuzzy_match": ["five stars"] }), "5", (NeedsJudge, NeedsJudge)),
    ] {
        let (eval, case) = answer(references, said);
        assert_eq!(webarena(eval.clone(), case), verdicts, "{eval}: {said}");
    }
    for (references, said, verdicts) in [
        (json!({ "must_include": ["word"] }), "word/phrase", (Failed, Passed)),
        (json!({ "must_include": ["170"] }), "order 000000170", (Failed, Passed)),
        (json!({ "must_include": ["B00.1.jpg"] }), "http://h/m/B00.1.jpg", (Failed, Passed)),
        (json!({ "must_include": ["h/item&id=42"] }), "http://h/item&id=421", (Passed, Failed)),
        (json!({ "one_of": ["gold"] }), "a marigold", (Passed, Failed)),
        (json!({ "must_exclude": ["red"] }), "", (Passed, Failed)),
        (json!({ "required_values": ["< 5"] }), "5", (Passed, Failed)),
        (json!({ "required_values": ["== 5"] }), "It is $5.00", (Failed, Passed)),
        (json!({ "required_values": ["== 5"] }), "5 or 6", (Failed, Failed)),
        (json!({ "required_values": ["== 5"], "must_include": ["5"] }), "5", (Failed, Passed)),
        (json!({ "must_include": ["red"] }), "red, green, blue, black", (Passed, Failed)),
        (json!({ "one_of": ["yellow", "gold"] }), "yellow or gold", (Passed, Passed)),
    ] {
        let (eval, case) = answer(references, said);
        assert_eq!(visual(eval.clone(), case), verdicts, "{eval}: {said}");
    }
}

/// Zero may be an amount of money if the task asks for an amount.
#[test]
fn what_the_task_asks_decides_what_zero_is() {
    let eval = json!({ "eval_types": ["string_match"], "reference_answers": { "must_include": ["0"] } });
    let run = |intent: &str, answer: &str| webarena(eval.clone(), json!({ "intent": intent, "answer": answer }));
    assert_eq!(run("How much I spent on food", "it costs $0.00"), (Failed, Passed));
    assert_eq!(run("How many reviews are there?", "There are no reviews."), (Failed, Passed));
    assert_eq!(run("How many reviews are there?", "There are no reviews but 3"), (Failed, Failed));
}

/// A reference without a host refers to the site at which the task begins.
#[test]
fn a_path_is_on_the_site_of_its_task() {
    let tasks = json!([{
        "task_id": 73, "sites": ["reddit"], "start_url": "__REDDIT__", "intent": "Go there",
        "eval": { "eval_types": ["url_match"], "reference_url": "f/gaming", "url_note": "GOLD in PRED" },
    }]);
    let urls = [("__REDDIT__".to_owned(), "http://localhost:9999".to_owned())].into();
    let task = visual::read(&tasks.to_string(), &urls).expect("tasks").remove(0);
    for (url, verdict) in [
        ("http://localhost:9999/f/gaming/7/a", Passed),
        ("http://evil.test/f/gaming/7/a", Failed),
        ("http://localhost:7770/f/gaming", Failed),
    ] {
        let context = EpisodeContext { url: url.to_owned(), ..EpisodeContext::default() };
        let report =
            visual::evaluate(&context, &task.eval, &KnownAnswers::default(), Profile::Strict).expect("a report");
        assert_eq!(report.verdict, verdict, "{url}");
    }
    let eval = Eval { origins: Vec::new(), ..task.eval };
    let report = visual::evaluate(&EpisodeContext::default(), &eval, &KnownAnswers::default(), Profile::Strict)
        .expect("a report");
    assert_eq!(report.verdict, Unsupported);
}

/// The answer "N/A" alone never passes if the reason is known.
#[test]
fn giving_up_needs_the_reason() {
    let eval = |note| json!({ "eval_types": ["string_match"], "reference_answers": { "fuzzy_match": "N/A" }, "string_note": note });
    for run in [webarena as fn(Value, Value) -> (Verdict, Verdict), visual] {
        let why = "there is no such product";
        assert_eq!(run(eval(why), json!({ "answer": "N/A" })), (Passed, Failed));
        assert_eq!(run(eval(why), json!({ "answer": "no product", "judge": { why: true } })), (Passed, Passed));
        assert_eq!(run(eval(why), json!({ "answer": "no idea", "judge": { why: false } })), (Failed, Failed));
        assert_eq!(run(eval(why), json!({ "answer": "no product" })), (NeedsJudge, NeedsJudge));
        assert_eq!(run(eval(""), json!({ "answer": "N/A" })), (Passed, Passed));
    }
    // A lenient judge does not compensate for an earlier failure.
    let eval = json!({ "eval_types": ["string_match"], "reference_answers": { "exact_match": "x", "fuzzy_match": "N/A" }, "string_note": "why" });
    assert_eq!(webarena(eval, json!({ "answer": "y", "judge": { "why": true } })), (Passed, Failed));
}

#[test]
fn addresses_are_whole() {
    let gold =
        |reference| json!({ "eval_types": ["url_match"], "reference_url": reference, "url_note": "GOLD in PRED" });
    for (reference, url, verdicts) in [
        ("http://h/f/books/81", "http://h/f/books/8137", (Passed, Failed)),
        ("http://h/f/books/81", "http://h/f/books/81/slug", (Passed, Passed)),
        ("http://h:77/a", "http://xh:77/a", (Passed, Failed)),
        ("http://h/a?x=1 |OR| http://h/b?x=2", "http://h/a?x=2", (Passed, Failed)),
        ("http://h/a?l[]=1&l[]=2", "http://h/a?l[]=1", (Passed, Failed)),
        ("http://h/a?s=asc", "http://h/a?s=desc&s=asc", (Passed, Failed)),
        ("http://h/a%20b", "http://h/a b", (Failed, Passed)),
        ("http://localhost:77/a", "http://127.0.0.1:77/a", (Failed, Passed)),
        ("http://h/dashboard/todos", "http://h/dashboard%2Ftodos", (Failed, Failed)),
        ("", "http://anywhere/", (Passed, Unsupported)),
    ] {
        assert_eq!(webarena(gold(reference), json!({ "url": url })), verdicts, "{reference}: {url}");
    }
    assert_eq!(visual(gold("http://h/a"), json!({ "url": "http://evil/?u=http://h/a" })), (Passed, Failed));
    let exact = |reference| json!({ "eval_types": ["url_match"], "reference_url": reference });
    assert_eq!(visual(exact("http://h/a?x=1&y=2"), json!({ "url": "http://h/a?y=2&x=1" })), (Failed, Passed));
    assert_eq!(visual(exact("http://h/a#payment"), json!({ "url": "http://h/a" })), (Failed, Failed));
}

#[test]
fn pages_show_what_people_see() {
    let whole = json!({ "eval_types": ["program_html"], "program_html": [{ "url": "last", "locator": "", "required_contents": { "must_include": ["Blue Chair"] } }] });
    let case = json!({ "content": "<script>var seen = 'Blue Chair';</script>", "shown": "Your cart is empty" });
    assert_eq!(webarena(whole.clone(), case.clone()), (Passed, Failed));
    assert_eq!(visual(whole, case), (Passed, Failed));

    for (contents, found, verdicts) in [
        (json!({ "must_include": ["12.99"] }), json!("112.99"), (Passed, Failed)),
        (json!({ "must_include": ["relation"] }), json!("a relationship"), (Passed, Passed)),
        (json!({ "must_include": [""] }), json!("threw"), (Passed, Unsupported)),
        (json!({ "exact_match": "" }), json!("threw"), (Passed, Failed)),
        (json!({ "exact_match": "" }), json!(""), (Passed, Passed)),
        (json!({ "exact_match": "None" }), json!(null), (Passed, Failed)),
        (json!({ "must_include": [] }), json!("x"), (Passed, Unsupported)),
    ] {
        let (eval, case) = page(contents, found);
        assert_eq!(webarena(eval.clone(), case.clone()), verdicts, "{eval}: {case}");
    }
    for (contents, found, verdicts) in [
        (json!({ "must_exclude": ["$80"] }), json!("threw"), (Passed, Failed)),
        (json!({ "must_exclude": ["$80"] }), json!("80.00 dollars"), (Passed, Failed)),
        (json!({ "must_include": ["a"], "must_exclude": ["b"] }), json!("a and b"), (Passed, Failed)),
        (json!({ "required_values": ["< 70"] }), json!(0), (Passed, Failed)),
        (json!({ "required_values": ["== 0"] }), json!(0), (Passed, Passed)),
        (json!({ "required_values": ["<= 7.5"] }), json!("$7.50"), (Failed, Passed)),
    ] {
        let (eval, case) = page(contents, found);
        assert_eq!(visual(eval.clone(), case.clone()), verdicts, "{eval}: {case}");
    }
}

/// Alternatives are presented to the judge as alternatives, together with the task.
#[test]
fn one_of_several_meanings_is_enough() {
    let (eval, mut case) = page(json!({ "fuzzy_match": "flies |OR| hovers" }), json!("in the air"));
    case["judge"] = json!({ "flies": false, "hovers": true });
    assert_eq!(visual(eval.clone(), case.clone()), (Failed, Passed));
    case["judge"] = json!({ "flies": true });
    assert_eq!(visual(eval, case), (NeedsJudge, Passed));
}

#[test]
fn every_picture_query_counts() {
    let query = |class: &str, questions: &[&str]| {
        let asked: Vec<Value> =
            questions.iter().map(|question| json!({ "question": question, "answer": "yes" })).collect();
        json!({ "eval_image_url": "last", "eval_image_class": class, "eval_vqa": asked })
    };
    let run = |queries: Vec<Value>, replies: Value| {
        let pictures = json!({ ".a": [super::visual::SQUARE, super::visual::SQUARE] });
        let case = json!({ "pictures": pictures, "replies": replies });
        visual(json!({ "eval_types": ["page_image_query"], "page_image_query": queries }), case)
    };
    let two = vec![query(".a", &["first"]), query(".a", &["second"])];
    assert_eq!(run(two.clone(), json!({ "first": ["no", "no"], "second": ["yes", "no"] })), (Passed, Failed));
    assert_eq!(run(two, json!({ "first": ["no", "yes"], "second": ["yes", "no"] })), (Passed, Passed));
    // A picture of a green object and another picture of a shirt do not match.
    let one = vec![query(".a", &["green", "shirt"])];
    assert_eq!(run(one.clone(), json!({ "green": ["yes", "no"], "shirt": ["no", "yes"] })), (Passed, Failed));
    assert_eq!(run(one, json!({ "green": ["no", "Yes."], "shirt": ["no", "yes"] })), (Passed, Passed));
    assert_eq!(run(vec![query(".a", &["q"])], json!({ "q": ["eyes", "no, not yes"] })), (Passed, Failed));
}

#[test]
fn a_task_without_checks_is_not_passed() {
    assert_eq!(webarena(json!({ "eval_types": [] }), json!({})), (Passed, Unsupported));
}

proptest! {
    /// Every answer and every page yields a report.
    #[test]
    fn nothing_upsets_the_rules(said in "\\PC{0,40}", reference in "[0-9a-zA-Z$€.,%+ é京'\"-]{0,8}", url in "\\PC{0,30}") {
        let mut case = json!({ "answer": said, "url": url, "content": said, "shown": said, "judge": { reference.as_str(): true } });
        case["evaluate"] = json!({ "document.x": said });
        let rules = json!({ "exact_match": reference, "must_include": [reference], "must_exclude": [reference], "one_of": [reference] });
        let targets: Vec<Value> = ["document.x", ""]
            .map(|locator| json!({ "url": "last", "locator": locator, "required_contents": rules }))
            .into();
        let eval = json!({
            "eval_types": ["string_match", "url_match", "program_html"],
            "reference_answers": rules,
            "reference_url": format!("http://h/{reference}"),
            "program_html": targets,
        });
        visual(eval.clone(), case.clone());
        webarena(eval, case);
    }
}

/// An answer in the words of a reference, a final page at the reference URL and a page with the reference text pass:
/// the profile fails no agent that did the published task.
#[test]
#[ignore = "reads the benchmarks' task files: set ARENAD_BENCHMARK_DATA"]
fn references_pass_by_themselves() {
    let names = ["SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "MAP", "WIKIPEDIA", "HOMEPAGE", "CLASSIFIEDS"];
    let urls = names.map(|name| (format!("__{name}__"), format!("http://{}.test", name.to_lowercase()))).into();
    let files: [(&str, QuestionsFunction, EvaluateFunction); 4] = [
        ("webarena/test.raw.json", webarena::questions, webarena::evaluate),
        ("visualwebarena/test_classifieds.raw.json", visual::questions, visual::evaluate),
        ("visualwebarena/test_shopping.raw.json", visual::questions, visual::evaluate),
        ("visualwebarena/test_reddit.raw.json", visual::questions, visual::evaluate),
    ];
    let (mut failed, mut judged_parts) = (Vec::new(), 0);
    for (file, questions, evaluate) in files {
        let tasks = webarena::read(&super::benchmark::file(file), &urls).unwrap_or_else(|error| panic!("{error}"));
        for task in tasks {
            for (eval, mut context, text) in parts(&task.eval) {
                context.intent.clone_from(&task.intent);
                judged_parts += 1;
                let mut told = KnownAnswers::default();
                loop {
                    let open = questions(&context, &eval, &told, Profile::Strict).expect("questions");
                    if open.is_empty() {
                        break;
                    }
                    for question in open {
                        let judged = matches!(question, Question::Judge(_));
                        told.tell(question, Answer::Value(if judged { true.into() } else { text.clone() }));
                    }
                }
                let report = evaluate(&context, &eval, &told, Profile::Strict).expect("a report");
                if report.verdict != Passed {
                    failed.push(format!("{file} {}: {:?}", task.task_id, report.checks));
                }
            }
        }
    }
    // 335 + 280 answers, 205 + 224 URLs, 651 + 554 targets.
    assert!(judged_parts > 2000, "{judged_parts} parts");
    assert!(failed.is_empty(), "{} fail:\n{}", failed.len(), failed.join("\n"));
}

/// Splits a task into separately judged parts, each with observations that match its references.
fn parts(eval: &Eval) -> Vec<(Eval, EpisodeContext, Value)> {
    let only = |kind: &str| Eval { eval_types: vec![kind.to_owned()], program_html: Vec::new(), ..eval.clone() };
    let first = |references: &Value| references.as_str().unwrap_or_default().split(" |OR| ").next().map(str::to_owned);
    // The text that satisfies a set of rules: the first alternative of each text, one per line.
    let said = |rules: &serde_json::Map<String, Value>| -> Value {
        let number = rules.get("required_values").and_then(|bounds| bounds[0].as_str());
        if let Some(bound) = number {
            let value: f64 = bound.trim_start_matches(['<', '>', '=', ' ']).parse().expect("a number");
            return json!(if bound.starts_with('<') { value - 1.0 } else { value });
        }
        let texts = rules.iter().filter(|(rule, _)| *rule != "must_exclude").flat_map(|(rule, value)| match value {
            Value::Array(several) if rule == "one_of" => several.first().and_then(first).into_iter().collect(),
            Value::Array(several) => several.iter().filter_map(first).collect::<Vec<_>>(),
            Value::String(one) if one == "N/A" => vec!["what it says there".to_owned()],
            one => first(one).into_iter().collect(),
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        json!(if text.is_empty() { "something else".to_owned() } else { text })
    };
    let mut parts = Vec::new();
    for kind in &eval.eval_types {
        match kind.as_str() {
            "string_match" => {
                let answer = said(&eval.reference_answers).as_str().unwrap_or_default().to_owned();
                parts.push((only(kind), EpisodeContext { answer, ..EpisodeContext::default() }, Value::Null));
            }
            "url_match" => {
                let url = first(&json!(eval.reference_url)).unwrap_or_default();
                let url = if url.contains("://") { url } else { format!("http://reddit.test/{url}") };
                parts.push((only(kind), EpisodeContext { url, ..EpisodeContext::default() }, Value::Null));
            }
            "program_html" => parts.extend(eval.program_html.iter().map(|target| {
                let eval = Eval { program_html: vec![target.clone()], ..only(kind) };
                (eval, EpisodeContext::default(), said(&target.required_contents))
            })),
            _ => {}
        }
    }
    parts
}
