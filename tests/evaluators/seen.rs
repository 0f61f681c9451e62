//! Observations that a case describes, in place of a browser, sites and a judge.

use arenad_verdict::question::{Answer, PagePlace, Picture, Question};
use serde_json::Value;

/// Answers a question from the pages, pictures, helpers and judge that the case describes.
pub fn look(question: &Question, input: &Value) -> Answer {
    match question {
        Question::Content { place: PagePlace::Last } => Answer::Value(input["content"].clone()),
        Question::Content { place: PagePlace::Url(url) } => {
            Answer::Value(input["pages"].get(url).unwrap_or(&input["every_page"]).clone())
        }
        Question::Script { expression, .. } => match input["evaluate"].get(expression) {
            Some(value) => Answer::Value(value.clone()),
            None => Answer::Threw("not listed".to_owned()),
        },
        Question::Helper { call, .. } => match input["helpers"].get(&call.name) {
            Some(value) => Answer::Value(value.clone()),
            None => Answer::Threw("not listed".to_owned()),
        },
        Question::Judge(comparison) => {
            let said =
                input["judge"].get(&comparison.reference).or(input.get("judge_default")).and_then(Value::as_bool);
            said.map_or_else(|| panic!("unexpected question {comparison:?}"), |said| Answer::Value(said.into()))
        }
        Question::Pictures { selector, .. } => {
            let found = input["pictures"][selector].as_array().cloned().unwrap_or_default();
            Answer::Pictures(found.iter().map(|hex| picture(&bytes(hex))).collect())
        }
        Question::Reference { source } => Answer::Pictures(vec![picture(&bytes(&input["references"][source]))]),
        Question::Look { question, .. } => Answer::Value(input["replies"][question].clone()),
        other => panic!("unexpected question {other:?}"),
    }
}

/// Wraps bytes as a downloaded picture.
pub fn picture(bytes: &[u8]) -> Picture {
    Picture { url: "http://shopping.test/a.png".to_owned(), bytes: bytes.into() }
}

/// Decodes bytes that a case gives as hexadecimal digits.
pub fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap_or_default().as_bytes();
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    digits.chunks(2).map(|pair| byte(pair).expect("two hexadecimal digits")).collect()
}
