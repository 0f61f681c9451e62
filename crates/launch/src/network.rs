//! Creates the networks of an incarnation in arenad's own block of addresses: an inner network without outbound access
//! for all containers and, if the site grants outbound access to some services, a second network for these services
//! only.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::LaunchError;
use arenad_engine::{Engine, EngineError};
use arenad_model::ids::ServiceName;
use arenad_model::site::Site;
use arenad_model::subnet::Subnet;

/// The number of further ranges that are tried when another process takes the chosen range first.
const ATTEMPTS: u32 = 8;

/// The number of addresses in a range that containers cannot use: network, gateway and broadcast.
const RESERVED: usize = 3;

/// The time for which an engine may still count the endpoints of containers that it has removed.
const ENDPOINTS_LIMIT: Duration = Duration::from_secs(5);

/// The time between two attempts to remove a network that has endpoints.
const ENDPOINTS_PAUSE: Duration = Duration::from_millis(100);

/// The suffix of the name of the network with outbound access.
const OUTWARD: &str = "-out";

/// The networks of an incarnation.
pub(super) struct Networks {
    /// The name of the network that all containers join; it has no outbound access.
    pub(super) inner: String,
    /// The name of the network with outbound access; `None` if no service has such access.
    pub(super) outward: Option<String>,
}

impl Networks {
    /// Returns the network that a service's container joins in addition to the inner one.
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

/// Removes a network whose containers have been removed. Docker may count their endpoints for a moment longer, for
/// example while another request waits for the removal of the same container.
pub(super) async fn remove(engine: &dyn Engine, name: &str) -> Result<(), EngineError> {
    let deadline = Instant::now() + ENDPOINTS_LIMIT;
    loop {
        match engine.remove_network(name).await {
            Err(error) if error.has_active_endpoints() && Instant::now() < deadline => {
                tokio::time::sleep(ENDPOINTS_PAUSE).await;
            }
            removed => return removed,
        }
    }
}

/// Creates a network that has room for `containers` containers and whose range overlaps no range in use.
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
            // Another process may take the range between the listing and the creation.
            Err(EngineError::Refused { message, .. }) if message.contains("overlap") && attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the position in the block at which the search for a free range starts. Positions are scattered, so that
/// independent installations seldom choose the same range, and depend on the name, so that a network gets the same
/// range again.
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
    use super::{ENDPOINTS_LIMIT, prefix_for, remove};
    use arenad_engine::Engine;
    use arenad_fake_engine::FakeEngine;
    use arenad_model::subnet::Subnet;
    use std::collections::BTreeMap;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn endpoints_that_go_soon_are_waited_for() {
        let engine = FakeEngine::new();
        let subnet = "10.1.2.0/28".parse::<Subnet>().expect("a range");
        engine.create_network("net", subnet, false, &BTreeMap::new()).await.expect("a network");
        engine.attach_foreign("net", "another").expect("an address");
        let began = Instant::now();
        let error = remove(&engine, "net").await.expect_err("it is in use");
        assert!(error.has_active_endpoints() && began.elapsed() >= ENDPOINTS_LIMIT, "{error}");
        let going = async {
            tokio::time::sleep(ENDPOINTS_LIMIT / 2).await;
            engine.detach_foreign("net", "another")
        };
        let (removed, was_attached) = tokio::join!(remove(&engine, "net"), going);
        removed.expect("it goes");
        assert!(was_attached);
    }

    #[test]
    fn the_range_grows_with_the_site() {
        assert_eq!(prefix_for(1), 28);
        assert_eq!(prefix_for(13), 28);
        assert_eq!(prefix_for(14), 27);
        assert_eq!(prefix_for(200), 24);
    }
}
