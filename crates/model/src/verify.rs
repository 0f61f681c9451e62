//! How much of an instance is compared with its snapshot before it serves.

use std::num::NonZeroU32;

use super::site::Site;
use super::store::VolatilePart;

/// What is compared at a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every store from beginning to end.
    Everything,
    /// What has moved since it was last compared.
    Moved,
    /// Nothing: its probes have passed, and that is all that is known.
    Nothing,
}

impl Extent {
    /// Returns the extent of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Everything, Self::Moved, Self::Nothing].into_iter().find(|extent| extent.name() == name)
    }

    /// The word in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Moved => "moved",
            Self::Nothing => "nothing",
        }
    }
}

/// What was compared with the snapshot at a reset, and what of the declared stores was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// How much of the compared stores.
    pub extent: Extent,
    /// How many stores the definition declares.
    pub declared: usize,
    /// The names of the stores that were compared, in the definition's order.
    pub stores: Vec<String>,
    /// What was left out, in the definition's order.
    pub left_out: Vec<LeftOut>,
}

/// A store, or a part of one, that was not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The store.
    pub store: String,
    /// The part, such as `file logs/**`; none: all of it.
    pub part: Option<String>,
    /// Why, in the definition's words.
    pub reason: String,
}

impl Verified {
    /// What comparing a site to this extent covers. Where no store has anything that is compared, the extent is nothing.
    pub fn of(site: &Site, extent: Extent) -> Self {
        let declared = site.stores.len();
        if extent == Extent::Nothing || !site.can_be_compared() {
            return Self { extent: Extent::Nothing, declared, stores: Vec::new(), left_out: Vec::new() };
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

    /// Whether something of every declared store was compared.
    pub fn covers_all(&self) -> bool {
        self.stores.len() == self.declared
    }
}

impl Site {
    /// Whether anything of its stores is compared at all.
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

/// What a definition wants to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyPolicy {
    /// Whether a standby that was compared when it was made is compared from beginning to end once more.
    pub is_full: bool,
    /// Of so many resets in a row, one is compared.
    pub every: NonZeroU32,
}

impl Default for VerifyPolicy {
    /// Every reset is proven, at the least cost.
    fn default() -> Self {
        Self { is_full: false, every: NonZeroU32::MIN }
    }
}

impl VerifyPolicy {
    /// What is compared at the reset of this number, counted from 0. `is_proven`: it was compared before, and what it holds
    /// can have changed only where something has moved since. That costs so little that it is never left out.
    pub fn extent(self, number: u64, is_proven: bool) -> Extent {
        let is_its_turn = number.is_multiple_of(u64::from(self.every.get()));
        match (is_its_turn, is_proven) {
            (true, true) if !self.is_full => Extent::Moved,
            (true, _) => Extent::Everything,
            (false, true) => Extent::Moved,
            (false, false) => Extent::Nothing,
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
        assert_eq!(VerifyPolicy::default().extent(7, true), Extent::Moved);
        assert_eq!(VerifyPolicy::default().extent(7, false), Extent::Everything);
    }

    #[test]
    fn one_of_so_many_is_compared_and_marks_always_are() {
        assert_eq!(extents(false, 2, false), ["everything", "nothing", "everything", "nothing"]);
        assert_eq!(extents(false, 2, true), ["moved", "moved", "moved", "moved"]);
        assert_eq!(extents(true, 3, true), ["everything", "moved", "moved", "everything"]);
        assert_eq!(extents(true, 1, false), ["everything"; 4]);
    }
}
