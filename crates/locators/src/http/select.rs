//! Selection of a value from a response.

use std::io;
use std::time::Duration;

use http::header;
use scraper::{Html, Selector};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::FinalResponse;
use crate::outcome::no_answer;
use crate::{LocateError, json_query};
use arenad_confined::Worker;
use arenad_model::locator::json::{parsed, text_or_bytes};
use arenad_model::locator::{Selection, Value};

pub(super) async fn take(selection: &Selection, answer: FinalResponse, limit: Duration) -> Result<Value, LocateError> {
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
        Selection::Css { selector, attribute, all } => {
            let question = SelectionRequest {
                page: text(answer)?,
                selector: selector.clone(),
                attribute: attribute.clone(),
                all: *all,
            };
            let found: Result<SelectionResult, _> = Worker::job(COMMAND, &question, limit).await;
            found.map_err(|error| no_answer(error, "the page cannot be read"))?.into_value()
        }
        Selection::Json(query) => json_query::ask(query, text(answer)?, limit).await,
    }
}

fn text(answer: FinalResponse) -> Result<String, LocateError> {
    String::from_utf8(answer.body).map_err(|_| LocateError::Failed("the response is not valid UTF-8".to_owned()))
}

/// Name of the hidden command that runs this program as the process that parses a page. A confined process is needed
/// because the page determines how much memory and time its elements take.
pub const COMMAND: &str = "confined-page";

/// A page, and the selection to make on it.
#[derive(Debug, Serialize, Deserialize)]
struct SelectionRequest {
    page: String,
    selector: String,
    attribute: Option<String>,
    all: bool,
}

/// The result of a selection on a page.
#[derive(Debug, Serialize, Deserialize)]
enum SelectionResult {
    Nothing,
    Text(String),
    List(Vec<Option<String>>),
    NoSelector(String),
}

impl SelectionResult {
    fn into_value(self) -> Result<Value, LocateError> {
        match self {
            Self::Nothing => Ok(Value::Null),
            Self::Text(text) => Ok(Value::Text(text)),
            Self::List(list) => {
                let list = list.into_iter().map(|text| text.map_or(Json::Null, Json::String)).collect();
                Ok(Value::Json(Json::Array(list).to_string()))
            }
            Self::NoSelector(reason) => Err(LocateError::Unknown(reason)),
        }
    }
}

/// Parses one page; this is the entire execution of the hidden command.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve(async |inside| {
        let mut parent = inside.alone()?;
        let Some(SelectionRequest { page, selector, attribute, all }) = parent.question().await? else { return Ok(()) };
        parent.answer(&css(&page, &selector, attribute.as_deref(), all)).await
    })
}

/// Parses a page in this process, as a worker does, and returns the text or an attribute of the first element that the
/// selector matches, or of all of them as a JSON list.
///
/// Errors: [`LocateError::Unknown`] for a selector that does not parse.
pub fn of_page(page: &str, selector: &str, attribute: Option<&str>, all: bool) -> Result<Value, LocateError> {
    css(page, selector, attribute, all).into_value()
}

/// Returns the text of elements, with each run of whitespace as one space, or their attribute.
fn css(page: &str, selector: &str, attribute: Option<&str>, all: bool) -> SelectionResult {
    let parsed = match Selector::parse(selector) {
        Ok(parsed) => parsed,
        Err(error) => return SelectionResult::NoSelector(format!("invalid CSS selector `{selector}`: {error}")),
    };
    let page = Html::parse_document(page);
    let mut found = page.select(&parsed).map(|element| match attribute {
        Some(name) => element.attr(name).map(str::to_owned),
        None => Some(element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")),
    });
    if all {
        return SelectionResult::List(found.collect());
    }
    found.next().flatten().map_or(SelectionResult::Nothing, SelectionResult::Text)
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
        let css = |page, selector, attribute, all| css(page, selector, attribute, all).into_value();
        assert_eq!(css(page, "li", None, false), Ok(text("one two")));
        assert_eq!(css(page, "a", Some("href"), true), Ok(Value::Json("[\"/x\",null]".to_owned())));
        assert_eq!(css(page, "p", None, false), Ok(Value::Null));
        assert!(matches!(css(page, "::", None, false), Err(LocateError::Unknown(_))));
    }
}
