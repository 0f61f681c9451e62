//! A client of the API of episodes, and the visitor that uses the sites of one through the episode proxy.

use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::{Client, Url};
use serde_json::{Value, json};

use crate::resetter::shop;

/// The time limit for the end of recycling.
const PATIENCE: Duration = Duration::from_secs(180);
/// The time limit until all slots of all sites exist.
const ALL_SLOTS: Duration = Duration::from_secs(1800);
/// The interval between two looks at a state.
const LOOK: Duration = Duration::from_millis(5);

/// A client of the daemon, which many tasks share.
#[derive(Clone)]
pub struct EpisodeApi {
    client: Client,
}

/// An episode that was granted.
pub struct Grant {
    /// The id of the episode.
    pub id: String,
    /// The answer to the request.
    pub started: Value,
    /// From the request to the answer, in milliseconds.
    pub took: f64,
}

impl EpisodeApi {
    /// A client of the daemon with this state directory.
    pub fn of(state: &Path) -> Self {
        let client = Client::builder().unix_socket(state.join("arenad.sock")).build().expect("a client");
        Self { client }
    }

    /// Starts an episode on some sites, and waits until it is granted.
    pub async fn start(&self, sites: &[&str], wait_seconds: u64) -> Grant {
        let begun = Instant::now();
        let request = json!({ "sites": sites, "wait_seconds": wait_seconds, "ttl_seconds": 600 });
        let answer = self.client.post("http://arenad/v1/episodes").json(&request).send().await.expect("an answer");
        let (status, text) = (answer.status(), answer.text().await.expect("a body"));
        assert!(status.is_success(), "{status}: {text}");
        let took = begun.elapsed().as_secs_f64() * 1e3;
        let started: Value = serde_json::from_str(&text).expect("JSON");
        let id = started["episode"]["id"].as_str().expect("an id").to_owned();
        Grant { id, started, took }
    }

    /// Ends an episode; returns the time in milliseconds.
    pub async fn end(&self, id: &str) -> f64 {
        let begun = Instant::now();
        let answer = self.client.delete(format!("http://arenad/v1/episodes/{id}")).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
        begun.elapsed().as_secs_f64() * 1e3
    }

    /// Opens the connection that holds an episode. The episode ends when the answer is dropped.
    pub async fn hold(&self, grant: &Grant) -> reqwest::Response {
        let token = grant.started["token"].as_str().expect("a token");
        let request = self.client.get(format!("http://arenad/v1/episodes/{}/hold", grant.id)).bearer_auth(token);
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
        answer
    }

    /// Starts children of an episode, and waits until all are granted. Returns their ids.
    pub async fn fork(&self, id: &str, children: usize) -> Vec<String> {
        let request = json!({ "children": children, "wait_seconds": 600 });
        let answer = self.client.post(format!("http://arenad/v1/episodes/{id}/fork")).json(&request).send().await;
        let answer = answer.expect("an answer");
        let (status, text) = (answer.status(), answer.text().await.expect("a body"));
        assert_eq!(status, 201, "{text}");
        let forked: Value = serde_json::from_str(&text).expect("JSON");
        let children = forked["children"].as_array().cloned().unwrap_or_default();
        children.iter().map(|child| child["episode"]["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// Lists what an episode has changed; returns the time in milliseconds.
    pub async fn changes(&self, id: &str) -> f64 {
        let begun = Instant::now();
        let changes = self.get(&format!("/v1/episodes/{id}/changes")).await;
        assert!(changes.to_string().contains("added"), "{changes:#}");
        begun.elapsed().as_secs_f64() * 1e3
    }

    /// Returns an episode as the API reports it.
    pub async fn episode(&self, id: &str) -> Value {
        self.get(&format!("/v1/episodes/{id}")).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.client.get(format!("http://arenad{path}")).send().await.expect("an answer");
        answer.json().await.expect("JSON")
    }

    /// Waits until all slots of these sites are free, and their standbys are ready.
    pub async fn await_rest(&self, sites: &[&str]) {
        self.await_sites(sites, PATIENCE, is_at_rest).await;
    }

    /// Waits until sites have a number of slots, all ready.
    pub async fn await_slots(&self, sites: &[&str], number: usize) {
        let is_there = |slots: &Vec<Value>| slots.len() >= number && slots.iter().all(|slot| slot["state"] == "ready");
        self.await_sites(sites, ALL_SLOTS, |site| site["slots"].as_array().is_some_and(is_there)).await;
    }

    async fn await_sites(&self, sites: &[&str], patience: Duration, is_as_wanted: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.get("/v1/status").await;
            let all = status["environments"][0]["sites"].as_array().cloned().unwrap_or_default();
            let mut wanted = all.iter().filter(|site| sites.iter().any(|name| site["name"] == *name));
            if wanted.all(&is_as_wanted) {
                return;
            }
            assert!(Instant::now() < deadline, "the sites do not come to rest: {status:#}");
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn is_at_rest(site: &Value) -> bool {
    let list = |key: &str| site[key].as_array().cloned().unwrap_or_default();
    let members = site["standbys"]["members"].as_array().cloned().unwrap_or_default();
    let ready = members.iter().filter(|member| member["state"] == "running" || member["state"] == "frozen").count();
    let is_free = list("slots").iter().all(|slot| slot["occupation"] == "free" && slot["state"] == "ready");
    // Standbys are made once there is something to reset.
    let has_standbys = ready as u64 >= site["standbys"]["wanted"].as_u64().unwrap_or_default();
    site["state"] == "ready" && is_free && (has_standbys || site["last_reset"].is_null())
}

/// A visitor of the sites of an episode.
pub struct EpisodeVisitor {
    client: Client,
    urls: Vec<(String, String)>,
}

impl EpisodeVisitor {
    /// A visitor with the credentials of an episode.
    pub fn of(grant: &Grant) -> Self {
        let text =
            |value: &Value| value.as_str().unwrap_or_else(|| panic!("{:#}", grant.started["episode"])).to_owned();
        let proxy = &grant.started["proxy"];
        let (server, user, password) = (text(&proxy["server"]), text(&proxy["username"]), text(&proxy["password"]));
        let proxy = reqwest::Proxy::http(server).expect("an address").basic_auth(&user, &password);
        let client = Client::builder().proxy(proxy).redirect(reqwest::redirect::Policy::none());
        let sites = grant.started["episode"]["sites"].as_array().cloned().unwrap_or_default();
        let urls = sites.iter().map(|site| (text(&site["site"]), text(&site["proxy_url"]))).collect();
        Self { client: client.build().expect("a client"), urls }
    }

    /// Puts a product into the shop's basket, and sends this number of requests to the sites in turn: their first pages,
    /// and `/healthz`, with which each of them writes to its database.
    pub async fn visit(&self, requests: usize) {
        if let Some((_, shop_url)) = self.urls.iter().find(|(site, _)| site == "shopping") {
            shop(&self.client, shop_url).await;
        }
        for number in 0..requests {
            let (site, url) = &self.urls[number % self.urls.len()];
            // The first round writes to every site; later ones read too.
            let path = if (number / self.urls.len()).is_multiple_of(2) { "/healthz" } else { "/" };
            let address = Url::parse(url).and_then(|url| url.join(path)).expect("a URL");
            let answer = self.client.get(address).send().await;
            let status = answer.expect("an answer").status();
            assert!(status.is_success() || status.is_redirection(), "{site}{path}: {status}");
        }
    }
}
