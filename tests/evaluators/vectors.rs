//! Cases with the answers of a benchmark's own code. `tests/vectors/README.md` describes their origin.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenad_verdict::Report;
use serde::Deserialize;
use serde_json::Value;

/// A case with its input.
#[derive(Deserialize)]
struct VectorCase {
    id: String,
    function: String,
    input: Value,
    expected: Value,
}

/// The answer of one of arenad's functions: a value, or the reason for its absence.
pub type FunctionAnswer = Result<Value, String>;

/// The folder of the cases.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");

/// Runs all cases of a file; fails with one line per mismatch and a summary per function. `ARENAD_VECTORS_DIR` names
/// another folder.
pub fn run(file: &str, ours: impl Fn(&str, &Value) -> FunctionAnswer) {
    let folder = std::env::var_os("ARENAD_VECTORS_DIR").map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
    run_at(&folder.join(file), ours);
}

/// Runs the cases of a file in `further/`: those that once differed.
pub fn run_further(file: &str, ours: impl Fn(&str, &Value) -> FunctionAnswer) {
    run_at(&Path::new(FOLDER).join("further").join(file), ours);
}

fn run_at(path: &Path, ours: impl Fn(&str, &Value) -> FunctionAnswer) {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut summary: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: VectorCase =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()));
        let answer = ours(&case.function, &case.input);
        let fits = match (&answer, case.expected.get("error")) {
            (Err(_), expected) => expected.is_some(),
            (Ok(_), Some(_)) => false,
            (Ok(value), None) => is_equal(value, &case.expected),
        };
        let (equal, all) = summary.entry(case.function.clone()).or_default();
        *all += 1;
        if fits {
            *equal += 1;
        } else {
            println!("{} {} {}: expected {}, got {answer:?}", case.id, case.function, case.input, case.expected);
        }
    }
    for (function, (equal, all)) in &summary {
        println!("{file} {function}: {equal} of {all}");
    }
    let (equal, all) = summary.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(all > 0, "{} has cases", path.display());
    assert_eq!(equal, all, "{file}: every case is answered as the benchmark does");
}

/// Returns the score of a report. If the benchmark's code raises an error, the task is failed, and a check says so.
pub fn score(report: &Report) -> FunctionAnswer {
    let raises = |reason: &str| reason.starts_with("the benchmark's code raises");
    match report.checks.iter().filter_map(|check| check.reason.as_deref()).find(|reason| raises(reason)) {
        Some(reason) => Err(reason.to_owned()),
        None => report.score.map(Value::from).ok_or_else(|| format!("{report:?}")),
    }
}

/// Numbers are equal within 1e-9, and the order of an object's keys does not matter.
pub fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN));
            (one - other).abs() <= 1e-9
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| is_equal(value, other)))
        }
        _ => one == other,
    }
}
