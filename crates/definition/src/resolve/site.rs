//! A site of the environment file.

use serde_json::{Map, Value as Json, json};

use super::super::values::period_text;
use super::steps::{baseline, exec_step, http_probe, probe, readiness};
use super::{filled, names, texts};
use arenad_model::clock::{Clock, ClockMode, ClockStart};
use arenad_model::configure::ExecStep;
use arenad_model::coverage::{Scratch, ScratchPlace};
use arenad_model::health::{HealthProbes, HealthSpec};
use arenad_model::helper::Helper;
use arenad_model::login::{FormLogin, Login, LoginRecipe, Template, TokenLogin};
use arenad_model::schedule::{CronSchedule, Schedule};
use arenad_model::site::{
    Account, Database, DatabaseAccess, DatabaseEngine, EntryPort, PublicAddress, RecordedRequests, ResetSpec,
    ResetStrategyName, Site, SlotPorts, SlotSpec,
};
use arenad_model::standby_schedule::StandbyTime;
use arenad_model::store::{Control, RedisAccess, STORE_TIMEOUT, Store, StoreKind, Volatile, VolatilePart, Writers};
use arenad_model::verify::VerifyPolicy;

/// Returns the section `clock` of a site.
pub(super) fn clock(clock: &Clock) -> Json {
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

pub(super) fn site(site: &Site) -> Json {
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
        ports,
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
        found["slots"] = self::slots(*slots);
    }
    if let Some(SlotPorts { base, stride, bodies }) = ports {
        found["ports"] = json!({ "base": base, "stride": stride, "bodies": bodies.name() });
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

pub(super) fn entry(entry: &EntryPort) -> Json {
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

fn slots(slots: SlotSpec) -> Json {
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

/// Returns the entry of a database with this password, which is either the database's own or as the file writes it.
pub(super) fn database(database: &Database, password: &str) -> Json {
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
