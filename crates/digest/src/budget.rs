//! Limits on the part of a folder that is read, because a site determines the number and the length of the names in it.

use super::DigestError;

/// Maximum number of files and folders in a store: far more than any real site has; reading them takes about one
/// gigabyte of memory.
pub(super) const ENTRIES_MAX: usize = 2_000_000;

/// Maximum total length of paths and link targets, in bytes.
const TEXT_MAX: usize = 64 << 20;

/// The amount that was read of a store's folder, and its limits.
pub(super) struct FolderBudget {
    store: String,
    entries_max: usize,
    entries: usize,
    text_max: usize,
    text: usize,
}

impl FolderBudget {
    pub(super) fn of(store: &str) -> Self {
        Self::limited(store, ENTRIES_MAX, TEXT_MAX)
    }

    pub(super) fn limited(store: &str, entries_max: usize, text_max: usize) -> Self {
        Self { store: store.to_owned(), entries_max, entries: 0, text_max, text: 0 }
    }

    /// Counts a file or folder and the bytes of its path.
    ///
    /// Errors: `TooMany` above the limit on entries, `TooLong` above the limit on the total length of paths.
    pub(super) fn add(&mut self, text: usize) -> Result<(), DigestError> {
        self.entries += 1;
        self.text = self.text.saturating_add(text);
        if self.entries > self.entries_max {
            return Err(DigestError::TooMany { store: self.store.clone(), limit: self.entries_max });
        }
        if self.text > self.text_max {
            return Err(DigestError::TooLong { store: self.store.clone(), limit: self.text_max });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_names_and_to_their_length() {
        let mut budget = FolderBudget::limited("files", 2, 100);
        assert!(budget.add(40).is_ok() && budget.add(60).is_ok());
        assert!(matches!(budget.add(0), Err(DigestError::TooMany { limit: 2, .. })));
        assert!(matches!(
            FolderBudget::limited("files", 2, 100).add(101),
            Err(DigestError::TooLong { limit: 100, .. })
        ));
    }
}
