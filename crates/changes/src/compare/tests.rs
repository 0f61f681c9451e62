//! Random changes are applied to a table, and the comparison must report exactly these.

use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use arenad_digest::TableDigest;

/// A table as a map from keys to values.
type Model = BTreeMap<u8, Option<String>>;

/// Returns rows as a reader would, in an order that depends on `seed`.
fn rows(model: &[(u8, Option<String>)], has_key: bool, seed: u64) -> TableRows {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let hash = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        hasher.finish()
    };
    let row = |(key, value): &(u8, Option<String>)| TableRow {
        hash: RowHash(hash(&|hasher| (key, value).hash(hasher)), hash(&|hasher| (value, key).hash(hasher))),
        key: if has_key { vec![Some(key.to_string())] } else { Vec::new() },
        values: Some(vec![Some(key.to_string()), value.clone()]),
    };
    let mut rows: Vec<TableRow> = model.iter().map(row).collect();
    rows.sort_by_key(|row| hash(&|hasher| (seed, row.hash).hash(hasher)));
    TableRows { key: if has_key { names(&["id"]) } else { Vec::new() }, columns: names(&["id", "text"]), rows }
}

/// Returns the digest of a site with one table.
fn digest(rows: &TableRows) -> Digest {
    let sum = rows
        .rows
        .iter()
        .fold((0_u64, 0_u64), |sum, row| (sum.0.wrapping_add(row.hash.0), sum.1.wrapping_add(row.hash.1)));
    let table = TableDigest { count: rows.rows.len() as u64, hash: format!("{sum:?}") };
    let content = StoreContent { tables: BTreeMap::from([("t".to_owned(), table)]), ..StoreContent::default() };
    Digest { declared: String::new(), stores: BTreeMap::from([("db".to_owned(), content)]) }
}

fn compared(before: TableRows, now: TableRows) -> StateChanges {
    let (one, other) = (digest(&before), digest(&now));
    let stored = |rows: TableRows| StoreRows::from([("db".to_owned(), BTreeMap::from([("t".to_owned(), rows)]))]);
    let (before, now, texts) = (stored(before), stored(now), StoreTexts::new());
    compare(
        StatePoint { digest: &one, rows: &before, texts: &texts },
        StatePoint { digest: &other, rows: &now, texts: &texts },
    )
}

fn table(changes: &StateChanges) -> Option<&RowChanges> {
    let store = changes.stores.get("db")?;
    assert_eq!((store.tables.len(), store.omitted), (1, 0));
    store.tables[0].rows.as_ref()
}

fn value() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[ab]{0,2}")
}

proptest! {
    #[test]
    fn the_reported_rows_are_those_that_were_changed(
        before in btree_map(any::<u8>(), value(), 0..40),
        changes in vec((any::<u8>(), proptest::option::of(value())), 0..20),
        seed in any::<u64>(),
    ) {
        let mut now: Model = before.clone();
        for (key, change) in changes {
            match change {
                Some(value) => drop(now.insert(key, value)),
                None => drop(now.remove(&key)),
            }
        }
        let list = |model: &Model| model.clone().into_iter().collect::<Vec<_>>();
        let found = compared(rows(&list(&before), true, 1), rows(&list(&now), true, seed));
        let keys: BTreeSet<u8> = before.keys().chain(now.keys()).copied().collect();
        let mut expected = Vec::new();
        for key in keys {
            let (earlier, later) = (before.get(&key), now.get(&key));
            let Some(kind) = ChangeKind::of(earlier, later) else { continue };
            let cell = |column: &str, before: Option<Option<String>>, now: Option<Option<String>>| CellChange {
                column: column.to_owned(),
                before,
                now,
            };
            let id = Some(Some(key.to_string()));
            let mut cells = vec![cell("text", earlier.cloned(), later.cloned())];
            if kind != ChangeKind::Changed {
                cells.insert(0, cell("id", earlier.and(id.clone()), later.and(id)));
            }
            expected.push(RowChange { kind, key: vec![Some(key.to_string())], cells });
        }
        match table(&found) {
            None => prop_assert!(expected.is_empty() && found == StateChanges::default()),
            Some(rows) => {
                let count = |kind| expected.iter().filter(|change| change.kind == kind).count();
                prop_assert_eq!(rows.added, count(ChangeKind::Added));
                prop_assert_eq!(rows.changed, count(ChangeKind::Changed));
                prop_assert_eq!(rows.removed, count(ChangeKind::Removed));
                prop_assert_eq!(&rows.listed, &expected);
            }
        }
    }

    #[test]
    fn rows_without_a_key_are_counted_as_often_as_they_occur(
        before in vec((0_u8..3, value()), 0..30),
        now in vec((0_u8..3, value()), 0..30),
    ) {
        let found = compared(rows(&before, false, 1), rows(&now, false, 2));
        let mut counts: BTreeMap<&(u8, Option<String>), isize> = BTreeMap::new();
        before.iter().for_each(|row| *counts.entry(row).or_default() -= 1);
        now.iter().for_each(|row| *counts.entry(row).or_default() += 1);
        let sum = |is: fn(&isize) -> bool| counts.values().filter(|count| is(count)).map(|count| count.unsigned_abs()).sum::<usize>();
        let (added, removed) = (sum(|count| *count > 0), sum(|count| *count < 0));
        match table(&found) {
            None => prop_assert_eq!((added, removed), (0, 0)),
            Some(rows) => {
                prop_assert_eq!((rows.added, rows.changed, rows.removed), (added, 0, removed));
                prop_assert_eq!(rows.listed.len(), added + removed);
            }
        }
    }
}

#[test]
fn rows_that_are_not_known_leave_the_counts() {
    let (before, now) = (rows(&[(1, None)], true, 1), rows(&[(1, None), (2, None)], true, 1));
    let (one, other) = (digest(&before), digest(&now));
    let (none, texts) = (StoreRows::new(), StoreTexts::new());
    let found = compare(
        StatePoint { digest: &one, rows: &none, texts: &texts },
        StatePoint { digest: &other, rows: &none, texts: &texts },
    );
    let table = &found.stores["db"].tables[0];
    assert_eq!((table.rows_before, table.rows_now, &table.rows), (1, 2, &None));
    assert_eq!(differing_tables(&one, &other), [("db".to_owned(), "t".to_owned(), 1, 2)]);
}

#[test]
fn a_new_table_needs_no_rows_of_the_earlier_state() {
    let now = rows(&[(1, None), (2, None)], true, 1);
    let (mut one, other) = (digest(&now), digest(&now));
    one.stores.insert("db".to_owned(), StoreContent::default());
    let stored = StoreRows::from([("db".to_owned(), BTreeMap::from([("t".to_owned(), now)]))]);
    let (none, texts) = (StoreRows::new(), StoreTexts::new());
    let found = compare(
        StatePoint { digest: &one, rows: &none, texts: &texts },
        StatePoint { digest: &other, rows: &stored, texts: &texts },
    );
    let changed = &found.stores["db"].tables[0];
    assert_eq!(changed.kind, ChangeKind::Added);
    let rows = changed.rows.as_ref().expect("rows");
    assert_eq!((rows.key.as_slice(), rows.added, rows.removed), (["id".to_owned()].as_slice(), 2, 0));
}

#[test]
fn very_many_rows_are_counted_and_some_are_listed() {
    let many: Vec<(u8, Option<String>)> = (0..3000).map(|number| (0, Some(number.to_string()))).collect();
    let found = compared(rows(&[], false, 1), rows(&many, false, 1));
    let rows = table(&found).expect("rows");
    assert_eq!((rows.added, rows.listed.len()), (3000, ROWS_LISTED_MAX));
}

#[test]
fn numeric_keys_are_sorted_by_value() {
    let now: Vec<(u8, Option<String>)> = [100, 20, 3].into_iter().map(|key| (key, None)).collect();
    let found = compared(rows(&[], true, 1), rows(&now, true, 5));
    let keys: Vec<_> = table(&found).expect("rows").listed.iter().map(|row| row.key[0].clone()).collect();
    assert_eq!(keys, [Some("3".to_owned()), Some("20".to_owned()), Some("100".to_owned())]);
}

#[test]
fn sequences_definitions_files_and_keys_are_named() {
    let file = |size: u64, content: &str| FileEntry {
        kind: FileKind::File,
        mode: 0o644,
        owner: 0,
        group: 0,
        size,
        content: content.to_owned(),
    };
    let map = |items: &[(&str, &str)]| -> BTreeMap<String, String> {
        items.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let content = |counter: &str, files: Vec<(&str, FileEntry)>, keys: &[(&str, &str)]| StoreContent {
        counters: map(&[("seq", counter)]),
        objects: map(&[("index i", counter)]),
        files: files.into_iter().map(|(path, file)| (path.to_owned(), file)).collect(),
        keys: map(keys),
        ..StoreContent::default()
    };
    let digest = |content| Digest { declared: String::new(), stores: BTreeMap::from([("s".to_owned(), content)]) };
    let same = || ("same", file(1, "same"));
    let before =
        digest(content("1", vec![same(), ("a", file(4, "x")), ("gone", file(9, "z"))], &[("k", "1"), ("l", "1")]));
    let now = digest(content("2", vec![same(), ("a", file(6, "y")), ("new", file(2, "w"))], &[("k", "2"), ("m", "1")]));
    let paths =
        |files: &[&str]| BTreeMap::from([("s".to_owned(), files.iter().map(|&path| path.to_owned()).collect())]);
    assert_eq!(differing_texts(&before, &now, 8, 100), (paths(&["a"]), paths(&["a", "new"])));
    let texts = |items: &[(&str, &str)]| StoreTexts::from([("s".to_owned(), map(items))]);
    let none = StoreRows::new();
    let found = compare(
        StatePoint { digest: &before, rows: &none, texts: &texts(&[("a", "one\n")]) },
        StatePoint { digest: &now, rows: &none, texts: &texts(&[("a", "other\n")]) },
    );
    let store = &found.stores["s"];
    assert_eq!(
        store.sequences,
        [SequenceChange { name: "seq".to_owned(), before: Some("1".to_owned()), now: Some("2".to_owned()) }]
    );
    assert_eq!(store.definitions, [DefinitionChange { name: "index i".to_owned(), kind: ChangeKind::Changed }]);
    let files: Vec<_> = store.files.iter().map(|file| (file.path.as_str(), file.kind, file.diff.is_some())).collect();
    let (changed, removed, added) = (ChangeKind::Changed, ChangeKind::Removed, ChangeKind::Added);
    assert_eq!(files, [("a", changed, true), ("gone", removed, false), ("new", added, false)]);
    assert_eq!(store.files[0].diff.as_ref().expect("a text").text, "@@ -1,1 +1,1 @@\n-one\n+other\n");
    let keys: Vec<_> = store.keys.iter().map(|key| (key.name.as_str(), key.kind)).collect();
    assert_eq!(keys, [("k", changed), ("l", removed), ("m", added)]);
}
