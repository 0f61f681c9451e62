//! Prints a verdict for people: first the verdict on one line, then each check on a line of its own, and below each
//! failed check the expected and the actual value.

use std::fmt::Write as _;

use serde_json::Value;

use super::{exit_code, output};
use arenad_verdict::{Check, Report, SideBySide, Verdict};

/// The maximum length of a value in characters. The JSON contains the whole value.
const SHOWN_MAX: usize = 300;

/// Returns the exit code for a verdict.
pub fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Passed => exit_code::OK,
        Verdict::Failed => exit_code::NOT_DONE,
        Verdict::Inconclusive | Verdict::NeedsJudge | Verdict::Unsupported => exit_code::UNDECIDED,
    }
}

/// Prints a report on standard output. `subject` names the judged object, such as a task.
pub fn print(subject: &str, report: &Report) {
    out!("{}", text(subject, report, output::is_colored()));
}

/// Prints the reports of both profiles on standard output, or only one of them if they are equal.
pub fn print_both(subject: &str, both: &SideBySide) {
    let is_colored = output::is_colored();
    if both.compat.checks == both.strict.checks {
        out!("{}", text(&format!("{subject}, compat and strict"), &both.strict, is_colored));
    } else {
        out!("{}", text(&format!("{subject}, compat"), &both.compat, is_colored));
        out!("{}", text(&format!("{subject}, strict"), &both.strict, is_colored));
    }
}

/// Returns a verdict in the spelling of the JSON.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::NeedsJudge => "needs_judge",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Unsupported => "unsupported",
        Verdict::Failed => "failed",
    }
}

/// Returns a report as lines of text, each with a line break.
pub fn text(subject: &str, report: &Report, is_colored: bool) -> String {
    let mut leaves = Vec::new();
    for check in &report.checks {
        collect_leaves(check, &mut leaves);
    }
    let count = |verdict: Verdict| leaves.iter().filter(|check| check.verdict == verdict).count();
    let counted = [Verdict::Passed, Verdict::Failed, Verdict::Inconclusive, Verdict::NeedsJudge, Verdict::Unsupported];
    let counts: Vec<String> = counted
        .into_iter()
        .filter(|verdict| count(*verdict) > 0)
        .map(|verdict| format!("{} {}", count(verdict), word(verdict)))
        .collect();
    let took: f64 = leaves.iter().filter_map(|check| check.duration_ms).sum();
    let mut out = painted(report.verdict, is_colored);
    let _ = write!(out, "  {subject}");
    if leaves.len() > 1 {
        let _ = write!(out, "  ({})", counts.join(", "));
    }
    if took > 0.0 {
        let _ = write!(out, "  {}", output::milliseconds(took));
    }
    out.push('\n');
    for check in &report.checks {
        describe(check, 1, is_colored, &mut out);
    }
    out
}

/// Collects the checks that are not composed of others, which decide the verdict.
fn collect_leaves<'a>(check: &'a Check, leaves: &mut Vec<&'a Check>) {
    match check.parts.as_slice() {
        [] => leaves.push(check),
        parts => parts.iter().for_each(|part| collect_leaves(part, leaves)),
    }
}

fn describe(check: &Check, depth: usize, is_colored: bool, out: &mut String) {
    let indent = "  ".repeat(depth);
    let rule = match check.evaluator.as_ref() {
        "" => check.rule.clone(),
        evaluator => format!("{evaluator} {}", check.rule),
    };
    let title = match &check.name {
        Some(name) => format!("{name}: {rule}"),
        None => rule,
    };
    let _ = write!(out, "{indent}{}  {title}", painted(check.verdict, is_colored));
    if !check.place.is_empty() {
        let _ = write!(out, "  {}", shown_text(&check.place));
    }
    if let Some(took) = check.duration_ms {
        let _ = write!(out, "  {}", output::milliseconds(took));
    }
    out.push('\n');
    if check.parts.is_empty() && check.verdict != Verdict::Passed {
        let _ = writeln!(out, "{indent}  expected  {}", shown(&check.expected));
        if let Some(found) = &check.found {
            let _ = writeln!(out, "{indent}  found     {}", shown(found));
        }
    }
    if let Some(reason) = &check.reason {
        let _ = writeln!(out, "{indent}  because   {}", shown_text(reason));
    }
    for part in &check.parts {
        describe(part, depth + 1, is_colored, out);
    }
}

/// Returns a verdict, padded to the longest one and coloured by its severity.
fn painted(verdict: Verdict, is_colored: bool) -> String {
    let padded = format!("{:12}", word(verdict));
    let code = match verdict {
        Verdict::Passed => "32",
        Verdict::Failed => "31",
        Verdict::Inconclusive | Verdict::NeedsJudge | Verdict::Unsupported => "33",
    };
    if is_colored { format!("\x1b[{code}m{padded}\x1b[0m") } else { padded }
}

/// Returns a value on one line, with texts in quotes so that white space is visible.
fn shown(value: &Value) -> String {
    shown_text(&value.to_string())
}

/// Returns the beginning of a text on one line, without the control characters through which a site could steer the
/// terminal.
fn shown_text(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = text.chars().take(SHOWN_MAX).map(visible).collect();
    if text.chars().nth(SHOWN_MAX).is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use arenad_verdict::Profile;

    #[test]
    fn a_report_says_at_a_glance_what_failed_and_why() {
        let order = Check { name: Some("the order".to_owned()), duration_ms: Some(3.2), ..good("shopping") };
        let item = Check::of("native", "equals", "shopping", json!(2), json!("1\u{1b}[2J\n"), false);
        let page =
            Check::open("url_match", "GOLD in PRED", "url", json!("/a"), Verdict::Inconclusive, "the site is down");
        let any = Check { parts: vec![item, page], ..Check::of("", "any", "", json!(null), json!(null), false) };
        let report = Report::of(Profile::Strict, vec![order, any]);
        let expected = "\
failed        order.1  (1 passed, 1 failed, 1 inconclusive)  3 ms
  passed        the order: native equals  shopping  3 ms
  failed        any
    failed        native equals  shopping
      expected  2
      found     \"1\\u001b[2J\\n\"
    inconclusive  url_match GOLD in PRED  url
      expected  \"/a\"
      because   the site is down
";
        assert_eq!(text("order.1", &report, false), expected);
        assert!(text("order.1", &report, true).starts_with("\u{1b}[31mfailed"));
    }

    fn good(place: &str) -> Check {
        Check::of("native", "equals", place, json!(1), json!(1), true)
    }

    #[test]
    fn long_values_are_cut() {
        let long = "x".repeat(SHOWN_MAX + 1);
        assert!(shown_text(&long).ends_with("x…"));
        assert_eq!(shown_text("a\tb\u{9b}c"), "a b c");
    }
}
