//! Episodes in the simulation: their clients, and the promises to them.
//!
//! With `ARENAD_SIM_EPISODES=N`, one in N schedules has episodes. The first site then has up to three slots, the second one
//! slot, and all episodes share the third. Each episode bears the number of its request as a label, so that the model finds
//! it again when the reply is lost.

mod act;
mod laws;
mod model;
pub mod steps;

use std::sync::LazyLock;

use arenad_model::instance::InstanceId;

use crate::random::mix;
use crate::schedule::SITES;
use crate::setting::number_of;
use crate::world::{ENVIRONMENT, NAMES};

pub use act::EpisodeConnection;
pub use laws::RECYCLED;
pub use model::{Circumstances, EpisodesModel, ModelEpisode, is_work};

/// The number of slots that may exist.
pub const SLOTS: usize = 5;
/// The slots, as the index of their site and their number. The first slot of a site has the index of the site.
pub const SLOT_NUMBERS: [(usize, u32); SLOTS] = [(0, 1), (1, 1), (2, 1), (0, 2), (0, 3)];
/// The site that all episodes share.
pub const SHARED: usize = 2;
/// The slots of each site that only requests get which name them.
const BY_NAME_ONLY: [u32; SITES] = [1, 0, 0];
/// The lines of the definition by which the first site has several slots.
pub const SEVERAL_SLOTS: &str = "    slots: { min: 1, max: 3 }\n";

static INSTANCES: LazyLock<[InstanceId; SLOTS]> = LazyLock::new(|| {
    SLOT_NUMBERS.map(|(site, number)| format!("{ENVIRONMENT}/{}/{number}", NAMES[site]).parse().expect("a name"))
});

/// One in this many schedules has episodes; none if it is 0.
pub static EPISODES_ONE_IN: LazyLock<u64> = LazyLock::new(|| number_of("ARENAD_SIM_EPISODES").unwrap_or(0));

/// Whether the schedule of a seed has episodes.
pub fn has_episodes(seed: u64) -> bool {
    *EPISODES_ONE_IN > 0 && mix(seed ^ 0xe915_0de5).wrapping_add(1).is_multiple_of(*EPISODES_ONE_IN)
}

/// Returns the instance of a slot.
pub fn instance(slot: usize) -> &'static InstanceId {
    &INSTANCES[slot]
}

/// Returns the index of a slot.
pub fn index_of(instance: &InstanceId) -> Option<usize> {
    INSTANCES.iter().position(|known| known == instance)
}

/// Returns the name of a slot in messages: that of its site, with its number if it is not the first.
pub fn shown(slot: usize) -> String {
    match SLOT_NUMBERS[slot] {
        (site, 1) => NAMES[site].to_owned(),
        (site, number) => format!("{} slot {number}", NAMES[site]),
    }
}

/// Returns the part of the names of a site's objects that names the site.
pub fn part_of_names(site: usize) -> String {
    format!("-{}-g", NAMES[site])
}
