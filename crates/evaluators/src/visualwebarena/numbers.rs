//! `required_values`: inequalities such as `>= 300`.
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/evaluators.py`, class `NumericEvaluator`.

use crate::text::{numbers, python};
use crate::webarena::{OR, TaskError};

/// The distance by which a value may miss a bound. Because of it `<` accepts the bound itself, as `<=` does.
const TOLERANCE: f64 = 1e-8;

/// `str_2_int`: an integer; commas are removed at any place.
#[must_use]
pub(super) fn whole(text: &str) -> Option<f64> {
    python::int(&python::strip(text).replace(',', ""))
}

/// Whether a value satisfies at least one of the inequalities, which ` |OR| ` separates.
///
/// # Errors
///
/// Returns an error if one of them is not an inequality. All of them are evaluated.
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
    // `<=` contains `<`, so it is tried first.
    let operator = ["<=", ">=", "==", "<", ">"].into_iter().find(|operator| inequality.contains(operator));
    let operator = operator.ok_or_else(wrong)?;
    let parts: Vec<&str> = inequality.split(operator).collect();
    // The text before the operator is ignored.
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
