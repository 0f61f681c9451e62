//! A service in Compose's own form.

use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::super::values::period_text;
use super::filled;
use arenad_model::service::{BuildSpec, Dependency, DependencyCondition, HealthCheck, Limits, MountSpec, ServiceSpec};

/// A service in Compose's own form, without its published port.
///
/// `up` is the relative path from the Compose file's folder to the root folder, because Compose resolves paths against
/// the former.
pub(super) fn service(spec: &ServiceSpec, root: &Path, up: &str) -> Map<String, Json> {
    let ServiceSpec {
        // The name is the key of the entry.
        name: _,
        image,
        build,
        // The section `images` names the archive.
        archive: _,
        command,
        entrypoint,
        environment,
        labels,
        user,
        working_dir,
        hostname,
        mounts,
        health_check,
        depends_on,
        limits: Limits { memory_bytes, reserved_memory_bytes, cpus, pids, shm_bytes, ulimits },
        cap_drop,
        cap_add,
        security_opt,
        read_only,
        init,
        stop_grace_period,
        stop_signal,
        extra_hosts,
        sysctls,
    } = spec;
    let relative = |path: &Path| format!("{up}{}", path.strip_prefix(root).unwrap_or(path).display());
    let build = build.as_ref().map(|BuildSpec { context, dockerfile, args, target }| {
        filled(json!({
            "context": relative(context),
            "dockerfile": dockerfile.to_string_lossy(),
            "args": args,
            "target": target,
        }))
    });
    let mounts = mounts.iter().map(|mount| match mount {
        MountSpec::Volume { name, target, read_only } => {
            json!({ "type": "volume", "source": name, "target": target, "read_only": read_only })
        }
        MountSpec::Bind { source, target } => {
            json!({ "type": "bind", "source": relative(source), "target": target, "read_only": true })
        }
        MountSpec::Data { source, target, read_only } => {
            json!({ "type": "bind", "source": relative(source), "target": target, "read_only": read_only })
        }
        MountSpec::Tmpfs { target, size_bytes } => match size_bytes {
            Some(size) => json!({ "type": "tmpfs", "target": target, "tmpfs": { "size": size } }),
            None => json!({ "type": "tmpfs", "target": target }),
        },
    });
    let health_check = health_check.as_ref().map(|HealthCheck { test, interval, timeout, retries, start_period }| {
        filled(json!({
            "test": test,
            "interval": interval.map(period_text),
            "timeout": timeout.map(period_text),
            "retries": retries,
            "start_period": start_period.map(period_text),
        }))
    });
    let depends_on = depends_on.iter().map(|Dependency { service, condition }| {
        let condition = match condition {
            DependencyCondition::Started => "service_started",
            DependencyCondition::Healthy => "service_healthy",
            DependencyCondition::CompletedSuccessfully => "service_completed_successfully",
        };
        (service.to_string(), json!({ "condition": condition }))
    });
    let ulimits = ulimits.iter().map(|(name, soft, hard)| (name.clone(), json!({ "soft": soft, "hard": hard })));
    let hosts = extra_hosts.iter().map(|(name, address)| format!("{name}={address}"));
    let service = json!({
        "image": image,
        "build": build,
        "environment": environment,
        "labels": labels,
        "user": user,
        "working_dir": working_dir,
        "hostname": hostname,
        "volumes": mounts.collect::<Vec<_>>(),
        "healthcheck": health_check,
        "depends_on": depends_on.collect::<Map<_, _>>(),
        "mem_limit": memory_bytes,
        "mem_reservation": reserved_memory_bytes,
        "cpus": cpus,
        "pids_limit": pids,
        "shm_size": shm_bytes,
        "ulimits": ulimits.collect::<Map<_, _>>(),
        "cap_drop": cap_drop,
        "cap_add": cap_add,
        "security_opt": security_opt,
        "read_only": read_only,
        "init": init,
        "stop_grace_period": period_text(*stop_grace_period),
        "stop_signal": stop_signal,
        "extra_hosts": hosts.collect::<Vec<_>>(),
        "sysctls": sysctls,
    });
    let mut service = match filled(service) {
        Json::Object(service) => service,
        _ => Map::new(),
    };
    // An empty command differs from a missing one: it removes the image's command.
    for (key, words) in [("command", command), ("entrypoint", entrypoint)] {
        if let Some(words) = words {
            service.insert(key.to_owned(), json!(words));
        }
    }
    service
}
