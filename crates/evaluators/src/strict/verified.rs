//! Extraction of answers to WebArena-Verified's tasks from their surroundings: prose around the JSON; sentences,
//! Markdown and names of units around single values. The published code then reads the values.

use serde_json::{Map, Value};

use super::hedges::{Claim, HEDGED, without_markers};
use super::leniency::Leniency;
use super::numbers::scan;
use super::spoken::{begins_with, framed, number_word, unwrapped, without_about, words};
use super::words::fold;
use crate::webarena_verified::SubmittedAnswer;

/// Keys of an answer; at least one has to be present.
const KEYS: [&str; 4] = ["task_type", "performed_operation", "status", "retrieved_data"];

arenad_model::text_error! {
    /// The way in which an answer hedges, as a sentence for a verdict.
    pub(crate) struct Hedged;
}

/// Returns the answer without its surroundings, and the leniency if any were removed.
///
/// Errors: [`Hedged`] if the answer hedges.
pub(crate) fn tidied(answer: &SubmittedAnswer, schema: &Value) -> Result<(SubmittedAnswer, Option<Leniency>), Hedged> {
    let (document, mut leniency) = match answer {
        SubmittedAnswer::Document(document) => (document.clone(), None),
        SubmittedAnswer::Text(text) => match document(text)? {
            Some((document, leniency)) => (document, leniency),
            None => return Ok((answer.clone(), None)),
        },
    };
    let Value::Object(mut entries) = document else { return Ok((answer.clone(), None)) };
    if let (Some(data), Some(items)) = (entries.get_mut("retrieved_data"), schema.get("items")) {
        let values = match data {
            Value::Array(values) => values.iter_mut().collect(),
            single => vec![single],
        };
        for value in values {
            leniency = leniency.max(tidy(value, items)?);
        }
    }
    Ok((SubmittedAnswer::Document(Value::Object(entries)), leniency))
}

/// Returns the only JSON object in a text that is an answer. A text that is JSON as a whole needs no leniency.
fn document(text: &str) -> Result<Option<(Value, Option<Leniency>)>, Hedged> {
    if let Ok(document) = serde_json::from_str::<Value>(text.trim()) {
        return Ok(Some((document, None)));
    }
    let mut found: Vec<Map<String, Value>> = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find('{').map(|at| from + at) {
        let mut documents = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match documents.next() {
            Some(Ok(Value::Object(entries))) => {
                from = at + documents.byte_offset().max(1);
                if KEYS.iter().any(|key| entries.contains_key(*key)) && !found.contains(&entries) {
                    found.push(entries);
                }
            }
            _ => from = at + 1,
        }
    }
    if found.len() > 1 {
        return Err(format!("{HEDGED}it gives {} different results", found.len()).into());
    }
    Ok(found.pop().map(|entries| (Value::Object(entries), Some(Leniency::Markup))))
}

/// Tidies one value by its schema and returns the leniency that it required.
fn tidy(value: &mut Value, schema: &Value) -> Result<Option<Leniency>, Hedged> {
    match value {
        Value::Object(entries) => {
            let mut leniency = None;
            for (name, value) in entries {
                if let Some(schema) = schema.get("properties").and_then(|properties| properties.get(name)) {
                    leniency = leniency.max(tidy(value, schema)?);
                }
            }
            Ok(leniency)
        }
        Value::Array(values) => {
            let items = schema.get("items").unwrap_or(schema);
            values.iter_mut().try_fold(None, |leniency: Option<Leniency>, value| Ok(leniency.max(tidy(value, items)?)))
        }
        Value::String(text) => {
            let kind = schema.get("format").or_else(|| schema.get("type")).and_then(Value::as_str).unwrap_or("string");
            let tidied = tidy_text(text, kind)?.filter(|tidied| tidied != text);
            Ok(tidied.map(|tidied| {
                *text = tidied;
                Leniency::Sentence
            }))
        }
        _ => Ok(None),
    }
}

fn tidy_text(text: &str, kind: &str) -> Result<Option<String>, Hedged> {
    let is_marked = ["**", "`"].iter().any(|sign| text.trim().starts_with(sign) && text.trim().ends_with(sign));
    let bare = if is_marked { unwrapped(text).pop().unwrap_or_default() } else { text.to_owned() };
    Ok(match kind {
        "boolean" => truth(&bare).map(str::to_owned),
        "number" | "integer" | "currency" => number(&bare)?.or(is_marked.then_some(bare)),
        "duration" | "distance" => Some(measure(&bare)),
        "date" => Some(bare.trim().trim_end_matches('.').to_owned()),
        _ => is_marked.then_some(bare),
    })
}

/// Returns `yes`, `no`, `true` or `false` if the text is that word, possibly after a frame, or begins with it and does
/// not revoke it.
fn truth(text: &str) -> Option<&'static str> {
    let folded = fold(text);
    ["yes", "no", "true", "false"].into_iter().find(|word| {
        let is_it = |rest: &&str| rest.trim_end_matches(['.', '!']) == *word;
        framed(&folded, "").iter().any(is_it) || begins_with(&folded, word)
    })
}

/// Returns the only number in a text.
fn number(text: &str) -> Result<Option<String>, Hedged> {
    let folded = fold(&without_markers(text));
    let said: Vec<String> = scan(&folded).into_iter().map(|number| number.amount.digits().to_owned()).collect();
    let all: Vec<_> = words(&folded).collect();
    let in_words = (0..all.len()).find_map(|at| number_word(&all[at..])).map(|(value, _)| value.to_string());
    let Some(first) = said.first().or(in_words.as_ref()) else { return Ok(None) };
    if let Some(how) = Claim::new(text, "", [vec![first.as_str()]].into_iter()).hedge() {
        return Err(how.into());
    }
    // A number that can be read as it is stays unchanged.
    let is_one = said.iter().all(|other| other == first) && !said.is_empty();
    Ok((is_one && folded.contains(char::is_alphabetic)).then(|| first.clone()))
}

/// Converts `about 1 hour and 16 min.` to `1 hour 16 min`.
fn measure(text: &str) -> String {
    let mut out = String::new();
    for word in without_about(text.trim()).split_whitespace().filter(|word| !word.eq_ignore_ascii_case("and")) {
        let is_unit = word.trim_end_matches('.').ends_with(char::is_alphabetic);
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(if is_unit { word.trim_end_matches(['.', ',']) } else { word });
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(kind: &str, text: &str) -> Value {
        let schema = json!({ "type": "array", "items": { "type": kind } });
        let answer = json!({ "status": "SUCCESS", "retrieved_data": [text] });
        match tidied(&SubmittedAnswer::Document(answer), &schema) {
            Ok((SubmittedAnswer::Document(document), _)) => document["retrieved_data"][0].clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn values_are_without_what_stands_around_them() {
        for (kind, text, expected) in [
            ("boolean", "Yes.", "yes"),
            ("boolean", "No, it is open.", "no"),
            ("boolean", "Yes and no", "Yes and no"),
            ("duration", "about 16 minutes", "16 minutes"),
            ("duration", "1 hour and 16 min.", "1 hour 16 min"),
            ("distance", "approximately 1.7 km", "1.7 km"),
            ("number", "5 items", "5"),
            ("number", "five", "five"),
            ("number", "**5**", "5"),
            ("currency", "$36.39 USD", "36.39"),
            ("string", "**Blue Mug**", "Blue Mug"),
            ("string", "Blue Mug", "Blue Mug"),
        ] {
            assert_eq!(item(kind, text), expected, "{kind} {text}");
        }
    }

    #[test]
    fn an_answer_may_stand_in_prose_but_not_beside_another() {
        let text = |text: &str| tidied(&SubmittedAnswer::Text(text.to_owned()), &json!({}));
        let one = "{\"status\": \"SUCCESS\", \"retrieved_data\": [6]}";
        let two = "{\"status\": \"SUCCESS\", \"retrieved_data\": [7]}";
        for prose in
            [one.to_owned(), format!("Here it is: {one}. Done {{ok}}."), format!("```json\n{one}\n```\nSo: {one}")]
        {
            let found = text(&prose).expect("one answer").0;
            assert!(
                matches!(found, SubmittedAnswer::Document(document) if document["retrieved_data"] == json!([6])),
                "{prose}"
            );
        }
        assert!(text(&format!("{one}\n{two}")).expect_err("two answers").to_string().starts_with(HEDGED));
        let schema = json!({ "items": { "type": "number" } });
        for hedge in ["5 or 6", "not six", "six or seven", "not 6"] {
            let answer = json!({ "status": "SUCCESS", "retrieved_data": [hedge] });
            assert!(tidied(&SubmittedAnswer::Document(answer), &schema).is_err(), "{hedge}");
        }
    }
}
