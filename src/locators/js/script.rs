//! The evaluation of an expression: its value as bounded JSON, or what it threw.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::cdp::{Cdp, CdpError};
use crate::domain::locator::Value;
use crate::locators::json::{parsed, to_value};
use crate::locators::{LocateError, SIZE_MAX};

/// Turns the value into JSON in the page, so that a large one never leaves it. A function is called, a promise awaited;
/// what JSON has no word for is `null`, numbers that are none are texts.
const INTO_JSON: &str = "async function (limit) {
    let value = this[0];
    if (typeof value === 'function') value = value();
    value = await value;
    if (typeof value === 'number' && !Number.isFinite(value)) return ['n' + value, location.href];
    if (typeof value === 'bigint') return ['b' + value, location.href];
    if (value === undefined) return ['jnull', location.href];
    const text = typeof value === 'string' ? 't' + value : 'j' + JSON.stringify(value);
    return [text.length > limit ? 'l' + text.length : text, location.href];
}";

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
    ["context", "navigated"].iter().any(|part| message.contains(part))
}

async fn once(
    cdp: &Cdp,
    session: Option<&str>,
    expression: &str,
    limit: Duration,
) -> Result<Result<Evaluated, LocateError>, CdpError> {
    // In a list, which reaches the function as it is, whatever the value. The line break ends a comment at the expression's end.
    let wrapped = json!({
        "expression": format!("({INTO_JSON}).call([{expression}\n], {SIZE_MAX})"),
        "timeout": u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        "userGesture": true,
        "returnByValue": true,
        "awaitPromise": true,
    });
    let answer = cdp.call(session, "Runtime.evaluate", wrapped).await?;
    if let Some(thrown) = thrown(&answer) {
        return Ok(Err(thrown));
    }
    let answer = &answer["result"]["value"];
    let (Some(text), Some(url)) = (answer[0].as_str(), answer[1].as_str()) else {
        return Ok(Err(LocateError::Failed("the value is not understood".to_owned())));
    };
    Ok(read(text).map(|value| Evaluated { value, url: url.to_owned() }))
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
