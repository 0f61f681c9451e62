//! A site under another address than the one that it was made for.
//!
//! A site is made for one address (the canonical one): it checks `Host`, `Origin` and `Referer` against that address,
//! and writes it into redirects. A client that uses an alias must not notice this, or it would leave the alias, and the
//! cookies that it got there, with the first redirect. Therefore:
//!
//! | Direction | Header | Change |
//! |---|---|---|
//! | to the site | `Host` | becomes the canonical address |
//! | to the site | `Origin`, `Referer` | an alias of any site of the episode becomes the canonical address of that site |
//! | to the client | `Location`, `Content-Location`, `Refresh` | the canonical address of this site becomes the alias |
//! | to the client | `Set-Cookie` | `Domain` with the canonical host becomes the alias's host; a parent domain is removed |
//! | to the client | `Access-Control-Allow-Origin` | becomes the origin that the client sent |
//!
//! The site therefore sees the same headers as if the client had used the canonical addresses only. Through the episode
//! proxy, nothing else is changed: a link to the canonical address in a page leads to the same site, but as another
//! origin with cookies of its own.
//!
//! At the own port of a slot, a canonical address would lead to the site of another client. There, the addresses of all
//! sites of the environment are replaced ([`AddressTable`]), and in more places:
//!
//! | Direction | Place | Change |
//! |---|---|---|
//! | to the site | the query of the request, such as `?next=http%3A%2F%2F…` | addresses of slots become canonical |
//! | to the client | `Content-Security-Policy` | sources at canonical addresses become addresses of slots |
//! | to the client | all other headers, such as `Link` | URLs at canonical addresses become addresses of slots |

use std::rc::Rc;

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_LOCATION, CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_REPORT_ONLY, HOST,
    LOCATION, ORIGIN, REFERER, REFRESH, SET_COOKIE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::address_table::{AddressDirection, AddressTable};
use super::authority::HostPort;

const SCHEME: &str = "http://";

/// The two addresses of one request's site.
pub(super) struct AliasMap {
    /// The address that the client used.
    used: HostPort,
    canonical: HostPort,
    /// The canonical address as the site was told to use it.
    canonical_text: HeaderValue,
    /// The origin that the client sent, and the origin that the site received instead.
    origin: Option<(HeaderValue, HeaderValue)>,
    /// The addresses of all sites at the own ports of slots; `None` for the episode proxy.
    slots: Option<Rc<AddressTable>>,
}

impl AliasMap {
    /// Returns `None` if the canonical address is not a host.
    pub(super) fn new(used: HostPort, canonical: &str) -> Option<Self> {
        Some(Self {
            used,
            canonical: HostPort::of(canonical)?,
            canonical_text: HeaderValue::from_str(canonical).ok()?,
            origin: None,
            slots: None,
        })
    }

    /// Creates the map of a request to the own port of a slot. Returns `None` if the canonical address is not a host.
    pub(super) fn of_slot(used: HostPort, canonical: &str, slots: Rc<AddressTable>) -> Option<Self> {
        Some(Self { slots: Some(slots), ..Self::new(used, canonical)? })
    }

    /// Changes the head of a request. `canonical_of` returns the canonical address of another site of the episode.
    pub(super) fn map_request(
        &mut self,
        headers: &mut HeaderMap,
        canonical_of: impl Fn(&HostPort) -> Option<HostPort>,
    ) {
        headers.insert(HOST, self.canonical_text.clone());
        let slots = self.slots.clone();
        let of_slots = |place: &HostPort| slots.as_ref()?.mapped(place, AddressDirection::ToSite).cloned();
        let canonical_of = |place: &HostPort| match *place == self.used {
            true => Some(self.canonical.clone()),
            false => of_slots(place).or_else(|| canonical_of(place)),
        };
        if let Some(sent) = headers.get(ORIGIN)
            && let Some(mapped) = mapped_url(sent, &canonical_of)
        {
            self.origin = Some((sent.clone(), mapped.clone()));
            headers.insert(ORIGIN, mapped);
        }
        if let Some(mapped) = headers.get(REFERER).and_then(|sent| mapped_url(sent, &canonical_of)) {
            headers.insert(REFERER, mapped);
        }
    }

    /// Returns the target of a request with the addresses in its query changed, or `None` if it stays as it is.
    pub(super) fn map_target(&self, target: &Uri) -> Option<Uri> {
        let query = target.query()?;
        let mapped = self.slots.as_ref()?.map_text(query.as_bytes(), AddressDirection::ToSite)?;
        let mapped = format!("{}?{}", target.path(), String::from_utf8(mapped).ok()?);
        let mut parts = target.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(mapped).ok()?);
        Uri::from_parts(parts).ok()
    }

    /// Changes the head of a response.
    pub(super) fn map_response(&self, headers: &mut HeaderMap) {
        if let Some((sent, mapped)) = &self.origin
            && headers.get(ACCESS_CONTROL_ALLOW_ORIGIN) == Some(mapped)
        {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, sent.clone());
        }
        if self.used == self.canonical {
            return;
        }
        let of_slots = |place: &HostPort| self.slots.as_ref()?.mapped(place, AddressDirection::ToClient).cloned();
        let alias_of = |place: &HostPort| match *place == self.canonical {
            true => Some(self.used.clone()),
            false => of_slots(place),
        };
        for name in [LOCATION, CONTENT_LOCATION] {
            change_all(headers, &name, |value| mapped_url(value, &alias_of));
        }
        change_all(headers, &REFRESH, |value| mapped_refresh(value, &alias_of));
        change_all(headers, &SET_COOKIE, |value| self.mapped_cookie(value));
        let Some(slots) = &self.slots else { return };
        for name in [CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_REPORT_ONLY] {
            change_all(headers, &name, |value| mapped_policy(value, &alias_of));
        }
        // A query in these is meant for the site, which knows its canonical address only.
        let is_done = |name: &HeaderName| [LOCATION, CONTENT_LOCATION, REFRESH, SET_COOKIE].contains(name);
        for (name, value) in headers.iter_mut().filter(|(name, _)| !is_done(name)) {
            // An origin that the client sent is its own.
            let is_sent =
                *name == ACCESS_CONTROL_ALLOW_ORIGIN && self.origin.as_ref().is_some_and(|(sent, _)| *value == *sent);
            if !is_sent && let Some(mapped) = slots.map_text(value.as_bytes(), AddressDirection::ToClient) {
                *value = HeaderValue::from_bytes(&mapped).unwrap_or_else(|_| value.clone());
            }
        }
    }

    /// Maps the `Domain` of a cookie. Returns `None` if the cookie stays as it is.
    fn mapped_cookie(&self, value: &HeaderValue) -> Option<HeaderValue> {
        let mut parts = value.as_bytes().split(|byte| *byte == b';');
        let mut mapped = parts.next()?.to_vec();
        let mut is_changed = false;
        for part in parts {
            match self.mapped_domain(part) {
                MappedDomain::Unchanged => {
                    mapped.push(b';');
                    mapped.extend_from_slice(part);
                }
                MappedDomain::Alias => {
                    mapped.extend_from_slice(b"; Domain=");
                    mapped.extend_from_slice(self.used.host.as_bytes());
                    is_changed = true;
                }
                MappedDomain::Removed => is_changed = true,
            }
        }
        is_changed.then(|| HeaderValue::from_bytes(&mapped).ok()).flatten()
    }

    fn mapped_domain(&self, attribute: &[u8]) -> MappedDomain {
        let Some((name, domain)) = std::str::from_utf8(attribute).ok().and_then(|text| text.split_once('=')) else {
            return MappedDomain::Unchanged;
        };
        if !name.trim().eq_ignore_ascii_case("domain") {
            return MappedDomain::Unchanged;
        }
        let domain = domain.trim();
        let domain = domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase();
        let parent_of = |host: &str| host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'));
        if domain == self.canonical.host {
            MappedDomain::Alias
        } else if !domain.is_empty() && parent_of(&self.canonical.host) && !parent_of(&self.used.host) {
            MappedDomain::Removed
        } else {
            MappedDomain::Unchanged
        }
    }
}

enum MappedDomain {
    Unchanged,
    Alias,
    Removed,
}

fn change_all(headers: &mut HeaderMap, name: &HeaderName, change: impl Fn(&HeaderValue) -> Option<HeaderValue>) {
    if let http::header::Entry::Occupied(mut entry) = headers.entry(name) {
        for value in entry.iter_mut() {
            if let Some(changed) = change(value) {
                *value = changed;
            }
        }
    }
}

/// Replaces the address of an `http` URL, or of one without a scheme. Returns `None` if the URL stays as it is.
fn mapped_url(value: &HeaderValue, place_of: &impl Fn(&HostPort) -> Option<HostPort>) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    HeaderValue::try_from(mapped_text(text, place_of)?).ok()
}

fn mapped_text(text: &str, place_of: &impl Fn(&HostPort) -> Option<HostPort>) -> Option<String> {
    let has_scheme = text.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
    let prefix = if has_scheme { SCHEME } else { "//" };
    let rest = if has_scheme { &text[SCHEME.len()..] } else { text.strip_prefix("//")? };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let place = HostPort::of(authority)?;
    let mapped = place_of(&place).filter(|mapped| *mapped != place)?;
    Some(format!("{prefix}{mapped}{path}"))
}

/// Maps the URL in `5; url=http://…`.
fn mapped_refresh(value: &HeaderValue, place_of: &impl Fn(&HostPort) -> Option<HostPort>) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let at = text.to_ascii_lowercase().find("url=")? + "url=".len();
    let (before, url) = text.split_at(at);
    let quote = url.chars().next().filter(|first| matches!(first, '"' | '\'')).map_or("", |_| &url[..1]);
    let mapped = mapped_text(&url[quote.len()..], place_of)?;
    HeaderValue::try_from(format!("{before}{quote}{mapped}")).ok()
}

/// Maps the sources of a policy, which need no scheme: `connect-src localhost:7770 ws://localhost:7770`.
fn mapped_policy(value: &HeaderValue, place_of: &impl Fn(&HostPort) -> Option<HostPort>) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let is_separator = |c: char| matches!(c, ' ' | ';' | ',' | '\t');
    let mut mapped = String::with_capacity(text.len());
    for part in text.split_inclusive(is_separator) {
        let source = part.trim_end_matches(is_separator);
        let (scheme, rest) = source.split_once("://").unwrap_or(("", source));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_plain = scheme.is_empty() || scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("ws");
        let place = HostPort::of(authority).filter(|_| is_plain).and_then(|place| place_of(&place));
        match place {
            None => mapped.push_str(part),
            Some(place) => {
                let colon = if scheme.is_empty() { "" } else { "://" };
                mapped.push_str(&format!("{scheme}{colon}{place}{path}{}", &part[source.len()..]));
            }
        }
    }
    (mapped != text).then(|| HeaderValue::try_from(mapped).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(used: &str, canonical: &str) -> AliasMap {
        AliasMap::new(HostPort::of(used).expect("a host"), canonical).expect("a host")
    }

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let parse = |value: &str| HeaderValue::from_str(value).expect("a value");
        pairs.iter().map(|(name, value)| (name.clone(), parse(value))).collect()
    }

    fn forum(place: &HostPort) -> Option<HostPort> {
        (place.host == "forum.test").then(|| HostPort::of("localhost:9999").expect("a host"))
    }

    #[track_caller]
    fn assert_response(alias: &AliasMap, name: HeaderName, sent: &str, expected: &str) {
        let mut answer = headers(&[(name.clone(), sent)]);
        alias.map_response(&mut answer);
        assert_eq!(answer[name], expected, "{sent}");
    }

    #[test]
    fn a_site_sees_canonical_addresses_only() {
        let mut alias = map("shop.test", "localhost:7770");
        let mut request =
            headers(&[(HOST, "shop.test"), (ORIGIN, "http://shop.test"), (REFERER, "http://forum.test/f/1?a#b")]);
        alias.map_request(&mut request, forum);
        assert_eq!(request[HOST], "localhost:7770");
        assert_eq!(request[ORIGIN], "http://localhost:7770");
        assert_eq!(request[REFERER], "http://localhost:9999/f/1?a#b");
        for origin in ["null", "http://evil.test", "https://shop.test", "http://shop.test:81", "http://shop.test.evil"]
        {
            let mut request = headers(&[(ORIGIN, origin)]);
            alias.map_request(&mut request, forum);
            assert_eq!(request[ORIGIN], origin, "a foreign origin stays foreign");
        }
    }

    #[test]
    fn redirects_stay_on_the_alias() {
        let alias = map("shop.test", "localhost:7770");
        for (sent, expected) in [
            ("http://localhost:7770/cart?a=http://localhost:7770/", "http://shop.test/cart?a=http://localhost:7770/"),
            ("http://LOCALHOST:7770", "http://shop.test"),
            ("HTTP://localhost:7770#x", "http://shop.test#x"),
            ("//localhost:7770/x", "//shop.test/x"),
            ("/cart", "/cart"),
            ("http://localhost:7780/admin", "http://localhost:7780/admin"),
            ("http://localhost:7770.evil/", "http://localhost:7770.evil/"),
            ("https://localhost:7770/", "https://localhost:7770/"),
            ("http://u@localhost:7770/", "http://u@localhost:7770/"),
        ] {
            assert_response(&alias, LOCATION, sent, expected);
        }
        assert_response(&alias, REFRESH, "5; URL=http://localhost:7770/x", "5; URL=http://shop.test/x");
        assert_response(&alias, REFRESH, "0;url='http://localhost:7770/x'", "0;url='http://shop.test/x'");
        assert_response(&alias, REFRESH, "5", "5");
        // The canonical address itself needs no change.
        assert_response(
            &map("localhost:7770", "localhost:7770"),
            LOCATION,
            "http://LOCALHOST:7770/",
            "http://LOCALHOST:7770/",
        );
    }

    #[test]
    fn cookies_are_accepted_under_the_alias() {
        let alias = map("shop.test", "www.market.com");
        for (sent, expected) in [
            ("a=b; Path=/; Domain=www.market.com; HttpOnly", "a=b; Path=/; Domain=shop.test; HttpOnly"),
            ("a=b;domain=.WWW.market.com", "a=b; Domain=shop.test"),
            ("a=b; Domain=market.com; Path=/", "a=b; Path=/"),
            ("a=b; Domain=other.com", "a=b; Domain=other.com"),
            ("a=b; Domain=arket.com", "a=b; Domain=arket.com"),
            ("domain=www.market.com; Path=/", "domain=www.market.com; Path=/"),
            ("a=b", "a=b"),
        ] {
            assert_response(&alias, SET_COOKIE, sent, expected);
        }
        let mut two = headers(&[(SET_COOKIE, "a=b; Domain=www.market.com"), (SET_COOKIE, "c=d")]);
        alias.map_response(&mut two);
        assert_eq!(two.get_all(SET_COOKIE).iter().collect::<Vec<_>>(), ["a=b; Domain=shop.test", "c=d"]);
        // A cookie for a domain that both hosts belong to is shared by both.
        assert_response(
            &map("shop.market.com", "www.market.com"),
            SET_COOKIE,
            "a=b; Domain=market.com",
            "a=b; Domain=market.com",
        );
    }

    #[test]
    fn permissions_for_other_origins_name_the_origin_that_the_client_sent() {
        let mut alias = map("shop.test", "localhost:7770");
        alias.map_request(&mut headers(&[(ORIGIN, "http://forum.test")]), forum);
        assert_response(&alias, ACCESS_CONTROL_ALLOW_ORIGIN, "http://localhost:9999", "http://forum.test");
        assert_response(&alias, ACCESS_CONTROL_ALLOW_ORIGIN, "http://localhost:1", "http://localhost:1");
        assert_response(&alias, ACCESS_CONTROL_ALLOW_ORIGIN, "*", "*");
    }
}
