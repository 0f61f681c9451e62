//! One service of the Compose file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::ValidationContext;
use super::health::health_check;
use super::limits::limits;
use super::mounts::mounts;
use super::pairs::{MissingValue, env_files, pairs};
use super::paths::{PathKind, inside, inside_by_name};
use super::ports::{Published, published};
use super::security::{capabilities, extra_hosts, security_options, sysctls};
use super::support::{command, filled, period};
use crate::raw::compose::RawService;
use crate::raw::compose_parts::{CommandLine, ComposeBuild, DependsOn, RawBuild, RawCondition};
use crate::scope::Scope;
use crate::values::words;
use arenad_model::ids::ServiceName;
use arenad_model::service::{BuildSpec, Dependency, DependencyCondition, HealthCheck, ServiceSpec};

/// A service, with the properties that concern the site rather than the container.
pub(super) struct ValidatedService<'a> {
    pub(super) spec: ServiceSpec,
    pub(super) published: Vec<Published>,
    /// Whether the service has no profiles, or one of them is active.
    pub(super) is_active: bool,
    pub(super) scope: Scope<'a>,
}

impl ValidatedService<'_> {
    /// Returns whether the file disables the health check or does not define one.
    pub(super) fn has_no_health_check(&self) -> bool {
        let is_none = |check: &HealthCheck| check.test == ["NONE"];
        self.spec.health_check.as_ref().is_none_or(is_none)
    }
}

/// Reads a service of the Compose file.
pub(super) fn service<'a>(
    context: ValidationContext<'a>,
    scope: Scope<'a>,
    name: ServiceName,
    raw: &RawService,
    declared_volumes: &[&str],
) -> ValidatedService<'a> {
    let build = build(context, scope.key("build"), raw.build.as_ref());
    let image = image(context, scope, &name, raw);
    let mut environment = env_files(context, scope.key("env_file"), raw.env_file.as_ref());
    let from_variables = MissingValue::Variable(context.variables);
    environment.extend(pairs(scope.key("environment"), raw.environment.as_ref(), from_variables));
    if let Some(restart) = raw.restart.as_deref().filter(|restart| *restart != "no") {
        scope
            .key("restart")
            .error("refused-value", format!("arenad does not support `restart: {restart}`"))
            .help("remove it: arenad itself supervises the containers and replaces an instance that fails")
            .report();
    }
    if let Some(directory) = raw.working_dir.as_deref().filter(|directory| !directory.starts_with('/')) {
        let scope = scope.key("working_dir");
        scope.error("value", format!("`{directory}` is not absolute")).expected("an absolute path").report();
    }
    let spec = ServiceSpec {
        image,
        archive: None,
        build,
        command: command_line(scope.key("command"), raw.command.as_ref()),
        entrypoint: command_line(scope.key("entrypoint"), raw.entrypoint.as_ref()),
        environment,
        labels: labels(scope.key("labels"), raw),
        user: raw.user.clone(),
        working_dir: raw.working_dir.clone(),
        hostname: raw.hostname.as_ref().inspect(|text| hostname(scope.key("hostname"), text)).cloned(),
        mounts: mounts(context, scope, raw.volumes.as_ref(), raw.tmpfs.as_ref(), declared_volumes),
        health_check: raw.healthcheck.as_ref().map(|raw| health_check(scope.key("healthcheck"), raw)),
        depends_on: dependencies(scope.key("depends_on"), raw.depends_on.as_ref()),
        limits: limits(scope, raw),
        cap_drop: capabilities(scope.key("cap_drop"), raw.cap_drop.as_ref(), false),
        cap_add: capabilities(scope.key("cap_add"), raw.cap_add.as_ref(), true),
        security_opt: security_options(scope.key("security_opt"), raw.security_opt.as_ref()),
        read_only: raw.read_only.unwrap_or(false),
        init: raw.init.unwrap_or(false),
        stop_grace_period: period(
            scope.key("stop_grace_period"),
            raw.stop_grace_period.as_ref(),
            ServiceSpec::STOP_GRACE_PERIOD,
        ),
        stop_signal: raw.stop_signal.as_ref().inspect(|text| signal(scope.key("stop_signal"), text)).cloned(),
        extra_hosts: extra_hosts(scope.key("extra_hosts"), raw.extra_hosts.as_ref()),
        sysctls: sysctls(scope.key("sysctls"), raw.sysctls.as_ref()),
        name,
    };
    ValidatedService {
        spec,
        is_active: is_active(context, raw),
        published: published(scope.key("ports"), raw.ports.as_ref()),
        scope,
    }
}

fn is_active(context: ValidationContext<'_>, raw: &RawService) -> bool {
    raw.profiles.as_ref().is_none_or(|profiles| profiles.iter().any(|profile| context.profiles.contains(profile)))
}

fn image(context: ValidationContext<'_>, scope: Scope<'_>, name: &ServiceName, raw: &RawService) -> String {
    match &raw.image {
        Some(image) => {
            let is_reference = !image.is_empty()
                && image.len() <= 255
                && image.chars().all(|c| c.is_ascii_alphanumeric() || "./:@_-".contains(c))
                && image.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !is_reference {
                scope
                    .key("image")
                    .error("value", format!("invalid image reference `{}`", crate::tree::excerpt(image)))
                    .expected("a reference such as `nginx:1.27` or `registry.test/team/site@sha256:...`")
                    .report();
            }
            image.clone()
        }
        None => {
            if raw.build.is_none() && !scope.has("build") && !scope.has("image") {
                scope
                    .key_error("missing-key", format!("the service `{name}` has neither `image` nor `build`"))
                    .expected("`image`: a reference such as `nginx:1.27`, or `build`: a folder with a Dockerfile")
                    .report();
            }
            format!("{}-{name}", context.name)
        }
    }
}

fn build(context: ValidationContext<'_>, scope: Scope<'_>, raw: Option<&ComposeBuild>) -> Option<BuildSpec> {
    let (folder_scope, spec) = match raw? {
        ComposeBuild::Context(folder) => {
            let spec = RawBuild { context: Some(folder.clone()), dockerfile: None, args: None, target: None };
            (scope, spec)
        }
        ComposeBuild::Spec(spec) => (scope.key("context"), spec.clone()),
    };
    let args = pairs(scope.key("args"), spec.args.as_ref(), MissingValue::Variable(context.variables));
    let text = spec.context.as_deref().unwrap_or(".");
    let folder =
        inside(folder_scope, context.root, context.compose_folder, text, PathKind::Folder, "the build context")?;
    let dockerfile = spec.dockerfile.as_deref().unwrap_or("Dockerfile");
    let dockerfile_scope = if spec.dockerfile.is_some() { scope.key("dockerfile") } else { folder_scope };
    inside(dockerfile_scope, context.root, &folder, dockerfile, PathKind::File, "the Dockerfile")?;
    inside_by_name(dockerfile_scope, &folder, &folder, dockerfile, "the Dockerfile")?;
    Some(BuildSpec { context: folder, dockerfile: PathBuf::from(dockerfile), args, target: spec.target })
}

fn command_line(scope: Scope<'_>, raw: Option<&CommandLine>) -> Option<Vec<String>> {
    let found = match raw? {
        CommandLine::Words(list) => list.clone(),
        CommandLine::Text(line) => words(line).unwrap_or_else(|why| {
            scope.error("value", why).expected("a list of words such as `[sleep, \"60\"]`, or one text").report();
            Vec::new()
        }),
    };
    command(scope, &found);
    Some(found)
}

/// Prefixes of labels that arenad and Compose reserve.
const RESERVED_LABELS: [&str; 2] = ["arenad.", "com.docker.compose."];

fn labels(scope: Scope<'_>, raw: &RawService) -> BTreeMap<String, String> {
    let found = pairs(scope, raw.labels.as_ref(), MissingValue::Empty);
    for name in found.keys() {
        if let Some(prefix) = RESERVED_LABELS.iter().find(|prefix| name.starts_with(**prefix)) {
            scope
                .key(name)
                .key_error("refused-value", format!("labels that begin with `{prefix}` are reserved"))
                .report();
        }
    }
    found
}

/// Maximum length of a host name that consists of one label, by RFC 1035.
const HOSTNAME_MAX: usize = 63;

fn hostname(scope: Scope<'_>, text: &str) {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if text.is_empty() || text.len() > HOSTNAME_MAX || !text.chars().all(is_fine) || text.starts_with(['-', '.']) {
        scope
            .error("value", format!("invalid host name `{}`", crate::tree::excerpt(text)))
            .expected(format!("1 to {HOSTNAME_MAX} letters, digits, `-` and `.`"))
            .report();
    }
}

fn signal(scope: Scope<'_>, text: &str) {
    filled(scope, text, "the signal");
    if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '+') || text.len() > 12 {
        scope
            .error("value", format!("invalid signal `{text}`"))
            .expected("a name such as `SIGTERM`, or a number")
            .report();
    }
}

fn dependencies(scope: Scope<'_>, raw: Option<&DependsOn>) -> Vec<Dependency> {
    let entries: Vec<(Scope<'_>, &str, DependencyCondition)> = match raw {
        None => Vec::new(),
        Some(DependsOn::List(names)) => names
            .iter()
            .enumerate()
            .map(|(index, name)| (scope.index(index), name.as_str(), DependencyCondition::Started))
            .collect(),
        Some(DependsOn::Map(entries)) => entries
            .iter()
            .filter_map(|(name, dependency)| {
                let condition = match dependency.good()?.condition {
                    RawCondition::ServiceStarted => DependencyCondition::Started,
                    RawCondition::ServiceHealthy => DependencyCondition::Healthy,
                    RawCondition::ServiceCompletedSuccessfully => DependencyCondition::CompletedSuccessfully,
                };
                Some((scope.key(name), name, condition))
            })
            .collect(),
    };
    let mut found: Vec<Dependency> = Vec::new();
    for (scope, name, condition) in entries {
        match ServiceName::parse(name) {
            Ok(service) if found.iter().any(|known| known.service == service) => {
                scope.error("duplicate-key", format!("`{service}` is named twice")).report();
            }
            Ok(service) => found.push(Dependency { service, condition }),
            Err(error) => {
                scope.key_error("name", format!("invalid service name `{name}`")).expected(error.to_string()).report()
            }
        }
    }
    found
}
