//! Published ports. Only the site's entry has one: the gateway listens on it instead of the container.

use std::net::IpAddr;

use crate::raw::compose_parts::PortEntry;
use crate::raw::values::{FilePart, text_of};
use crate::scope::Scope;
use crate::source::Span;

/// A port that the Compose file publishes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published {
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
    pub(super) container: u16,
    pub(super) span: Span,
}

const FORMS: &str = "`published:container` such as `8080:80`, optionally with an address before and `/tcp` after it";

/// Reads `ports`. Container ports without a published port are left out, because they are only documentation.
pub(super) fn published(scope: Scope<'_>, raw: Option<&Vec<FilePart<PortEntry>>>) -> Vec<Published> {
    let entries = raw.into_iter().flatten().enumerate();
    entries.filter_map(|(index, entry)| one(scope.index(index), entry.good()?)).collect()
}

fn one(scope: Scope<'_>, entry: &PortEntry) -> Option<Published> {
    match entry {
        PortEntry::Number(_) => None,
        PortEntry::Text(text) => parse(scope, text),
        PortEntry::Spec(spec) => {
            let address = spec.host_ip.as_ref().and_then(|text| address(scope.key("host_ip"), text));
            let port = number(scope.key("published"), &text_of(&spec.published.as_ref()?.0))?;
            Some(Published { address, port, container: spec.target.number()?, span: scope.span() })
        }
    }
}

fn parse(scope: Scope<'_>, text: &str) -> Option<Published> {
    let (ports, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    if protocol != "tcp" {
        scope
            .error("refused-value", format!("the protocol `{protocol}` is not supported"))
            .expected("`tcp`, which is what HTTP runs on")
            .report();
        return None;
    }
    if ports.contains('-') {
        scope.error("refused-value", format!("`{text}` is a range of ports")).expected(FORMS).report();
        return None;
    }
    let Some((host, container)) = ports.rsplit_once(':') else {
        number(scope, ports);
        return None;
    };
    let container = number(scope, container)?;
    let (host_address, port) = match host.rsplit_once(':') {
        Some((host_address, port)) => {
            (address(scope, host_address.trim_start_matches('[').trim_end_matches(']')), port)
        }
        None => (None, host),
    };
    if port.is_empty() {
        return None;
    }
    Some(Published { address: host_address, port: number(scope, port)?, container, span: scope.span() })
}

fn number(scope: Scope<'_>, text: &str) -> Option<u16> {
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let port = text.parse::<u16>().ok().filter(|port| is_plain && *port > 0);
    if port.is_none() {
        scope
            .error("value", format!("invalid port `{text}`"))
            .expected(format!("{FORMS}; ports are from 1 to 65535"))
            .report();
    }
    port
}

fn address(scope: Scope<'_>, text: &str) -> Option<IpAddr> {
    let address = text.parse().ok();
    if address.is_none() {
        scope.error("value", format!("invalid IP address `{text}`")).expected(FORMS).report();
    }
    address
}
