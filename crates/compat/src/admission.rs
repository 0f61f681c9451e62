//! Whether a request may be answered at all.
//!
//! The protocols have no credentials, so every program of this host may reset sites. Pages may not:
//!
//! - A page whose name an attacker resolves to this host (DNS rebinding) sends its own name as `Host`. Only IP
//!   addresses, which cannot be resolved to others, `localhost`, and the host names of environments are accepted.
//! - A page of any origin, the sites themselves among them, can make a browser send a `GET` with a link or a picture.
//!   An agent can be talked into opening the address. Harnesses and scripts use other programs, so a request of a
//!   browser changes nothing. Browsers send `Sec-Fetch-Site` to this host, `Origin` with forms, and a
//!   `User-Agent` that begins with `Mozilla/`, which no page can remove, also where they leave the other two out.

use std::net::IpAddr;

/// The parts of a request that tell where it comes from.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestOrigin<'a> {
    /// The values of `Host`, and the authority of an absolute target.
    pub hosts: &'a [&'a str],
    /// The value of `User-Agent`.
    pub user_agent: Option<&'a str>,
    /// Whether the request has an `Origin`.
    pub has_origin: bool,
    /// Whether the request has a `Sec-Fetch-Site`.
    pub has_fetch_site: bool,
}

/// The reason why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionRefusal {
    /// The request names a host that is not this one.
    #[error("`{0}` is not a name of this server")]
    UnknownHost(String),
    /// A browser made a request that changes sites.
    #[error("browsers cannot reset sites here, because every page could make them do it")]
    Browser,
}

/// Admits a request, or returns the reason why it is not answered. `names` are the host names of the environments that
/// are up.
pub fn admit(origin: &RequestOrigin<'_>, changes_state: bool, names: &[String]) -> Result<(), AdmissionRefusal> {
    if let Some(unknown) = origin.hosts.iter().find(|host| !is_own(host, names)) {
        return Err(AdmissionRefusal::UnknownHost((*unknown).to_owned()));
    }
    let is_browser = origin.user_agent.is_some_and(|agent| agent.trim_start().starts_with("Mozilla/"));
    if changes_state && (is_browser || origin.has_origin || origin.has_fetch_site) {
        return Err(AdmissionRefusal::Browser);
    }
    Ok(())
}

/// Whether a value of `Host` names this host.
fn is_own(host: &str, names: &[String]) -> bool {
    let name = without_port(host);
    let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    literal.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !is_bare_ipv6(host) => name,
        _ => host,
    }
}

fn is_bare_ipv6(host: &str) -> bool {
    !host.starts_with('[') && host.matches(':').count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_host<'a>(hosts: &'a [&'a str]) -> RequestOrigin<'a> {
        RequestOrigin { hosts, ..RequestOrigin::default() }
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        let names = ["arena.example.org".to_owned()];
        for host in ["localhost", "localhost:7565", "LOCALHOST", "127.0.0.1:7565", "[::1]:7565", "[::1]", "::1"] {
            assert_eq!(admit(&of_host(&[host]), true, &names), Ok(()), "{host}");
        }
        for host in ["arena.example.org", "Arena.Example.org:7565", "192.0.2.1:80"] {
            assert_eq!(admit(&of_host(&[host]), true, &names), Ok(()), "{host}");
        }
        for host in ["evil.example", "evil.example:7565", "localhost.evil.example", "127.0.0.1.nip.io", "", ":7565"] {
            let refused = Err(AdmissionRefusal::UnknownHost(host.to_owned()));
            assert_eq!(admit(&of_host(&[host]), true, &names), refused, "{host}");
            assert_eq!(admit(&of_host(&[host]), false, &names), refused, "a look at {host}");
            assert_eq!(admit(&of_host(&["localhost", host]), true, &names), refused, "a second {host}");
        }
        assert_eq!(admit(&of_host(&[]), true, &names), Ok(()), "HTTP/1.0 has no host, and no browser speaks it");
        assert!(admit(&of_host(&["arena.example.org"]), true, &[]).is_err(), "the environment is not up");
    }

    #[test]
    fn browsers_look_and_change_nothing() {
        let hosts = ["localhost:7565"];
        let harness = RequestOrigin { user_agent: Some("python-requests/2.32.3"), ..of_host(&hosts) };
        let browser = RequestOrigin { user_agent: Some("Mozilla/5.0 (X11; Linux x86_64)"), ..of_host(&hosts) };
        let fetch = RequestOrigin { has_fetch_site: true, ..of_host(&hosts) };
        let form = RequestOrigin { has_origin: true, ..of_host(&hosts) };
        assert_eq!(admit(&harness, true, &[]), Ok(()));
        assert_eq!(admit(&of_host(&hosts), true, &[]), Ok(()), "urllib and curl without options");
        for origin in [browser, fetch, form] {
            assert_eq!(admit(&origin, true, &[]), Err(AdmissionRefusal::Browser), "{origin:?}");
            assert_eq!(admit(&origin, false, &[]), Ok(()), "{origin:?}");
        }
    }
}
