//! Converts the engine's description of a container into arenad's types.

use std::net::IpAddr;

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum, HealthStatusEnum};

use crate::{ContainerHealth, ContainerState, ContainerStatus, EngineHandle};

/// Converts the answer to an inspection.
pub(super) fn read(handle: &EngineHandle, found: ContainerInspectResponse) -> ContainerStatus {
    let state = found.state.unwrap_or_default();
    let health = state.health.as_ref().and_then(|health| health.status);
    // A container with egress is in a second network, through which it reaches outside hosts but receives no
    // connections.
    let first = found.host_config.and_then(|config| config.network_mode);
    let address = found
        .network_settings
        .and_then(|settings| settings.networks)
        .and_then(|mut networks| {
            let joined_first = first.and_then(|name| networks.remove(&name));
            joined_first.or_else(|| networks.into_values().next())?.ip_address
        })
        .and_then(|address| address.parse::<IpAddr>().ok());
    ContainerStatus {
        handle: EngineHandle(found.id.unwrap_or_else(|| handle.0.clone())),
        state: match state.status {
            Some(ContainerStateStatusEnum::RUNNING | ContainerStateStatusEnum::RESTARTING) => ContainerState::Running,
            Some(ContainerStateStatusEnum::PAUSED) => ContainerState::Paused,
            Some(ContainerStateStatusEnum::CREATED) => ContainerState::Created,
            Some(ContainerStateStatusEnum::EXITED) => ContainerState::Exited(state.exit_code.unwrap_or_default()),
            _ => ContainerState::Dead,
        },
        oom_killed: state.oom_killed.unwrap_or_default(),
        health: match health {
            None | Some(HealthStatusEnum::EMPTY | HealthStatusEnum::NONE) => ContainerHealth::None,
            Some(HealthStatusEnum::STARTING) => ContainerHealth::Starting,
            Some(HealthStatusEnum::HEALTHY) => ContainerHealth::Healthy,
            Some(HealthStatusEnum::UNHEALTHY) => ContainerHealth::Unhealthy,
        },
        address,
        pid: state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0),
        volumes: found
            .mounts
            .unwrap_or_default()
            .into_iter()
            .filter(|mount| mount.typ.as_deref() == Some("volume"))
            .filter_map(|mount| Some((mount.destination?, mount.name?)))
            .collect(),
    }
}
