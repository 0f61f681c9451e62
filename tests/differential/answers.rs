//! Computes the answers of arenad's compat profile to the cases that the benchmarks' own code also answers.

use std::collections::BTreeMap;

use arenad_evaluators::text::patterns::Patterns;
use arenad_evaluators::text::urls::urlsplit;
use arenad_evaluators::text::{Nltk, word_tokenize};
use arenad_evaluators::visualwebarena::similarity::{Pixels, similarity};
use arenad_evaluators::webarena::{EpisodeContext, Eval};
use arenad_evaluators::webarena_verified::{
    ReadingFailure, ReadingOptions, Submission, TypedValue, UrlOptions, ValueKind, ValueOrigin, VerifiedTask,
    evaluate as evaluate_verified, extract_base64_query, normalize_query, parse_json, read_one,
};
use arenad_evaluators::{visualwebarena, webarena};
use arenad_verdict::question::{KnownAnswers, Question};
use arenad_verdict::{Profile, Report};
use serde_json::{Value, json};

use super::seen;

/// The reason for a missing answer.
pub enum MissingAnswer {
    /// The benchmark's code is known to raise.
    Raises(String),
    /// The verdict is open.
    Undecided(String),
}

/// A value, or the reason for its absence.
pub type ComputedAnswer = Result<Value, MissingAnswer>;

/// The addresses of the cases' sites.
pub fn addresses() -> BTreeMap<String, Vec<String>> {
    let sites = ["gitlab", "map", "reddit", "shopping_admin", "shopping", "wikipedia", "homepage"];
    let address = |site: &str| {
        let path = if site == "shopping_admin" { "/admin" } else { "" };
        (format!("__{}__", site.to_uppercase()), vec![format!("http://{}.test{path}", site.replace('_', "-"))])
    };
    sites.into_iter().map(address).collect()
}

/// Answers a case. `tasks` are those of WebArena-Verified, for cases that name one.
pub fn answer(case: &Value, tasks: &BTreeMap<u32, VerifiedTask>) -> ComputedAnswer {
    let input = &case["input"];
    let function = case["function"].as_str().unwrap_or_default();
    match case["benchmark"].as_str() {
        Some("webarena") => of_webarena(function, input),
        Some("visualwebarena") => of_visualwebarena(function, input),
        _ => of_verified(function, input, tasks),
    }
}

fn text<'a>(input: &'a Value, key: &str) -> &'a str {
    input[key].as_str().unwrap_or_default()
}

fn score(fits: bool) -> ComputedAnswer {
    Ok(json!(if fits { 1.0 } else { 0.0 }))
}

fn unknown(function: &str) -> ComputedAnswer {
    Err(MissingAnswer::Undecided(format!("no function {function}")))
}

fn of_webarena(function: &str, input: &Value) -> ComputedAnswer {
    let text = |key| text(input, key);
    match function {
        "tokens" => Ok(json!(word_tokenize(text("text"), Nltk::V3_8_1))),
        "clean_answer" => Ok(json!(webarena::strings::clean_answer(text("answer")))),
        "exact_match" => score(webarena::strings::exact_match(text("ref"), text("pred"))),
        "must_include" => {
            let tokenize = input["tokenize"].as_bool().unwrap_or_default();
            score(webarena::strings::must_include(text("ref"), text("pred"), tokenize))
        }
        "reddit_get_post_url" if let Err(error) = urlsplit(text("url")) => {
            Err(MissingAnswer::Raises(error.to_string()))
        }
        "reddit_get_post_url" => Ok(json!(webarena::reddit_get_post_url(text("url")))),
        other => judged(other, input, webarena::questions, webarena::evaluate),
    }
}

fn of_visualwebarena(function: &str, input: &Value) -> ComputedAnswer {
    let text = |key| text(input, key);
    match function {
        "tokens" => Ok(json!(word_tokenize(text("text"), Nltk::V3_10_4))),
        "clean_answer" => Ok(json!(visualwebarena::strings::clean_answer(text("answer")))),
        "exact_match" => score(visualwebarena::strings::exact_match(text("ref"), text("pred"))),
        "must_include" => score(visualwebarena::strings::must_include(text("ref"), text("pred"))),
        "must_exclude" => score(!visualwebarena::strings::must_include(text("ref"), text("pred"))),
        "compare_inequality" => {
            let value = input["value"].as_f64().unwrap_or(f64::NAN);
            let satisfies = visualwebarena::satisfies(value, text("inequality"));
            satisfies.map(Value::from).map_err(|error| MissingAnswer::Raises(error.to_string()))
        }
        "ssim" => {
            let pixels =
                |key| Pixels::decode(&seen::bytes(&input[key])).map_err(|e| MissingAnswer::Undecided(format!("{e:?}")));
            let similar = similarity(&pixels("one")?, &pixels("other")?);
            similar.map(Value::from).ok_or_else(|| MissingAnswer::Raises("smaller than a window".to_owned()))
        }
        other => judged(other, input, visualwebarena::questions, visualwebarena::evaluate),
    }
}

type Questions<E> = fn(&EpisodeContext, &Eval, &KnownAnswers, Profile) -> Result<Vec<Question>, E>;
type Evaluate<E> = fn(&EpisodeContext, &Eval, &KnownAnswers, Profile) -> Result<Report, E>;

fn judged<E: ToString>(
    function: &str,
    input: &Value,
    questions: Questions<E>,
    evaluate: Evaluate<E>,
) -> ComputedAnswer {
    let eval = match function {
        "string_evaluator" => json!({
            "eval_types": ["string_match"], "reference_answers": input["reference_answers"],
            "string_note": input["string_note"],
        }),
        "url_evaluator" => json!({
            "eval_types": ["url_match"], "reference_url": input["reference_url"], "url_note": input["url_note"],
        }),
        "html_content_evaluator" => json!({ "eval_types": ["program_html"], "program_html": input["program_html"] }),
        "task" => input["eval"].clone(),
        other => return unknown(other),
    };
    let task = |error: E| MissingAnswer::Raises(error.to_string());
    let eval: Eval = serde_json::from_value(eval).map_err(|error| MissingAnswer::Raises(error.to_string()))?;
    let text = |key| text(input, key).to_owned();
    let context = EpisodeContext { intent: "the intent".to_owned(), answer: text("answer"), url: text("url") };
    let mut told = KnownAnswers::default();
    loop {
        let open = questions(&context, &eval, &told, Profile::Compat).map_err(task)?;
        if open.is_empty() {
            break;
        }
        for question in open {
            let seen = seen::look(&question, input);
            told.tell(question, seen);
        }
    }
    verdict(&evaluate(&context, &eval, &told, Profile::Compat).map_err(task)?)
}

fn verdict(report: &Report) -> ComputedAnswer {
    report.score.map(|score| json!(score)).ok_or_else(|| MissingAnswer::Undecided(format!("{report:?}")))
}

fn troubled(trouble: &ReadingFailure) -> MissingAnswer {
    match trouble {
        ReadingFailure::Raised(reason) => MissingAnswer::Raises(reason.clone()),
        other => MissingAnswer::Undecided(other.to_string()),
    }
}

fn of_verified(function: &str, input: &Value, tasks: &BTreeMap<u32, VerifiedTask>) -> ComputedAnswer {
    let patterns = Patterns::default();
    let reading = ReadingOptions::new(ValueOrigin::Expected, Profile::Compat, &patterns);
    match function {
        "equal" => {
            let Some(kind) = ValueKind::named(text(input, "type")) else { return unknown(text(input, "type")) };
            equal(kind, input, &reading)
        }
        "url_equal" => {
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
            let read = |key: &str| {
                TypedValue::read(ValueKind::Url, &input[key], &reading).map_err(|trouble| troubled(&trouble))
            };
            read("a")?.equals(&read("b")?, &reading).map(Value::from).map_err(|trouble| troubled(&trouble))
        }
        "extract_base64_query" => Ok(json!(extract_base64_query(text(input, "path")))),
        "normalize_query" => Ok(Value::Object(normalize_query(text(input, "query")))),
        "verified_task" => {
            let id = input["task_id"].as_u64().and_then(|id| u32::try_from(id).ok()).unwrap_or_default();
            verdict(&whole(&tasks[&id], input))
        }
        "verified_own_task" => {
            let task =
                read_one(input["task"].clone(), &addresses()).map_err(|e| MissingAnswer::Raises(format!("{e:?}")))?;
            verdict(&whole(&task, input))
        }
        other => unknown(other),
    }
}

fn equal(kind: ValueKind, input: &Value, reading: &ReadingOptions<'_>) -> ComputedAnswer {
    let of_agent = ReadingOptions { side: ValueOrigin::Actual, ..*reading };
    let value = |key| match parse_json(text(input, key)) {
        Ok(value) => value.ok_or_else(|| MissingAnswer::Undecided(format!("{key} is not JSON"))),
        Err(trouble) => Err(troubled(&trouble)),
    };
    let expected = TypedValue::read(kind, &value("a")?, reading).map_err(|trouble| troubled(&trouble))?;
    let actual = match TypedValue::read(kind, &value("b")?, &of_agent) {
        Ok(actual) => actual,
        // An actual value that does not have its type is a mismatch.
        Err(ReadingFailure::Raised(_)) => return Ok(json!(false)),
        Err(trouble) => return Err(troubled(&trouble)),
    };
    expected.equals(&actual, reading).map(Value::from).map_err(|trouble| troubled(&trouble))
}

fn whole(task: &VerifiedTask, input: &Value) -> Report {
    let submission = Submission::read(text(input, "response"), text(input, "har").as_bytes());
    evaluate_verified(task, &submission, Profile::Compat)
}
