//! Probes and steps of a site.

use serde_json::{Map, Value as Json, json};

use super::super::values::period_text;
use super::{filled, texts};
use arenad_model::configure::{BaselineSpec, ConfigureAction, ConfigureStep, ExecStep, HttpStep, Unless};
use arenad_model::probe::{HttpProbe, JsonExpectation, Probe, ProbeKind};
use arenad_model::site::Readiness;

pub(super) fn readiness(readiness: &Readiness) -> Json {
    let Readiness { timeout, interval, probes } = readiness;
    json!({
        "timeout": period_text(*timeout),
        "interval": period_text(*interval),
        "probes": probes.iter().map(probe).collect::<Vec<_>>(),
    })
}

pub(super) fn probe(probe: &Probe) -> Json {
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

pub(super) fn http_probe(http: &HttpProbe) -> Json {
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

pub(super) fn baseline(baseline: &BaselineSpec) -> Json {
    let BaselineSpec { configure, warm, quiesce } = baseline;
    json!({
        "configure": configure.iter().map(configure_step).collect::<Vec<_>>(),
        "warm": warm.iter().map(http_step).collect::<Vec<_>>(),
        "quiesce": quiesce.iter().map(exec_step).collect::<Vec<_>>(),
    })
}

fn configure_step(step: &ConfigureStep) -> Json {
    let ConfigureStep { name, action, retry_for, unless, input } = step;
    // The content of the folder is hashed when the baseline is made.
    let input = input.as_ref().map(|input| input.written.as_str());
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
    filled(json!({ "name": name, "retry_for": period_text(*retry_for), "unless": unless, kind: body, "input": input }))
}

pub(super) fn exec_step(step: &ExecStep) -> Json {
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
