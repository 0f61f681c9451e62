//! The extent to which an instance is compared with its snapshot before it serves.

use std::num::NonZeroU32;

use super::site::Site;
use super::store::VolatilePart;

/// The extent of the comparison at a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonExtent {
    /// Every store is compared in full.
    Everything,
    /// The parts that were written to since the last comparison are compared.
    Moved,
    /// The stores are not compared. The instance is only known to have passed its probes.
    Nothing,
}

impl ComparisonExtent {
    /// Returns the extent of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Everything, Self::Moved, Self::Nothing].into_iter().find(|extent| extent.name() == name)
    }

    /// Returns the name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Moved => "moved",
            Self::Nothing => "nothing",
        }
    }
}

/// The result of a comparison with the snapshot at a reset, and the parts of the declared stores that it left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The extent to which the stores were compared.
    pub extent: ComparisonExtent,
    /// The number of stores that the definition declares.
    pub declared: usize,
    /// The names of the stores that were compared, in the definition's order.
    pub stores: Vec<String>,
    /// The stores and parts that were left out, in the definition's order.
    pub left_out: Vec<LeftOut>,
}

/// A store, or a part of a store, that was not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the store.
    pub store: String,
    /// The part, such as `file logs/**`. `None` means the whole store.
    pub part: Option<String>,
    /// The reason, as written in the definition.
    pub reason: String,
}

impl Verified {
    /// Returns the coverage of a comparison to this extent. If no store has a part that can be compared, the extent
    /// becomes [`ComparisonExtent::Nothing`].
    pub fn of(site: &Site, extent: ComparisonExtent) -> Self {
        let declared = site.stores.len();
        if extent == ComparisonExtent::Nothing || !site.can_be_compared() {
            return Self { extent: ComparisonExtent::Nothing, declared, stores: Vec::new(), left_out: Vec::new() };
        }
        let (mut stores, mut left_out) = (Vec::new(), Vec::new());
        for store in &site.stores {
            let name = store.name.clone();
            if let Some(all) = store.left_out_whole() {
                left_out.push(LeftOut { store: name, part: None, reason: all.reason.clone() });
                continue;
            }
            left_out.extend(store.volatile.iter().map(|volatile| LeftOut {
                store: name.clone(),
                part: Some(told(&volatile.part)),
                reason: volatile.reason.clone(),
            }));
            stores.push(name);
        }
        Self { extent, declared, stores, left_out }
    }

    /// Whether at least a part of every declared store was compared.
    pub fn covers_all(&self) -> bool {
        self.stores.len() == self.declared
    }
}

impl Site {
    /// Whether any part of the site's stores can be compared.
    pub fn can_be_compared(&self) -> bool {
        self.stores.iter().any(|store| store.left_out_whole().is_none())
    }
}

fn told(part: &VolatilePart) -> String {
    match part {
        VolatilePart::Table(table) => format!("table {table}"),
        VolatilePart::Column { table, column } => format!("column {table}.{column}"),
        VolatilePart::Sequence(sequence) => format!("sequence {sequence}"),
        VolatilePart::File(pattern) => format!("file {pattern}"),
        VolatilePart::Key(pattern) => format!("key {pattern}"),
    }
}

/// The comparisons that a definition requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyPolicy {
    /// Whether a standby that was compared when it was created is compared in full again before it serves.
    pub is_full: bool,
    /// The number of consecutive resets of which one is compared.
    pub every: NonZeroU32,
}

impl Default for VerifyPolicy {
    /// Compares at every reset, in the cheapest way that proves the result.
    fn default() -> Self {
        Self { is_full: false, every: NonZeroU32::MIN }
    }
}

impl VerifyPolicy {
    /// Returns the extent of the comparison at the reset with this number, counted from 0.
    ///
    /// `is_proven` states that the instance was compared before, so that only parts that were written to since can
    /// differ. Such an instance is always compared at least to [`ComparisonExtent::Moved`], because that costs very
    /// little.
    pub fn extent(self, number: u64, is_proven: bool) -> ComparisonExtent {
        let is_its_turn = number.is_multiple_of(u64::from(self.every.get()));
        match (is_its_turn, is_proven) {
            (true, true) if !self.is_full => ComparisonExtent::Moved,
            (true, _) => ComparisonExtent::Everything,
            (false, true) => ComparisonExtent::Moved,
            (false, false) => ComparisonExtent::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(is_full: bool, every: u32, is_proven: bool) -> Vec<&'static str> {
        let policy = VerifyPolicy { is_full, every: NonZeroU32::new(every).expect("not zero") };
        (0..4).map(|number| policy.extent(number, is_proven).name()).collect()
    }

    #[test]
    fn by_default_whatever_serves_is_proven() {
        assert_eq!(VerifyPolicy::default().extent(7, true), ComparisonExtent::Moved);
        assert_eq!(VerifyPolicy::default().extent(7, false), ComparisonExtent::Everything);
    }

    #[test]
    fn one_of_so_many_is_compared_and_marks_always_are() {
        assert_eq!(extents(false, 2, false), ["everything", "nothing", "everything", "nothing"]);
        assert_eq!(extents(false, 2, true), ["moved", "moved", "moved", "moved"]);
        assert_eq!(extents(true, 3, true), ["everything", "moved", "moved", "everything"]);
        assert_eq!(extents(true, 1, false), ["everything"; 4]);
    }
}
