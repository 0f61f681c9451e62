//! The probes of a site, and its readiness.

use std::time::Duration;

use regex::RegexBuilder;
use serde_json::Value as Json;

use super::site_context::SiteContext;
use super::steps;
use super::support::{command, filled, one_line, positive_period};
use crate::problems::Draft;
use crate::raw::environment::RawReady;
use crate::raw::steps::{RawHttpProbe, RawJsonExpectation, RawProbe, RawProbeMethod};
use crate::raw::values::{FilePart, text_of};
use crate::scope::Scope;
use arenad_model::probe::{HttpProbe, JsonExpectation, Probe, ProbeKind};
use arenad_model::site::Readiness;

/// Default time to become ready: the slowest site of WebArena (GitLab) needs about 100 s.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// Default pause between rounds. It is short because it adds to every reset, and a round takes a few milliseconds.
const READY_INTERVAL: Duration = Duration::from_millis(100);

/// Default timeout of a probe: a page that needs longer is not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Default status codes of an expected redirect.
const REDIRECT_STATUS: [u16; 5] = [301, 302, 303, 307, 308];

/// Maximum size of a compiled regular expression, in bytes.
const REGEX_MAX_BYTES: usize = 1 << 20;

pub(super) fn readiness(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawReady) -> Readiness {
    Readiness {
        timeout: positive_period(scope.key("timeout"), raw.timeout.as_ref(), READY_TIMEOUT),
        interval: positive_period(scope.key("interval"), raw.interval.as_ref(), READY_INTERVAL),
        probes: raw.probes.as_ref().map(|probes| probe_list(site, scope.key("probes"), probes)).unwrap_or_default(),
    }
}

/// Reads a list of probes, without the refused ones.
pub(super) fn probe_list(site: &SiteContext<'_>, scope: Scope<'_>, raw: &[FilePart<RawProbe>]) -> Vec<Probe> {
    raw.iter().enumerate().filter_map(|(index, raw)| probe(site, scope.index(index), raw.good()?)).collect()
}

const KINDS: [&str; 6] = ["http", "tcp", "sql", "exec", "log", "docker_health"];

pub(super) fn probe(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawProbe) -> Option<Probe> {
    steps::exactly_one(scope, &KINDS, "the probe")?;
    let (default_name, kind) = kind(site, scope, raw)?;
    if let Some(name) = &raw.name {
        filled(scope.key("name"), name, "the name");
        one_line(scope.key("name"), name, "the name");
    }
    Some(Probe {
        name: raw.name.clone().unwrap_or(default_name),
        kind,
        timeout: positive_period(scope.key("timeout"), raw.timeout.as_ref(), PROBE_TIMEOUT),
    })
}

fn kind(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawProbe) -> Option<(String, ProbeKind)> {
    if let Some(raw) = &raw.http {
        return Some((format!("http {}", raw.path), ProbeKind::Http(http(site, scope.key("http"), raw)?)));
    }
    if let Some(raw) = &raw.tcp {
        let service = site.service(scope.key("tcp").key("service"), raw.service.as_deref())?;
        let port = raw.port.number()?;
        return Some((format!("tcp {service}:{port}"), ProbeKind::Tcp { service, port }));
    }
    if let Some(raw) = &raw.sql {
        let scope = scope.key("sql");
        filled(scope.key("query"), &raw.query, "the query");
        let database = site.database(scope, raw.database.as_deref())?;
        let equals = raw.equals.as_ref().map(|value| steps::written_text(scope.key("equals"), &text_of(&value.0)));
        return Some((format!("sql {database}"), ProbeKind::Sql { database, query: raw.query.clone(), equals }));
    }
    if let Some(raw) = &raw.exec {
        let scope = scope.key("exec");
        command(scope.key("command"), &raw.command);
        let service = site.service(scope.key("service"), raw.service.as_deref())?;
        let name = format!("exec {}", raw.command.first().map_or("", String::as_str));
        let kind = ProbeKind::Exec { service, command: raw.command.clone(), contains: raw.contains.clone() };
        return Some((name, kind));
    }
    if let Some(raw) = &raw.log {
        let scope = scope.key("log");
        pattern(scope.key("pattern"), &raw.pattern);
        let service = site.service(scope.key("service"), raw.service.as_deref())?;
        return Some((format!("log {service}"), ProbeKind::Log { service, pattern: raw.pattern.clone() }));
    }
    let raw = raw.docker_health.as_ref()?;
    let scope = scope.key("docker_health");
    let service = site.service(scope.key("service"), raw.service.as_deref())?;
    // The image may define a health check, so a missing one in the Compose file proves nothing. A disabled one does.
    if site.health_check_is_off(&service) {
        scope
            .error("conflict", format!("the health check of `{service}` is switched off in the Compose file"))
            .report();
    }
    Some((format!("docker_health {service}"), ProbeKind::DockerHealth { service }))
}

pub(super) fn http(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawHttpProbe) -> Option<HttpProbe> {
    let headers = steps::headers(scope.key("headers"), raw.headers.as_ref());
    steps::path(scope.key("path"), &raw.path);
    let default_status: &[u16] = if raw.redirect.is_some() { &REDIRECT_STATUS } else { &[200] };
    let status = steps::statuses(scope.key("status"), raw.status.as_ref(), default_status);
    if raw.redirect.is_some() && !status.iter().any(|code| (300..400).contains(code)) {
        scope
            .key("redirect")
            .key_error("conflict", "`redirect` is expected, but no status of 300 to 399 is accepted")
            .help("remove `status`, or add the redirect's")
            .report();
    }
    let contains = raw.contains.as_ref().map(|texts| texts.to_vec()).unwrap_or_default();
    for (index, text) in contains.iter().enumerate() {
        filled(scope.key("contains").index(index), text, "the text that the body must contain");
    }
    let method = match raw.method.unwrap_or(RawProbeMethod::Get) {
        RawProbeMethod::Get => "GET",
        RawProbeMethod::Head => "HEAD",
        RawProbeMethod::Post => "POST",
    };
    let json_scope = scope.key("json");
    let json: Vec<(String, JsonExpectation)> = raw
        .json
        .iter()
        .flat_map(|entries| entries.iter())
        .filter_map(|(pointer, expectation)| json_expectation(json_scope.key(pointer), pointer, expectation.good()?))
        .collect();
    let looks_inside = !contains.is_empty() || raw.json.is_some() || raw.bytes_at_least.is_some();
    if method == "HEAD" && looks_inside {
        scope.key("method").error("conflict", "the answer to `HEAD` has no body to look into").report();
    }
    let (service, port) = site.service_port(scope, raw.service.as_deref(), raw.port.as_ref())?;
    let method = method.to_owned();
    Some(HttpProbe {
        service,
        port,
        method,
        path: raw.path.clone(),
        headers,
        status,
        redirect: raw.redirect.clone(),
        contains,
        bytes_at_least: raw.bytes_at_least.map(u64::from),
        json,
    })
}

/// Checks a JSON pointer. `begin` starts a problem at its place.
pub(super) fn pointer<'a>(text: &str, begin: impl FnOnce(String) -> Draft<'a>) {
    let escapes_are_fine = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if (text.is_empty() || text.starts_with('/')) && escapes_are_fine {
        return;
    }
    begin(format!("invalid JSON pointer `{}`", crate::tree::excerpt(text)))
        .expected("keys that each follow a `/`, such as `/database/ok`; `~0` is a tilde and `~1` a slash in a key")
        .maybe_help(
            (!text.starts_with('/') && !text.contains('~')).then(|| format!("write `/{}`", text.replace('.', "/"))),
        )
        .report();
}

fn json_expectation(scope: Scope<'_>, pointer: &str, raw: &RawJsonExpectation) -> Option<(String, JsonExpectation)> {
    self::pointer(pointer, |message| scope.key_error("value", message));
    let compact = |value: &Json| JsonExpectation::Equals(value.to_string());
    let expectation = match raw {
        RawJsonExpectation::Plain(value) => compact(&value.0),
        RawJsonExpectation::Comparison(comparison) => {
            match steps::exactly_one(scope, &["at_least", "between", "equals"], "the comparison")? {
                "at_least" => JsonExpectation::AtLeast(comparison.at_least?),
                "between" => between(scope.key("between"), comparison.between.as_deref()?)?,
                _ => compact(&comparison.equals.clone().unwrap_or(Json::Null)),
            }
        }
    };
    Some((pointer.to_owned(), expectation))
}

fn between(scope: Scope<'_>, bounds: &[f64]) -> Option<JsonExpectation> {
    let [lower, upper] = bounds else {
        let draft = scope.key_error("value", format!("`between` has {} numbers", bounds.len()));
        draft.expected("two numbers, the lower one first").report();
        return None;
    };
    if lower > upper {
        scope.key_error("value", format!("no number lies between {lower} and {upper}")).report();
    }
    Some(JsonExpectation::Between(*lower, *upper))
}

fn pattern(scope: Scope<'_>, text: &str) {
    filled(scope, text, "the pattern");
    if let Err(error) = RegexBuilder::new(text).size_limit(REGEX_MAX_BYTES).build() {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        scope
            .error("value", format!("invalid regular expression `{}`: {reason}", crate::tree::excerpt(text)))
            .expected("the syntax of Rust's `regex` crate: https://docs.rs/regex/#syntax")
            .report();
    }
}
