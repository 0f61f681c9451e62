//! The sites at the own ports of their slots: every page is delivered, and no link of it leaves the slots of the episode.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use regex::Regex;
use reqwest::Client;
use serde_json::Value;
use url::Url;

use crate::arena::Arena;
use crate::arena::shared::SharedArena;

/// The number of pages of each site that are read.
const PAGES: usize = 15;

/// A reader of the pages of one site, who follows links like a person.
struct SiteReader {
    client: Client,
    /// The URL at the own port of the slot.
    own: Url,
    /// The address that the site was made for.
    canonical: String,
    seen: BTreeSet<String>,
    wrong: Vec<String>,
}

impl SiteReader {
    fn of(arena: &Arena, site: &str, started: &Value) -> Self {
        let own = started["episode"]["sites"][0]["port_url"].as_str().unwrap_or_else(|| panic!("{started:#}"));
        let public: Url = arena.url(site).parse().expect("a URL");
        let canonical = format!("localhost:{}", public.port().expect("a port"));
        let client = Client::builder().no_proxy().cookie_store(true).timeout(Duration::from_secs(60));
        let client = client.build().expect("a client");
        Self { client, own: own.parse().expect("a URL"), canonical, seen: BTreeSet::new(), wrong: Vec::new() }
    }

    /// Reads pages from an address on, and notes those that are refused or have an address of the public port.
    async fn read(&mut self, from: &str) {
        let link = Regex::new(r##"(?:href|src|action)="([^"#]+)"##).expect("a pattern");
        let mut waiting = VecDeque::from([self.own.join(from).expect("a URL")]);
        let most = self.seen.len() + PAGES;
        while let Some(url) = waiting.pop_front().filter(|_| self.seen.len() < most) {
            if url.origin() != self.own.origin() || url.path().contains("logout") || !self.seen.insert(url.to_string())
            {
                continue;
            }
            let answer = self
                .client
                .get(url.clone())
                .header("accept-encoding", "gzip")
                .send()
                .await
                .unwrap_or_else(|error| panic!("{url}: {error}"));
            let (status, reached) = (answer.status().as_u16(), answer.url().clone());
            let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap_or_default().to_owned());
            let text = String::from_utf8_lossy(&answer.bytes().await.expect("a body")).into_owned();
            if status >= 500 || reached.origin() != self.own.origin() {
                self.wrong.push(format!("{url}: {status} at {reached}"));
            }
            let kind = kind.unwrap_or_default();
            if !kind.starts_with("text/") && !kind.contains("json") && !kind.contains("javascript") {
                continue;
            }
            if let Some(at) = text.find(&self.canonical) {
                let around: String = text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
                self.wrong.push(format!("{url} has {around}{}", self.canonical));
            }
            if kind.starts_with("text/html") {
                let links =
                    link.captures_iter(&text).filter_map(|found| reached.join(&found[1].replace("&amp;", "&")).ok());
                waiting.extend(links);
            }
        }
    }
}

/// Reads a site at the own port of the slot of an episode.
async fn is_read_at_its_own_port(site: &str, further: &[&str]) {
    let arena = SharedArena::with(&[site]);
    let started = arena.json(&["episode", "start", site, "--ttl", "20m", "--json"]);
    let mut reader = SiteReader::of(&arena, site, &started);
    for from in ["/"].iter().chain(further) {
        reader.read(from).await;
    }
    let ended = arena.arenad(&["episode", "end", started["episode"]["id"].as_str().expect("an id")]);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    println!("{site}: {} pages", reader.seen.len());
    assert!(reader.wrong.is_empty(), "{:#?}", reader.wrong);
    assert!(reader.seen.len() > 5, "{:?}", reader.seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shop_is_read_at_its_own_port() {
    is_read_at_its_own_port("shopping", &["/catalogue/", "/search/?q=larkmoor"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_back_office_is_read_at_its_own_port() {
    is_read_at_its_own_port("shopping_admin", &["/admin"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_forum_is_read_at_its_own_port() {
    is_read_at_its_own_port("reddit", &["/categories/", "/api/search/?q=museum"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crowd_work_is_read_at_its_own_port() {
    is_read_at_its_own_port("turkle", &["/login/"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_homepage_is_read_at_its_own_port() {
    is_read_at_its_own_port("homepage", &["/manuals/"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_forge_is_read_at_its_own_port() {
    is_read_at_its_own_port("gitlab", &["/byteblaze/tidegauge"]).await;
}
