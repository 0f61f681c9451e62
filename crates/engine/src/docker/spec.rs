//! Converts a Compose service into bollard's request for creating a container.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, EndpointSettings, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountBindOptions,
    MountBindOptionsPropagationEnum, MountTmpfsOptions, MountType, MountVolumeOptions, NetworkingConfig,
    ResourcesUlimits,
};

use super::limits;
use crate::{ContainerSpec, CpuWeight, labels};
use arenad_model::service::{HealthCheck, MountSpec, ServiceSpec};

/// Returns the complete request for creating a container.
///
/// `container_memory` is the memory limit of a container whose definition has none, in bytes.
pub(super) fn create_body(spec: &ContainerSpec<'_>, container_memory: u64) -> ContainerCreateBody {
    let service = spec.service;
    let endpoint = EndpointSettings { aliases: Some(vec![service.name.to_string()]), ..Default::default() };
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        hostname: Some(service.hostname.clone().unwrap_or_else(|| service.name.to_string())),
        user: service.user.clone(),
        cmd: service.command.clone(),
        entrypoint: service.entrypoint.clone(),
        env: Some(environment(spec)),
        working_dir: service.working_dir.clone(),
        healthcheck: service.health_check.as_ref().map(health_config),
        labels: Some(to_hash_map(&spec.labels)),
        stop_signal: service.stop_signal.clone(),
        stop_timeout: i64::try_from(service.stop_grace_period.as_secs()).ok(),
        host_config: Some(host_config(spec, container_memory)),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(spec.network.clone(), endpoint)])),
        }),
        ..Default::default()
    }
}

fn environment(spec: &ContainerSpec<'_>) -> Vec<String> {
    let of_file = spec.service.environment.iter().filter(|(key, _)| !spec.environment.contains_key(*key));
    of_file.chain(&spec.environment).map(|(key, value)| format!("{key}={value}")).collect()
}

/// Converts a map into the type that bollard requires.
pub(super) fn to_hash_map(map: &BTreeMap<String, String>) -> HashMap<String, String> {
    map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn health_config(check: &HealthCheck) -> HealthConfig {
    HealthConfig {
        test: Some(check.test.clone()),
        interval: check.interval.map(nanos),
        timeout: check.timeout.map(nanos),
        retries: check.retries.map(i64::from),
        start_period: check.start_period.map(nanos),
        start_interval: None,
    }
}

/// Returns the CPU shares of a weight. The kernel's default is 1024.
pub(super) fn cpu_shares(weight: CpuWeight) -> i64 {
    match weight {
        CpuWeight::Serving => 1024,
        CpuWeight::Background => 64,
    }
}

fn mounts(spec: &ContainerSpec<'_>) -> Vec<Mount> {
    let volumes = spec.volumes.iter().map(|(target, (volume, read_only))| Mount {
        target: Some(target.clone()),
        source: Some(volume.clone()),
        typ: Some(MountType::VOLUME),
        read_only: Some(*read_only),
        // By default the engine copies the image's files into a new volume. Volumes of instances are filled from the
        // snapshot instead; only a builder's first volume needs the image's files.
        volume_options: Some(MountVolumeOptions { no_copy: Some(!is_builder(spec)), ..Default::default() }),
        ..Default::default()
    });
    let others = spec.service.mounts.iter().filter_map(|mount| match mount {
        MountSpec::Volume { .. } => None,
        MountSpec::Bind { source, target } => Some(bind(source, target, true)),
        MountSpec::Data { source, target, read_only } => Some(bind(source, target, *read_only)),
        MountSpec::Tmpfs { target, size_bytes } => Some(Mount {
            target: Some(target.clone()),
            typ: Some(MountType::TMPFS),
            tmpfs_options: Some(MountTmpfsOptions {
                size_bytes: size_bytes.and_then(|size| i64::try_from(size).ok()),
                mode: None,
                options: None,
            }),
            ..Default::default()
        }),
    });
    let state = spec.binds.iter().map(|(target, source)| bind(source, target, false));
    volumes.chain(others).chain(state).collect()
}

fn bind(source: &Path, target: &str, read_only: bool) -> Mount {
    Mount {
        target: Some(target.to_owned()),
        source: Some(source.display().to_string()),
        typ: Some(MountType::BIND),
        read_only: Some(read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn is_builder(spec: &ContainerSpec<'_>) -> bool {
    spec.labels.get(labels::ROLE).is_some_and(|role| role == labels::ROLE_BUILDER)
}

/// The number of files that hold a container's log: the oldest is deleted when the newest is full.
const LOG_FILES: u32 = 3;

/// The maximum size of one log file, in MiB.
const LOG_FILE_MIB: u32 = 10;

/// Returns the log configuration, which limits a container's log regardless of the engine's defaults: a site that logs
/// endlessly would fill the host's disk.
fn log_config() -> HostConfigLogConfig {
    let options = [("max-size", format!("{LOG_FILE_MIB}m")), ("max-file", LOG_FILES.to_string())];
    HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some(options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
    }
}

fn host_config(spec: &ContainerSpec<'_>, container_memory: u64) -> HostConfig {
    let service: &ServiceSpec = spec.service;
    let limits = &service.limits;
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let bytes = |value: Option<u64>| value.map(number);
    let memory = Some(number(limits::memory(limits, container_memory)));
    let mut security_opt = service.security_opt.clone();
    if !security_opt.iter().any(|option| option.starts_with("no-new-privileges")) {
        security_opt.push("no-new-privileges:true".to_owned());
    }
    HostConfig {
        network_mode: Some(spec.network.clone()),
        mounts: Some(mounts(spec)),
        memory,
        memory_reservation: bytes(limits.reserved_memory_bytes),
        // Without this setting the container may use the same amount of swap in addition.
        memory_swap: memory,
        cpu_shares: Some(cpu_shares(spec.weight)),
        nano_cpus: limits.cpus.map(|cpus| (cpus * 1e9) as i64),
        pids_limit: Some(number(limits::pids(limits))),
        shm_size: bytes(limits.shm_bytes),
        ulimits: Some(
            limits
                .ulimits
                .iter()
                .map(|(name, soft, hard)| ResourcesUlimits {
                    name: Some(name.clone()),
                    soft: Some(*soft),
                    hard: Some(*hard),
                })
                .collect(),
        ),
        cap_add: Some(service.cap_add.clone()),
        cap_drop: Some(service.cap_drop.clone()),
        security_opt: Some(security_opt),
        readonly_rootfs: Some(service.read_only && !spec.keeps_stores_in_layer),
        init: Some(service.init),
        extra_hosts: Some(service.extra_hosts.iter().map(|(host, address)| format!("{host}:{address}")).collect()),
        sysctls: Some(to_hash_map(&service.sysctls)),
        log_config: Some(log_config()),
        // An internal network still forwards name look-ups to the host's resolver, and names can carry data out. The
        // container's own loopback answers no look-ups, so only the names of the instance's services resolve. If the
        // definition grants egress, names are looked up as on the host.
        dns: spec.outward.is_none().then(|| vec![Ipv4Addr::LOCALHOST.to_string()]),
        ..Default::default()
    }
}
