//! Formats a session for other programs.

use serde_json::json;

use arenad_api::{AccountSession, StorageCookie};

/// Returns a storage state for Playwright's `browser.newContext({ storageState })`. The format has no place for
/// headers.
pub fn playwright(session: &AccountSession) -> String {
    let state = json!({ "cookies": session.cookies, "origins": [] });
    format!("{state:#}\n")
}

/// Returns a cookie file for curl and wget. The format has no place for headers.
///
/// Shape: domain, whether subdomains are included, path, whether encrypted only, expiry, name, value; separated by
/// tabs.
pub fn netscape(session: &AccountSession) -> String {
    let mut text = "# Netscape HTTP Cookie File\n".to_owned();
    for cookie in &session.cookies {
        let StorageCookie { name, value, domain, path, .. } = cookie;
        let flag = |yes: bool| if yes { "TRUE" } else { "FALSE" };
        let prefix = if cookie.http_only { "#HttpOnly_" } else { "" };
        let (subdomains, secure) = (flag(domain.starts_with('.')), flag(cookie.secure));
        let expires = cookie.expires.max(0);
        text += &format!("{prefix}{domain}\t{subdomains}\t{path}\t{secure}\t{expires}\t{name}\t{value}\n");
    }
    text
}

/// Returns the headers of a request, one per line.
pub fn header(session: &AccountSession) -> String {
    let mut text: String = session.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    if !session.cookies.is_empty() {
        let pairs: Vec<String> =
            session.cookies.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        text += &format!("Cookie: {}\n", pairs.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn session() -> AccountSession {
        let cookie = |name: &str, domain: &str, expires, http_only| StorageCookie {
            name: name.to_owned(),
            value: "v=1".to_owned(),
            domain: domain.to_owned(),
            path: "/".to_owned(),
            expires,
            http_only,
            secure: false,
            same_site: "Lax".to_owned(),
        };
        AccountSession {
            environment: "mini".to_owned(),
            site: "shopping".to_owned(),
            account: "customer".to_owned(),
            url: "http://localhost:7770".to_owned(),
            instance: "mini/shopping/1".to_owned(),
            generation: 1,
            is_kept: false,
            duration_ms: 12.0,
            cookies: vec![cookie("sid", "localhost", 2_000_000_000, true), cookie("lang", ".arena.test", -1, false)],
            headers: BTreeMap::from([("authorization".to_owned(), "Bearer x".to_owned())]),
        }
    }

    #[test]
    fn playwright_reads_names_in_camel_case() {
        let state: serde_json::Value = serde_json::from_str(&playwright(&session())).expect("JSON");
        assert_eq!(state["origins"], json!([]));
        let expected = json!({
            "name": "sid", "value": "v=1", "domain": "localhost", "path": "/", "expires": 2_000_000_000,
            "httpOnly": true, "secure": false, "sameSite": "Lax",
        });
        assert_eq!(state["cookies"][0], expected);
        assert_eq!(state["cookies"][1]["expires"], -1);
    }

    #[test]
    fn curl_reads_columns_and_headers() {
        let expected = "# Netscape HTTP Cookie File\n\
                        #HttpOnly_localhost\tFALSE\t/\tFALSE\t2000000000\tsid\tv=1\n\
                        .arena.test\tTRUE\t/\tFALSE\t0\tlang\tv=1\n";
        assert_eq!(netscape(&session()), expected);
        assert_eq!(header(&session()), "authorization: Bearer x\nCookie: sid=v=1; lang=v=1\n");
    }
}
