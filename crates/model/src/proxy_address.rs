//! The addresses that the episode proxy knows: those of sites, and those of hosts outside of the arena. Also the URLs of
//! slots at their own ports.
//!
//! | Address | Leads to |
//! |---|---|
//! | `shopping.arena.test`, with port 80 or the public port | the site `shopping` |
//! | `arena.test:7770` | the site with the public port 7770 |
//! | `localhost:7770`, `127.0.0.1:7770`, and the environment's host with that port | the same |
//! | an alias that the definition gives the site | that site |
//! | a host that the definition lists under `egress` | the host |
//!
//! All hosts are in lower case, without brackets and without the dot of the root.

use std::fmt;

use crate::site::{BodyAddresses, Environment, Site};

/// The domain of the sites. The top-level domain `test` is reserved (RFC 2606), so no name below it leads elsewhere.
pub const ARENA_DOMAIN: &str = "arena.test";

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Maximum length of a host name, in characters (RFC 1035).
const HOST_MAX: usize = 253;

/// The reason why a text is not the address of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHostAddress {
    /// The host has a scheme, a path, or characters that no host name has.
    #[error("it is not a host name, with or without a port")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("its port is not a number from 1 to 65535")]
    Port,
}

/// A further address at which the clients of episodes find a site, through the episode proxy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiteAlias {
    /// The host name or IPv4 address.
    pub host: String,
    /// The port, which is 80 unless the definition states another one.
    pub port: u16,
}

impl SiteAlias {
    /// Parses `HOST` or `HOST:PORT`.
    pub fn parse(text: &str) -> Result<Self, InvalidHostAddress> {
        let (host, port) = host_and_port(text)?;
        Ok(Self { host, port: port.unwrap_or(HTTP_PORT) })
    }
}

impl fmt::Display for SiteAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&authority(&self.host, self.port))
    }
}

/// A host outside of the arena, or all hosts of a domain, that the clients of episodes may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule {
    /// The host name or IPv4 address, or the domain.
    pub host: String,
    /// Whether the rule is for all hosts below the domain, and not for the host itself.
    pub is_domain: bool,
    /// The port. `None` means the ports of HTTP and HTTPS.
    pub port: Option<u16>,
}

impl EgressRule {
    /// Parses `HOST`, `HOST:PORT`, `*.DOMAIN` or `*.DOMAIN:PORT`.
    pub fn parse(text: &str) -> Result<Self, InvalidHostAddress> {
        let domain = text.strip_prefix("*.");
        let (host, port) = host_and_port(domain.unwrap_or(text))?;
        Ok(Self { host, is_domain: domain.is_some(), port })
    }

    /// Whether the rule allows connections to a host.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        let is_host = match self.is_domain {
            true => host.strip_suffix(self.host.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            false => host == self.host,
        };
        is_host && self.port.map_or(matches!(port, HTTP_PORT | HTTPS_PORT), |allowed| allowed == port)
    }
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.is_domain { "*." } else { "" };
        write!(f, "{star}{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>), InvalidHostAddress> {
    // A scheme would otherwise be taken for a host, and the rest for its port.
    if text.contains('/') {
        return Err(InvalidHostAddress::Host);
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_fine) && !label.starts_with('-')
    };
    if host.len() > HOST_MAX || !host.split('.').all(is_label) {
        return Err(InvalidHostAddress::Host);
    }
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok()).flatten();
    let port = match port {
        Some(port) => Some(digits(port).filter(|port| *port > 0).ok_or(InvalidHostAddress::Port)?),
        None => None,
    };
    Ok((host.to_ascii_lowercase(), port))
}

fn authority(host: &str, port: u16) -> String {
    if port == HTTP_PORT { host.to_owned() } else { format!("{host}:{port}") }
}

/// Whether an address leads to a site of an environment whose public URLs have the host `environment_host`.
pub fn is_of_site(site: &Site, environment_host: &str, host: &str, port: u16) -> bool {
    let public = site.public.port;
    let is_own = |name: &str| name == site.name.as_str() && (port == HTTP_PORT || port == public);
    let below = host.strip_suffix(ARENA_DOMAIN).and_then(|rest| rest.strip_suffix('.'));
    let is_this_host =
        matches!(host, "localhost" | "127.0.0.1" | "::1" | ARENA_DOMAIN) || host.eq_ignore_ascii_case(environment_host);
    below.is_some_and(is_own)
        || is_this_host && port == public
        || site.public.aliases.iter().any(|alias| alias.host == host && alias.port == port)
}

/// Whether the sites' own domain includes a host.
pub fn is_in_arena(host: &str) -> bool {
    host == ARENA_DOMAIN || host.strip_suffix(ARENA_DOMAIN).is_some_and(|rest| rest.ends_with('.'))
}

/// Whether an environment allows the clients of its episodes to reach a host outside of the arena.
pub fn allows_egress(environment: &Environment, host: &str, port: u16) -> bool {
    !is_in_arena(host) && environment.egress.iter().any(|rule| rule.allows(host, port))
}

/// Returns the host and port that a site was made for, such as `localhost:7770`.
pub fn canonical(site: &Site, environment_host: &str) -> String {
    authority(environment_host, site.public.port)
}

/// Returns a URL that a client of an episode saw as the site was made for it: `http://shopping.arena.test/a` becomes
/// `http://localhost:7770/a`. `slot` returns the number of the episode's slot of a site. URLs of other hosts stay as they
/// are.
pub fn canonical_url(url: &str, environment: &Environment, slot: &dyn Fn(&Site) -> Option<u32>) -> String {
    let Some(rest) = url.strip_prefix("http://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let Ok((host, port)) = host_and_port(authority) else { return url.to_owned() };
    let port = port.unwrap_or(HTTP_PORT);
    let is_at_port = |site: &&Site| {
        let is_here = matches!(host.as_str(), "localhost" | "127.0.0.1") || host == environment.host;
        let number = slot(site).filter(|_| is_here || host.ends_with(".localhost"));
        site.ports.zip(number).and_then(|(ports, number)| ports.of(number)) == Some(port)
    };
    let is_of = |site: &&Site| is_of_site(site, &environment.host, &host, port) || is_at_port(site);
    match environment.sites.iter().find(is_of) {
        Some(site) => format!("http://{}{path}", canonical(site, &environment.host)),
        None => url.to_owned(),
    }
}

/// Returns the host of a site through the episode proxy, such as `shopping.arena.test`.
pub fn own_host(site: &Site) -> String {
    format!("{}.{ARENA_DOMAIN}", site.name)
}

/// Returns the URL of a site through the episode proxy, such as `http://shopping.arena.test`.
pub fn own_url(site: &Site) -> String {
    format!("http://{}{}", own_host(site), site.public.path)
}

/// Returns the URL of a slot at its own port, such as `http://localhost:17780`. `None` means that clients cannot use the
/// site there.
pub fn slot_url(site: &Site, environment_host: &str, slot: u32) -> Option<String> {
    let ports = site.ports.filter(|ports| ports.bodies != BodyAddresses::Unmappable)?;
    Some(format!("http://{environment_host}:{}{}", ports.of(slot)?, site.public.path))
}

/// Returns the URL of a site through the episode proxy on the host that all sites have in common, such as
/// `http://arena.test:7770`. Harnesses require one host for all sites, and a port in each URL.
pub fn common_url(site: &Site) -> String {
    format!("http://{ARENA_DOMAIN}:{}{}", site.public.port, site.public.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_a_host_with_or_without_a_port() {
        let parse =
            |text: &str| SiteAlias::parse(text).map(|alias| (alias.host.clone(), alias.port, alias.to_string()));
        let found = |host: &str, port, text: &str| Ok((host.to_owned(), port, text.to_owned()));
        assert_eq!(parse("OneStopMarket.com"), found("onestopmarket.com", 80, "onestopmarket.com"));
        assert_eq!(parse("shop.test:7770"), found("shop.test", 7770, "shop.test:7770"));
        for text in ["", ".", "a..b", "http://a", "a/b", "*.a", "a b", "-a", "[::1]", "ä.test"] {
            assert_eq!(parse(text), Err(InvalidHostAddress::Host), "{text}");
        }
        for text in ["a:", "a:0", "a:65536", "a:+80", "a:b", "a:80:80"] {
            assert_eq!(parse(text), Err(InvalidHostAddress::Port), "{text}");
        }
    }

    #[test]
    fn a_rule_allows_its_host_or_the_hosts_below_its_domain() {
        let allows = |rule: &str, host: &str, port| EgressRule::parse(rule).expect(rule).allows(host, port);
        assert!(allows("cdn.test", "cdn.test", 80) && allows("cdn.test", "cdn.test", 443));
        assert!(!allows("cdn.test", "cdn.test", 22) && !allows("cdn.test", "x.cdn.test", 443));
        assert!(allows("*.cdn.test", "a.cdn.test", 443) && allows("*.cdn.test", "a.b.cdn.test", 443));
        for host in ["cdn.test", ".cdn.test", "evilcdn.test", "cdn.test.evil.test"] {
            assert!(!allows("*.cdn.test", host, 443), "{host}");
        }
        assert!(allows("cdn.test:8443", "cdn.test", 8443) && !allows("cdn.test:8443", "cdn.test", 443));
        assert_eq!(EgressRule::parse("*.CDN.test:8443").expect("a rule").to_string(), "*.cdn.test:8443");
        assert!(EgressRule::parse("*").is_err() && EgressRule::parse("*.").is_err());
    }

    #[test]
    fn the_domain_of_the_arena_has_a_border() {
        assert!(is_in_arena("arena.test") && is_in_arena("shop.arena.test"));
        assert!(!is_in_arena("myarena.test") && !is_in_arena("arena.test.evil.test"));
    }
}
