//! The resolved definition: in the forms of the two files, with every default filled in.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::scope::Scope;
use super::values::period_text;
use arenad_model::archive::{DataSource, ImageSource, Placement, SourceArchive};
use arenad_model::clock::{Clock, ClockMode, ClockStart};
use arenad_model::coverage::{Scratch, ScratchPlace};
use arenad_model::health::HealthProbes;
use arenad_model::helper::Helper;
use arenad_model::hex::hex;
use arenad_model::ids::ServiceName;
use arenad_model::login::{Login, LoginRecipe, Template};
use arenad_model::probe::{HttpProbe, JsonExpectation, Probe, ProbeKind};
use arenad_model::schedule::{CronSchedule, Schedule};
use arenad_model::site::{
    BaselineSpec, BenchmarkFamily, ConfigureAction, Database, DatabaseAccess, DatabaseEngine, DependencyCondition,
    Environment, ExecStep, HttpStep, MountSpec, PublicAddress, Readiness, ResetStrategyName, ServiceSpec, Site,
};
use arenad_model::standby_schedule::StandbyTime;
use arenad_model::store::{Control, RedisAccess, STORE_TIMEOUT, Store, StoreKind, VolatilePart};
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
        "entry": { "service": site.entry.service.as_str(), "port": site.entry.port },
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
    let sites_scope = scope.key("sites");
    let sites = environment.sites.iter().map(|site| (site.name.to_string(), self::site(site)));
    let up = "../".repeat(compose_path.parent().map_or(0, |folder| folder.components().count()));
    let mut services = Map::new();
    let mut volumes = Map::new();
    for (site, spec) in environment.sites.iter().flat_map(|site| site.services.iter().map(move |spec| (site, spec))) {
        let mut service = service(spec, &environment.root, &up);
        if spec.name == site.entry.service {
            let published = format!("{}:{}:{}", bracketed(environment), site.public.port, site.entry.port);
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
    let sources = SourceSections { environment, up: &up };
    let mut resolved = json!({
        "environment": filled(json!({
            "name": environment.name.as_str(),
            "description": environment.description,
            "compose": compose_file.to_string_lossy(),
            "host": environment.host,
            "listen": environment.listen.to_string(),
            "benchmark": match environment.benchmark {
                BenchmarkFamily::WebArena => "webarena",
                BenchmarkFamily::VisualWebArena => "visualwebarena",
            },
            "reset_port": environment.reset_port,
            "sites": sites.collect::<Map<_, _>>(),
            "images": sources.images(),
            "data": sources.data(),
        })),
        "compose": compose,
    });
    escape_dollars(&mut resolved);
    // The value is copied as the file writes it, because only a variable can name a folder outside the root.
    if let Some(scalar) = scope.has("data_folder").then(|| scope.key("data_folder").scalar()).flatten() {
        resolved["environment"]["data_folder"] = Json::from(scalar.written.as_deref().unwrap_or(&scalar.text));
    }
    for site in &environment.sites {
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

/// The sections `images` and `data`.
struct SourceSections<'a> {
    environment: &'a Environment,
    /// Relative path from the Compose file's folder to the root folder.
    up: &'a str,
}

impl SourceSections<'_> {
    fn images(&self) -> Map<String, Json> {
        let entry = |image: &ImageSource| {
            let mut entry =
                image.archive.as_ref().map(|archive| Self::archive("archive", archive)).unwrap_or(json!({}));
            entry["loaded_size"] = json!(image.loaded_bytes);
            (image.reference.clone(), filled(entry))
        };
        self.environment.images.iter().map(entry).collect()
    }

    fn data(&self) -> Map<String, Json> {
        let entry = |data: &DataSource| {
            let mut entry = Self::archive("file", &data.archive);
            match &data.placement {
                Placement::Folder(folder) => entry["target"] = json!(self.folder(folder)),
                Placement::Unpacked(parts) => {
                    let parts = parts.iter().map(|part| json!({ "from": part.from, "to": self.folder(&part.to) }));
                    entry["unpack"] = parts.collect();
                }
            }
            (data.name.clone(), filled(entry))
        };
        self.environment.data.iter().map(entry).collect()
    }

    fn archive(key: &str, archive: &SourceArchive) -> Json {
        json!({ key: archive.file, "size": archive.size_bytes, "sha256": archive.sha256, "mirrors": archive.mirrors })
    }

    fn folder(&self, path: &Path) -> String {
        format!("{}{}", self.up, path.strip_prefix(&self.environment.root).unwrap_or(path).display())
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

fn bracketed(environment: &Environment) -> String {
    if environment.listen.is_ipv6() { format!("[{}]", environment.listen) } else { environment.listen.to_string() }
}

/// Returns the section `clock` of a site.
fn clock(clock: &Clock) -> Json {
    let start = match clock.start {
        ClockStart::Snapshot => "snapshot".to_owned(),
        ClockStart::At(time) => time.to_string(),
    };
    let mode = match clock.mode {
        ClockMode::Running => "running",
        ClockMode::Frozen => "frozen",
    };
    let services: Vec<&str> = clock.services.iter().map(ServiceName::as_str).collect();
    json!({ "start": start, "mode": mode, "services": services })
}

fn site(site: &Site) -> Json {
    let accounts = site.accounts.iter().map(|account| {
        let login = account.login.as_ref().map(login);
        (account.name.clone(), filled(json!({ "username": account.username, "login": login })))
    });
    let databases = site.databases.iter().map(|(name, raw)| (name.clone(), database(raw, "")));
    let strategy = match site.reset.strategy {
        ResetStrategyName::Recreate => "recreate",
        ResetStrategyName::Keep => "keep",
    };
    let mut found = json!({
        "title": site.title,
        "services": site.services.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(),
        "entry": { "service": site.entry.service.as_str(), "port": site.entry.port },
        "public": public(&site.public),
        "accounts": accounts.collect::<Map<_, _>>(),
        "databases": databases.collect::<Map<_, _>>(),
        "ready": readiness(&site.readiness),
        "baseline": baseline(&site.baseline),
        "reset": {
            "strategy": strategy,
            "hold_requests": site.reset.hold_requests,
            "hold_timeout": period_text(site.reset.hold_timeout),
        },
        "health": filled(json!({
            "shallow": health_probes(&site.health.shallow),
            "deep": site.health.deep.as_ref().map(health_probes),
        })),
    });
    if site.reset.standby > 0 {
        found["reset"]["standby"] = site.reset.standby.into();
    }
    if !site.reset.schedule.is_empty() {
        let entry = |entry: &StandbyTime| json!({ "cron": entry.from.expression(), "time_zone": entry.from.time_zone(), "standby": entry.count });
        found["reset"]["schedule"] = site.reset.schedule.iter().map(entry).collect();
    }
    if site.reset.verify != VerifyPolicy::default() {
        found["reset"]["verify"] = if site.reset.verify.is_full { "full" } else { "moved" }.into();
        found["reset"]["verify_every"] = site.reset.verify.every.get().into();
    }
    if !site.stores.is_empty() {
        found["stores"] = site.stores.iter().map(|each| (each.name.clone(), store(each))).collect::<Map<_, _>>().into();
    }
    if let Some(writers) = &site.writers {
        let steps = |steps: &[ExecStep]| steps.iter().map(exec_step).collect::<Vec<_>>();
        found["writers"] = json!({ "stop": steps(&writers.stop), "start": steps(&writers.start) });
        if let Some(Control { service, socket }) = &writers.control {
            found["writers"]["control"] = json!({ "service": service.as_str(), "socket": socket });
        }
    }
    if !site.scratch.is_empty() {
        found["scratch"] = site.scratch.iter().map(scratch).collect();
    }
    if let Some(known) = &site.clock {
        found["clock"] = clock(known);
    }
    if !site.helpers.is_empty() {
        found["helpers"] = site.helpers.iter().map(|known| (known.name.clone(), helper(known))).collect();
    }
    if !site.exports.is_empty() {
        found["exports"] = Json::Object(texts(&site.exports));
    }
    if !site.egress.is_empty() {
        found["egress"] = names(&site.egress);
    }
    found
}

fn scratch(scratch: &Scratch) -> Json {
    let (path, rewind) = match &scratch.place {
        ScratchPlace::Differs(pattern) => (pattern, None),
        ScratchPlace::Emptied(folder) => (folder, Some("empty")),
    };
    filled(json!({ "service": scratch.service.as_str(), "path": path, "rewind": rewind, "reason": scratch.reason }))
}

fn names(services: &[ServiceName]) -> Json {
    services.iter().map(ServiceName::as_str).collect()
}

fn public(public: &PublicAddress) -> Json {
    let mut found = filled(json!({ "port": public.port, "path": public.path, "variable": public.variable }));
    if public.refuses_writes {
        found["writes"] = "refuse".into();
    }
    if !public.reads.is_empty() {
        found["reads"] = json!(public.reads);
    }
    found
}

fn store(store: &Store) -> Json {
    let (databases, access) = match &store.kind {
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
    let volatile = store.volatile.iter().map(|volatile| {
        let (key, text) = match &volatile.part {
            VolatilePart::Table(table) => ("table", table.clone()),
            VolatilePart::Column { table, column } => ("column", format!("{table}.{column}")),
            VolatilePart::Sequence(sequence) => ("sequence", sequence.clone()),
            VolatilePart::File(pattern) => ("file", pattern.clone()),
            VolatilePart::Key(pattern) => ("key", pattern.clone()),
        };
        json!({ key: text, "reason": volatile.reason })
    });
    filled(json!({
        "kind": store.kind.name(),
        "service": store.service.as_str(),
        "path": store.path,
        "database": databases,
        "port": port,
        "socket": socket,
        "client": client,
        "timeout": (store.timeout != STORE_TIMEOUT).then(|| period_text(store.timeout)),
        "limit": store.limit_bytes,
        "volatile": volatile.collect::<Vec<_>>(),
    }))
}

fn health_probes(health: &HealthProbes) -> Json {
    let (every, cron) = match &health.schedule {
        Schedule::Every(period) => (Some(period_text(*period)), None),
        Schedule::Cron(cron) => (None, Some(cron)),
    };
    filled(json!({
        "every": every,
        "cron": cron.map(CronSchedule::expression),
        "time_zone": cron.map(CronSchedule::time_zone),
        "timeout": period_text(health.timeout),
        "failures": health.failures,
        "probes": health.probes.iter().map(probe).collect::<Vec<_>>(),
    }))
}

fn login(login: &Login) -> Json {
    let templates = |pairs: &[(String, Template)]| -> Map<String, Json> {
        pairs.iter().map(|(name, text)| (name.clone(), Json::from(text.as_str()))).collect()
    };
    let recipe = match &login.recipe {
        LoginRecipe::Form(form) => filled(json!({
            "page": form.page,
            "form": form.form,
            "fields": templates(&form.fields),
            "action": form.action,
        })),
        LoginRecipe::Header(headers) => Json::Object(templates(headers)),
        LoginRecipe::Token(token) => json!({
            "path": token.path,
            "json": serde_json::from_str::<Json>(&token.json).unwrap_or_default(),
            "pointer": token.pointer,
            "header": templates(&token.headers),
        }),
    };
    json!({
        login.recipe.name(): recipe,
        "proof": http_probe(&login.proof),
        "timeout": period_text(login.timeout),
    })
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

fn database(database: &Database, password: &str) -> Json {
    let engine = match database.engine {
        DatabaseEngine::Mysql => "mysql",
        DatabaseEngine::Postgres => "postgres",
        DatabaseEngine::Sqlite => {
            return json!({ "engine": "sqlite", "service": database.service.as_str(), "path": database.database });
        }
    };
    let mut found = json!({
        "engine": engine,
        "service": database.service.as_str(),
        "port": database.port,
        "user": database.user,
        "password": password,
        "database": database.database,
    });
    if let DatabaseAccess::Client { program } = &database.access {
        found["through"] = Json::from("container");
        found["client"] = Json::from(program.as_str());
    }
    found
}

fn helper(helper: &Helper) -> Json {
    filled(json!({
        "parameters": helper.parameters,
        "locator": helper.text,
        "gives": helper.gives.as_ref().map(Template::as_str),
        "otherwise": helper.otherwise,
    }))
}

fn readiness(readiness: &Readiness) -> Json {
    json!({
        "timeout": period_text(readiness.timeout),
        "interval": period_text(readiness.interval),
        "probes": readiness.probes.iter().map(probe).collect::<Vec<_>>(),
    })
}

fn probe(probe: &Probe) -> Json {
    let (kind, body) = match &probe.kind {
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
    json!({ "name": probe.name, "timeout": period_text(probe.timeout), kind: filled(body) })
}

fn http_probe(http: &HttpProbe) -> Json {
    let json = http.json.iter().map(|(pointer, expectation)| {
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
        "service": http.service.as_str(),
        "port": http.port,
        "method": http.method,
        "path": http.path,
        "headers": texts(&http.headers),
        "status": http.status,
        "redirect": http.redirect,
        "contains": http.contains,
        "bytes_at_least": http.bytes_at_least,
        "json": json.collect::<Map<_, _>>(),
    }))
}

fn texts(pairs: &[(String, String)]) -> Map<String, Json> {
    pairs.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect()
}

fn baseline(baseline: &BaselineSpec) -> Json {
    let configure = baseline.configure.iter().map(|step| {
        let (kind, body) = match &step.action {
            ConfigureAction::Exec(step) => ("exec", exec_step(step)),
            ConfigureAction::Http(step) => ("http", http_step(step)),
            ConfigureAction::Sql { database, statement } => {
                ("sql", json!({ "database": database, "statement": statement }))
            }
        };
        let unless = step
            .unless
            .as_ref()
            .map(|unless| json!({ "probe": probe(&unless.probe), "within": period_text(unless.within) }));
        filled(json!({ "name": step.name, "retry_for": period_text(step.retry_for), "unless": unless, kind: body }))
    });
    json!({
        "configure": configure.collect::<Vec<_>>(),
        "warm": baseline.warm.iter().map(http_step).collect::<Vec<_>>(),
        "quiesce": baseline.quiesce.iter().map(exec_step).collect::<Vec<_>>(),
    })
}

fn exec_step(step: &ExecStep) -> Json {
    filled(json!({
        "service": step.service.as_str(),
        "command": step.command,
        "user": step.user,
        "timeout": period_text(step.timeout),
    }))
}

fn http_step(step: &HttpStep) -> Json {
    filled(json!({
        "service": step.service.as_str(),
        "port": step.port,
        "method": step.method,
        "path": step.path,
        "headers": texts(&step.headers),
        "body": step.body,
        "status": step.status,
        "timeout": period_text(step.timeout),
    }))
}

/// A service in Compose's own form, without its published port.
///
/// `up` is the relative path from the Compose file's folder to the root folder, because Compose resolves paths against
/// the former.
fn service(spec: &ServiceSpec, root: &Path, up: &str) -> Map<String, Json> {
    let relative = |path: &Path| format!("{up}{}", path.strip_prefix(root).unwrap_or(path).display());
    let build = spec.build.as_ref().map(|build| {
        filled(json!({
            "context": relative(&build.context),
            "dockerfile": build.dockerfile.to_string_lossy(),
            "args": build.args,
            "target": build.target,
        }))
    });
    let mounts = spec.mounts.iter().map(|mount| match mount {
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
    let health_check = spec.health_check.as_ref().map(|check| {
        filled(json!({
            "test": check.test,
            "interval": check.interval.map(period_text),
            "timeout": check.timeout.map(period_text),
            "retries": check.retries,
            "start_period": check.start_period.map(period_text),
        }))
    });
    let depends_on = spec.depends_on.iter().map(|dependency| {
        let condition = match dependency.condition {
            DependencyCondition::Started => "service_started",
            DependencyCondition::Healthy => "service_healthy",
            DependencyCondition::CompletedSuccessfully => "service_completed_successfully",
        };
        (dependency.service.to_string(), json!({ "condition": condition }))
    });
    let limits = &spec.limits;
    let ulimits = limits.ulimits.iter().map(|(name, soft, hard)| (name.clone(), json!({ "soft": soft, "hard": hard })));
    let hosts = spec.extra_hosts.iter().map(|(name, address)| format!("{name}={address}"));
    let service = json!({
        "image": spec.image,
        "build": build,
        "environment": spec.environment,
        "labels": spec.labels,
        "user": spec.user,
        "working_dir": spec.working_dir,
        "hostname": spec.hostname,
        "volumes": mounts.collect::<Vec<_>>(),
        "healthcheck": health_check,
        "depends_on": depends_on.collect::<Map<_, _>>(),
        "mem_limit": limits.memory_bytes,
        "mem_reservation": limits.reserved_memory_bytes,
        "cpus": limits.cpus,
        "pids_limit": limits.pids,
        "shm_size": limits.shm_bytes,
        "ulimits": ulimits.collect::<Map<_, _>>(),
        "cap_drop": spec.cap_drop,
        "cap_add": spec.cap_add,
        "security_opt": spec.security_opt,
        "read_only": spec.read_only,
        "init": spec.init,
        "stop_grace_period": period_text(spec.stop_grace_period),
        "stop_signal": spec.stop_signal,
        "extra_hosts": hosts.collect::<Vec<_>>(),
        "sysctls": spec.sysctls,
    });
    let mut service = match filled(service) {
        Json::Object(service) => service,
        _ => Map::new(),
    };
    // An empty command differs from a missing one: it removes the image's command.
    for (key, words) in [("command", &spec.command), ("entrypoint", &spec.entrypoint)] {
        if let Some(words) = words {
            service.insert(key.to_owned(), json!(words));
        }
    }
    service
}
