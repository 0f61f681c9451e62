//! The tables, sequences and objects of a database, read before its rows.

use std::collections::{BTreeMap, BTreeSet};

use super::DigestError;
use super::content::StoreContent;
use super::rules::VolatileParts;

/// The tables, sequences and objects of a database.
#[derive(Default)]
pub(super) struct Catalog {
    /// Marks before and after the catalog was read; `None` if the server has no marks.
    pub(super) marks: Vec<Option<String>>,
    pub(super) tables: Vec<Table>,
    /// Next numbers that the catalog itself contains, by table.
    pub(super) counters: BTreeMap<String, String>,
    pub(super) sequences: Vec<Sequence>,
    /// Columns of primary keys, by table; only read for rows.
    pub(super) keys: BTreeMap<String, Vec<String>>,
    /// Hashes of definitions, by kind and name. For some kinds, several objects may have the same name.
    pub(super) objects: BTreeMap<String, BTreeSet<String>>,
}

/// A table of a database.
pub(super) struct Table {
    pub(super) name: String,
    /// The name, quoted for statements.
    pub(super) identifier: String,
    pub(super) columns: Vec<Column>,
}

/// A column of a table.
pub(super) struct Column {
    pub(super) name: String,
    /// SQL expression that yields the value in the form that is hashed.
    pub(super) expression: String,
    /// SQL expression that yields the value as a text for users.
    pub(super) shown: String,
}

impl Table {
    /// Returns the columns that count, and those of the key. There is no key if one of its columns does not count.
    pub(super) fn counted<'a>(
        &'a self,
        rules: &VolatileParts<'_>,
        key: Option<&Vec<String>>,
    ) -> (Vec<&'a Column>, Vec<&'a Column>) {
        let counted: Vec<&Column> =
            self.columns.iter().filter(|column| !rules.leaves_out_column(&column.name, &self.name)).collect();
        let find = |name: &String| counted.iter().find(|column| column.name == *name).copied();
        let key: Option<Vec<&Column>> = key.and_then(|names| names.iter().map(find).collect());
        (counted, key.unwrap_or_default())
    }
}

/// A sequence of a database.
pub(super) struct Sequence {
    pub(super) name: String,
    /// The name, quoted for statements.
    pub(super) identifier: String,
    /// Table whose column owns the sequence.
    pub(super) owner: Option<String>,
}

impl Sequence {
    /// Returns whether the sequence's number is part of the digest.
    pub(super) fn counts(&self, rules: &VolatileParts<'_>) -> bool {
        let is_of_volatile = self.owner.as_ref().is_some_and(|owner| rules.leaves_out_table(owner));
        !is_of_volatile && !rules.leaves_out_sequence(&self.name)
    }
}

impl Catalog {
    /// Rejects rules for parts that do not exist.
    pub(super) fn check(&self, rules: &VolatileParts<'_>) -> Result<(), DigestError> {
        let columns = self
            .tables
            .iter()
            .flat_map(|table| table.columns.iter().map(|column| (table.name.clone(), column.name.clone())));
        let tables = self.tables.iter().map(|table| table.name.clone());
        let sequences = self.sequences.iter().map(|sequence| sequence.name.clone());
        rules.check(&columns.collect(), &tables.collect(), &sequences.collect())
    }

    /// Converts the catalog to the content of the store, without volatile parts.
    pub(super) fn content(self, rules: &VolatileParts<'_>) -> StoreContent {
        let one = |hashes: BTreeSet<String>| hashes.into_iter().collect::<Vec<_>>().join(" ");
        StoreContent {
            counters: self.counters.into_iter().filter(|(table, _)| !rules.leaves_out_table(table)).collect(),
            objects: self.objects.into_iter().map(|(name, hashes)| (name, one(hashes))).collect(),
            ..StoreContent::default()
        }
    }
}
