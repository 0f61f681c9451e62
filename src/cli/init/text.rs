//! Renders the two files as text.

use std::fmt::Write as _;

use serde_yaml::{Mapping, Value};

use super::databases::DatabaseAccount;
use super::files::CopiedPaths;
use super::propose::{Proposal, Proposed, Role};
use super::services::ComposeSource;
use crate::cli::failure::CommandFailure;

/// The mount path of the helpers in containers.
const HELPERS: &str = "/arenad";

/// Returns the Compose file: the given one, without the keys that arenad refuses, and with the helpers before the
/// command of each service.
pub(super) fn compose(
    name: &str,
    source: &ComposeSource,
    proposal: &Proposal,
    copied: &CopiedPaths,
) -> Result<String, CommandFailure> {
    let mut root = source.root.clone();
    let refused = refused();
    let mut left_out = Vec::new();
    for key in ["version", "name", "networks", "configs", "secrets"] {
        // `shift_remove` keeps the order of the remaining keys.
        root.shift_remove(key);
    }
    let mut services = root.get_mut("services").and_then(Value::as_mapping_mut);
    for part in &proposal.services {
        let service = services_entry(&mut services, &part.service.name);
        let Some(service) = service else { continue };
        let keys: Vec<String> = service.keys().filter_map(|key| key.as_str().map(str::to_owned)).collect();
        for key in keys {
            if let Some(reason) = refused.get(&key).and_then(serde_json::Value::as_str) {
                service.shift_remove(key.as_str());
                left_out.push(format!("# Left out: `{key}` of {}: {reason}.\n", part.service.name));
            }
        }
        if service.shift_remove("restart").is_some() {
            left_out.push(format!(
                "# Left out: `restart` of {}: arenad replaces containers that fail.\n",
                part.service.name
            ));
        }
        copied.apply(service);
        if let Some(check) = part.role.health_check() {
            let words = check.iter().map(|word| Value::from(*word)).collect();
            let mut health = Mapping::new();
            health.insert("test".into(), Value::Sequence(words));
            health.insert("interval".into(), Value::from("2s"));
            if !service.contains_key("healthcheck") {
                service.insert("healthcheck".into(), Value::Mapping(health));
            }
        }
        await_databases(service, proposal);
        if proposal.is_supervised()
            && let Some((entrypoint, command)) = &part.runs
        {
            supervise(name, service, entrypoint, command);
        }
    }
    let yaml = serde_yaml::to_string(&root)?;
    let origin = match &source.file {
        Some(file) => format!("from {}", file.file_name().unwrap_or_default().to_string_lossy()),
        None => "to be completed".to_owned(),
    };
    let mut text = format!("# The services of the environment {name}, {origin}. A plain Compose file.\n");
    if proposal.is_supervised() {
        let _ = writeln!(
            text,
            "# {HELPERS}/supervise runs each server so that arenad can stop and start it: see {name}/helpers."
        );
    }
    text.extend(left_out);
    Ok(text + "\n" + &yaml)
}

/// Makes a service wait until its database answers, if the file only orders the start of the two.
fn await_databases(service: &mut Mapping, proposal: &Proposal) {
    let Some(needed) = service.get("depends_on").and_then(Value::as_sequence).cloned() else { return };
    let mut conditions = Mapping::new();
    for name in needed {
        let part = name.as_str().and_then(|name| proposal.services.iter().find(|part| part.service.name == name));
        let has_check = part.is_some_and(|part| part.role.health_check().is_some());
        let condition = if has_check { "service_healthy" } else { "service_started" };
        conditions.insert(name, Value::Mapping(Mapping::from_iter([("condition".into(), Value::from(condition))])));
    }
    service.insert("depends_on".into(), Value::Mapping(conditions));
}

fn services_entry<'a>(services: &'a mut Option<&mut Mapping>, name: &str) -> Option<&'a mut Mapping> {
    services.as_mut()?.get_mut(name)?.as_mapping_mut()
}

/// Returns the keys of a service that arenad refuses, with the reasons.
fn refused() -> serde_json::Map<String, serde_json::Value> {
    let schema = serde_json::to_value(arenad_definition::compose_schema()).unwrap_or_default();
    let mut found = serde_json::Map::new();
    collect(&schema, &mut found);
    found
}

fn collect(schema: &serde_json::Value, found: &mut serde_json::Map<String, serde_json::Value>) {
    match schema {
        serde_json::Value::Object(object) => {
            if let (Some(serde_json::Value::Object(keys)), true) = (object.get("x-refused-keys"), is_service(object)) {
                found.extend(keys.clone());
            }
            object.values().for_each(|inner| collect(inner, found));
        }
        serde_json::Value::Array(all) => all.iter().for_each(|inner| collect(inner, found)),
        _ => {}
    }
}

fn is_service(object: &serde_json::Map<String, serde_json::Value>) -> bool {
    object.get("properties").and_then(|properties| properties.get("image")).is_some()
}

/// Puts `supervise` before the command of a service, and mounts the helpers.
fn supervise(name: &str, service: &mut Mapping, entrypoint: &[String], command: &[String]) {
    let supervised: Vec<Value> =
        [format!("{HELPERS}/supervise")].into_iter().chain(entrypoint.iter().cloned()).map(Value::String).collect();
    service.insert("entrypoint".into(), Value::Sequence(supervised));
    let words = command.iter().cloned().map(Value::String).collect();
    service.insert("command".into(), Value::Sequence(words));
    let mount = Value::String(format!("./{name}/helpers:{HELPERS}:ro"));
    match service.get_mut("volumes").and_then(Value::as_sequence_mut) {
        Some(volumes) => volumes.push(mount),
        None => drop(service.insert("volumes".into(), Value::Sequence(vec![mount]))),
    }
}

/// Returns a scalar in the syntax of YAML's flow style.
fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./@".contains(c))
        && !text.starts_with(['-', '@', '.'])
        && text.parse::<f64>().is_err()
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Returns the text of the environment file.
pub(super) fn environment(name: &str, proposal: &Proposal) -> String {
    let mut out = format!(
        "# Settings that compose/{name}.yaml cannot express: which service is the site, when it is ready, where it keeps state.\n\
         # Proposed by `arenad init`: review and correct, then run `arenad validate {name}` and `arenad up {name}`.\n\
         # `arenad schema environment` describes every key; the next line enables it in editors.\n\
         # yaml-language-server: $schema=../schemas/environment.json\n\
         name: {name}\n\
         description: {name}\n\
         sites:\n  {name}:\n"
    );
    let mut line = |text: String| {
        out.push_str("    ");
        out.push_str(&text);
        out.push('\n');
    };
    let entry = proposal.entry();
    let services: Vec<&str> = proposal.services.iter().map(|part| part.service.name.as_str()).collect();
    line(format!("title: {name}"));
    line(format!("services: [{}]", services.join(", ")));
    line(
        "# The service to which the gateway sends requests, and the public port of the site. `variable` is the name that"
            .to_owned(),
    );
    line("# benchmarks' tasks use for its address, such as SHOPPING or REDDIT; `arenad env` prints it.".to_owned());
    line(format!("entry: {{ service: {}, port: {} }}", entry.service.name, proposal.entry_port));
    line(format!("public: {{ port: {}, variable: {} }}", proposal.public_port, variable(name)));
    line("# accounts:".to_owned());
    line("#   member:".to_owned());
    line("#     username: alice".to_owned());
    line("#     password: secret".to_owned());
    line("#     login: { form: { page: /login, fields: { username: \"{username}\", password: \"{password}\" } }, proof: { path: /, contains: alice } }".to_owned());
    databases(proposal, &mut line);
    ready(proposal, &mut line);
    stores(proposal, &mut line);
    line("baseline:".to_owned());
    line(
        "  # configure: [ { name: fill it, exec: { command: [/srv/app/seed] } } ]      done once, before the snapshot"
            .to_owned(),
    );
    line("  warm: [/]".to_owned());
    line("# A standby makes a reset take milliseconds and keeps a second set of containers in memory.".to_owned());
    line("# reset: { standby: 1 }".to_owned());
    out
}

/// Returns a name in the spelling of the benchmarks.
fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

fn databases(proposal: &Proposal, line: &mut impl FnMut(String)) {
    let all: Vec<&Proposed> = proposal.services.iter().filter(|part| part.database().is_some()).collect();
    if all.is_empty() {
        return;
    }
    line(
        "# Accounts with which stores, probes and `arenad locate` read the databases; they must be able to read everything."
            .to_owned(),
    );
    line("databases:".to_owned());
    for part in all {
        let (name, role) = (&part.service.name, part.role.kind());
        let DatabaseAccount { user, password, database } = &part.account;
        let or = |text: &str, otherwise: &str| quoted(if text.is_empty() { otherwise } else { text });
        let port = part.role.port().unwrap_or_default();
        line(format!(
            "  {name}: {{ engine: {role}, service: {name}, port: {port}, user: {}, password: {}, database: {} }}",
            or(user, role),
            quoted(password),
            or(database, role)
        ));
    }
}

fn ready(proposal: &Proposal, line: &mut impl FnMut(String)) {
    line(
        "# The site is ready when all of these pass. A good probe looks for content that only a working site has."
            .to_owned(),
    );
    line("ready:".to_owned());
    line("  timeout: 90s".to_owned());
    line("  probes:".to_owned());
    match proposal.page() {
        Some(page) => {
            let status = if page.status == 200 { String::new() } else { format!(", status: {}", page.status) };
            let title = page.title.as_ref().map(|title| format!(", contains: {}", quoted(title))).unwrap_or_default();
            line(format!("    - http: {{ path: /{status}{title} }}"));
        }
        None => {
            line("    - http: { path: / }          # with `contains: …`, and `status:` if it is not 200".to_owned())
        }
    }
    for part in &proposal.services {
        let name = &part.service.name;
        match part.role {
            Role::Postgres | Role::Mariadb | Role::Mysql => {
                line(format!("    - sql: {{ database: {name}, query: select 1, equals: \"1\" }}"));
            }
            Role::Redis => line(format!("    - tcp: {{ service: {name}, port: 6379 }}")),
            Role::Application => {}
        }
    }
}

fn stores(proposal: &Proposal, line: &mut impl FnMut(String)) {
    let is_any = proposal.services.iter().any(|part| !part.stores.is_empty());
    if !is_any {
        line("# stores:                         paths at which the site keeps state; without them every reset creates new containers".to_owned());
        line("#   files: { kind: directory, path: /data }".to_owned());
        return;
    }
    line(
        "# Paths at which the site keeps state: cloned for each reset, and compared with the baseline afterwards."
            .to_owned(),
    );
    line("stores:".to_owned());
    for part in &proposal.services {
        for store in &part.stores {
            let database = part.database().filter(|_| store.kind == part.role.kind());
            let database = database.map(|name| format!(", database: {name}")).unwrap_or_default();
            line(format!(
                "  {}: {{ kind: {}, service: {}, path: {}{database} }}      # {}",
                quoted(&store.name),
                store.kind,
                part.service.name,
                quoted(&store.path),
                store.reason
            ));
        }
    }
    if !proposal.is_supervised() {
        line("# writers:                        commands that stop and start all processes that write there, so that a reset needs no new containers".to_owned());
        line("#   stop: [ { command: [/srv/stop] } ]".to_owned());
        line("#   start: [ { command: [/srv/start] } ]".to_owned());
        return;
    }
    let order = proposal.in_stop_order();
    line(
        "# Commands that stop and start all processes that write there, so that a reset exchanges files under running containers."
            .to_owned(),
    );
    line("writers:".to_owned());
    line("  stop:".to_owned());
    for part in &order {
        line(format!(
            "    - {{ service: {}, command: [{HELPERS}/stop, {}] }}",
            part.service.name,
            part.role.stop_signal()
        ));
    }
    line("  start:".to_owned());
    for part in order.iter().rev() {
        let port = part.port().unwrap_or(proposal.entry_port);
        let check = match part.role {
            Role::Postgres => "pg_isready, -q".to_owned(),
            _ => format!("-p, \"{port}\""),
        };
        line(format!("    - {{ service: {}, command: [{HELPERS}/start, {check}] }}", part.service.name));
    }
    line("# Paths outside of the stores that may differ. If a reset creates new containers, it names the path that is missing here.".to_owned());
    line("scratch:".to_owned());
    for part in &proposal.services {
        for (path, is_emptied, reason) in &part.scratch {
            let rewind = if *is_emptied { ", rewind: empty" } else { "" };
            line(format!(
                "  - {{ service: {}, path: {}{rewind}, reason: {} }}",
                part.service.name,
                quoted(path),
                quoted(reason)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_quoted_where_yaml_would_read_something_else() {
        for plain in ["web", "/srv/data", "a-b.c"] {
            assert_eq!(quoted(plain), plain);
        }
        for (text, expected) in
            [("", "\"\""), ("8000", "\"8000\""), ("no", "\"no\""), ("a: b", "\"a: b\""), ("${X:-y}", "\"${X:-y}\"")]
        {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn refused_keys_are_known_with_their_reasons() {
        let refused = refused();
        assert!(refused.contains_key("container_name") && refused.contains_key("networks"));
        assert!(!refused.contains_key("image"));
    }
}
