//! What is taken of an answer.

use std::time::Duration;

use http::header;
use scraper::{Html, Selector};
use serde_json::Value as Json;

use super::Answer;
use crate::domain::locator::{Selection, Value};
use crate::locators::confined::Confined;
use crate::locators::json::{parsed, text_or_bytes};
use crate::locators::{LocateError, json_query};

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
        Selection::Json(query) => json_query::ask(confined, query, text(answer)?, limit).await,
    }
}

fn text(answer: Answer) -> Result<String, LocateError> {
    String::from_utf8(answer.body).map_err(|_| LocateError::Failed("the answer is no text in UTF-8".to_owned()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
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
