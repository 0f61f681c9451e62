//! Describes the differences between two digests. This module does no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::content::{Digest, FileEntry, FileKind, StoreContent, TableDigest};

/// Maximum number of differences that are listed; the rest are only counted. A store with so many differences has
/// usually changed completely.
pub const DIFFERENCES_MAX: usize = 200;

/// One item that differs from the baseline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemDifference {
    /// Name of the store.
    pub store: String,
    /// Kind of the item that differs.
    pub kind: ItemKind,
    /// Name of the item: a table, a sequence or a path. The name of an object includes its kind, such as `index
    /// posts_pkey`.
    pub name: String,
    /// Value in the baseline, for users; `None` if the item did not exist.
    pub before: Option<String>,
    /// Current value, for users; `None` if the item no longer exists.
    pub now: Option<String>,
}

/// The kinds of items that may differ in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemKind {
    /// A store that exists in one of the digests only.
    Store,
    /// The rows of a table.
    Table,
    /// The number of a sequence, or a table's next number.
    Counter,
    /// The definition of a table, an index, a trigger or another object.
    Object,
    /// A file or folder, with its attributes.
    File,
    /// A key of a key-value server.
    Key,
}

impl ItemKind {
    /// Returns the word for the kind in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Table => "table",
            Self::Counter => "counter",
            Self::Object => "object",
            Self::File => "file",
            Self::Key => "key",
        }
    }
}

impl fmt::Display for ItemDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ItemKind::Store => write!(f, "{}", self.store)?,
            // Their names already show the kind.
            ItemKind::Object | ItemKind::File => write!(f, "{}: {}", self.store, self.name)?,
            kind => write!(f, "{}: {} {}", self.store, kind.name(), self.name)?,
        }
        match (&self.before, &self.now) {
            (Some(before), Some(now)) => write!(f, ": {before} before, {now} now"),
            (Some(before), None) => write!(f, ": {before} before, gone now"),
            (None, Some(now)) => write!(f, ": new, {now}"),
            (None, None) => Ok(()),
        }
    }
}

/// The differences between two digests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentDifferences {
    /// Sorted by store, kind and name; at most [`DIFFERENCES_MAX`].
    pub differences: Vec<ItemDifference>,
    /// Number of differences that are not listed.
    pub omitted: usize,
}

impl ContentDifferences {
    /// Returns whether the two digests are equal.
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Compares two digests of the same declarations.
pub fn compare(baseline: &Digest, now: &Digest) -> ContentDifferences {
    let mut found = ContentDifferences::default();
    let stores: BTreeSet<&String> = baseline.stores.keys().chain(now.stores.keys()).collect();
    for store in stores {
        let mut collector = Collector { store, found: &mut found };
        match (baseline.stores.get(store), now.stores.get(store)) {
            (Some(before), Some(now)) => collector.contents(before, now),
            (before, now) => {
                let there = |content: Option<&StoreContent>| content.map(|_| "declared".to_owned());
                collector.push(ItemKind::Store, store, there(before), there(now));
            }
        }
    }
    found
}

struct Collector<'a> {
    store: &'a str,
    found: &'a mut ContentDifferences,
}

impl Collector<'_> {
    fn contents(&mut self, before: &StoreContent, now: &StoreContent) {
        let same = |_: &str, before: &String, now: &String| (before != now).then(|| (before.clone(), now.clone()));
        let hash = |_: &str, before: &String, now: &String| {
            (before != now).then(|| ("as in the baseline".to_owned(), "otherwise".to_owned()))
        };
        self.items(ItemKind::Table, &before.tables, &now.tables, rows, rows_shown);
        self.items(ItemKind::Counter, &before.counters, &now.counters, same, String::clone);
        self.items(ItemKind::Object, &before.objects, &now.objects, hash, |_| "defined".to_owned());
        self.items(ItemKind::File, &before.files, &now.files, files, file_shown);
        self.items(ItemKind::Key, &before.keys, &now.keys, hash, |_| "set".to_owned());
    }

    /// Walks through two sorted maps; `differ` describes the difference between two values, or returns `None` if they
    /// are equal.
    fn items<T>(
        &mut self,
        kind: ItemKind,
        before: &BTreeMap<String, T>,
        now: &BTreeMap<String, T>,
        differ: impl Fn(&str, &T, &T) -> Option<(String, String)>,
        shown: impl Fn(&T) -> String,
    ) {
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for name in names {
            match (before.get(name), now.get(name)) {
                (Some(before), Some(now)) => {
                    if let Some((before, now)) = differ(name, before, now) {
                        self.push(kind, name, Some(before), Some(now));
                    }
                }
                (before, now) => self.push(kind, name, before.map(&shown), now.map(&shown)),
            }
        }
    }

    fn push(&mut self, kind: ItemKind, name: &str, before: Option<String>, now: Option<String>) {
        if self.found.differences.len() < DIFFERENCES_MAX {
            let (store, name) = (self.store.to_owned(), name.to_owned());
            self.found.differences.push(ItemDifference { store, kind, name, before, now });
        } else {
            self.found.omitted += 1;
        }
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

fn rows_shown(rows: &TableDigest) -> String {
    counted(rows.count, "row", "rows")
}

fn rows(_: &str, before: &TableDigest, now: &TableDigest) -> Option<(String, String)> {
    if before == now {
        return None;
    }
    let (was, is) = (rows_shown(before), rows_shown(now));
    Some(if before.count == now.count { (was, "as many with other content".to_owned()) } else { (was, is) })
}

fn file_shown(file: &FileEntry) -> String {
    match file.kind {
        FileKind::File => counted(file.size, "byte", "bytes"),
        FileKind::Folder => "a folder".to_owned(),
        FileKind::Link => format!("a link to {}", file.content),
        FileKind::Pipe => "a pipe".to_owned(),
        FileKind::Socket => "a socket".to_owned(),
        FileKind::Device => "a device".to_owned(),
    }
}

fn files(_: &str, before: &FileEntry, now: &FileEntry) -> Option<(String, String)> {
    if before.attributes() == now.attributes() {
        return None;
    }
    let (mut was, mut is) = (Vec::new(), Vec::new());
    if (before.kind, before.size) != (now.kind, now.size) || before.kind == FileKind::Link {
        was.push(file_shown(before));
        is.push(file_shown(now));
    } else if before.content != now.content {
        was.push(file_shown(before));
        is.push("as many with other content".to_owned());
    }
    if before.mode != now.mode {
        was.push(format!("mode {:o}", before.mode));
        is.push(format!("mode {:o}", now.mode));
    }
    if (before.owner, before.group) != (now.owner, now.group) {
        was.push(format!("owner {}:{}", before.owner, before.group));
        is.push(format!("owner {}:{}", now.owner, now.group));
    }
    Some((was.join(", "), is.join(", ")))
}

/// Returns the difference between two states of a file in words: `12 bytes before, 14 bytes now`.
pub fn describe_file(before: Option<&FileEntry>, now: Option<&FileEntry>) -> String {
    match (before, now) {
        (Some(before), Some(now)) => {
            let (before, now) = files("", before, now).unwrap_or_default();
            format!("{before} before, {now} now")
        }
        (Some(before), None) => format!("{} before", file_shown(before)),
        (None, Some(now)) => file_shown(now),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(store: &str, content: StoreContent) -> Digest {
        Digest { declared: String::new(), stores: BTreeMap::from([(store.to_owned(), content)]) }
    }

    fn words(before: StoreContent, now: StoreContent) -> Vec<String> {
        let comparison = compare(&digest("db", before), &digest("db", now));
        comparison.differences.iter().map(ToString::to_string).collect()
    }

    fn rows(count: u64, hash: &str) -> TableDigest {
        TableDigest { count, hash: hash.to_owned() }
    }

    fn file(size: u64, content: &str) -> FileEntry {
        FileEntry { kind: FileKind::File, mode: 0o644, owner: 900, group: 900, size, content: content.to_owned() }
    }

    fn map<T>(entries: impl IntoIterator<Item = (&'static str, T)>) -> BTreeMap<String, T> {
        entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn equal_contents_have_no_differences() {
        let before = StoreContent { files: map([("a", file(1, "x"))]), ..StoreContent::default() };
        let now = before.clone();
        let (before, now) = (digest("db", before), digest("db", now));
        assert!(compare(&before, &now).is_equal());
        assert_eq!(before.total(), now.total());
    }

    #[test]
    fn tables_counters_and_objects_are_named_with_what_they_were_and_are() {
        let before = StoreContent {
            tables: map([("posts", rows(2, "a")), ("users", rows(1, "b")), ("gone", rows(0, ""))]),
            counters: map([("posts_id_seq", "2".to_owned())]),
            objects: map([("index posts_pkey", "1".to_owned()), ("trigger t", "2".to_owned())]),
            ..StoreContent::default()
        };
        let now = StoreContent {
            tables: map([("posts", rows(3, "c")), ("users", rows(1, "d")), ("more", rows(1, "e"))]),
            counters: map([("posts_id_seq", "3".to_owned())]),
            objects: map([("index posts_pkey", "3".to_owned())]),
            ..StoreContent::default()
        };
        assert_eq!(
            words(before, now),
            [
                "db: table gone: 0 rows before, gone now",
                "db: table more: new, 1 row",
                "db: table posts: 2 rows before, 3 rows now",
                "db: table users: 1 row before, as many with other content now",
                "db: counter posts_id_seq: 2 before, 3 now",
                "db: index posts_pkey: as in the baseline before, otherwise now",
                "db: trigger t: defined before, gone now",
            ]
        );
    }

    #[test]
    fn files_are_named_with_every_attribute_that_differs() {
        let link = |to: &str| FileEntry { kind: FileKind::Link, ..file(0, to) };
        let before = StoreContent {
            files: map([("a", file(1, "x")), ("b", file(2, "y")), ("c", link("here")), ("d", file(3, "z"))]),
            ..StoreContent::default()
        };
        let now = StoreContent {
            files: map([
                ("a", file(1, "w")),
                ("b", FileEntry { mode: 0o600, owner: 0, ..file(2, "y") }),
                ("c", link("there")),
                ("d", FileEntry { kind: FileKind::Folder, ..file(0, "") }),
                ("e", file(5, "v")),
            ]),
            ..StoreContent::default()
        };
        assert_eq!(
            words(before, now),
            [
                "db: a: 1 byte before, as many with other content now",
                "db: b: mode 644, owner 900:900 before, mode 600, owner 0:900 now",
                "db: c: a link to here before, a link to there now",
                "db: d: 3 bytes before, a folder now",
                "db: e: new, 5 bytes",
            ]
        );
    }

    #[test]
    fn a_store_that_only_one_of_them_has_is_a_difference() {
        let comparison = compare(&digest("a", StoreContent::default()), &digest("b", StoreContent::default()));
        let words: Vec<String> = comparison.differences.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["a: declared before, gone now", "b: new, declared"]);
    }

    #[test]
    fn of_very_many_differences_some_are_named_and_all_counted() {
        let many = |count: usize| StoreContent {
            files: (0..count).map(|number| (format!("{number:05}"), file(1, "x"))).collect(),
            ..StoreContent::default()
        };
        let comparison = compare(&digest("db", many(0)), &digest("db", many(DIFFERENCES_MAX + 7)));
        assert_eq!((comparison.differences.len(), comparison.omitted), (DIFFERENCES_MAX, 7));
    }

    #[test]
    fn a_digest_survives_json() {
        let content = StoreContent {
            tables: map([("t", rows(1, "a"))]),
            files: map([("f", file(1, "x"))]),
            keys: map([("k", "h".to_owned())]),
            ..StoreContent::default()
        };
        let digest = digest("db", content);
        let text = serde_json::to_string(&digest).expect("JSON prints");
        assert_eq!(serde_json::from_str::<Digest>(&text).expect("JSON reads"), digest);
    }
}
