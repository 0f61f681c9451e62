//! Line-based differences between two texts, in the unified format. This module does no I/O.
//!
//! The texts come from sites, so the work and the result are bounded: the lines between the common beginning and the
//! common end are aligned only if there are not too many of them, and otherwise shown as replaced.

/// Number of unchanged lines around each change.
const CONTEXT: usize = 3;

/// Maximum number of pairs of lines that are compared.
const PAIRS_MAX: usize = 1 << 22;

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

/// One step from the earlier to the later text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// Returns the difference between two texts.
pub fn diff(before: &str, now: &str) -> TextDiff {
    let (before, now): (Vec<&str>, Vec<&str>) = (lines(before), lines(now));
    let edits = edits(&before, &now);
    let mut text = TextDiff { text: String::new(), is_cut: false };
    let mut written = 0;
    for hunk in hunks(&edits) {
        let (head, lines) = shown(&edits, hunk, &before, &now);
        if written + lines.len() > LINES_MAX {
            text.is_cut = true;
        }
        let room = LINES_MAX.saturating_sub(written);
        if room == 0 {
            break;
        }
        text.text += &head;
        lines.iter().take(room).for_each(|line| text.text += line);
        written += lines.len();
    }
    text
}

/// Splits a text into lines. A last line without an end differs from one with an end.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn edits(before: &[&str], now: &[&str]) -> Vec<Edit> {
    let begin = before.iter().zip(now).take_while(|(one, other)| one == other).count();
    let (rest_before, rest_now) = (&before[begin..], &now[begin..]);
    let end = rest_before.iter().rev().zip(rest_now.iter().rev()).take_while(|(one, other)| one == other).count();
    let (middle_before, middle_now) = (&rest_before[..rest_before.len() - end], &rest_now[..rest_now.len() - end]);
    let mut edits = vec![Edit::Keep; begin];
    if middle_before.len().saturating_mul(middle_now.len()) <= PAIRS_MAX {
        edits.extend(aligned(middle_before, middle_now));
    } else {
        edits.extend(vec![Edit::Remove; middle_before.len()]);
        edits.extend(vec![Edit::Add; middle_now.len()]);
    }
    edits.extend(vec![Edit::Keep; end]);
    edits
}

/// Aligns lines by their longest common subsequence.
fn aligned(before: &[&str], now: &[&str]) -> Vec<Edit> {
    let width = now.len() + 1;
    // The length of the longest common subsequence of the ends that begin at each pair of lines.
    let mut common = vec![0_u32; (before.len() + 1) * width];
    for row in (0..before.len()).rev() {
        for column in (0..now.len()).rev() {
            common[row * width + column] = if before[row] == now[column] {
                common[(row + 1) * width + column + 1] + 1
            } else {
                common[(row + 1) * width + column].max(common[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column, mut edits) = (0, 0, Vec::new());
    while row < before.len() || column < now.len() {
        let is_same = row < before.len() && column < now.len() && before[row] == now[column];
        if is_same {
            edits.push(Edit::Keep);
            (row, column) = (row + 1, column + 1);
        } else if column == now.len()
            || row < before.len() && common[(row + 1) * width + column] >= common[row * width + column + 1]
        {
            edits.push(Edit::Remove);
            row += 1;
        } else {
            edits.push(Edit::Add);
            column += 1;
        }
    }
    edits
}

/// Returns the ranges of edits that belong together, with their context.
fn hunks(edits: &[Edit]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, _) in edits.iter().enumerate().filter(|(_, edit)| **edit != Edit::Keep) {
        let (from, to) = (index.saturating_sub(CONTEXT), (index + CONTEXT + 1).min(edits.len()));
        match hunks.last_mut() {
            Some(last) if from <= last.end => last.end = to,
            _ => hunks.push(from..to),
        }
    }
    hunks
}

/// Returns the head and the lines of a hunk.
fn shown(edits: &[Edit], hunk: std::ops::Range<usize>, before: &[&str], now: &[&str]) -> (String, Vec<String>) {
    let count = |edits: &[Edit], other: Edit| edits.iter().filter(|edit| **edit != other).count();
    let (mut row, mut column) = (count(&edits[..hunk.start], Edit::Add), count(&edits[..hunk.start], Edit::Remove));
    let edits = &edits[hunk];
    let (rows, columns) = (count(edits, Edit::Add), count(edits, Edit::Remove));
    // An empty range is named by the line before it.
    let from = |line: usize, lines: usize| if lines == 0 { line } else { line + 1 };
    let head = format!("@@ -{},{rows} +{},{columns} @@\n", from(row, rows), from(column, columns));
    let mut lines = Vec::new();
    for edit in edits {
        let (sign, line) = match edit {
            Edit::Keep => (' ', before[row]),
            Edit::Remove => ('-', before[row]),
            Edit::Add => ('+', now[column]),
        };
        row += usize::from(*edit != Edit::Add);
        column += usize::from(*edit != Edit::Remove);
        lines.push(line_of(sign, line));
    }
    (head, lines)
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

    proptest! {
        #[test]
        fn edits_lead_from_one_text_to_the_other(before in "[ab\n]{0,40}", now in "[ab\n]{0,40}") {
            let (before, now) = (lines(&before), lines(&now));
            let (mut row, mut result) = (0, Vec::new());
            for edit in edits(&before, &now) {
                match edit {
                    Edit::Keep => { result.push(before[row]); row += 1; }
                    Edit::Remove => row += 1,
                    Edit::Add => result.push(now[result.len()]),
                }
            }
            prop_assert_eq!(row, before.len());
            prop_assert_eq!(result, now);
        }
    }
}
