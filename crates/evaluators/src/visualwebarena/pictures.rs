//! `page_image_query`: the content of pictures on a page.
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/evaluators.py`, class `PageImageEvaluator`.

use serde_json::{Value, json};

use super::Halt;
use super::similarity::{Pixels, similarity};
use crate::webarena::pages::place;
use crate::webarena::{EpisodeContext, Eval, HelperSignature, OR, PictureQuery, TaskError};
use arenad_verdict::question::{Answer, KnownAnswers, Picture, Question};
use arenad_verdict::{Check, Profile, Verdict, unseen};

/// The threshold of similarity for tasks that state none.
pub(crate) const SIMILAR: f64 = 0.8;

/// Returns the questions about the pictures: the pictures of all queries, and the questions of the last query about its
/// pictures.
pub(crate) fn questions(
    context: &EpisodeContext,
    eval: &Eval,
    helpers: &[HelperSignature],
) -> Result<Vec<Question>, TaskError> {
    let mut questions = Vec::new();
    for query in &eval.page_image_query {
        questions.push(pictures(context, query, helpers)?);
    }
    if let Some(query) = eval.page_image_query.last() {
        questions.extend(looks(context, query, helpers)?);
        questions.extend(references(query));
    }
    Ok(questions)
}

/// Returns the question for the pictures of a query.
pub(crate) fn pictures(
    context: &EpisodeContext,
    query: &PictureQuery,
    helpers: &[HelperSignature],
) -> Result<Question, TaskError> {
    let selector = query.eval_image_class.trim();
    if !selector.is_empty() && !selector.starts_with('.') {
        return Err(TaskError::new("eval_image_class", "empty, or a selector of a class", &selector.into()));
    }
    if query.eval_vqa.is_empty() && query.eval_fuzzy_image_match.is_none() {
        return Err(TaskError::new("page_image_query", "a query with questions or a picture", &Value::Null));
    }
    let place = place(context, &query.eval_image_url, helpers)?;
    Ok(Question::Pictures { place, selector: selector.to_owned() })
}

/// Returns an expression that lists, on a page, the addresses of the pictures for [`Question::Pictures`], in their
/// order.
///
/// Shape: a list of texts, absolute URLs. They have to be fetched without the page's cookies, as in the benchmark.
#[must_use]
pub fn sources(selector: &str) -> String {
    let chosen = if selector.is_empty() {
        "[...document.querySelectorAll('img:not([alt=\"\"]), [role=\"img\"]')]".to_owned()
    } else {
        let selector = Value::from(selector);
        format!(
            "[...document.querySelectorAll({selector})].flatMap(e => e.tagName === 'IMG' ? [e] : [...e.querySelectorAll('img')])"
        )
    };
    format!("{chosen}.map(e => e.getAttribute('src')).filter(Boolean).map(src => new URL(src, location.href).href)")
}

/// Returns the questions of a query for a model that sees the pictures.
pub(crate) fn looks(
    context: &EpisodeContext,
    query: &PictureQuery,
    helpers: &[HelperSignature],
) -> Result<Vec<Question>, TaskError> {
    let look = |question: &str| {
        let place = place(context, &query.eval_image_url, helpers)?;
        let selector = query.eval_image_class.trim().to_owned();
        Ok(Question::Look { place, selector, question: question.to_owned() })
    };
    query.eval_vqa.iter().map(|asked| look(&asked.question)).collect()
}

/// Returns the questions for the pictures with which a query compares.
pub(crate) fn references(query: &PictureQuery) -> Vec<Question> {
    let sources = query.eval_fuzzy_image_match.iter().flat_map(|sources| sources.split(OR));
    sources.map(|source| Question::Reference { source: source.to_owned() }).collect()
}

/// Judges the pictures. Only the last query counts, unless an earlier one finds no pictures: the benchmark's code
/// starts a new score for each query.
pub(super) fn page_image_query(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    helpers: &[HelperSignature],
) -> Result<Vec<Check>, Halt> {
    let mut checks = Vec::new();
    for (index, query) in eval.page_image_query.iter().enumerate() {
        let pictures = match seen(&told.ask(&pictures(context, query, helpers)?), query) {
            Ok(pictures) => pictures,
            Err(check) if check.verdict == Verdict::Failed => {
                checks.push(*check);
                return Ok(checks);
            }
            Err(check) => {
                checks.push(*check);
                continue;
            }
        };
        if index + 1 == eval.page_image_query.len() {
            for (asked, look) in query.eval_vqa.iter().zip(looks(context, query, helpers)?) {
                let wanted = asked.answer.to_lowercase();
                let says = |reply: &str| reply.to_lowercase().contains(&wanted);
                checks.push(replied(query, &asked.question, &asked.answer, &told.ask(&look), says));
            }
            checks.extend(similar(query, &pictures, told, Profile::Compat).map_err(Halt::Found)?);
        }
    }
    Ok(checks)
}

/// Returns the readable pictures. If there are none, the error is a check with the reason.
pub(crate) fn seen(answer: &Answer, query: &PictureQuery) -> Result<Vec<Pixels>, Box<Check>> {
    let check = |found| Check::of("page_image_query", "pictures", &place_of(query), "a picture".into(), found, false);
    if let Some((verdict, reason)) = unseen(answer) {
        return Err(Box::new(Check { found: None, verdict, reason: Some(reason.to_owned()), ..check(Value::Null) }));
    }
    let pictures = match answer {
        Answer::Pictures(pictures) => decoded(pictures),
        _ => Vec::new(),
    };
    if pictures.is_empty() { Err(Box::new(check("none that can be read".into()))) } else { Ok(pictures) }
}

/// Decodes the readable pictures and leaves out the others.
pub(crate) fn decoded(pictures: &[Picture]) -> Vec<Pixels> {
    pictures.iter().filter_map(|picture| Pixels::decode(&picture.bytes).ok()).collect()
}

/// Checks whether the reply to a question fits for any picture.
pub(crate) fn replied(
    query: &PictureQuery,
    question: &str,
    wanted: &str,
    answer: &Answer,
    fits: impl Fn(&str) -> bool,
) -> Check {
    let expected = json!({ "question": question, "answer": wanted });
    let open = |verdict, reason: &str| {
        Check::open("page_image_query", "eval_vqa", &place_of(query), expected.clone(), verdict, reason)
    };
    match (unseen(answer), replies(answer)) {
        (Some((verdict, reason)), _) => open(verdict, reason),
        (None, Some(replies)) => {
            let any = replies.iter().any(|reply| fits(reply));
            Check::of("page_image_query", "eval_vqa", &place_of(query), expected, json!(replies), any)
        }
        (None, None) => open(Verdict::Inconclusive, "the replies are not a list of texts"),
    }
}

/// Returns the replies to a question, one for each picture.
pub(crate) fn replies(answer: &Answer) -> Option<Vec<&str>> {
    let Answer::Value(Value::Array(replies)) = answer else { return None };
    replies.iter().map(Value::as_str).collect()
}

/// Checks whether any picture is similar to any of those with which the query compares.
///
/// The benchmark's code fails on pictures that are too small to be compared; this is the error. In the strict profile
/// such pictures are not similar to any other.
pub(crate) fn similar(
    query: &PictureQuery,
    pictures: &[Pixels],
    told: &KnownAnswers,
    profile: Profile,
) -> Result<Option<Check>, Box<Check>> {
    let Some(sources) = query.eval_fuzzy_image_match.as_deref() else { return Ok(None) };
    let threshold = query.ssim_threshold.unwrap_or(SIMILAR);
    let expected = json!({ "similar_to": sources, "above": threshold });
    let open = |verdict, reason: &str| {
        let place = place_of(query);
        Check::open("page_image_query", "eval_fuzzy_image_match", &place, expected.clone(), verdict, reason)
    };
    let mut compared = Vec::new();
    for question in references(query) {
        let answer = told.ask(&question);
        if let Some((verdict, reason)) = unseen(&answer) {
            return Ok(Some(open(verdict, reason)));
        }
        let found = if let Answer::Pictures(pictures) = &answer { decoded(pictures) } else { Vec::new() };
        if found.is_empty() {
            return Ok(Some(open(Verdict::Inconclusive, "a picture to compare with cannot be read")));
        }
        compared.extend(found);
    }
    let mut best = f64::NEG_INFINITY;
    for (reference, picture) in compared.iter().flat_map(|one| pictures.iter().map(move |other| (one, other))) {
        match similarity(picture, reference) {
            Some(similarity) => best = best.max(similarity),
            None if profile == Profile::Strict => {}
            None => {
                let reason = "the benchmark's code raises an error: both pictures are smaller than 7 pixels";
                return Err(Box::new(open(Verdict::Failed, reason)));
            }
        }
        if best > threshold {
            break;
        }
    }
    let (place, found) = (place_of(query), json!({ "best": best }));
    Ok(Some(Check::of("page_image_query", "eval_fuzzy_image_match", &place, expected, found, best > threshold)))
}

/// Describes the page and the selector of a query for a report.
fn place_of(query: &PictureQuery) -> String {
    format!("{} {}", query.eval_image_url, query.eval_image_class).trim_end().to_owned()
}
