//! Pages of the sites as clients see them: the pages on which writes would appear.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use super::clients::Clients;
use crate::arena::Arena;

/// A limit that no page reaches on a slow, busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Text that differs between answers of an unchanged site: CSRF tokens, nonces, and phrases such as `3 minutes ago`.
static FLEETING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"nonce="[^"]*"|[A-Za-z0-9_.-]{32,}|\b(an?|\d+) (second|minute|hour)s?\b|Duration: [0-9.]+"#)
        .expect("a pattern")
});

/// Reads a site's pages for comparison.
pub struct Pages {
    client: reqwest::Client,
    requests: Vec<(String, PageRequest)>,
}

/// A page and the request for it.
struct PageRequest {
    url: String,
    headers: Vec<(&'static str, String)>,
}

impl Pages {
    /// The pages of the sites that clients write to.
    pub fn of(arena: &Arena, clients: &Clients) -> Self {
        let paths: [(&str, &[&str]); 5] = [
            ("shopping", &["/", "/accounts/wishlists/"]),
            ("reddit", &["/", "/api/threads/1/posts/"]),
            ("gitlab", &["/byteblaze/tidegauge/issues", "/api/0/byteblaze/tidegauge/issues?status=all"]),
            ("turkle", &["/", "/api/projects/"]),
            ("homepage", &["/", "/scratchpad.html"]),
        ];
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        let pages = paths.iter().filter(|(site, _)| clients.writes_to(site)).flat_map(|(site, paths)| {
            let origin = arena.url(site).trim_end_matches('/').to_owned();
            paths.iter().map(move |path| {
                let page = PageRequest { url: format!("{origin}{path}"), headers: clients.headers(site) };
                ((*site).to_owned(), page)
            })
        });
        Self { client, requests: pages.collect() }
    }

    /// Reads the pages of a site without the parts that differ each time. All must be answered with 200.
    pub async fn read(&self, site: &str) -> Vec<String> {
        let mut all = Vec::new();
        for (_, PageRequest { url, headers }) in self.requests.iter().filter(|(of, _)| of == site) {
            let mut request = self.client.get(url);
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            let answer = request.send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
            let status = answer.status();
            let text = answer.text().await.unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(status, 200, "{url}: {text}");
            assert!(text.len() > 20, "{url} has content: {text}");
            all.push(FLEETING.replace_all(&text, "~").into_owned());
        }
        all
    }
}
