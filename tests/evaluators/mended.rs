//! One case for each class of former differences between arenad and a benchmark's own code, with the answer of that
//! code.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answers::{MissingAnswer, answer};
use super::vectors::is_equal;

/// `tests/vectors/mended.jsonl` has lines with a benchmark, a function, its input and the recorded answer.
#[test]
fn what_was_mended_stays_mended() {
    let mut count = 0;
    for line in include_str!("../vectors/mended.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let expected = &case["expected"];
        let nought = |value: &Value| value == 0.0 || value == false || value.get("error").is_some();
        match answer(&case, &BTreeMap::new()) {
            Ok(value) => assert!(is_equal(&value, expected) || (nought(&value) && nought(expected)), "{line}: {value}"),
            // If the benchmark's code raises, there is no score, which counts as zero.
            Err(MissingAnswer::Raises(reason)) => assert!(nought(expected), "{line}: {reason}"),
            Err(MissingAnswer::Undecided(reason)) => panic!("{line}: undecided: {reason}"),
        }
        count += 1;
    }
    assert!(count >= 40, "{count} cases");
}
