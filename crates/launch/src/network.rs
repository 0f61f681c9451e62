//! One network for each incarnation, without a way out, from arenad's own block of addresses; and where some of its services
//! reach the world, another one for these alone.

use std::collections::BTreeMap;

use super::LaunchError;
use arenad_engine::{Engine, EngineError};
use arenad_model::ids::ServiceName;
use arenad_model::site::Site;
use arenad_model::subnet::Subnet;

/// How often another range is tried when someone else took the one chosen in the meantime.
const ATTEMPTS: u32 = 8;

/// Of an instance's range, the addresses that are not for containers: network, gateway, broadcast.
const RESERVED: usize = 3;

/// What is behind the name of the network by which some of an incarnation's containers reach the world.
const OUTWARD: &str = "-out";

/// The networks of an incarnation.
pub(super) struct Networks {
    /// The one that all containers are in, without a way out.
    pub(super) inner: String,
    /// The one of those that have a way out, where there are any.
    pub(super) outward: Option<String>,
}

impl Networks {
    /// The network beside the inner one that a service's container joins.
    pub(super) fn outward_of(&self, site: &Site, service: &ServiceName) -> Option<String> {
        self.outward.clone().filter(|_| site.egress.contains(service))
    }
}

/// Creates the networks of an incarnation.
pub(super) async fn create_all(
    engine: &dyn Engine,
    name: &str,
    block: Subnet,
    site: &Site,
    labels: &BTreeMap<String, String>,
) -> Result<Networks, LaunchError> {
    create(engine, name, block, site.services.len(), false, labels).await?;
    let outward = (!site.egress.is_empty()).then(|| format!("{name}{OUTWARD}"));
    if let Some(outward) = &outward {
        create(engine, outward, block, site.egress.len(), true, labels).await?;
    }
    Ok(Networks { inner: name.to_owned(), outward })
}

/// Creates a network for as many containers, with a range that overlaps none in use.
async fn create(
    engine: &dyn Engine,
    name: &str,
    block: Subnet,
    containers: usize,
    egress: bool,
    labels: &BTreeMap<String, String>,
) -> Result<(), LaunchError> {
    let prefix = prefix_for(containers);
    let mut attempt = 0;
    loop {
        let taken = engine.subnets().await?;
        let subnet = Subnet::first_free(block, prefix, &taken, start(name, attempt))
            .ok_or(LaunchError::NoSubnet { block, prefix })?;
        match engine.create_network(name, subnet, egress, labels).await {
            Ok(()) => return Ok(()),
            // Between the list and the creation someone may have taken the range.
            Err(EngineError::Refused { message, .. }) if message.contains("overlap") && attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Where in the block a range is looked for first. Scattered, so that installations that do not know of each other seldom
/// choose the same one; by name, so that the same network gets the same range.
fn start(name: &str, attempt: u32) -> u32 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (name, attempt).hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

fn prefix_for(services: usize) -> u8 {
    (16..=Subnet::INSTANCE_PREFIX)
        .rev()
        .find(|prefix| (1usize << (32 - prefix)) - RESERVED >= services)
        .unwrap_or(Subnet::INSTANCE_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::prefix_for;

    #[test]
    fn the_range_grows_with_the_site() {
        assert_eq!(prefix_for(1), 28);
        assert_eq!(prefix_for(13), 28);
        assert_eq!(prefix_for(14), 27);
        assert_eq!(prefix_for(200), 24);
    }
}
