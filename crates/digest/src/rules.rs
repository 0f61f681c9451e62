//! The parts of a store that a digest leaves out, as predicates.

use std::collections::BTreeSet;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::DigestError;
use arenad_model::site::Site;
use arenad_model::store::{SQLITE_COMPANIONS, Store, StoreKind, VolatilePart};

/// The parts of a database that a digest leaves out.
pub(super) struct VolatileParts<'a> {
    store: &'a Store,
    /// Volatile tables that are declared by a pattern.
    tables: GlobSet,
}

impl<'a> VolatileParts<'a> {
    pub(super) fn of(store: &'a Store) -> Self {
        let patterns = store.volatile.iter().filter_map(|volatile| match &volatile.part {
            VolatilePart::Table(name) if is_pattern(name) => Some(name.as_str()),
            _ => None,
        });
        Self { store, tables: globs(patterns, false) }
    }

    fn parts(&self) -> impl Iterator<Item = &'a VolatilePart> {
        self.store.volatile.iter().map(|volatile| &volatile.part)
    }

    pub(super) fn leaves_out_table(&self, name: &str) -> bool {
        self.parts().any(|part| matches!(part, VolatilePart::Table(table) if table == name))
            || self.tables.is_match(name)
    }

    pub(super) fn leaves_out_column(&self, name: &str, of: &str) -> bool {
        self.parts().any(|part| matches!(part, VolatilePart::Column { table, column } if table == of && column == name))
    }

    pub(super) fn leaves_out_sequence(&self, name: &str) -> bool {
        self.parts().any(|part| matches!(part, VolatilePart::Sequence(sequence) if sequence == name))
    }

    /// Returns an error if a volatile part does not exist. It is probably misspelt, and the intended part would be
    /// compared.
    pub(super) fn check(
        &self,
        columns: &BTreeSet<(String, String)>,
        tables: &BTreeSet<String>,
        sequences: &BTreeSet<String>,
    ) -> Result<(), DigestError> {
        let unknown = self.parts().find_map(|part| match part {
            VolatilePart::Table(pattern) if is_pattern(pattern) => None,
            VolatilePart::Table(table) => (!tables.contains(table)).then(|| format!("the table {table}")),
            VolatilePart::Column { table, column } => (!columns.contains(&(table.clone(), column.clone())))
                .then(|| format!("the column {column} of the table {table}")),
            VolatilePart::Sequence(name) => (!sequences.contains(name)).then(|| format!("the sequence {name}")),
            VolatilePart::File(_) | VolatilePart::Key(_) => None,
        });
        match unknown {
            Some(part) => Err(DigestError::UnknownVolatile { store: self.store.name.clone(), part }),
            None => Ok(()),
        }
    }
}

/// Returns whether a table's name is a pattern for several tables.
fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// The parts of a folder that a digest leaves out: volatile paths, and the folders of other stores.
pub(super) struct FileRules {
    others: BTreeSet<String>,
    volatile: GlobSet,
}

impl FileRules {
    pub(super) fn of(site: &Site, store: &Store) -> Self {
        let patterns = store.volatile.iter().filter_map(|volatile| match &volatile.part {
            VolatilePart::File(pattern) => Some(pattern.as_str()),
            _ => None,
        });
        Self { others: others(site, store), ..Self::leaving_out(patterns) }
    }

    /// Creates rules that leave out the paths that match patterns.
    pub(super) fn leaving_out<'a>(patterns: impl Iterator<Item = &'a str>) -> Self {
        Self { others: Default::default(), volatile: globs(patterns, true) }
    }

    /// Returns whether a path relative to the store's folder, and everything below it, is left out.
    pub(super) fn leave_out(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|text| self.others.contains(text)) || self.volatile.is_match(path)
    }
}

/// Returns the patterns of the keys that a digest leaves out.
pub(super) fn volatile_keys(store: &Store) -> GlobSet {
    let patterns = store.volatile.iter().filter_map(|volatile| match &volatile.part {
        VolatilePart::Key(pattern) => Some(pattern.as_str()),
        _ => None,
    });
    globs(patterns, false)
}

/// Compiles the patterns of a validated definition. A pattern that does not compile leaves nothing out, so that too
/// much rather than too little is compared.
fn globs<'a>(patterns: impl Iterator<Item = &'a str>, by_folder: bool) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in patterns.filter_map(|pattern| GlobBuilder::new(pattern).literal_separator(by_folder).build().ok()) {
        set.add(glob);
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
}

/// Returns the paths of other stores in a store's folder, relative to it.
fn others(site: &Site, store: &Store) -> BTreeSet<String> {
    let others = site.stores.iter().filter(|other| other.service == store.service && other.name != store.name);
    let paths = others.flat_map(|other| {
        let companions: &[&str] = if other.kind == StoreKind::Sqlite { &SQLITE_COMPANIONS } else { &[] };
        [""].iter().chain(companions).map(|suffix| format!("{}{suffix}", other.path))
    });
    let below = |path: String| Some(path.strip_prefix(&store.path)?.strip_prefix('/')?.to_owned());
    paths.filter_map(below).collect()
}
