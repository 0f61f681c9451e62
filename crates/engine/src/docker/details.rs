//! Converts the engine's description of itself and its host into arenad's types.

use std::path::PathBuf;

use bollard::models::SystemInfo;

use crate::{EnforcedLimits, EngineDetails, EngineVersion};

/// Converts the answer to `GET /info`.
pub(super) fn read(version: String, api: String, info: SystemInfo) -> EngineDetails {
    let is = |flag: Option<bool>| flag.unwrap_or(false);
    let pools = info.default_address_pools.unwrap_or_default().into_iter();
    EngineDetails {
        id: info.id.unwrap_or_default(),
        version: EngineVersion {
            version,
            api,
            storage_driver: info.driver.unwrap_or_default(),
            root: PathBuf::from(info.docker_root_dir.unwrap_or_default()),
        },
        operating_system: info.operating_system.unwrap_or_default(),
        is_rootless: info.security_options.iter().flatten().any(|option| option == "name=rootless"),
        time: info.system_time.and_then(|time| time.parse().ok()),
        enforces: EnforcedLimits {
            memory: is(info.memory_limit),
            cpus: is(info.cpu_cfs_quota),
            pids: is(info.pids_limit),
        },
        address_pools: pools
            .filter_map(|pool| Some((pool.base?.parse().ok()?, u8::try_from(pool.size?).ok()?)))
            .collect(),
        forwards: is(info.ipv4_forwarding),
        firewall: info.firewall_backend.and_then(|backend| backend.driver),
    }
}
