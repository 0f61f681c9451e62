//! Builds from nothing: an image contains one build of its site's data, and a second one must give the same data.

use crate::arena::Arena;

/// The scripts in a site's image that make its data and print it.
pub(super) struct DataScripts<'a> {
    /// Makes the data again, in place of the image's.
    pub(super) build: &'a str,
    /// Prints all of the data as text.
    pub(super) dump: &'a str,
    /// The number of lines that a real dump exceeds.
    pub(super) lines: usize,
}

/// Asserts that a build in a fresh container gives the same data as the build in the site's image.
#[track_caller]
pub(super) fn assert_equals_first(arena: &Arena, site: &str, scripts: &DataScripts<'_>) {
    let DataScripts { build, dump, lines } = scripts;
    let first = arena.run(site, dump);
    let log = "/tmp/build.log";
    let second = arena.run(site, &format!("{{ {build}; }} >{log} 2>&1 || {{ tail {log} >&2; exit 1; }}; {dump}"));
    assert_same_dump(&first, &second, *lines);
}

/// Asserts that two dumps are equal, and have more than this number of lines.
#[track_caller]
pub(super) fn assert_same_dump(first: &str, second: &str, lines: usize) {
    let count = first.lines().count();
    assert!(count > lines, "a real dump has more than {lines} lines, not {count}");
    let differing = first.lines().zip(second.lines()).find(|(first, second)| first != second);
    assert_eq!(differing, None, "the second build differs");
    assert_eq!(first.len(), second.len(), "the second build differs in length");
}

#[test]
#[should_panic(expected = "the second build differs")]
fn a_differing_line_is_found() {
    assert_same_dump("a\nb\n", "a\nc\n", 1);
}

#[test]
#[should_panic(expected = "differs in length")]
fn a_missing_line_is_found() {
    assert_same_dump("a\nb\n", "a\n", 1);
}
