//! The names that the parts of a site may refer to: its services, its entry and its databases.

use std::collections::BTreeMap;

use super::ValidationContext;
use super::service::ValidatedService;
use crate::problems::{did_you_mean, quoted_list};
use crate::raw::values::Port;
use crate::scope::Scope;
use arenad_model::ids::ServiceName;
use arenad_model::site::EntryPort;

/// The services of the Compose file by name; `None` for a refused service.
pub(super) type Services<'a> = BTreeMap<String, Option<ValidatedService<'a>>>;

/// The names that the parts of a site may refer to.
pub(super) struct SiteContext<'a> {
    pub(super) context: ValidationContext<'a>,
    pub(super) services: &'a Services<'a>,
    /// Names of the site's services.
    pub(super) names: Vec<ServiceName>,
    pub(super) entry: Option<EntryPort>,
    pub(super) databases: Vec<&'a str>,
}

impl SiteContext<'_> {
    /// Returns the named service, or by default the entry's.
    pub(super) fn service(&self, scope: Scope<'_>, named: Option<&str>) -> Option<ServiceName> {
        match named {
            Some(name) => self.own_service(scope, name),
            None => self.entry.as_ref().map(|entry| entry.service.clone()),
        }
    }

    /// Returns the named service and port, or by default the entry's.
    pub(super) fn service_port(
        &self,
        scope: Scope<'_>,
        named: Option<&str>,
        port: Option<&Port>,
    ) -> Option<(ServiceName, u16)> {
        let service = self.service(scope.key("service"), named)?;
        if let Some(port) = port {
            return Some((service, port.number()?));
        }
        let entry = self.entry.as_ref()?;
        if entry.service != service {
            scope
                .key("service")
                .error("missing-key", format!("the port of `{service}` is not given"))
                .expected("`port`: only the entry's service has a default")
                .report();
            return None;
        }
        Some((service, entry.port))
    }

    /// Returns the named database, or by default the only one.
    pub(super) fn database(&self, scope: Scope<'_>, named: Option<&str>) -> Option<String> {
        match (named, self.databases.as_slice()) {
            (Some(name), known) if known.contains(&name) => Some(name.to_owned()),
            (Some(name), known) => {
                let expected = if known.is_empty() {
                    "a database of the site, which declares none under `databases`".to_owned()
                } else {
                    format!("one of {}", quoted_list(known.iter().copied()))
                };
                scope
                    .key("database")
                    .error("unknown-database", format!("the site has no database `{name}`"))
                    .expected(expected)
                    .maybe_help(did_you_mean(name, known.iter().copied()))
                    .report();
                None
            }
            (None, [only]) => Some((*only).to_owned()),
            (None, _) if scope.has("database") => None,
            (None, known) => {
                scope
                    .error(
                        "missing-key",
                        format!("`database` is missing, and the site declares {} of them", known.len()),
                    )
                    .expected("`database`: the name of one under the site's `databases`")
                    .report();
                None
            }
        }
    }

    /// Returns whether the Compose file disables the health check of a service.
    pub(super) fn health_check_is_off(&self, service: &ServiceName) -> bool {
        let service = self.services.get(service.as_str()).and_then(Option::as_ref);
        service.is_some_and(|service| service.spec.health_check.is_some() && service.has_no_health_check())
    }

    /// Returns a service of the site by its name.
    pub(super) fn own_service(&self, scope: Scope<'_>, name: &str) -> Option<ServiceName> {
        let found = self.names.iter().find(|own| own.as_str() == name);
        if found.is_none() {
            let own = || self.names.iter().map(ServiceName::as_str);
            let elsewhere = if self.services.contains_key(name) { ", though the Compose file has it" } else { "" };
            scope
                .error("unknown-service", format!("the site has no service `{name}`{elsewhere}"))
                .expected(format!("one of {}", quoted_list(own())))
                .maybe_help(did_you_mean(name, own()))
                .report();
        }
        found.cloned()
    }
}
