//! `required_values`: inequalities such as `>= 300`.
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/evaluators.py`, class `NumericEvaluator`.

use crate::text::{numbers, python};
use crate::webarena::{OR, TaskError};

/// How much a value may miss a bound by. Thus `<` lets the bound itself pass, as `<=` does.
const TOLERANCE: f64 = 1e-8;

/// `str_2_int`: a whole number, commas left out wherever they stand.
#[must_use]
pub(super) fn whole(text: &str) -> Option<f64> {
    python::int(&python::strip(text).replace(',', ""))
}

/// Whether a value satisfies one of the inequalities that ` |OR| ` separates.
///
/// # Errors
///
/// When one of them is none: each is evaluated, whatever the others say.
pub fn satisfies(value: f64, inequalities: &str) -> Result<bool, TaskError> {
    let mut any = false;
    for inequality in inequalities.split(OR) {
        any |= compare(value, inequality)?;
    }
    Ok(any)
}

fn compare(value: f64, inequality: &str) -> Result<bool, TaskError> {
    let wrong =
        || TaskError::new("required_values", "an operator and a number, such as \">= 300\"", &inequality.into());
    // In this order: `<=` contains `<`.
    let operator = ["<=", ">=", "==", "<", ">"].into_iter().find(|operator| inequality.contains(operator));
    let operator = operator.ok_or_else(wrong)?;
    let parts: Vec<&str> = inequality.split(operator).collect();
    // Nobody looks at what stands before the operator.
    let [_, bound] = parts[..] else { return Err(wrong()) };
    let bound = numbers::float(bound).ok_or_else(wrong)?;
    Ok(match operator {
        "<=" => value <= bound + TOLERANCE,
        ">=" => value >= bound - TOLERANCE,
        "==" => (value - bound).abs() <= TOLERANCE,
        "<" => value < bound + TOLERANCE,
        _ => value > bound - TOLERANCE,
    })
}
