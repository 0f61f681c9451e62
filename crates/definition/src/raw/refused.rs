//! Compose keys of a service that arenad refuses, each with the reason.

use schemars::Schema;
use serde_json::{Map, Value as Json};

const SERVICE: [(&str, &str); 43] = [
    ("blkio_config", "limit memory, CPUs and processes instead"),
    ("cgroup", "containers keep their own cgroup: an agent steers what runs in them"),
    ("cgroup_parent", "containers keep their own cgroup: an agent steers what runs in them"),
    ("configs", "mount a file of the environment's folder read-only instead"),
    ("container_name", "arenad names the containers: there are several instances of a site at a time"),
    ("cpu_period", "set `cpus`"),
    ("cpu_quota", "set `cpus`"),
    ("cpu_shares", "set `cpus`"),
    ("cpuset", "set `cpus`"),
    ("credential_spec", "Windows containers are not supported"),
    ("develop", "a baseline is built once, not watched"),
    ("device_cgroup_rules", "containers get no devices: an agent steers what runs in them"),
    ("devices", "containers get no devices: an agent steers what runs in them"),
    ("dns", "containers have no way out of their instance's network"),
    ("dns_opt", "containers have no way out of their instance's network"),
    ("dns_search", "containers have no way out of their instance's network"),
    ("domainname", "use `hostname`"),
    ("extends", "use YAML anchors and merge keys (`<<: *name`) instead"),
    ("external_links", "containers see only the services of their own site"),
    ("gpus", "containers get no devices: an agent steers what runs in them"),
    ("group_add", "set `user` instead"),
    ("ipc", "containers keep their own namespaces: an agent steers what runs in them"),
    ("isolation", "Windows containers are not supported"),
    ("links", "services reach each other by name without it"),
    ("logging", "arenad reads the containers' logs and limits their size itself"),
    ("memswap_limit", "set `mem_limit`; swap is not extended beyond it"),
    ("network_mode", "arenad makes one network per instance, with no way out: an agent steers what runs in it"),
    ("networks", "arenad makes one network per instance, on which the services reach each other by name"),
    ("pid", "containers keep their own namespaces: an agent steers what runs in them"),
    ("platform", "the engine's own platform is used"),
    ("post_start", "use `baseline.configure` of the environment file"),
    ("pre_stop", "use `baseline.quiesce` of the environment file"),
    ("privileged", "containers get no privileges: an agent steers what runs in them"),
    ("pull_policy", "arenad pulls or builds what is missing"),
    ("runtime", "the engine's default runtime is used"),
    ("scale", "arenad decides how many instances run"),
    ("secrets", "put what a service needs into `environment`"),
    ("stdin_open", "the containers of a site are not used interactively"),
    ("storage_opt", "not every storage driver has it"),
    ("tty", "the containers of a site are not used interactively"),
    ("userns_mode", "containers keep their own namespaces: an agent steers what runs in them"),
    ("uts", "containers keep their own namespaces: an agent steers what runs in them"),
    ("volumes_from", "mount a named volume in both services"),
];

/// Adds the refused keys of a service to its schema.
pub(super) fn mark_service(schema: &mut Schema) {
    let keys: Map<String, Json> =
        SERVICE.iter().map(|(key, reason)| ((*key).to_owned(), Json::from(*reason))).collect();
    schema.insert("x-refused-keys".to_owned(), Json::Object(keys));
}
