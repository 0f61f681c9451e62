//! One network for each incarnation, without a way out, from arenad's own block of addresses.

use std::collections::BTreeMap;

use super::LaunchError;
use crate::domain::site::Site;
use crate::domain::subnet::Subnet;
use crate::engine::{Engine, EngineError};

/// How often another range is tried when someone else took the one chosen in the meantime.
const ATTEMPTS: u32 = 8;

/// Of an instance's range, the addresses that are not for containers: network, gateway, broadcast.
const RESERVED: usize = 3;

/// Creates the network with a range that overlaps none in use, without a way out unless the site is given one.
pub(super) async fn create(
    engine: &dyn Engine,
    name: &str,
    block: Subnet,
    site: &Site,
    labels: &BTreeMap<String, String>,
) -> Result<(), LaunchError> {
    let prefix = prefix_for(site.services.len());
    let mut attempt = 0;
    loop {
        let taken = engine.subnets().await?;
        let subnet =
            Subnet::first_free(block, prefix, &taken, rand::random()).ok_or(LaunchError::NoSubnet { block, prefix })?;
        match engine.create_network(name, subnet, site.egress, labels).await {
            Ok(()) => return Ok(()),
            // Between the list and the creation someone may have taken the range.
            Err(EngineError::Refused { message, .. }) if message.contains("overlap") && attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
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
