//! Line-based differences between two texts, in the unified format. This module does no I/O.
//!
//! The crate `similar` finds the lines that differ. Its search is bounded, so that texts of a site cannot make it slow.
//! The result is bounded here.

use std::ops::Range;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

/// Number of unchanged lines around each change.
const CONTEXT: usize = 3;

/// Maximum number of lines in a difference.
const LINES_MAX: usize = 400;

/// Maximum number of characters that are shown of a line.
const LINE_CHARS: usize = 400;

/// The difference between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextDiff {
    /// Hunks in the unified format, without a head that names files.
    pub text: String,
    /// Whether the end of the difference is left out.
    pub is_cut: bool,
}

/// Returns the difference between two texts.
pub fn diff(before: &str, now: &str) -> TextDiff {
    let (before, now) = (lines(before), lines(now));
    let edits = capture_diff_slices(Algorithm::Myers, &before, &now);
    let mut text = TextDiff { text: String::new(), is_cut: false };
    let mut written = 0;
    for hunk in group_diff_ops(edits, CONTEXT) {
        let lines = shown(&hunk, &before, &now);
        let room = LINES_MAX.saturating_sub(written);
        text.is_cut |= lines.len() > room;
        if room == 0 {
            break;
        }
        text.text += &head(&hunk);
        lines.iter().take(room).for_each(|line| text.text += line);
        written += lines.len();
    }
    text
}

/// Splits a text into lines. A last line without an end differs from one with an end.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns the head of a hunk, which names its lines in both texts.
fn head(hunk: &[DiffOp]) -> String {
    let range = |of: fn(&DiffOp) -> Range<usize>| {
        let (from, to) = (hunk.first().map_or(0, |edit| of(edit).start), hunk.last().map_or(0, |edit| of(edit).end));
        let count = to - from;
        // An empty range is named by the line before it.
        format!("{},{count}", if count == 0 { from } else { from + 1 })
    };
    format!("@@ -{} +{} @@\n", range(DiffOp::old_range), range(DiffOp::new_range))
}

/// Returns the lines of a hunk.
fn shown(hunk: &[DiffOp], before: &[&str], now: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for edit in hunk {
        let (removed, added) = (&before[edit.old_range()], &now[edit.new_range()]);
        if edit.tag() == DiffTag::Equal {
            lines.extend(added.iter().map(|line| line_of(' ', line)));
        } else {
            lines.extend(removed.iter().map(|line| line_of('-', line)));
            lines.extend(added.iter().map(|line| line_of('+', line)));
        }
    }
    lines
}

fn line_of(sign: char, line: &str) -> String {
    let (text, end) = match line.strip_suffix('\n') {
        Some(text) => (text, "\n"),
        None => (line, "\n\\ No newline at end of file\n"),
    };
    let short: String = text.chars().take(LINE_CHARS).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{sign}{short}{more}{end}")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_are_shown_with_their_surroundings() {
        let before: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        let now = before.replace("line 5\n", "line five\n").replace("line 20\n", "line 20");
        assert_eq!(
            diff(&before, &now).text,
            "@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8\n\
             @@ -17,4 +17,4 @@\n line 17\n line 18\n line 19\n-line 20\n+line 20\n\\ No newline at end of file\n"
        );
        assert_eq!(diff("", "a\n").text, "@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(diff("a\n", "").text, "@@ -1,1 +0,0 @@\n-a\n");
        assert_eq!(diff(&before, &before), TextDiff { text: String::new(), is_cut: false });
    }

    #[test]
    fn the_work_and_the_result_are_bounded() {
        let lines = |word: &str| (0..30_000).map(|line| format!("{word} {line}\n")).collect::<String>();
        let found = diff(&lines("a"), &lines("b"));
        assert!(found.is_cut && found.text.lines().count() <= LINES_MAX + 1, "{}", found.text.len());
        let long = diff("", &"x".repeat(100_000));
        assert!(long.text.len() < 2 * LINE_CHARS, "{}", long.text.len());
    }

    #[test]
    fn lines_that_both_texts_have_in_another_order_take_little_time() {
        // Every line occurs often in both texts, so that no line is without a counterpart.
        let text = |mut state: u32| {
            let line = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if state >> 31 == 0 { "a\n" } else { "b\n" }
            };
            (0..32_768).map(line).collect::<String>()
        };
        let begun = Instant::now();
        let found = diff(&text(1), &text(2));
        let took = begun.elapsed();
        assert!(found.is_cut && took < Duration::from_secs(5), "{took:?}");
    }

    /// Applies a difference to the earlier text.
    fn patched(before: &str, diff: &str) -> String {
        let (before, mut row, mut now) = (lines(before), 0, String::new());
        for line in lines(&diff.replace("\n\\ No newline at end of file\n", "\u{0}\n")) {
            let line = line.replace("\u{0}\n", "");
            if let Some(head) = line.strip_prefix("@@ -") {
                let (from, count) = head.split_once(' ').and_then(|(old, _)| old.split_once(',')).expect("a range");
                let from: usize = from.parse().expect("a number");
                let first = if count == "0" { from } else { from - 1 };
                now.extend(before[row..first].iter().copied());
                row = first;
                continue;
            }
            let (sign, line) = line.split_at(1);
            if sign != "+" {
                assert_eq!(before[row], line, "{diff}");
                row += 1;
            }
            if sign != "-" {
                now += line;
            }
        }
        now.extend(before[row..].iter().copied());
        now
    }

    proptest! {
        #[test]
        fn a_difference_leads_from_one_text_to_the_other(before in "([ab]?\n){0,40}[ab]?", now in "([ab]?\n){0,40}[ab]?") {
            let found = diff(&before, &now);
            prop_assert!(!found.is_cut);
            prop_assert_eq!(found.text.is_empty(), before == now);
            prop_assert_eq!(patched(&before, &found.text), now);
        }
    }
}
