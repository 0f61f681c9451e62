//! Answers the cases of `run.py`: JSON lines `{"id", "benchmark", "function", "input"}` on stdin, and on stdout `{"id"}` with
//! `answer`, with `raises` where the benchmark's code is known to raise, or with `undecided` and the reason.
//!
//! The one argument is WebArena-Verified's task file.

use std::collections::BTreeMap;
use std::io::{BufRead, BufWriter, Write};

use arenad_evaluators::webarena_verified::{VerifiedTask, read};
use serde_json::{Value, json};

mod answers;
#[path = "../evaluators/seen.rs"]
mod seen;

use answers::{MissingAnswer, addresses, answer};

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("name WebArena-Verified's task file"))?;
    let tasks: BTreeMap<u32, VerifiedTask> =
        read(&std::fs::read_to_string(path)?, &addresses())?.into_iter().map(|task| (task.task_id, task)).collect();
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let mut said = json!({ "id": case["id"] });
        // A panic is reported like any other finding.
        let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answer(&case, &tasks)));
        match answered.unwrap_or_else(|_| Err(MissingAnswer::Undecided("arenad panics".to_owned()))) {
            Ok(value) => said["answer"] = value,
            Err(MissingAnswer::Raises(reason)) => said["raises"] = reason.into(),
            Err(MissingAnswer::Undecided(reason)) => said["undecided"] = reason.into(),
        }
        writeln!(out, "{said}")?;
    }
    Ok(out.flush()?)
}
