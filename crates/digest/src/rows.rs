//! Rows of tables with their keys, for lists of the rows that differ. This module does no I/O.
//!
//! The hashes of a table's rows add up to the hash in its digest. The sum shows whether rows that were read at another
//! time, or kept on disk, are those that the digest describes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::content::TableDigest;
use arenad_model::store::StoreKind;

/// Maximum number of rows that are read of one table; of larger tables, only the number of rows is known.
pub const TABLE_ROWS_MAX: u64 = 100_000;

/// Maximum number of rows that are read of all tables of a site.
pub const ROWS_MAX: u64 = 400_000;

/// Maximum memory for the values of all rows of a site, in bytes. Further rows have keys and hashes only.
const VALUES_MAX: usize = 48 << 20;

/// Maximum memory for the keys and hashes of all rows of a site, in bytes. Further tables are left out.
const KEYS_MAX: usize = 64 << 20;

/// Memory that a row takes in addition to its texts, in bytes.
const ROW_COST: usize = 80;

/// Memory that a text takes in addition to its bytes.
const TEXT_COST: usize = 40;

/// Maximum length of a value, in characters. Of longer ones, the first [`BEGIN_CHARS`] are followed by the length and
/// the MD5.
pub(super) const VALUE_CHARS: usize = 240;

/// Number of characters that are shown of a value that exceeds [`VALUE_CHARS`].
pub(super) const BEGIN_CHARS: usize = 160;

/// Maximum number of bytes that are shown of a binary value.
pub(super) const BINARY_BYTES: usize = 80;

/// Maximum length of the values of one row, in bytes. Longer rows have a key and a hash only, so that a page of rows
/// fits into an answer.
pub(super) const ROW_BYTES: usize = 4000;

/// Number of rows that are read at once.
pub(super) const PAGE_ROWS: u64 = 1500;

/// Number of rows that are read at once through a client in a container, whose output is limited to one MiB.
pub(super) const CLIENT_PAGE_ROWS: u64 = 100;

/// Rows by store and table, named as in a digest.
pub type StoreRows = BTreeMap<String, BTreeMap<String, TableRows>>;

/// The hash of a row: the two numbers that are added up for the digest of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RowHash(pub u64, pub u64);

/// One row of a table. Values are texts; `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRow {
    /// Hash of the columns that count.
    pub hash: RowHash,
    /// Values of the key's columns; empty if the table has no key.
    pub key: Vec<Option<String>>,
    /// Values of the columns that count; `None` if they were not read.
    pub values: Option<Vec<Option<String>>>,
}

/// All rows of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRows {
    /// Columns of the primary key in its order; empty if the table has none, or if one of them is volatile.
    pub key: Vec<String>,
    /// Columns that count, in the order of the rows' values.
    pub columns: Vec<String>,
    /// The rows, in any order.
    pub rows: Vec<TableRow>,
}

impl TableRows {
    /// Returns whether a digest describes exactly these rows.
    pub fn is_of(&self, digest: &TableDigest, kind: &StoreKind) -> bool {
        digest.count == self.rows.len() as u64 && digest.hash == self.sum(kind)
    }

    /// Returns the hash of the table in a digest of this kind of store.
    fn sum(&self, kind: &StoreKind) -> String {
        let hashes = self.rows.iter().map(|row| row.hash);
        match kind {
            StoreKind::Mysql { .. } => {
                let sums = hashes
                    .fold((0_u128, 0_u128), |sums, hash| (sums.0 + u128::from(hash.0), sums.1 + u128::from(hash.1)));
                format!("{} {}", sums.0, sums.1)
            }
            StoreKind::Postgres { .. } if self.rows.is_empty() => String::new(),
            StoreKind::Postgres { .. } => {
                let signed = |half: u64| i128::from(half.cast_signed());
                let sums = hashes.fold((0, 0), |sums, hash| (sums.0 + signed(hash.0), sums.1 + signed(hash.1)));
                format!("{} {}", sums.0, sums.1)
            }
            StoreKind::Sqlite | StoreKind::Directory | StoreKind::Redis { .. } => {
                let whole = |hash: RowHash| u128::from(hash.1) << 64 | u128::from(hash.0);
                format!("{:032x}", hashes.fold(0, |sum: u128, hash| sum.wrapping_add(whole(hash))))
            }
        }
    }
}

/// The tables whose rows are to be read, and what is read of them.
#[derive(Debug, Clone, Default)]
pub struct WantedRows {
    /// Number of rows by store and table, according to a digest.
    pub tables: BTreeMap<String, BTreeMap<String, u64>>,
    /// Whether values are read in addition to keys and hashes.
    pub with_values: bool,
}

impl WantedRows {
    /// Adds a table, unless it has too many rows.
    pub fn add(&mut self, store: &str, table: &str, count: u64) {
        let others: u64 = self.tables.values().flat_map(BTreeMap::values).sum();
        if count <= TABLE_ROWS_MAX && others + count <= ROWS_MAX {
            self.tables.entry(store.to_owned()).or_default().insert(table.to_owned(), count);
        }
    }
}

/// The memory that rows may still take. A server determines how many rows it returns, and how long they are.
#[derive(Debug)]
pub(super) struct RowBudget {
    keys: Option<usize>,
    values: usize,
}

impl RowBudget {
    /// Creates the budget of one store, which shares the limits with the site's other stores.
    pub(super) fn of(wanted: &WantedRows) -> Self {
        let stores = wanted.tables.len().max(1);
        Self { keys: Some(KEYS_MAX / stores), values: if wanted.with_values { VALUES_MAX / stores } else { 0 } }
    }

    /// Returns whether values can still be read.
    pub(super) fn has_values(&self) -> bool {
        self.values > 0
    }

    /// Returns whether no further row can be read.
    pub(super) fn is_spent(&self) -> bool {
        self.keys.is_none()
    }

    /// Subtracts the memory that a row takes.
    pub(super) fn spend(&mut self, row: &TableRow) {
        let cost = |texts: &[Option<String>]| {
            texts.iter().map(|text| TEXT_COST + text.as_ref().map_or(0, String::len)).sum::<usize>()
        };
        self.keys = self.keys.and_then(|left| left.checked_sub(ROW_COST + cost(&row.key)));
        self.values = self.values.saturating_sub(row.values.as_deref().map_or(0, cost));
    }
}

/// A part of a table's rows, in the order of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowPage {
    pub(super) offset: u64,
    /// Maximum number of rows.
    pub(super) rows: u64,
    pub(super) with_values: bool,
}

/// Returns the offsets of a table's pages. The last page has room for rows that were added in the meantime.
pub(super) fn offsets(count: u64, rows: u64) -> impl Iterator<Item = u64> {
    (0..=count / rows).map(move |page| page * rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(hashes: &[(u64, u64)]) -> TableRows {
        let row = |&(one, other): &(u64, u64)| TableRow { hash: RowHash(one, other), key: Vec::new(), values: None };
        TableRows { rows: hashes.iter().map(row).collect(), ..TableRows::default() }
    }

    #[test]
    fn hashes_add_up_as_the_servers_add_them() {
        let (mysql, postgres) =
            (StoreKind::Mysql { databases: Vec::new() }, StoreKind::Postgres { databases: Vec::new() });
        let two = rows(&[(u64::MAX, 1), (2, 3)]);
        assert_eq!(two.sum(&mysql), "18446744073709551617 4");
        assert_eq!(two.sum(&postgres), "1 4");
        assert_eq!(two.sum(&StoreKind::Sqlite), format!("{:032x}", (4_u128 << 64) + (1 << 64) + 1));
        assert_eq!((rows(&[]).sum(&mysql), rows(&[]).sum(&postgres)), ("0 0".to_owned(), String::new()));
        let digest = TableDigest { count: 2, hash: "1 4".to_owned() };
        assert!(two.is_of(&digest, &postgres) && !two.is_of(&digest, &mysql));
        assert!(!two.is_of(&TableDigest { count: 3, ..digest }, &postgres));
    }

    #[test]
    fn large_tables_are_not_wanted() {
        let mut wanted = WantedRows::default();
        wanted.add("db", "small", 7);
        wanted.add("db", "large", TABLE_ROWS_MAX + 1);
        for number in 0..5 {
            wanted.add("db", &number.to_string(), TABLE_ROWS_MAX);
        }
        assert_eq!(wanted.tables["db"].keys().collect::<Vec<_>>(), ["0", "1", "2", "small"]);
    }

    #[test]
    fn rows_end_where_the_memory_for_them_does() {
        let mut wanted = WantedRows { with_values: true, ..WantedRows::default() };
        wanted.add("db", "t", 1);
        let mut budget = RowBudget::of(&wanted);
        let text = |length| vec![Some("x".repeat(length))];
        budget.spend(&TableRow { hash: RowHash(0, 0), key: text(1), values: Some(text(VALUES_MAX)) });
        assert!(!budget.has_values() && !budget.is_spent());
        budget.spend(&TableRow { hash: RowHash(0, 0), key: text(KEYS_MAX), values: None });
        assert!(budget.is_spent());
    }

    #[test]
    fn pages_cover_a_table_and_the_rows_that_are_added() {
        assert_eq!(offsets(0, PAGE_ROWS).collect::<Vec<_>>(), [0]);
        assert_eq!(offsets(PAGE_ROWS, PAGE_ROWS).collect::<Vec<_>>(), [0, PAGE_ROWS]);
        assert_eq!(offsets(2 * PAGE_ROWS - 1, PAGE_ROWS).count(), 2);
    }
}
