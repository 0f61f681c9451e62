//! Texts that are stored in `tests/cli/snapshots` and compared. `ARENAD_UPDATE_SNAPSHOTS=1` rewrites them; the diff
//! then shows the changes.

use std::path::Path;

/// Compares a text with the stored one of this name.
#[track_caller]
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("ARENAD_UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("make the folder");
        std::fs::write(&path, text).expect("write the text");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} differs; ARENAD_UPDATE_SNAPSHOTS=1 writes it anew\n--- kept\n{kept}\n--- now\n{text}",
        path.display()
    );
}

/// Replaces the parts of a text that vary between runs: names, ids, times, sizes, addresses, and the width of columns.
pub fn normalized(text: &str, names: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in names {
        text = text.replace(from, to);
    }
    for (pattern, to) in [
        (r"\b[0-9a-f]{16}\b", "SNAPSHOT"),
        (r"\b[0-9a-f]{12}\b", "CONTAINER"),
        (r"\b\d+(\.\d+)? (ms|s|min \d+ s)\b", "TIME"),
        (r"\b\d+[smhd]\b", "AGE"),
        (r"\b\d+(\.\d+)? [kMG]?B\b", "SIZE"),
        (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
        (r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z", "INSTANT"),
        (r" +\n", "\n"),
        (r"(\S) {2,}", "$1  "),
    ] {
        text = regex::Regex::new(pattern).expect("a pattern").replace_all(&text, to).into_owned();
    }
    text
}
