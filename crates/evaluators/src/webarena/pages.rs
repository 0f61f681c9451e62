//! `program_html`: the content of pages.
//!
//! Source: web-arena-x/webarena f62e0b9 `evaluation_harness/evaluators.py`, class `HTMLContentEvaluator`. It visits the
//! page of a target in the agent's own tab and stays there, so `last` in a later target means that page. libwebarena
//! 0.0.5 opens a tab and closes it; none of the benchmark's tasks tells the two apart.

use serde_json::Value;

use super::EpisodeContext;
use super::calls::{self, HELPERS, HelperSignature, Returns};
use super::strings::{clean_answer, exact_match};
use super::task::{Eval, OR, PageTarget, TaskError, text_of, texts_of};
use crate::text::python;
use arenad_verdict::question::{Answer, BenchmarkCall, KnownAnswers, PagePlace, Question};
use arenad_verdict::{Check, excerpt, unseen};

/// Returns the questions about the pages.
///
/// # Errors
///
/// Returns an error if the benchmark's own code would fail on the locator of a target.
pub(crate) fn questions(context: &EpisodeContext, eval: &Eval) -> Result<Vec<Question>, TaskError> {
    let mut tab = Tab::of(context);
    eval.program_html.iter().map(|target| tab.question(target)).collect()
}

/// Judges the answers about the pages.
pub(super) fn program_html(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
) -> Result<Vec<Check>, TaskError> {
    let mut tab = Tab::of(context);
    let mut checks = Vec::new();
    for target in &eval.program_html {
        let answer = told.ask(&tab.question(target)?);
        checks.extend(judge(target, &answer)?);
    }
    Ok(checks)
}

/// The agent's tab, which visits the targets one after the other.
struct Tab {
    /// The context, with the current URL of the tab.
    context: EpisodeContext,
    place: PagePlace,
}

impl Tab {
    fn of(context: &EpisodeContext) -> Self {
        Self { context: context.clone(), place: PagePlace::Last }
    }

    /// Goes to the page of a target, if the target names one, and returns the question about it.
    fn question(&mut self, target: &PageTarget) -> Result<Question, TaskError> {
        let place = place(&self.context, &target.url, &HELPERS)?;
        if let PagePlace::Url(url) = &place {
            self.context.url.clone_from(url);
        }
        if place != PagePlace::Last {
            self.place = place;
        }
        let place = self.place.clone();
        match locator(&self.context, target, &HELPERS)? {
            TargetLocator::Page => Ok(Question::Content { place }),
            TargetLocator::Script(expression) => {
                Ok(Question::Script { place, prepare: target.prep_actions.clone(), expression: expression.to_owned() })
            }
            TargetLocator::Helper(call, _) => Ok(Question::Helper { place, call }),
            TargetLocator::Lambda(_) => Err(unknown(&target.locator)),
        }
    }
}

/// The part of a page that a target examines.
pub(crate) enum TargetLocator<'a> {
    /// All the content of the page.
    Page,
    /// The value of an expression.
    Script(&'a str),
    /// The value of an expression that need not begin with `document.`; VisualWebArena only.
    Lambda(&'a str),
    /// The value that a helper returns.
    Helper(BenchmarkCall, HelperSignature),
}

/// Parses the locator of a target.
pub(crate) fn locator<'a>(
    context: &EpisodeContext,
    target: &'a PageTarget,
    helpers: &[HelperSignature],
) -> Result<TargetLocator<'a>, TaskError> {
    let text = target.locator.trim();
    if text.is_empty() {
        Ok(TargetLocator::Page)
    } else if text.starts_with("document.") || text.starts_with("[...document.") {
        Ok(TargetLocator::Script(text))
    } else if let Some(expression) = text.strip_prefix("lambda:") {
        Ok(TargetLocator::Lambda(expression))
    } else if let Some(call) = text.strip_prefix("func:") {
        let (call, helper) = calls::parse(call, &context.url, helpers)?;
        if helper.returns == Returns::Url { Err(unknown(text)) } else { Ok(TargetLocator::Helper(call, helper)) }
    } else {
        Err(unknown(text))
    }
}

fn unknown(locator: &str) -> TaskError {
    TaskError::new("locator", "empty, an expression that begins with document., or a helper's func:", &locator.into())
}

/// Parses the `url` of a target.
pub(crate) fn place(context: &EpisodeContext, url: &str, helpers: &[HelperSignature]) -> Result<PagePlace, TaskError> {
    if url == "last" {
        return Ok(PagePlace::Last);
    }
    let Some(call) = url.strip_prefix("func:") else {
        return Ok(PagePlace::Url(url.to_owned()));
    };
    let (call, helper) = calls::parse(call, &context.url, helpers)?;
    match &call.arguments[..] {
        _ if helper.returns != Returns::Url => Err(TaskError::new("url", "a helper that finds a URL", &url.into())),
        // This helper needs no access to the site.
        [post] if helper.name == "reddit_get_post_url" => Ok(PagePlace::Url(calls::reddit_get_post_url(post))),
        _ => Ok(PagePlace::Found(call)),
    }
}

/// Describes the URL and the locator of a target for a report.
pub(crate) fn whereabouts(target: &PageTarget) -> String {
    if target.locator.is_empty() { target.url.clone() } else { format!("{} {}", target.url, target.locator) }
}

fn judge(target: &PageTarget, answer: &Answer) -> Result<Vec<Check>, TaskError> {
    let text = match answer {
        // The text is Python's str() of the value, with HTML entities replaced.
        Answer::Value(value) => htmlize::unescape(python::to_str(value)).into_owned(),
        _ => String::new(),
    };
    let place = whereabouts(target);
    let check = |rule: &str, expected: &Value, fits: bool| match unseen(answer) {
        None => Check::of("program_html", rule, &place, expected.clone(), excerpt(&text), fits),
        Some((verdict, reason)) => Check::open("program_html", rule, &place, expected.clone(), verdict, reason),
    };
    let wanted = &target.required_contents;
    if let Some(expected) = wanted.get("exact_match") {
        let reference = text_of("required_contents.exact_match", expected)?;
        return Ok(vec![check("exact_match", expected, exact_match(reference, &text))]);
    }
    if let Some(expected) = wanted.get("must_include") {
        let references = texts_of("required_contents.must_include", expected)?;
        let fits = |reference: &&str| check("must_include", &Value::from(*reference), includes(&text, reference));
        return Ok(references.iter().map(fits).collect());
    }
    Err(TaskError::new("required_contents", "exact_match or must_include", &Value::Object(wanted.clone())))
}

/// Whether the text contains any of the alternatives.
fn includes(text: &str, alternatives: &str) -> bool {
    let text = clean_answer(text);
    alternatives.split(OR).any(|alternative| text.contains(&clean_answer(alternative)))
}
