//! The steps that run once before the snapshot: configuration, filling of caches, and stopping of writers.

use std::time::Duration;

use super::paths::{PathKind, inside};
use super::probes::probe;
use super::site_context::SiteContext;
use super::support::{command, filled, one_line, period, positive_period};
use crate::problems::quoted_list;
use crate::raw::environment::RawBaseline;
use crate::raw::steps::{RawExec, RawHttp, RawMethod, RawStep, RawWarm};
use crate::raw::values::{Entries, FilePart, Statuses};
use crate::scope::Scope;
use arenad_model::configure::{BaselineSpec, ConfigureAction, ConfigureStep, ExecStep, HttpStep, StepInput, Unless};

/// Default period in which a failing step is tried again, because services refuse connections shortly after their
/// start.
const RETRY_FOR: Duration = Duration::from_secs(60);

/// Default timeout of a command: indexing a shop takes half of it.
const EXEC_TIMEOUT: Duration = Duration::from_secs(60);

/// Default timeout of a request: the first page of a cold PHP application takes up to 20 s.
const HTTP_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn baseline(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawBaseline) -> BaselineSpec {
    let (configure, warm, quiesce) = (scope.key("configure"), scope.key("warm"), scope.key("quiesce"));
    let steps = raw.configure.iter().flatten().enumerate();
    let requests = raw.warm.iter().flatten().enumerate();
    BaselineSpec {
        configure: steps.filter_map(|(index, raw)| step(site, configure.index(index), raw.good()?)).collect(),
        warm: requests.filter_map(|(index, raw)| warm_up(site, warm.index(index), raw.good()?)).collect(),
        quiesce: exec_list(site, quiesce, raw.quiesce.as_deref()),
    }
}

/// Reads a list of commands, in file order.
pub(super) fn exec_list(site: &SiteContext<'_>, scope: Scope<'_>, raw: Option<&[FilePart<RawExec>]>) -> Vec<ExecStep> {
    let commands = raw.into_iter().flatten().enumerate();
    commands.filter_map(|(index, raw)| exec(site, scope.index(index), raw.good()?)).collect()
}

fn step(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawStep) -> Option<ConfigureStep> {
    exactly_one(scope, &["exec", "http", "sql"], "the step")?;
    let (default_name, action) = if let Some(raw) = &raw.exec {
        let name = format!("exec {}", raw.command.first().map_or("", String::as_str));
        (name, ConfigureAction::Exec(exec(site, scope.key("exec"), raw)?))
    } else if let Some(raw) = &raw.http {
        let step = http(site, scope.key("http"), raw)?;
        (format!("{} {}", step.method, step.path), ConfigureAction::Http(step))
    } else {
        let raw = raw.sql.as_ref()?;
        let scope = scope.key("sql");
        filled(scope.key("statement"), &raw.statement, "the statement");
        let database = site.database(scope, raw.database.as_deref())?;
        (format!("sql {database}"), ConfigureAction::Sql { database, statement: raw.statement.clone() })
    };
    if let Some(name) = &raw.name {
        filled(scope.key("name"), name, "the name");
        one_line(scope.key("name"), name, "the name");
    }
    let unless = match &raw.unless {
        Some(raw) => {
            let scope = scope.key("unless");
            let within = period(scope.key("within"), raw.within.as_ref(), Duration::ZERO);
            Some(Unless { probe: probe(site, scope.key("probe"), &raw.probe)?, within })
        }
        None => None,
    };
    let input = match &raw.input {
        Some(text) => Some(input(site, scope, text)?),
        None => None,
    };
    Some(ConfigureStep {
        unless,
        input,
        name: raw.name.clone().unwrap_or(default_name),
        action,
        retry_for: period(scope.key("retry_for"), raw.retry_for.as_ref(), RETRY_FOR),
    })
}

/// Reads the folder that a command gets as its input.
fn input(site: &SiteContext<'_>, scope: Scope<'_>, text: &str) -> Option<StepInput> {
    if !scope.has("exec") {
        scope
            .key("input")
            .key_error("conflict", "only a command has an input".to_owned())
            .help("give the step an `exec`")
            .report();
        return None;
    }
    let root = site.context.root;
    let folder = inside(scope.key("input"), root, root, text, PathKind::Folder, "the input")?;
    Some(StepInput { folder, written: text.to_owned() })
}

fn exec(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawExec) -> Option<ExecStep> {
    command(scope.key("command"), &raw.command);
    Some(ExecStep {
        service: site.service(scope.key("service"), raw.service.as_deref())?,
        command: raw.command.clone(),
        user: raw.user.clone(),
        timeout: positive_period(scope.key("timeout"), raw.timeout.as_ref(), EXEC_TIMEOUT),
    })
}

fn warm_up(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawWarm) -> Option<HttpStep> {
    match raw {
        RawWarm::Request(raw) => http(site, scope, raw),
        RawWarm::Path(text) => {
            path(scope, text);
            let (service, port) = site.service_port(scope, None, None)?;
            Some(HttpStep {
                service,
                port,
                method: "GET".to_owned(),
                path: text.clone(),
                headers: Vec::new(),
                body: None,
                status: vec![200],
                timeout: HTTP_TIMEOUT,
            })
        }
    }
}

fn http(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawHttp) -> Option<HttpStep> {
    path(scope.key("path"), &raw.path);
    let headers = headers(scope.key("headers"), raw.headers.as_ref());
    let status = statuses(scope.key("status"), raw.status.as_ref(), &[200]);
    let timeout = positive_period(scope.key("timeout"), raw.timeout.as_ref(), HTTP_TIMEOUT);
    let method = match raw.method.unwrap_or(RawMethod::Get) {
        RawMethod::Get => "GET",
        RawMethod::Head => "HEAD",
        RawMethod::Post => "POST",
        RawMethod::Put => "PUT",
        RawMethod::Patch => "PATCH",
        RawMethod::Delete => "DELETE",
    };
    let is_stated = raw.method.is_some() || !scope.has("method");
    if raw.body.is_some() && is_stated && matches!(method, "GET" | "HEAD") {
        scope
            .key("body")
            .key_error("conflict", format!("a `{method}` carries no body"))
            .help("set `method: POST`")
            .report();
    }
    let (service, port) = site.service_port(scope, raw.service.as_deref(), raw.port.as_ref())?;
    let method = method.to_owned();
    Some(HttpStep { service, port, method, path: raw.path.clone(), headers, body: raw.body.clone(), status, timeout })
}

/// Returns the only key out of `kinds` that a mapping has, and reports a mapping that has none or several.
pub(super) fn exactly_one<'k>(scope: Scope<'_>, kinds: &[&'k str], what: &str) -> Option<&'k str> {
    let given: Vec<&'k str> = kinds.iter().copied().filter(|kind| scope.has(kind)).collect();
    let message = match given.as_slice() {
        [only] => return Some(only),
        // The misspelt key has been reported as unknown.
        [] if kinds.iter().any(|kind| scope.is_misspelt(kind)) => return None,
        [] => format!("{what} has no kind"),
        several => format!("{what} has several kinds: {}", quoted_list(several.iter().copied())),
    };
    let expected = format!("exactly one of {}", quoted_list(kinds.iter().copied()));
    scope.error("kind", message).expected(expected).report();
    None
}

/// Checks a URL's path and query.
pub(super) fn path(scope: Scope<'_>, text: &str) {
    let is_printable = text.chars().all(|c| c.is_ascii_graphic());
    if !text.starts_with('/') || !is_printable || text.contains('#') {
        scope
            .error("value", format!("invalid path `{}`", crate::tree::excerpt(text)))
            .expected("a path with its query, beginning with `/`, other characters than ASCII percent-encoded")
            .maybe_help(
                (is_printable && !text.contains([':', '#']))
                    .then(|| format!("write `/{}`", text.trim_start_matches('/'))),
            )
            .report();
    }
}

/// Reads request headers, in file order.
pub(super) fn headers(scope: Scope<'_>, raw: Option<&Entries<String>>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, value) in raw.into_iter().flat_map(Entries::iter) {
        let is_token =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        if !is_token {
            scope.key(name).key_error("value", format!("invalid header name `{name}`")).report();
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            scope.key(name).error("value", format!("the header `{name}` has control characters")).report();
        }
        found.push((name.to_owned(), value.clone()));
    }
    found
}

/// Reads status codes, of which there must be at least one.
pub(super) fn statuses(scope: Scope<'_>, raw: Option<&Statuses>, default: &[u16]) -> Vec<u16> {
    let codes: Vec<u16> = match raw {
        None => return default.to_vec(),
        Some(Statuses::One(code)) => vec![code],
        Some(Statuses::Many(codes)) => codes.iter().collect(),
    }
    .into_iter()
    .filter_map(|code| u16::try_from(code.0.as_u64()?).ok())
    .collect();
    if codes.is_empty() {
        scope.error("value", "no status would ever pass").expected("at least one status code").report();
    }
    codes
}

/// Returns the text of a scalar as the file writes it: `1.10` remains `1.10`.
pub(super) fn written_text(scope: Scope<'_>, otherwise: &str) -> String {
    scope.scalar().map_or_else(|| otherwise.to_owned(), |scalar| scalar.text.clone())
}
