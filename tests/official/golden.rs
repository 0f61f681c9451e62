//! Golden files: `UPDATE_EXPECTED=1` rewrites them; review the diff before a commit.

use std::path::Path;

/// Asserts that a text equals the recorded one.
#[track_caller]
pub fn assert_golden(name: &str, found: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official/expected").join(name);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(file, found).expect("write the golden file");
        return;
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = wanted.lines().zip(found.lines()).position(|(wanted, found)| wanted != found);
    let line = differs.unwrap_or_else(|| wanted.lines().count().min(found.lines().count()));
    let shown = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
    assert!(
        wanted == found,
        "{} differs from line {}; run with UPDATE_EXPECTED=1 if this is meant\n- {}\n+ {}",
        file.display(),
        line + 1,
        shown(&wanted),
        shown(found)
    );
}
