//! What is taken of an answer.

use std::time::Duration;

use http::header;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data};
use scraper::{Html, Selector};
use serde_json::Value as Json;
use serde_json_path::JsonPath;

use super::Answer;
use crate::domain::locator::{Selection, Value};
use crate::locators::confined::{Confined, Job};
use crate::locators::json::{parsed, text_or_bytes, to_value};
use crate::locators::{LocateError, SIZE_MAX};

pub(super) async fn take(
    confined: &Confined,
    selection: &Selection,
    answer: Answer,
    limit: Duration,
) -> Result<Value, LocateError> {
    match selection {
        Selection::Status => Ok(Value::Integer(answer.status.as_u16().into())),
        Selection::Header(name) => {
            let value = answer.headers.get(name.as_str()).map(|value| String::from_utf8_lossy(value.as_bytes()));
            Ok(value.map_or(Value::Null, |value| Value::Text(value.into_owned())))
        }
        Selection::Body => {
            let kind =
                answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().ends_with("json"));
            match text_or_bytes(answer.body) {
                Value::Text(text) if is_json => Ok(parsed(text)),
                value => Ok(value),
            }
        }
        Selection::Css { selector, attribute, all } => css(&text(answer)?, selector, attribute.as_deref(), *all),
        // Two descents can look at every value for every value.
        Selection::JsonPath { path, all } if path.matches("..").count() < 2 => json_path(path, &text(answer)?, *all),
        Selection::JsonPath { path, all } => {
            let job = Job::JsonPath { path: path.clone(), input: text(answer)?, all: *all };
            confined.run(&job, limit).await
        }
        Selection::Jq { filter, all } => {
            let job = Job::Jq { filter: filter.clone(), input: text(answer)?, all: *all };
            confined.run(&job, limit).await
        }
    }
}

fn text(answer: Answer) -> Result<String, LocateError> {
    String::from_utf8(answer.body).map_err(|_| LocateError::Failed("the answer is no text in UTF-8".to_owned()))
}

fn json(input: &str) -> Result<Json, LocateError> {
    serde_json::from_str(input).map_err(|error| LocateError::Failed(format!("the answer is not JSON: {error}")))
}

/// The text of elements, its white space as one space each, or their attribute.
fn css(page: &str, selector: &str, attribute: Option<&str>, all: bool) -> Result<Value, LocateError> {
    let parsed = Selector::parse(selector)
        .map_err(|error| LocateError::Unknown(format!("`{selector}` is no CSS selector: {error}")))?;
    let page = Html::parse_document(page);
    let mut found = page.select(&parsed).map(|element| match attribute {
        Some(name) => element.attr(name).map(str::to_owned),
        None => Some(element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")),
    });
    if all {
        let list: Vec<Json> = found.map(|text| text.map_or(Json::Null, Json::String)).collect();
        return Ok(Value::Json(Json::Array(list).to_string()));
    }
    Ok(found.next().flatten().map_or(Value::Null, Value::Text))
}

/// The values at a path of JSON text.
pub(in crate::locators) fn json_path(path: &str, input: &str, all: bool) -> Result<Value, LocateError> {
    let parsed =
        JsonPath::parse(path).map_err(|error| LocateError::Unknown(format!("`{path}` is no JSONPath: {error}")))?;
    let input = json(input)?;
    let found = parsed.query(&input).all();
    match (found.as_slice(), all) {
        (found, true) => Ok(Value::Json(Json::Array(found.iter().copied().cloned().collect()).to_string())),
        ([], false) => Ok(Value::Null),
        ([only], false) => Ok(to_value((*only).clone())),
        (several, false) => Err(several_values("jsonpath", several.len())),
    }
}

fn several_values(kind: &str, count: usize) -> LocateError {
    LocateError::Failed(format!("there are {count} values or more; write `{kind}(all): …` for a list of them"))
}

/// What a filter makes of JSON text.
pub(in crate::locators) fn jq(filter: &str, input: &str, all: bool) -> Result<Value, LocateError> {
    let wrong = |reason: String| LocateError::Unknown(format!("`{filter}` is no jq filter: {reason}"));
    let arena = Arena::default();
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let modules = Loader::new(definitions).load(&arena, File { code: filter, path: () }).map_err(|errors| {
        wrong(errors.first().map_or_else(String::new, |(_, error)| match error {
            load::Error::Io(files) => format!("it includes {} files", files.len()),
            load::Error::Lex(errors) => near(errors.first().map(|(_, rest)| *rest)),
            load::Error::Parse(errors) => near(errors.first().map(|(_, rest)| *rest)),
        }))
    })?;
    let compiled = Compiler::default().with_funs(functions).compile(modules).map_err(|errors| {
        let unknown = errors.first().and_then(|(_, errors)| errors.first());
        wrong(unknown.map_or_else(String::new, |(name, kind)| format!("{} `{name}` is not known", kind.as_str())))
    })?;
    let input = jaq_json::read::parse_single(input.as_bytes())
        .map_err(|error| LocateError::Failed(format!("the answer is not JSON: {error}")))?;
    let context = Ctx::<data::JustLut<jaq_json::Val>>::new(&compiled.lut, Vars::new([]));
    let mut outputs = Vec::new();
    let mut size = 0;
    for output in compiled.id.run((context, input)) {
        // `halt` would end the process in jq's own program.
        let output = output.map_err(|stop| match stop.get_err() {
            Ok(error) => LocateError::Failed(format!("jq says: {error}")),
            Err(_) => LocateError::Failed("the filter halts".to_owned()),
        })?;
        let output = output.to_string();
        size += output.len();
        if size > SIZE_MAX {
            return Err(LocateError::too_many_bytes("the filter yields much"));
        }
        outputs.push(output);
        if outputs.len() > 1 && !all {
            return Err(several_values("jq", outputs.len()));
        }
    }
    match (outputs.pop(), all) {
        (output, true) => {
            outputs.extend(output);
            Ok(Value::Json(format!("[{}]", outputs.join(","))))
        }
        (Some(only), false) => Ok(parsed(only)),
        (None, false) => Ok(Value::Null),
    }
}

fn near(rest: Option<&str>) -> String {
    match rest.map(str::trim_start) {
        Some("") | None => "it ends too early".to_owned(),
        Some(rest) => format!("near `{}`", rest.chars().take(20).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &str = r#"{"items": [{"id": 1, "name": "a"}, {"id": 2, "name": null}], "total": 1.5}"#;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn json_paths_yield_one_value_or_a_list() {
        let one = |path| json_path(path, INPUT, false);
        assert_eq!(one("$.items[0].name"), Ok(text("a")));
        assert_eq!(one("$.items[?@.id == 2].name"), Ok(Value::Null));
        assert_eq!(one("$.total"), Ok(Value::Float(1.5)));
        assert_eq!(one("$.nothing"), Ok(Value::Null));
        assert_eq!(one("$.items[0]"), Ok(Value::Json(r#"{"id":1,"name":"a"}"#.to_owned())));
        assert!(matches!(one("$.items[*].id"), Err(LocateError::Failed(said)) if said.contains("jsonpath(all)")));
        assert_eq!(json_path("$.items[*].id", INPUT, true), Ok(Value::Json("[1,2]".to_owned())));
        assert!(matches!(one("$.["), Err(LocateError::Unknown(_))));
        assert!(matches!(json_path("$", "<html>", false), Err(LocateError::Failed(_))));
    }

    #[test]
    fn jq_yields_one_value_or_a_list() {
        let one = |filter| jq(filter, INPUT, false);
        assert_eq!(one(".items | map(.id) | add"), Ok(Value::Integer(3)));
        assert_eq!(one(".items[] | select(.id == 9)"), Ok(Value::Null));
        assert_eq!(one(".items[0].name | ascii_upcase"), Ok(text("A")));
        assert!(matches!(one(".items[]"), Err(LocateError::Failed(_))));
        assert_eq!(jq(".items[].id", INPUT, true), Ok(Value::Json("[1,2]".to_owned())));
        assert_eq!(jq("empty", INPUT, true), Ok(Value::Json("[]".to_owned())));
        assert!(matches!(one(".items | nonsense"), Err(LocateError::Unknown(said)) if said.contains("nonsense")));
        assert!(matches!(one(".items ["), Err(LocateError::Unknown(_))));
        assert!(matches!(one(".total | keys"), Err(LocateError::Failed(_))));
        assert!(matches!(one("halt"), Err(LocateError::Failed(_))));
        assert!(matches!(
            jq("[limit(1000000; repeat(\"aaaaaaaa\"))] | .[]", "1", true),
            Err(LocateError::TooLarge { .. })
        ));
    }

    #[test]
    fn elements_yield_their_text_or_an_attribute() {
        let page = "<ul><li><a href='/x'>one\n <b>two</b></a><li><a>three</a></ul>";
        assert_eq!(css(page, "li", None, false), Ok(text("one two")));
        assert_eq!(css(page, "a", Some("href"), true), Ok(Value::Json("[\"/x\",null]".to_owned())));
        assert_eq!(css(page, "p", None, false), Ok(Value::Null));
        assert!(matches!(css(page, "::", None, false), Err(LocateError::Unknown(_))));
    }
}
