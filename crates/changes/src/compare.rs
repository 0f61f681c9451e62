//! Compares two states of an instance. This module does no I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::text_diff::{TextDiff, diff};
use arenad_digest::{Digest, FileEntry, FileKind, RowHash, StoreContent, StoreRows, TableRow, TableRows};

/// Maximum number of rows that are listed of one table; the rest are only counted.
pub const ROWS_LISTED_MAX: usize = 1000;

/// Maximum number of other items that are listed of one store and kind; the rest are only counted.
const ITEMS_MAX: usize = 1000;

/// Texts of files, by store and path.
pub type StoreTexts = BTreeMap<String, BTreeMap<String, String>>;

/// One state of an instance.
#[derive(Clone, Copy)]
pub struct StatePoint<'a> {
    /// The content of all stores.
    pub digest: &'a Digest,
    /// Rows of tables that differ between the two states; of other tables, none are needed.
    pub rows: &'a StoreRows,
    /// Texts of files that differ between the two states.
    pub texts: &'a StoreTexts,
}

impl<'a> StatePoint<'a> {
    fn rows(self, store: &str, table: &str) -> Option<&'a TableRows> {
        self.rows.get(store)?.get(table)
    }
}

/// How an item differs from the earlier state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Only the later state has the item.
    Added,
    /// Both states have the item, with different content.
    Changed,
    /// Only the earlier state has the item.
    Removed,
}

impl ChangeKind {
    fn of<T: PartialEq>(before: Option<&T>, now: Option<&T>) -> Option<Self> {
        match (before, now) {
            (None, Some(_)) => Some(Self::Added),
            (Some(_), None) => Some(Self::Removed),
            (before, now) if before != now => Some(Self::Changed),
            _ => None,
        }
    }
}

/// The changes in all stores. Stores without changes are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateChanges {
    /// Changes by the store's name.
    pub stores: BTreeMap<String, StoreChanges>,
}

/// The changes in one store, each list sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreChanges {
    /// Tables whose rows differ.
    pub tables: Vec<TableChange>,
    /// Numbers of sequences, and next numbers of tables.
    pub sequences: Vec<SequenceChange>,
    /// Definitions of tables, indexes and other objects.
    pub definitions: Vec<DefinitionChange>,
    /// Files, folders and other entries of directories.
    pub files: Vec<FileChange>,
    /// Keys of a key-value server.
    pub keys: Vec<KeyChange>,
    /// Number of items that the lists leave out.
    pub omitted: usize,
}

impl StoreChanges {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A table whose rows differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableChange {
    /// Name of the table.
    pub name: String,
    /// Whether the table itself is new, has other rows, or is gone.
    pub kind: ChangeKind,
    /// Number of rows in the earlier state.
    pub rows_before: u64,
    /// Number of rows in the later state.
    pub rows_now: u64,
    /// The rows that differ; `None` if the rows of one of the states are not known.
    pub rows: Option<RowChanges>,
}

/// The rows of a table that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowChanges {
    /// Columns of the primary key. Without a key, rows are compared as a whole, and none of them counts as changed.
    pub key: Vec<String>,
    /// Number of rows that were added.
    pub added: usize,
    /// Number of rows with the same key and other content.
    pub changed: usize,
    /// Number of rows that were removed.
    pub removed: usize,
    /// The rows, sorted by key; at most [`ROWS_LISTED_MAX`].
    pub listed: Vec<RowChange>,
}

/// A row that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// Whether only one of the states has it, or both do.
    pub kind: ChangeKind,
    /// Values of the key's columns.
    pub key: Vec<Option<String>>,
    /// Values before and now: of all columns if the row was added or removed, otherwise of the columns that differ.
    /// Empty if values are not known.
    pub cells: Vec<CellChange>,
}

/// The value of a column in the two states. The outer `None` means that the state does not have the value, the inner one
/// is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellChange {
    /// Name of the column.
    pub column: String,
    /// Value in the earlier state.
    pub before: Option<Option<String>>,
    /// Value in the later state.
    pub now: Option<Option<String>>,
}

/// A sequence with another number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceChange {
    /// Name of the sequence, or of the table that numbers its rows.
    pub name: String,
    /// Number in the earlier state; `None` if there was none.
    pub before: Option<String>,
    /// Number in the later state; `None` if there is none.
    pub now: Option<String>,
}

/// An object with another definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChange {
    /// Kind and name of the object: `index posts_pkey`.
    pub name: String,
    /// Whether only one of the states has it, or both do.
    pub kind: ChangeKind,
}

/// A file or folder that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path relative to the store.
    pub path: String,
    /// Whether only one of the states has it, or both do.
    pub kind: ChangeKind,
    /// Attributes in the earlier state.
    pub before: Option<FileEntry>,
    /// Attributes in the later state.
    pub now: Option<FileEntry>,
    /// Difference of the content; `None` for binary and long files.
    pub diff: Option<TextDiff>,
}

/// A key that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// Name of the key.
    pub name: String,
    /// Whether only one of the states has it, or both do.
    pub kind: ChangeKind,
}

/// Returns the tables whose rows differ, by store, with their number of rows in the earlier and the later state.
pub fn differing_tables(before: &Digest, now: &Digest) -> Vec<(String, String, u64, u64)> {
    let mut found = Vec::new();
    for (store, before, now) in stores(before, now) {
        for (name, before, now) in pairs(&before.tables, &now.tables) {
            let count = |rows: Option<&arenad_digest::TableDigest>| rows.map_or(0, |rows| rows.count);
            if before != now {
                found.push((store.to_owned(), name.to_owned(), count(before), count(now)));
            }
        }
    }
    found
}

/// Returns the paths of the files whose texts a comparison shows if they have at most `most` bytes, by store: in the
/// earlier and in the later state.
pub fn differing_texts(before: &Digest, now: &Digest, most: u64, count: usize) -> (TextPaths, TextPaths) {
    let (mut earlier, mut later) = (TextPaths::new(), TextPaths::new());
    let is_text = |file: &&FileEntry| file.kind == FileKind::File && file.size <= most;
    for (store, before, now) in stores(before, now) {
        let differing = pairs(&before.files, &now.files)
            .filter(|(_, before, now)| before.map(|file| &file.content) != now.map(|file| &file.content))
            // Names that are not valid UTF-8 are escaped.
            .filter(|(path, ..)| !path.contains('\\'));
        for (path, before, now) in differing.take(count) {
            // A text is shown only if both of its states are known.
            if before.is_none_or(|file| is_text(&file)) && now.is_none_or(|file| is_text(&file)) {
                for (side, _) in [(&mut earlier, before), (&mut later, now)].into_iter().filter(|side| side.1.is_some())
                {
                    side.entry(store.to_owned()).or_default().push(path.to_owned());
                }
            }
        }
    }
    (earlier, later)
}

/// Paths of files, by store.
pub type TextPaths = BTreeMap<String, Vec<String>>;

/// Compares two states of the same declarations.
pub fn compare(before: StatePoint<'_>, now: StatePoint<'_>) -> StateChanges {
    let mut changes = StateChanges::default();
    for (store, content_before, content_now) in stores(before.digest, now.digest) {
        let found = store_changes(store, (before, content_before), (now, content_now));
        if !found.is_empty() {
            changes.stores.insert(store.to_owned(), found);
        }
    }
    changes
}

/// A state, and its content of one store.
type Side<'a> = (StatePoint<'a>, &'a StoreContent);

fn store_changes(store: &str, before: Side<'_>, now: Side<'_>) -> StoreChanges {
    let mut found = StoreChanges::default();
    let StoreChanges { tables, sequences, definitions, files, keys, omitted } = &mut found;
    for (name, rows_before, rows_now) in pairs(&before.1.tables, &now.1.tables) {
        let Some(kind) = ChangeKind::of(rows_before, rows_now) else { continue };
        let none = TableRows::default();
        let earlier = rows_before.map_or(Some(&none), |_| before.0.rows(store, name));
        let later = rows_now.map_or(Some(&none), |_| now.0.rows(store, name));
        let rows = match (earlier, later) {
            (Some(before), Some(now)) => Some(row_changes(before, now)),
            _ => None,
        };
        let count = |rows: Option<&arenad_digest::TableDigest>| rows.map_or(0, |rows| rows.count);
        let (rows_before, rows_now) = (count(rows_before), count(rows_now));
        push(tables, omitted, TableChange { name: name.to_owned(), kind, rows_before, rows_now, rows });
    }
    for (name, before, now) in pairs(&before.1.counters, &now.1.counters) {
        if before != now {
            let (before, now) = (before.cloned(), now.cloned());
            push(sequences, omitted, SequenceChange { name: name.to_owned(), before, now });
        }
    }
    for (name, before, now) in pairs(&before.1.objects, &now.1.objects) {
        if let Some(kind) = ChangeKind::of(before, now) {
            push(definitions, omitted, DefinitionChange { name: name.to_owned(), kind });
        }
    }
    for (path, file_before, file_now) in pairs(&before.1.files, &now.1.files) {
        let Some(kind) = ChangeKind::of(file_before, file_now) else { continue };
        let is_same = file_before.map(|file| &file.content) == file_now.map(|file| &file.content);
        let text = |side: Side<'_>, file: Option<&FileEntry>| match file {
            Some(_) => side.0.texts.get(store).and_then(|texts| texts.get(path)).cloned(),
            None => Some(String::new()),
        };
        let diff = match (text(before, file_before), text(now, file_now)) {
            (Some(before), Some(now)) if !is_same => Some(diff(&before, &now)),
            _ => None,
        };
        let (before, now) = (file_before.cloned(), file_now.cloned());
        push(files, omitted, FileChange { path: path.to_owned(), kind, before, now, diff });
    }
    for (name, before, now) in pairs(&before.1.keys, &now.1.keys) {
        if let Some(kind) = ChangeKind::of(before, now) {
            push(keys, omitted, KeyChange { name: name.to_owned(), kind });
        }
    }
    found
}

fn push<T>(list: &mut Vec<T>, omitted: &mut usize, item: T) {
    if list.len() < ITEMS_MAX { list.push(item) } else { *omitted += 1 }
}

/// Returns the contents of each store in both states. A store that one of them lacks is empty there.
fn stores<'a>(
    before: &'a Digest,
    now: &'a Digest,
) -> impl Iterator<Item = (&'a str, &'a StoreContent, &'a StoreContent)> {
    static EMPTY: StoreContent = StoreContent {
        tables: BTreeMap::new(),
        counters: BTreeMap::new(),
        objects: BTreeMap::new(),
        files: BTreeMap::new(),
        keys: BTreeMap::new(),
    };
    pairs(&before.stores, &now.stores)
        .map(|(name, before, now)| (name, before.unwrap_or(&EMPTY), now.unwrap_or(&EMPTY)))
}

/// Returns the values of each name in two maps.
fn pairs<'a, T>(
    before: &'a BTreeMap<String, T>,
    now: &'a BTreeMap<String, T>,
) -> impl Iterator<Item = (&'a str, Option<&'a T>, Option<&'a T>)> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    names.into_iter().map(|name| (name.as_str(), before.get(name), now.get(name)))
}

/// Compares the rows of a table. If the key has changed, rows are compared as a whole.
fn row_changes(before: &TableRows, now: &TableRows) -> RowChanges {
    // An empty table may be one that does not exist, and then has no key.
    let key = match (before.rows.is_empty(), now.rows.is_empty()) {
        (_, true) => before.key.clone(),
        (true, false) => now.key.clone(),
        (false, false) if before.key == now.key => now.key.clone(),
        (false, false) => Vec::new(),
    };
    let mut found = RowChanges { key, ..RowChanges::default() };
    let has_key = !found.key.is_empty();
    let mut listed = Vec::new();
    for (_, (mut earlier, mut later)) in grouped(before, now, has_key) {
        cancel_equal(&mut earlier, &mut later);
        // A key belongs to one row, so the pair is the same row before and now.
        while has_key && let (Some(_), Some(_)) = (earlier.last(), later.last()) {
            listed.extend(earlier.pop().zip(later.pop()).map(|(one, other)| (Some(one), Some(other))));
        }
        listed.extend(earlier.into_iter().map(|row| (Some(row), None)));
        listed.extend(later.into_iter().map(|row| (None, Some(row))));
    }
    for pair in &listed {
        match pair {
            (Some(_), Some(_)) => found.changed += 1,
            (Some(_), None) => found.removed += 1,
            (None, _) => found.added += 1,
        }
    }
    listed.sort_by(|one, other| order(one).cmp(&order(other)));
    listed.truncate(ROWS_LISTED_MAX);
    let change = |(earlier, later): (Option<&TableRow>, Option<&TableRow>)| RowChange {
        kind: match (earlier, later) {
            (Some(_), Some(_)) => ChangeKind::Changed,
            (Some(_), None) => ChangeKind::Removed,
            (None, _) => ChangeKind::Added,
        },
        key: match later.or(earlier).filter(|_| has_key) {
            Some(row) => row.key.clone(),
            None => Vec::new(),
        },
        cells: cells((before, earlier), (now, later)),
    };
    found.listed = listed.into_iter().map(change).collect();
    found
}

type Pair<'a> = (Option<&'a TableRow>, Option<&'a TableRow>);

/// A key's value for sorting: numbers by value, then other texts.
type KeyOrder<'a> = Vec<(i128, Option<&'a str>)>;

/// Returns the values that a pair of rows is sorted by.
fn order<'a>((earlier, later): &Pair<'a>) -> (KeyOrder<'a>, bool, Option<RowHash>) {
    let row = later.or(*earlier);
    let key = row.map(|row| row.key.as_slice()).unwrap_or_default();
    let part = |value: &'a Option<String>| {
        let number = value.as_deref().and_then(|text| text.parse().ok());
        (number.unwrap_or(i128::MAX), value.as_deref())
    };
    (key.iter().map(part).collect(), later.is_some(), row.map(|row| row.hash))
}

type Groups<'a> = HashMap<&'a [Option<String>], (Vec<&'a TableRow>, Vec<&'a TableRow>)>;

/// Groups the rows of both states by key, or puts them into one group.
fn grouped<'a>(before: &'a TableRows, now: &'a TableRows, has_key: bool) -> Groups<'a> {
    let key = |row: &'a TableRow| if has_key { row.key.as_slice() } else { &[] };
    let mut groups = Groups::new();
    before.rows.iter().for_each(|row| groups.entry(key(row)).or_default().0.push(row));
    now.rows.iter().for_each(|row| groups.entry(key(row)).or_default().1.push(row));
    groups
}

/// Removes the rows that both lists have, as often as both have them.
fn cancel_equal(earlier: &mut Vec<&TableRow>, later: &mut Vec<&TableRow>) {
    let mut counts: HashMap<RowHash, usize> = HashMap::new();
    later.iter().for_each(|row| *counts.entry(row.hash).or_default() += 1);
    let mut common: HashMap<RowHash, usize> = HashMap::new();
    let mut take = |row: &&TableRow| match counts.get_mut(&row.hash) {
        Some(count) if *count > 0 => {
            *count -= 1;
            *common.entry(row.hash).or_default() += 1;
            false
        }
        _ => true,
    };
    earlier.retain(|row| take(row));
    later.retain(|row| match common.get_mut(&row.hash) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
}

/// Returns the values that differ. A row that only one state has shows the values of all columns.
fn cells(before: (&TableRows, Option<&TableRow>), now: (&TableRows, Option<&TableRow>)) -> Vec<CellChange> {
    let values = |(table, row): (&TableRows, Option<&TableRow>)| -> BTreeMap<String, Option<String>> {
        let values = row.and_then(|row| row.values.clone());
        values.map(|values| table.columns.iter().cloned().zip(values).collect()).unwrap_or_default()
    };
    let is_known = |row: Option<&TableRow>| row.is_none_or(|row| row.values.is_some());
    if !is_known(before.1) || !is_known(now.1) {
        return Vec::new();
    }
    let (earlier, later) = (values(before), values(now));
    let columns = now.0.columns.iter().chain(before.0.columns.iter().filter(|name| !now.0.columns.contains(name)));
    let cell = |column: &String| {
        let (before, now) = (earlier.get(column).cloned(), later.get(column).cloned());
        (before != now).then(|| CellChange { column: column.clone(), before, now })
    };
    columns.filter_map(cell).collect()
}

#[cfg(test)]
mod tests;
