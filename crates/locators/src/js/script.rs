//! The evaluation of an expression: its value as bounded JSON, or what it threw.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::cdp::{Cdp, CdpError};
use crate::{LocateError, SIZE_MAX};
use arenad_model::locator::Value;
use arenad_model::locator::json::{parsed, to_value};

/// Turns the value into a text, with the page's address in front of it, so that a large one never leaves the page. A function
/// is called, a promise awaited; what JSON has no word for is `null`, numbers that are none are texts.
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

/// The world of expressions: it has the page's document, and nothing that the page's own scripts have made of the language.
const WORLD: &str = "arenad";

/// A value, and the address of the page that it is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evaluated {
    pub value: Value,
    pub url: String,
}

/// How often an expression is evaluated anew when its page goes on to another meanwhile.
const NAVIGATIONS_MAX: usize = 5;

/// Evaluates an expression in a session.
///
/// Errors: `Threw` with what it threw. Endless ones are ended by the browser after `limit` where it can.
pub(super) async fn evaluate(
    cdp: &Cdp,
    session: Option<&str>,
    expression: &str,
    limit: Duration,
) -> Result<Result<Evaluated, LocateError>, CdpError> {
    for _ in 0..NAVIGATIONS_MAX {
        match once(cdp, session, expression, limit).await {
            Err(CdpError::Refused { message, .. }) if is_navigation(&message) => {}
            answer => return answer,
        }
    }
    once(cdp, session, expression, limit).await
}

/// Whether the browser says that the page that a value was to come from is no longer there.
fn is_navigation(message: &str) -> bool {
    ["context", "navigated", "No frame"].iter().any(|part| message.contains(part))
}

async fn once(
    cdp: &Cdp,
    session: Option<&str>,
    expression: &str,
    limit: Duration,
) -> Result<Result<Evaluated, LocateError>, CdpError> {
    let world = world(cdp, session).await?;
    // In a list, which reaches the function as it is, whatever the value. The line break ends a comment at the expression's end.
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
    Ok(read(text).map(|value| Evaluated { value, url: url.to_owned() }))
}

/// The number of the world in the page's main frame, made if it is not there yet: a page that goes on gets another.
///
/// The page's scripts see nothing of it, and their changes to the language (`Array.prototype`, `JSON`) are not seen there.
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

/// What an evaluation threw.
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
