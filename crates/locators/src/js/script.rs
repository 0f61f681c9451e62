//! The evaluation of an expression: its value as bounded JSON, or the exception that it threw.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::{LocateError, SIZE_MAX};
use arenad_chromium::{Cdp, CdpError};
use arenad_model::locator::Value;
use arenad_model::locator::json::{parsed, to_value};

/// Converts the value to text, preceded by the page's address, so that a large value never leaves the page. Functions
/// are called and promises awaited. Values that JSON cannot express are `null`; numbers that are not finite are text.
const INTO_TEXT: &str = "async function (limit) {
    let value = this[0];
    if (typeof value === 'function') value = value();
    value = await value;
    const text = typeof value === 'number' && !Number.isFinite(value) ? 'n' + value
        : typeof value === 'bigint' ? 'b' + value
        : value === undefined ? 'jnull'
        : typeof value === 'string' ? 't' + value : 'j' + JSON.stringify(value);
    return location.href + '\\n' + (text.length > limit ? 'l' + text.length : text);
}";

/// Name of the isolated world of expressions: it has the page's document, but none of the changes that the page's
/// scripts have made to the language.
const WORLD: &str = "arenad";

/// A value, and the address of the page from which it was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EvaluatedValue {
    pub value: Value,
    pub url: String,
}

/// Number of times that an expression is evaluated again because its page navigated during the evaluation.
const NAVIGATIONS_MAX: usize = 5;

/// Evaluates an expression in a session.
///
/// Errors: `Threw` with the exception. The browser ends endless expressions after `limit` where it can.
pub(super) async fn evaluate(
    cdp: &Cdp,
    session: Option<&str>,
    expression: &str,
    limit: Duration,
) -> Result<Result<EvaluatedValue, LocateError>, CdpError> {
    for _ in 0..NAVIGATIONS_MAX {
        match once(cdp, session, expression, limit).await {
            Err(CdpError::Refused { message, .. }) if is_navigation(&message) => {}
            answer => return answer,
        }
    }
    once(cdp, session, expression, limit).await
}

/// Returns whether the message says that the page of the evaluation no longer exists.
fn is_navigation(message: &str) -> bool {
    ["context", "navigated", "No frame"].iter().any(|part| message.contains(part))
}

async fn once(
    cdp: &Cdp,
    session: Option<&str>,
    expression: &str,
    limit: Duration,
) -> Result<Result<EvaluatedValue, LocateError>, CdpError> {
    let world = world(cdp, session).await?;
    // A list passes any value to the function unchanged. The line break ends a comment at the expression's end.
    let wrapped = json!({
        "expression": format!("({INTO_TEXT}).call([{expression}\n], {SIZE_MAX})"),
        "contextId": world,
        "timeout": u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        "userGesture": true,
        "returnByValue": true,
        "awaitPromise": true,
    });
    let answer = cdp.call(session, "Runtime.evaluate", wrapped).await?;
    if let Some(thrown) = thrown(&answer) {
        return Ok(Err(thrown));
    }
    let Some((url, text)) = answer["result"]["value"].as_str().and_then(|answer| answer.split_once('\n')) else {
        return Ok(Err(LocateError::Failed("the value is not understood".to_owned())));
    };
    Ok(read(text).map(|value| EvaluatedValue { value, url: url.to_owned() }))
}

/// Returns the id of the isolated world in the page's main frame, and creates the world if necessary: after a
/// navigation, the page has a new one.
///
/// The page's scripts cannot observe the world, and their changes to the language (`Array.prototype`, `JSON`) do not
/// appear in it.
async fn world(cdp: &Cdp, session: Option<&str>) -> Result<Json, CdpError> {
    let mut frames = cdp.call(session, "Page.getFrameTree", json!({})).await?;
    let wanted = json!({ "frameId": frames["frameTree"]["frame"]["id"].take(), "worldName": WORLD });
    let mut made = cdp.call(session, "Page.createIsolatedWorld", wanted).await?;
    Ok(made["executionContextId"].take())
}

fn read(text: &str) -> Result<Value, LocateError> {
    let mut chars = text.chars();
    let kind = chars.next();
    let rest = chars.as_str();
    match kind {
        Some('t') => Ok(Value::Text(rest.to_owned())),
        Some('j') => Ok(match serde_json::from_str(rest) {
            Ok(json @ (Json::Array(_) | Json::Object(_))) => Value::Json(json.to_string()),
            Ok(json) => to_value(json),
            Err(_) => parsed(rest.to_owned()),
        }),
        Some('n') => Ok(Value::Float(match rest {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => f64::NAN,
        })),
        Some('b') => Ok(rest.parse().map_or_else(|_| Value::Decimal(rest.to_owned()), Value::Integer)),
        _ => Err(LocateError::too_many_bytes(format!("the expression's value has {rest} characters"))),
    }
}

/// Returns the exception that an evaluation threw, as an error.
fn thrown(answer: &Json) -> Option<LocateError> {
    let details = answer.get("exceptionDetails")?;
    let said = details["exception"]["description"].as_str().or_else(|| details["exception"]["value"].as_str());
    let said = said.or_else(|| details["text"].as_str()).unwrap_or("something");
    let first = said.lines().next().unwrap_or_default().chars().take(300).collect::<String>();
    if details["exception"].is_null() && said.contains("terminated") {
        return Some(LocateError::TimedOut { limit: Duration::ZERO });
    }
    Some(LocateError::Threw(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_page_answers_is_typed() {
        assert_eq!(read("tjnull"), Ok(Value::Text("jnull".to_owned())));
        assert_eq!(read("jnull"), Ok(Value::Null));
        assert_eq!(read("j12"), Ok(Value::Integer(12)));
        assert_eq!(read("j{\"a\":1}"), Ok(Value::Json("{\"a\":1}".to_owned())));
        assert_eq!(read("nInfinity"), Ok(Value::Float(f64::INFINITY)));
        assert_eq!(read("b12345678901234567890"), Ok(Value::Integer(12_345_678_901_234_567_890)));
        assert!(matches!(read("l99999999"), Err(LocateError::TooLarge { .. })));
        assert!(read("").is_err());
    }
}
