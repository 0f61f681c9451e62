//! Privileges that are refused to containers, because an agent controls the processes in them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::pairs::{MissingValue, pairs};
use crate::raw::compose_parts::HostList;
use crate::raw::values::KeyValues;
use crate::scope::Scope;

/// Capabilities by which a process leaves its container or reconfigures its network.
const REFUSED_CAPABILITIES: [&str; 10] = [
    "ALL",
    "BPF",
    "DAC_READ_SEARCH",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "NET_ADMIN",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_MODULE",
    "SYS_RAWIO",
];

/// Reads `cap_add` or `cap_drop`.
pub(super) fn capabilities(scope: Scope<'_>, raw: Option<&Vec<String>>, adds: bool) -> Vec<String> {
    let mut found = Vec::new();
    for (index, text) in raw.into_iter().flatten().enumerate() {
        let scope = scope.index(index);
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') {
            scope
                .error("value", format!("invalid capability `{text}`"))
                .expected("a name such as `NET_BIND_SERVICE`")
                .report();
        } else if adds && REFUSED_CAPABILITIES.contains(&name.as_str()) {
            scope
                .error("refused-value", format!("arenad gives no container `{name}`"))
                .help("with it a process can leave its container, and an agent steers what runs there")
                .report();
        }
        found.push(name);
    }
    found
}

/// Reads the options of `security_opt`.
pub(super) fn security_options(scope: Scope<'_>, raw: Option<&Vec<String>>) -> Vec<String> {
    let mut found = Vec::new();
    for (index, text) in raw.into_iter().flatten().enumerate() {
        let scope = scope.index(index);
        let (name, value) = text.split_once([':', '=']).unwrap_or((text, "true"));
        match (name, value) {
            ("no-new-privileges", "true") => continue,
            ("no-new-privileges", _)
            | ("seccomp" | "apparmor" | "systempaths", "unconfined")
            | ("label", "disable") => {
                scope
                    .error("refused-value", format!("arenad does not loosen a container with `{text}`"))
                    .help("an agent steers what runs in it")
                    .report();
            }
            ("apparmor" | "label", _) => {}
            _ => {
                scope
                    .error("value", format!("unsupported security option `{text}`"))
                    .expected("`no-new-privileges:true`, `apparmor=<profile>` or `label=<option>`")
                    .report();
            }
        }
        found.push(text.clone());
    }
    found
}

/// Reads the kernel parameters of `sysctls`.
pub(super) fn sysctls(scope: Scope<'_>, raw: Option<&KeyValues>) -> BTreeMap<String, String> {
    let found = pairs(scope, raw, MissingValue::Empty);
    for name in found.keys() {
        let of_the_container = ["net.", "kernel.msg", "kernel.sem", "kernel.shm", "fs.mqueue."];
        if !of_the_container.iter().any(|prefix| name.starts_with(prefix)) {
            scope
                .key(name)
                .key_error("refused-value", format!("`{name}` belongs to the host, not to a container"))
                .expected("`net.*`, `kernel.msg*`, `kernel.sem`, `kernel.shm*` or `fs.mqueue.*`")
                .report();
        }
    }
    found
}

/// Reads the host entries of `extra_hosts`.
pub(super) fn extra_hosts(scope: Scope<'_>, raw: Option<&HostList>) -> Vec<(String, IpAddr)> {
    let lines: Vec<(Scope<'_>, &str, &str)> = match raw {
        None => Vec::new(),
        Some(HostList::Map(entries)) => {
            entries.iter().map(|(name, address)| (scope.key(name), name, address.as_str())).collect()
        }
        Some(HostList::List(lines)) => lines
            .iter()
            .enumerate()
            .map(|(index, line)| {
                let (name, address) = line.split_once(['=', ':']).unwrap_or((line, ""));
                (scope.index(index), name, address)
            })
            .collect(),
    };
    let mut found = Vec::new();
    for (scope, name, address) in lines {
        let bare = address.trim_start_matches('[').trim_end_matches(']');
        if address == "host-gateway" {
            scope
                .error("refused-value", "arenad gives containers no way to the host")
                .help("remove it; services of a site reach each other by name")
                .report();
        } else if name.is_empty() || name.chars().any(char::is_whitespace) {
            scope
                .error("value", "a host name is missing")
                .expected("`name:address`, such as `cdn.test:127.0.0.1`")
                .report();
        } else if let Ok(address) = bare.parse() {
            found.push((name.to_owned(), address));
        } else {
            scope
                .error(
                    "value",
                    if address.is_empty() {
                        "the address is missing".to_owned()
                    } else {
                        format!("invalid IP address `{address}`")
                    },
                )
                .expected("`name:address`, such as `cdn.test:127.0.0.1`")
                .report();
        }
    }
    found
}
