//! The extent of a reset that a harness asks for.

use super::ids::{EnvironmentName, SiteName};

/// One slot of all sites of an environment, or of one of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResetScope {
    /// The environment of the sites.
    pub environment: EnvironmentName,
    /// The number of the slot of each site, from 1.
    pub slot: u32,
    /// The site; `None` means all of them.
    pub site: Option<SiteName>,
}

impl ResetScope {
    /// Whether both are about the same slot of the same environment.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.environment == other.environment && self.slot == other.slot
    }
}
