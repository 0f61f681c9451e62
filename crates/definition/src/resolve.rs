//! The resolved definition: in the forms of the two files, with every default filled in.
//!
//! Each function takes its type apart without `..`, so that a new field does not compile until it is printed or its
//! omission is explained.

use std::net::IpAddr;
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::scope::Scope;
use super::values::period_text;
use arenad_model::archive::{DataSource, ImageSource, Placement, SourceArchive, Unpacking};
use arenad_model::clock::{Clock, ClockMode, ClockStart};
use arenad_model::coverage::{Scratch, ScratchPlace};
use arenad_model::health::{HealthProbes, HealthSpec};
use arenad_model::helper::Helper;
use arenad_model::hex::hex;
use arenad_model::ids::ServiceName;
use arenad_model::login::{FormLogin, Login, LoginRecipe, Template, TokenLogin};
use arenad_model::probe::{HttpProbe, JsonExpectation, Probe, ProbeKind};
use arenad_model::schedule::{CronSchedule, Schedule};
use arenad_model::site::{
    Account, BaselineSpec, BenchmarkFamily, BuildSpec, ConfigureAction, ConfigureStep, Database, DatabaseAccess,
    DatabaseEngine, Dependency, DependencyCondition, EntryPort, Environment, ExecStep, HealthCheck, HttpStep, Limits,
    MountSpec, PublicAddress, Readiness, RecordedRequests, ResetSpec, ResetStrategyName, ServiceSpec, Site, SlotSpec,
    Unless,
};
use arenad_model::standby_schedule::StandbyTime;
use arenad_model::store::{Control, RedisAccess, STORE_TIMEOUT, Store, StoreKind, Volatile, VolatilePart, Writers};
use arenad_model::verify::VerifyPolicy;

/// Returns the SHA-256 (hex) over everything that the content of a site's baseline depends on.
///
/// Paths are hashed relative to the root folder, so that two checkouts have the same hash.
pub(crate) fn baseline_inputs(site: &Site, root: &Path) -> String {
    let services = site.services.iter().map(|spec| {
        let mut service = service(spec, root, "");
        service.remove("labels");
        (spec.name.to_string(), Json::Object(service))
    });
    let databases = site.databases.iter().map(|(name, raw)| (name.clone(), database(raw, raw.password.expose())));
    let mut inputs = json!({
        "services": services.collect::<Map<_, _>>(),
        "entry": entry(&site.entry),
        "databases": databases.collect::<Map<_, _>>(),
        "ready": readiness(&site.readiness),
        "baseline": baseline(&site.baseline),
    });
    // The key is added only where it is set, so that the hashes of sites without it stay unchanged.
    if !site.egress.is_empty() {
        inputs["egress"] = names(&site.egress);
    }
    // With the start `snapshot`, the clock is the host's while the baseline is made.
    if let Some(found) = site.clock.as_ref().filter(|clock| clock.start != ClockStart::Snapshot) {
        inputs["clock"] = clock(found);
    }
    let mounts = site.state_mounts();
    if !mounts.is_empty() {
        let mounts = mounts.iter().map(|(service, folder)| json!([service.as_str(), folder]));
        inputs["state"] = mounts.collect();
    }
    inputs.sort_all_objects();
    let digest = Sha256::digest(inputs.to_string().as_bytes());
    hex(&digest)
}

/// Returns both files in their own forms. Passwords appear as the environment file writes them.
pub(crate) fn resolved(environment: &Environment, compose_path: &Path, scope: Scope<'_>) -> Json {
    let Environment { name, description, root, host, listen, benchmark, reset_port, egress, sites, images, data } =
        environment;
    let sites_scope = scope.key("sites");
    let site_entries = sites.iter().map(|site| (site.name.to_string(), self::site(site)));
    let up = "../".repeat(compose_path.parent().map_or(0, |folder| folder.components().count()));
    let mut services = Map::new();
    let mut volumes = Map::new();
    for (site, spec) in sites.iter().flat_map(|site| site.services.iter().map(move |spec| (site, spec))) {
        let mut service = service(spec, root, &up);
        if spec.name == site.entry.service {
            let published = format!("{}:{}:{}", bracketed(*listen), site.public.port, site.entry.port);
            service.insert("ports".to_owned(), json!([published]));
        }
        services.insert(spec.name.to_string(), Json::Object(service));
        for mount in &spec.mounts {
            if let MountSpec::Volume { name, .. } = mount {
                volumes.insert(name.clone(), Json::Null);
            }
        }
    }
    let mut compose = Map::from_iter([("services".to_owned(), Json::Object(services))]);
    if !volumes.is_empty() {
        compose.insert("volumes".to_owned(), Json::Object(volumes));
    }
    let compose_file = compose_path.strip_prefix("compose").unwrap_or(compose_path);
    let sources = SourceSections { root, up: &up };
    let mut resolved = json!({
        "environment": filled(json!({
            "name": name.as_str(),
            "description": description,
            "compose": compose_file.to_string_lossy(),
            "host": host,
            "listen": listen.to_string(),
            "benchmark": match benchmark {
                BenchmarkFamily::WebArena => "webarena",
                BenchmarkFamily::VisualWebArena => "visualwebarena",
            },
            "reset_port": reset_port,
            "egress": egress.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "sites": site_entries.collect::<Map<_, _>>(),
            "images": images.iter().map(|image| sources.image(image)).collect::<Map<_, _>>(),
            "data": data.iter().map(|data| sources.data(data)).collect::<Map<_, _>>(),
        })),
        "compose": compose,
    });
    escape_dollars(&mut resolved);
    // The value is copied as the file writes it, because only a variable can name a folder outside the root.
    if let Some(scalar) = scope.has("data_folder").then(|| scope.key("data_folder").scalar()).flatten() {
        resolved["environment"]["data_folder"] = Json::from(scalar.written.as_deref().unwrap_or(&scalar.text));
    }
    for site in sites {
        let name = site.name.as_str();
        let accounts = site.accounts.iter().map(|account| ("accounts", &account.name, &account.password));
        let servers = site.databases.iter().filter(|(_, database)| database.engine != DatabaseEngine::Sqlite);
        let databases = servers.map(|(name, database)| ("databases", name, &database.password));
        for (section, key, password) in accounts.chain(databases) {
            let scalar = sites_scope.key(name).key(section).key(key).key("password").scalar();
            let written = scalar.and_then(|scalar| scalar.written.as_deref()).unwrap_or(password.expose());
            resolved["environment"]["sites"][name][section][key]["password"] = Json::from(written);
        }
    }
    resolved
}

/// The entries of the sections `images` and `data`.
struct SourceSections<'a> {
    root: &'a Path,
    /// Relative path from the Compose file's folder to the root folder.
    up: &'a str,
}

impl SourceSections<'_> {
    fn image(&self, image: &ImageSource) -> (String, Json) {
        let ImageSource { reference, archive, loaded_bytes } = image;
        let mut entry = archive.as_ref().map_or(json!({}), |archive| Self::archive("archive", archive));
        entry["loaded_size"] = json!(loaded_bytes);
        (reference.clone(), filled(entry))
    }

    fn data(&self, data: &DataSource) -> (String, Json) {
        let DataSource { name, archive, placement } = data;
        let mut entry = Self::archive("file", archive);
        match placement {
            Placement::Folder(folder) => entry["target"] = json!(self.folder(folder)),
            Placement::Unpacked(parts) => {
                let part = |Unpacking { from, to }: &Unpacking| json!({ "from": from, "to": self.folder(to) });
                entry["unpack"] = parts.iter().map(part).collect();
            }
        }
        (name.clone(), filled(entry))
    }

    fn archive(key: &str, archive: &SourceArchive) -> Json {
        let SourceArchive { file, size_bytes, sha256, mirrors } = archive;
        json!({ key: file, "size": size_bytes, "sha256": sha256, "mirrors": mirrors })
    }

    fn folder(&self, path: &Path) -> String {
        format!("{}{}", self.up, path.strip_prefix(self.root).unwrap_or(path).display())
    }
}

/// Escapes dollar signs as a file would, so that the output can be loaded again.
fn escape_dollars(value: &mut Json) {
    match value {
        Json::String(text) if text.contains('$') => *text = text.replace('$', "$$"),
        Json::Array(items) => items.iter_mut().for_each(escape_dollars),
        Json::Object(entries) => entries.values_mut().for_each(escape_dollars),
        _ => {}
    }
}

fn bracketed(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// Returns the section `clock` of a site.
fn clock(clock: &Clock) -> Json {
    let Clock { start, mode, services } = clock;
    let start = match start {
        ClockStart::Snapshot => "snapshot".to_owned(),
        ClockStart::At(time) => time.to_string(),
    };
    let mode = match mode {
        ClockMode::Running => "running",
        ClockMode::Frozen => "frozen",
    };
    json!({ "start": start, "mode": mode, "services": names(services) })
}

fn site(site: &Site) -> Json {
    let Site {
        // The name is the key of the entry.
        name: _,
        title,
        services,
        entry,
        public,
        exports,
        egress,
        accounts,
        databases,
        stores,
        writers,
        scratch,
        helpers,
        readiness,
        baseline,
        reset,
        slots,
        clock,
        health: HealthSpec { shallow, deep },
        // The hash is derived from other settings.
        baseline_inputs: _,
    } = site;
    let databases = databases.iter().map(|(name, raw)| (name.clone(), database(raw, "")));
    let mut found = json!({
        "title": title,
        "services": services.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(),
        "entry": self::entry(entry),
        "public": self::public(public),
        "accounts": accounts.iter().map(account).collect::<Map<_, _>>(),
        "databases": databases.collect::<Map<_, _>>(),
        "ready": self::readiness(readiness),
        "baseline": self::baseline(baseline),
        "reset": self::reset(reset),
        "health": filled(json!({
            "shallow": health_probes(shallow),
            "deep": deep.as_ref().map(health_probes),
        })),
    });
    if !stores.is_empty() {
        found["stores"] = stores.iter().map(|each| (each.name.clone(), store(each))).collect::<Map<_, _>>().into();
    }
    if let Some(Writers { stop, start, control }) = writers {
        let steps = |steps: &[ExecStep]| steps.iter().map(exec_step).collect::<Vec<_>>();
        found["writers"] = json!({ "stop": steps(stop), "start": steps(start) });
        if let Some(Control { service, socket }) = control {
            found["writers"]["control"] = json!({ "service": service.as_str(), "socket": socket });
        }
    }
    if !scratch.is_empty() {
        found["scratch"] = scratch.iter().map(self::scratch).collect();
    }
    if *slots != SlotSpec::ONE {
        found["slots"] = self::slots(slots);
    }
    if let Some(known) = clock {
        found["clock"] = self::clock(known);
    }
    if !helpers.is_empty() {
        found["helpers"] = helpers.iter().map(|known| (known.name.clone(), helper(known))).collect();
    }
    if !exports.is_empty() {
        found["exports"] = Json::Object(texts(exports));
    }
    if !egress.is_empty() {
        found["egress"] = names(egress);
    }
    found
}

fn entry(entry: &EntryPort) -> Json {
    let EntryPort { service, port } = entry;
    json!({ "service": service.as_str(), "port": port })
}

fn account(account: &Account) -> (String, Json) {
    // The caller of `site` adds the password as the file writes it.
    let Account { name, username, password: _, login } = account;
    (name.clone(), filled(json!({ "username": username, "login": login.as_ref().map(self::login) })))
}

fn reset(reset: &ResetSpec) -> Json {
    let ResetSpec { strategy, standby, may_pause, schedule, verify, hold_requests, hold_timeout } = reset;
    let strategy = match strategy {
        ResetStrategyName::Recreate => "recreate",
        ResetStrategyName::Keep => "keep",
    };
    let mut found = json!({
        "strategy": strategy,
        "hold_requests": hold_requests,
        "hold_timeout": period_text(*hold_timeout),
    });
    if *standby > 0 {
        found["standby"] = json!(standby);
    }
    if !may_pause {
        found["pause"] = false.into();
    }
    if !schedule.is_empty() {
        found["schedule"] = schedule.iter().map(standby_time).collect();
    }
    if *verify != VerifyPolicy::default() {
        let VerifyPolicy { is_full, every } = verify;
        found["verify"] = if *is_full { "full" } else { "moved" }.into();
        found["verify_every"] = every.get().into();
    }
    found
}

fn slots(slots: &SlotSpec) -> Json {
    let SlotSpec { min, max, memory } = slots;
    filled(json!({ "min": min, "max": max, "memory": memory }))
}

fn standby_time(time: &StandbyTime) -> Json {
    let StandbyTime { from, count } = time;
    json!({ "cron": from.expression(), "time_zone": from.time_zone(), "standby": count })
}

fn scratch(scratch: &Scratch) -> Json {
    let Scratch { service, place, reason } = scratch;
    let (path, rewind) = match place {
        ScratchPlace::Differs(pattern) => (pattern, None),
        ScratchPlace::Emptied(folder) => (folder, Some("empty")),
    };
    filled(json!({ "service": service.as_str(), "path": path, "rewind": rewind, "reason": reason }))
}

fn names(services: &[ServiceName]) -> Json {
    services.iter().map(ServiceName::as_str).collect()
}

fn public(public: &PublicAddress) -> Json {
    // The host name is the environment's.
    let PublicAddress { host: _, port, path, variable, refuses_writes, reads, recorded, aliases } = public;
    let mut found = filled(json!({ "port": port, "path": path, "variable": variable }));
    if *refuses_writes {
        found["writes"] = "refuse".into();
    }
    if !reads.is_empty() {
        found["reads"] = json!(reads);
    }
    if *recorded != RecordedRequests::default() {
        found["record"] = recorded.name().into();
    }
    if !aliases.is_empty() {
        found["aliases"] = aliases.iter().map(ToString::to_string).collect();
    }
    found
}

fn store(store: &Store) -> Json {
    // The name is the key of the entry.
    let Store { name: _, service, path, kind, volatile, timeout, limit_bytes } = store;
    let (databases, access) = match kind {
        StoreKind::Postgres { databases } | StoreKind::Mysql { databases } => (Some(databases), None),
        StoreKind::Redis { access } => (None, Some(access)),
        StoreKind::Sqlite | StoreKind::Directory => (None, None),
    };
    let (port, socket, client) = match access {
        None => (None, None, None),
        Some(RedisAccess::Tcp { port }) => (Some(port), None, None),
        Some(RedisAccess::Socket { path }) => (None, Some(path), None),
        Some(RedisAccess::Client { command }) => (None, None, Some(command)),
    };
    let volatile = volatile.iter().map(|Volatile { part, reason }| {
        let (key, text) = match part {
            VolatilePart::Table(table) => ("table", table.clone()),
            VolatilePart::Column { table, column } => ("column", format!("{table}.{column}")),
            VolatilePart::Sequence(sequence) => ("sequence", sequence.clone()),
            VolatilePart::File(pattern) => ("file", pattern.clone()),
            VolatilePart::Key(pattern) => ("key", pattern.clone()),
        };
        json!({ key: text, "reason": reason })
    });
    filled(json!({
        "kind": kind.name(),
        "service": service.as_str(),
        "path": path,
        "database": databases,
        "port": port,
        "socket": socket,
        "client": client,
        "timeout": (*timeout != STORE_TIMEOUT).then(|| period_text(*timeout)),
        "limit": limit_bytes,
        "volatile": volatile.collect::<Vec<_>>(),
    }))
}

fn health_probes(health: &HealthProbes) -> Json {
    let HealthProbes { schedule, timeout, failures, probes } = health;
    let (every, cron) = match schedule {
        Schedule::Every(period) => (Some(period_text(*period)), None),
        Schedule::Cron(cron) => (None, Some(cron)),
    };
    filled(json!({
        "every": every,
        "cron": cron.map(CronSchedule::expression),
        "time_zone": cron.map(CronSchedule::time_zone),
        "timeout": period_text(*timeout),
        "failures": failures,
        "probes": probes.iter().map(probe).collect::<Vec<_>>(),
    }))
}

fn login(login: &Login) -> Json {
    let Login { recipe, proof, timeout } = login;
    let templates = |pairs: &[(String, Template)]| -> Map<String, Json> {
        pairs.iter().map(|(name, text)| (name.clone(), Json::from(text.as_str()))).collect()
    };
    let body = match recipe {
        LoginRecipe::Form(FormLogin { page, form, fields, action }) => {
            filled(json!({ "page": page, "form": form, "fields": templates(fields), "action": action }))
        }
        LoginRecipe::Header(headers) => Json::Object(templates(headers)),
        LoginRecipe::Token(TokenLogin { path, json, pointer, headers }) => json!({
            "path": path,
            "json": serde_json::from_str::<Json>(json).unwrap_or_default(),
            "pointer": pointer,
            "header": templates(headers),
        }),
    };
    json!({ recipe.name(): body, "proof": http_probe(proof), "timeout": period_text(*timeout) })
}

/// Removes the keys with null or empty values from a mapping.
fn filled(mut value: Json) -> Json {
    if let Json::Object(entries) = &mut value {
        entries.retain(|_, value| match value {
            Json::Null => false,
            Json::Array(items) => !items.is_empty(),
            Json::Object(entries) => !entries.is_empty(),
            _ => true,
        });
    }
    value
}

/// Returns the entry of a database with this password, which is either the database's own or as the file writes it.
fn database(database: &Database, password: &str) -> Json {
    let Database { engine, service, port, user, password: _, database, access } = database;
    let engine = match engine {
        DatabaseEngine::Mysql => "mysql",
        DatabaseEngine::Postgres => "postgres",
        DatabaseEngine::Sqlite => {
            return json!({ "engine": "sqlite", "service": service.as_str(), "path": database });
        }
    };
    let mut found = json!({
        "engine": engine,
        "service": service.as_str(),
        "port": port,
        "user": user,
        "password": password,
        "database": database,
    });
    match access {
        DatabaseAccess::Tcp => {}
        DatabaseAccess::Client { program } => {
            found["through"] = Json::from("container");
            found["client"] = Json::from(program.as_str());
        }
    }
    found
}

fn helper(helper: &Helper) -> Json {
    // The name is the key of the entry, and the locator is parsed from the text.
    let Helper { name: _, parameters, locator: _, text, gives, otherwise } = helper;
    filled(json!({
        "parameters": parameters,
        "locator": text,
        "gives": gives.as_ref().map(Template::as_str),
        "otherwise": otherwise,
    }))
}

fn readiness(readiness: &Readiness) -> Json {
    let Readiness { timeout, interval, probes } = readiness;
    json!({
        "timeout": period_text(*timeout),
        "interval": period_text(*interval),
        "probes": probes.iter().map(probe).collect::<Vec<_>>(),
    })
}

fn probe(probe: &Probe) -> Json {
    let Probe { name, kind, timeout } = probe;
    let (key, body) = match kind {
        ProbeKind::Http(http) => ("http", http_probe(http)),
        ProbeKind::Tcp { service, port } => ("tcp", json!({ "service": service.as_str(), "port": port })),
        ProbeKind::Sql { database, query, equals } => {
            ("sql", json!({ "database": database, "query": query, "equals": equals }))
        }
        ProbeKind::Exec { service, command, contains } => {
            ("exec", json!({ "service": service.as_str(), "command": command, "contains": contains }))
        }
        ProbeKind::Log { service, pattern } => ("log", json!({ "service": service.as_str(), "pattern": pattern })),
        ProbeKind::DockerHealth { service } => ("docker_health", json!({ "service": service.as_str() })),
    };
    json!({ "name": name, "timeout": period_text(*timeout), key: filled(body) })
}

fn http_probe(http: &HttpProbe) -> Json {
    let HttpProbe { service, port, method, path, headers, status, redirect, contains, bytes_at_least, json } = http;
    let json = json.iter().map(|(pointer, expectation)| {
        let expectation = match expectation {
            JsonExpectation::AtLeast(number) => json!({ "at_least": number }),
            JsonExpectation::Between(lower, upper) => json!({ "between": [lower, upper] }),
            JsonExpectation::Equals(text) => {
                json!({ "equals": serde_json::from_str::<Json>(text).unwrap_or_default() })
            }
        };
        (pointer.clone(), expectation)
    });
    filled(json!({
        "service": service.as_str(),
        "port": port,
        "method": method,
        "path": path,
        "headers": texts(headers),
        "status": status,
        "redirect": redirect,
        "contains": contains,
        "bytes_at_least": bytes_at_least,
        "json": json.collect::<Map<_, _>>(),
    }))
}

fn texts(pairs: &[(String, String)]) -> Map<String, Json> {
    pairs.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect()
}

fn baseline(baseline: &BaselineSpec) -> Json {
    let BaselineSpec { configure, warm, quiesce } = baseline;
    json!({
        "configure": configure.iter().map(configure_step).collect::<Vec<_>>(),
        "warm": warm.iter().map(http_step).collect::<Vec<_>>(),
        "quiesce": quiesce.iter().map(exec_step).collect::<Vec<_>>(),
    })
}

fn configure_step(step: &ConfigureStep) -> Json {
    let ConfigureStep { name, action, retry_for, unless } = step;
    let (kind, body) = match action {
        ConfigureAction::Exec(step) => ("exec", exec_step(step)),
        ConfigureAction::Http(step) => ("http", http_step(step)),
        ConfigureAction::Sql { database, statement } => {
            ("sql", json!({ "database": database, "statement": statement }))
        }
    };
    let unless = unless
        .as_ref()
        .map(|Unless { probe, within }| json!({ "probe": self::probe(probe), "within": period_text(*within) }));
    filled(json!({ "name": name, "retry_for": period_text(*retry_for), "unless": unless, kind: body }))
}

fn exec_step(step: &ExecStep) -> Json {
    let ExecStep { service, command, user, timeout } = step;
    filled(json!({
        "service": service.as_str(),
        "command": command,
        "user": user,
        "timeout": period_text(*timeout),
    }))
}

fn http_step(step: &HttpStep) -> Json {
    let HttpStep { service, port, method, path, headers, body, status, timeout } = step;
    filled(json!({
        "service": service.as_str(),
        "port": port,
        "method": method,
        "path": path,
        "headers": texts(headers),
        "body": body,
        "status": status,
        "timeout": period_text(*timeout),
    }))
}

/// A service in Compose's own form, without its published port.
///
/// `up` is the relative path from the Compose file's folder to the root folder, because Compose resolves paths against
/// the former.
fn service(spec: &ServiceSpec, root: &Path, up: &str) -> Map<String, Json> {
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
