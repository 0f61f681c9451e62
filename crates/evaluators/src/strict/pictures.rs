//! `page_image_query`: the content of pictures. Every query counts.

use serde_json::json;

use super::words;
use crate::visualwebarena::pictures::{looks, pictures, references, replied, replies, seen, similar};
use crate::webarena::{EpisodeContext, Eval, HelperSignature, PictureQuery, TaskError};
use arenad_verdict::question::{KnownAnswers, Question};
use arenad_verdict::{Check, Profile, Verdict};

/// Returns the questions about the pictures.
pub(super) fn questions(
    context: &EpisodeContext,
    eval: &Eval,
    helpers: &[HelperSignature],
) -> Result<Vec<Question>, TaskError> {
    let mut questions = Vec::new();
    for query in &eval.page_image_query {
        questions.push(pictures(context, query, helpers)?);
        questions.extend(looks(context, query, helpers)?);
        questions.extend(references(query));
    }
    Ok(questions)
}

/// Judges the answers about the pictures.
pub(super) fn page_image_query(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    helpers: &[HelperSignature],
) -> Result<Vec<Check>, TaskError> {
    let mut checks = Vec::new();
    for query in &eval.page_image_query {
        match seen(&told.ask(&pictures(context, query, helpers)?), query) {
            Ok(pictures) => {
                checks.extend(replied_all(context, query, told, helpers)?);
                checks.extend(similar(query, &pictures, told, Profile::Strict).unwrap_or_else(|check| Some(*check)));
            }
            Err(check) => checks.push(*check),
        }
    }
    Ok(checks)
}

/// Checks the replies to each question, and whether one picture fits all of them.
fn replied_all(
    context: &EpisodeContext,
    query: &PictureQuery,
    told: &KnownAnswers,
    helpers: &[HelperSignature],
) -> Result<Vec<Check>, TaskError> {
    let mut checks = Vec::new();
    // For each picture, whether all replies so far fit.
    let mut fitting: Option<Vec<bool>> = None;
    for (asked, look) in query.eval_vqa.iter().zip(looks(context, query, helpers)?) {
        let answer = told.ask(&look);
        let fits = |reply: &str| answers(reply, &asked.answer);
        checks.push(replied(query, &asked.question, &asked.answer, &answer, fits));
        let Some(replies) = replies(&answer) else { continue };
        let fits: Vec<bool> = replies.into_iter().map(fits).collect();
        fitting = Some(match fitting {
            Some(before) => before.into_iter().zip(fits).map(|(before, fits)| before && fits).collect(),
            None => fits,
        });
    }
    let all_passed = checks.iter().all(|check| check.verdict == Verdict::Passed);
    if let (true, true, Some(fitting)) = (checks.len() > 1, all_passed, fitting) {
        let one = fitting.contains(&true);
        let expected = json!("one picture for which all replies fit");
        checks.push(Check::of("page_image_query", "eval_vqa", &query.eval_image_url, expected, json!(fitting), one));
    }
    Ok(checks)
}

/// Whether a reply gives an answer. "Yes" and "no" have to be the first word, because both may occur later; other
/// answers count at any place.
fn answers(reply: &str, wanted: &str) -> bool {
    let (reply, wanted) = (words::fold(reply), words::fold(wanted));
    if ["yes", "no"].contains(&wanted.as_str()) {
        return reply.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()) == Some(&wanted);
    }
    words::says(&reply, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_as_words() {
        assert!(answers("Yes, it is.", "yes"));
        assert!(answers("a red shoe", "Red"));
        for reply in ["eyes", "no, not yes", "", "I would say yes"] {
            assert!(!answers(reply, "yes"), "{reply}");
        }
    }
}
