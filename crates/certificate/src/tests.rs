//! Certificates are verified, and every change of one is found.

use std::collections::BTreeMap;
use std::time::Duration;

use arenad_evaluators::native::{self, Episode, ReadingOutcome, Sight};
use arenad_model::ids::SiteName;
use arenad_model::locator::{Arguments, Rows, Value, parse};
use arenad_model::task::{
    AddressCriterion, Bounds, Criterion, CriterionKind, Margin, Matcher, PathRule, Reading, ReadingRecipe, Rule, Task,
    TaskKind,
};
use arenad_verdict::question::{Answer, KnownAnswers, PagePlace, Question};
use arenad_verdict::{Benchmark, EpisodeEvidence, Profile, Traffic, Urls, Verdict};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

/// A recording whose text no JSON writer would produce.
const HAR: &str = r#"{"log" : {"version":"1.2","creator":{"name":"x","version":"1"},"entries":[
    {"request":{"method":"GET","url":"http://h:7770/","headers":[]},"response":{"status":200}}], "_x":1.20}}"#;

/// The day of all judgements, which is not the present one.
const DAY: arenad_evaluation::Day = (2024, 2, 29);

fn key() -> InstallationKey {
    InstallationKey::read(&InstallationKey::generate().expect("random numbers")).expect("a key")
}

fn site() -> SiteName {
    SiteName::parse("shop").expect("a name")
}

fn reading(statement: &str) -> Reading {
    let text = format!("sql: {statement}");
    Reading {
        site: site(),
        recipe: ReadingRecipe::Locator(parse(&text).expect("a locator")),
        text,
        arguments: Arguments(vec![("user".to_owned(), "3".to_owned()), ("a".to_owned(), "\"é\u{1f600}\"".to_owned())]),
        captured: vec!["before".to_owned()],
        page: None,
        account: Some("customer".to_owned()),
    }
}

/// A task with every kind of criterion and matcher.
fn task() -> Task {
    let number = |text: &str| text.parse().expect("a number");
    let bounds = || Bounds { at_least: Some(number("1.50")), at_most: None };
    let matchers = [
        Matcher::Equals(Value::Float(0.1)),
        Matcher::Contains(vec![Value::Text("pear".to_owned()), Value::Null]),
        Matcher::Matches("p.ar".to_owned()),
        Matcher::Number(number("1e3"), Margin::Percent(number("2.0"))),
        Matcher::Number(number("5"), Margin::Absolute(number("0"))),
        Matcher::Set(vec![Value::Bool(true), Value::Decimal("0.10".to_owned())]),
        Matcher::Json("{\"a\": 0.10000000000000000001}".to_owned()),
        Matcher::Count(bounds()),
        Matcher::Difference("before".to_owned(), bounds()),
        Matcher::SameAs("before".to_owned()),
    ];
    let unnamed = |kind| Criterion { name: None, kind };
    let site_rule = |(index, matcher)| {
        let rule = Rule { matcher, ignore_case: index % 2 == 0 };
        let kind = CriterionKind::Site(Box::new(reading(&format!("SELECT {index}"))), rule);
        Criterion { name: Some(format!("part {index}")), kind }
    };
    let path = |path| {
        unnamed(CriterionKind::Url(AddressCriterion {
            site: site(),
            origin: "http://localhost:7770".to_owned(),
            path,
            query: vec![("q".to_owned(), "x".to_owned())],
        }))
    };
    let answer = Rule { matcher: Matcher::Contains(vec![Value::Text("five".to_owned())]), ignore_case: false };
    Task {
        name: "shopping.order.1".to_owned(),
        kind: TaskKind::Content,
        intent: "Order 5 \"pears\"".to_owned(),
        sites: vec![site()],
        accounts: vec![(site(), "customer".to_owned())],
        start: "http://localhost:7770/".to_owned(),
        snapshots: vec![(site(), "full".to_owned())],
        before: vec![("before".to_owned(), reading("SELECT 0"))],
        criterion: unnamed(CriterionKind::All(vec![
            unnamed(CriterionKind::Any(matchers.into_iter().enumerate().map(site_rule).collect())),
            unnamed(CriterionKind::Not(Box::new(unnamed(CriterionKind::Unachievable)))),
            unnamed(CriterionKind::Answer(answer)),
            path(PathRule::Any),
            path(PathRule::Is("/cart/".to_owned())),
            path(PathRule::Matches("^/c".to_owned())),
        ])),
    }
}

/// The outcomes of readings: one of every kind.
fn outcomes() -> Vec<ReadingOutcome> {
    let rows = Rows { columns: vec!["n".to_owned()], rows: vec![vec![Value::Integer(7)], vec![Value::Null]] };
    vec![
        ReadingOutcome::Value(Value::Float(0.1)),
        ReadingOutcome::Value(Value::Rows(rows)),
        ReadingOutcome::Value(Value::Json("[0.10000000000000000001, 123456789012345678901234567890]".to_owned())),
        ReadingOutcome::Nothing("x is null".to_owned()),
        ReadingOutcome::Unavailable("the site is down".to_owned()),
        ReadingOutcome::Unsupported("the helper is unknown".to_owned()),
        ReadingOutcome::Value(Value::Integer(i128::MAX)),
    ]
}

fn native_evidence(answer: &str) -> (JudgedEvidence, Judgement) {
    let task = task();
    let captured = BTreeMap::from([("before".to_owned(), Value::Integer(3))]);
    let url = Some("http://localhost:7770/cart/?q=x");
    let episode = Episode { answer, url, no_url: None, captured: &captured };
    let readings = native::readings(&task).into_iter().cloned();
    // The last readings of the task were not taken.
    let sights: Vec<Sight> = readings
        .zip(outcomes())
        .enumerate()
        .map(|(index, (reading, seen))| Sight { reading, seen, took: Duration::new(0, 1_234_567 * index as u32 + 1) })
        .collect();
    let report = native::judge(&task.criterion, &episode, &sights);
    let evidence = NativeEvidence::of(&task, &episode, &sights);
    (JudgedEvidence::Native(Box::new(evidence)), Judgement::Native(report))
}

fn benchmark_evidence(benchmark: Benchmark) -> (JudgedEvidence, Judgement) {
    let (task, answer, traffic) = match benchmark {
        Benchmark::WebArenaVerified => {
            let task = json!({
                "task_id": 7, "sites": ["shopping"], "start_urls": ["__SHOPPING__"], "intent": "How many?", "intent_template_id": 1,
                "intent_template": "?", "instantiation_dict": {}, "revision": 1,
                "eval": [{ "evaluator": "AgentResponseEvaluator",
                           "results_schema": { "type": "array", "items": { "type": "string" } },
                           "expected": { "task_type": "retrieve", "status": "SUCCESS", "retrieved_data": ["5"] } }],
            });
            let answer = json!({ "task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["5"] });
            (task, answer.to_string(), Some(Traffic::of(HAR.as_bytes().to_vec())))
        }
        Benchmark::WebCanvas => {
            let task = json!({
                "index": 1, "task": "?", "reference_task_length": 2,
                "evaluation": [{ "match_function_name": "url_included_match",
                                 "content": { "key": "", "reference_answer": "/a", "url": "http://h/a" } }],
            });
            (task, json!({ "steps": [{ "url": "http://h/a" }] }).to_string(), None)
        }
        Benchmark::TurkingBench => {
            let task = json!({
                "task": "t", "instance": 0, "input": [["text", "x"]], "fields": [{ "name": "q", "type": "text" }],
                "labels": { "q": ["five", 0.1, null] },
                "initial": [{ "name": "q", "type": "text", "values": [""], "displayed": true }],
            });
            (task, json!({ "answers": { "q": "five" } }).to_string(), None)
        }
        Benchmark::Mind2Web => {
            let task = json!({
                "annotation_id": "t", "website": "w", "confirmed_task": "?",
                "actions": [{ "action_uid": "u", "operation": { "op": "CLICK", "value": "" },
                              "pos_candidates": [{ "backend_node_id": "1", "rank": 0 }],
                              "neg_candidates": [{ "backend_node_id": "2", "rank": 1 }] }],
            });
            (task, json!({ "predictions": { "u": { "element": "1", "action": "CLICK " } } }).to_string(), None)
        }
        _ => {
            let task = json!({
                "task_id": 1, "sites": ["shopping"], "start_url": "__SHOPPING__", "intent": "?", "weight": 0.1,
                "eval": { "eval_types": ["string_match"], "reference_answers": { "must_include": ["five"] } },
            });
            (task, "five".to_owned(), None)
        }
    };
    let mut told = KnownAnswers::default();
    let place = PagePlace::Url("http://h/".to_owned());
    told.tell(Question::Content { place }, Answer::Value(json!([0.1, 1e300, "é"])));
    let evidence = EpisodeEvidence {
        benchmark,
        id: "1".to_owned(),
        task,
        urls: Urls::from([("__SHOPPING__".to_owned(), vec!["http://h:7770".to_owned()])]),
        answer,
        url: "http://h:7770/a".to_owned(),
        told,
        traffic,
        looked_at: Vec::new(),
    };
    let profiles = vec![Profile::Compat, Profile::Strict];
    let evidence = JudgedEvidence::Benchmark { day: DAY, profiles, evidence: Box::new(evidence) };
    let judgement = evidence.judge().expect("a task");
    (evidence, judgement)
}

fn statement((evidence, judgement): (JudgedEvidence, Judgement)) -> CertifiedStatement {
    let text = |text: &str| text.to_owned();
    let episode = CertifiedEpisode {
        id: text("ep-00000000000000000000"),
        environment: text("mini"),
        owner: text("default"),
        labels: BTreeMap::from([(text("run"), text("7"))]),
        asked_at: text("2026-01-02T03:04:05Z"),
        granted_at: Some(text("2026-01-02T03:04:06Z")),
        judged_at: text("2026-01-02T03:05:05Z"),
        installation: text("a1b2"),
        arenad: text("0.1.0"),
    };
    let snapshot = CertifiedSnapshot {
        id: text("0123456789abcdef"),
        name: None,
        recipe: Some(text("00ff")),
        images: BTreeMap::from([(text("web"), text("sha256:00"))]),
    };
    let store = CertifiedStore { snapshot: Some(text("aa")), judged: Some(text("bb")) };
    let sites = vec![CertifiedSite {
        site: text("shop"),
        instance: text("mini/shop/2"),
        generation: 7,
        snapshot: Some(snapshot),
        stores: BTreeMap::from([(text("db"), store)]),
        unread: None,
    }];
    CertifiedStatement::of(episode, sites, &evidence, &judgement).expect("repeatable")
}

fn every_kind() -> Vec<CertifiedStatement> {
    let benchmarks = Benchmark::ALL.into_iter().map(benchmark_evidence);
    benchmarks.chain([native_evidence("five"), native_evidence("six")]).map(statement).collect()
}

/// Returns a certificate as its text, with the key that verifies it.
fn signed(statement: CertifiedStatement) -> (String, PublicKey) {
    let key = key();
    let certificate = statement.sign(&key).expect("canonical");
    (serde_json::to_string_pretty(&certificate).expect("JSON"), key.public())
}

#[test]
fn a_certificate_of_every_kind_is_verified() {
    let mut verdicts = Vec::new();
    for statement in every_kind() {
        verdicts.push((statement.evaluator.name.clone(), statement.verdict, statement.reward));
        let (text, key) = signed(statement.clone());
        assert_eq!(verify(&text, &key).expect("verified"), statement);
    }
    let expected = [
        ("webarena", Verdict::Passed, Some(1)),
        ("visualwebarena", Verdict::Passed, Some(1)),
        ("webarena-verified", Verdict::Passed, Some(1)),
        ("webcanvas", Verdict::Passed, Some(1)),
        ("turkingbench", Verdict::Passed, Some(1)),
        ("mind2web", Verdict::Passed, Some(1)),
        ("native", Verdict::Passed, Some(1)),
        ("native", Verdict::Failed, Some(0)),
    ];
    assert_eq!(verdicts, expected.map(|(name, verdict, reward)| (name.to_owned(), verdict, reward)));
}

#[test]
fn a_certificate_survives_tools_that_sort_and_indent() {
    fn sorted(value: Json) -> Json {
        match value {
            Json::Object(members) => {
                let mut members: Vec<_> = members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
                members.sort_by(|(one, _), (other, _)| other.cmp(one));
                Json::Object(members.into_iter().collect())
            }
            Json::Array(items) => Json::Array(items.into_iter().map(sorted).collect()),
            other => other,
        }
    }
    for statement in every_kind() {
        let (text, key) = signed(statement);
        let rewritten = sorted(serde_json::from_str(&text).expect("JSON")).to_string();
        assert_ne!(rewritten, text);
        assert!(verify(&rewritten, &key).is_ok());
    }
}

/// Calls `visit` with the document after each single change of one of its values, and with the place of the change.
fn each_change(document: &Json, visit: &mut dyn FnMut(&str, Json)) {
    fn places(value: &Json, at: String, all: &mut Vec<String>) {
        match value {
            Json::Object(members) => {
                members.iter().for_each(|(name, value)| places(value, format!("{at}/{name}"), all))
            }
            Json::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| places(value, format!("{at}/{index}"), all));
            }
            _ => {}
        }
        all.push(at);
    }
    let mut all = Vec::new();
    places(document, String::new(), &mut all);
    for place in all {
        let value = document.pointer(&place).expect("a place");
        let mut changed = vec![json!("other"), json!(41), json!(null), json!([]), json!({})];
        match value {
            Json::String(text) => {
                changed.push(json!(format!("{text} ")));
                changed.push(json!(text.chars().skip(1).collect::<String>()));
                // One bit of each character in turn would be slow for long texts: some places suffice.
                for index in (0..text.len()).step_by(text.len() / 7 + 1).filter(|index| text.is_char_boundary(*index)) {
                    let mut other: Vec<char> = text.chars().collect();
                    let index = text[..index].chars().count();
                    other[index] = if other[index] == '0' { '1' } else { '0' };
                    changed.push(json!(other.into_iter().collect::<String>()));
                }
            }
            Json::Number(number) => changed.push(json!(number.as_i64().expect("an integer") + 1)),
            Json::Object(members) => {
                for name in members.keys() {
                    let mut fewer = members.clone();
                    fewer.shift_remove(name);
                    changed.push(Json::Object(fewer));
                }
                let mut more = members.clone();
                more.insert("more".to_owned(), json!(1));
                changed.push(Json::Object(more));
            }
            Json::Array(items) => {
                changed.push(Json::Array(items.iter().cloned().chain([json!(null)]).collect()));
                changed.push(Json::Array(items.iter().skip(1).cloned().collect()));
            }
            Json::Bool(_) | Json::Null => {}
        }
        for other in changed.into_iter().filter(|other| other != value) {
            let mut document = document.clone();
            *document.pointer_mut(&place).expect("a place") = other;
            visit(&place, document);
        }
    }
}

#[test]
fn every_change_of_any_field_is_found() {
    for statement in every_kind() {
        let (text, key) = signed(statement);
        let document: Json = serde_json::from_str(&text).expect("JSON");
        let mut count = 0;
        each_change(&document, &mut |place, changed| {
            count += 1;
            let found = verify(&changed.to_string(), &key).expect_err(place);
            // The signature covers the statement, so it is not the judging that finds a change of it.
            assert!(!matches!(found, CertificateError::OtherVerdict(_)), "{place}: {found}");
        });
        assert!(count > 200, "{count}");
    }
}

#[test]
fn a_statement_that_its_evidence_contradicts_is_found_although_it_is_signed() {
    for statement in every_kind() {
        let lies: [&dyn Fn(&mut CertifiedStatement); 6] = [
            &|it| it.verdict = Verdict::NeedsJudge,
            &|it| it.reward = None,
            &|it| it.judgement = it.judgement.replace("expected", "wanted"),
            &|it| it.task.sha256 = "00".repeat(32),
            &|it| it.traffic = Some(CertifiedTraffic { sha256: "00".repeat(32), size_bytes: 1 }),
            &|it| {
                // Each kind of evidence has one of these answers.
                let answers = [
                    ("five", "four"),
                    (r#"[\"5\"]"#, r#"[\"6\"]"#),
                    (r#"\"steps\":[{\"url\":\"http://h/a"#, r#"\"steps\":[{\"url\":\"http://h/b"#),
                    (r#"\"element\":\"1\""#, r#"\"element\":\"2\""#),
                ];
                let replaced = |evidence: String, (told, other)| evidence.replace(told, other);
                it.evidence = answers.into_iter().fold(it.evidence.clone(), replaced);
            },
        ];
        for (index, lie) in lies.into_iter().enumerate() {
            let mut told = statement.clone();
            lie(&mut told);
            assert_ne!(told, statement, "{index}");
            let (text, key) = signed(told);
            let found = verify(&text, &key).expect_err("a lie");
            assert!(matches!(found, CertificateError::OtherVerdict(_)), "{index}: {found}");
        }
    }
}

#[test]
fn a_certificate_of_another_installation_is_refused() {
    let (text, own) = signed(statement(native_evidence("five")));
    let (other_text, other) = signed(statement(native_evidence("five")));
    assert!(matches!(verify(&text, &other), Err(CertificateError::OtherKey { .. })));
    // Naming the trusted key does not help.
    let forged = other_text.replace(&other.to_string(), &own.to_string());
    assert!(matches!(verify(&forged, &own), Err(CertificateError::BadSignature)));
}

#[test]
fn what_is_no_certificate_is_malformed() {
    let (text, key) = signed(statement(native_evidence("five")));
    let twice = text.replacen("\"format\"", "\"verdict\": \"failed\", \"format\"", 1);
    let other_format = text.replace(FORMAT, "arenad-certificate/2");
    for wrong in
        ["", "{}", "[]", "null", "{\"statement\": {}}", &text[1..], &twice, &other_format, &format!("{text} x")]
    {
        let found = verify(wrong, &key).expect_err("malformed");
        assert!(matches!(found, CertificateError::Malformed(_)), "{found}");
    }
}

#[test]
fn the_evidence_of_a_benchmark_is_what_its_command_judges_again() {
    let statement = statement(benchmark_evidence(Benchmark::WebArenaVerified));
    assert_eq!(statement.traffic.as_ref().map(|traffic| traffic.size_bytes), Some(HAR.len()));
    let evidence: Json = serde_json::from_str(&statement.evidence).expect("JSON");
    let inner = evidence["benchmark"]["evidence"].to_string();
    let read: EpisodeEvidence = serde_json::from_str(&inner).expect("evidence");
    assert_eq!(read.benchmark, Benchmark::WebArenaVerified);
}

#[test]
fn a_verdict_that_depends_on_the_day_is_the_same_on_every_day() {
    let judge = |day| {
        let (evidence, _) = benchmark_evidence(Benchmark::WebArenaVerified);
        let JudgedEvidence::Benchmark { mut evidence, profiles, .. } = evidence else { panic!("a benchmark's") };
        evidence.task["eval"][0]["results_schema"]["items"] = json!({ "type": "string", "format": "date" });
        evidence.task["eval"][0]["expected"]["retrieved_data"] = json!(["May 31, 2023"]);
        // The benchmark completes the date with the day of the evaluation.
        evidence.answer = evidence.answer.replace("\"5\"", "\"May 2023\"");
        let evidence = JudgedEvidence::Benchmark { day, profiles, evidence };
        let judgement = evidence.judge().expect("a task");
        statement((evidence, judgement))
    };
    assert_eq!(judge((2026, 3, 31)).verdict, Verdict::Passed);
    assert_eq!(judge((2026, 3, 30)).verdict, Verdict::Failed);
    let (text, key) = signed(judge((2026, 3, 31)));
    assert!(verify(&text, &key).is_ok());
}

#[test]
fn evidence_that_contradicts_itself_is_an_error() {
    let statement = statement(native_evidence("five"));
    for (from, to) in [
        ("\"reading\":0", "\"reading\":99"),
        ("\"type\":\"float\",\"value\":\"0.1\"", "\"type\":\"float\",\"value\":\"x\""),
    ] {
        let text = statement.evidence.replace(from, to);
        assert_ne!(text, statement.evidence, "{from}");
        let evidence: JudgedEvidence = serde_json::from_str(&text).expect("evidence");
        assert!(evidence.judge().is_err(), "{to}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_edit_of_the_text_is_found_unless_it_says_the_same(kind in 0_usize..8, at in any::<prop::sample::Index>(), put in "[ -~]{0,3}", cut in 0_usize..4) {
        let (text, key) = signed(every_kind().swap_remove(kind));
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        let end = (at + cut).min(chars.len());
        chars.splice(at..end, put.chars());
        let edited: String = chars.into_iter().collect();
        let says = |text: &str| canonical::parse(text).ok();
        let is_same = says(&edited) == says(&text);
        prop_assert_eq!(verify(&edited, &key).is_ok(), is_same);
    }
}
