//! Resets through the API on a persistent connection, as a client that runs episodes would request them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::arena::Arena;

/// The time limit for the preparation of a standby.
const PATIENCE: Duration = Duration::from_secs(120);

/// The interval between two looks for a standby.
const LOOK: Duration = Duration::from_millis(10);

/// A reset as the API describes it.
pub struct TimedReset {
    /// The tier that did the reset, as the API names it.
    pub way: String,
    /// From the call's arrival to its end, in milliseconds.
    pub took: f64,
    /// The duration of each stage, in milliseconds.
    pub stages: Vec<(String, f64)>,
}

/// A client of the daemon's API.
pub struct Resetter {
    runtime: Runtime,
    client: reqwest::Client,
    /// The client of the sites' visitors. It opens a connection for each request, and it is made once: making one loads the
    /// machine's certificates, which is not the sites' cost.
    visitor: reqwest::Client,
}

impl Resetter {
    /// A client of an environment's daemon.
    pub fn of(arena: &Arena) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = reqwest::Client::builder().unix_socket(arena.state_dir().join("arenad.sock"));
        let visitor = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).pool_max_idle_per_host(0);
        Self { runtime, client: client.build().expect("a client"), visitor: visitor.build().expect("a client") }
    }

    fn get(&self, path: &str) -> Value {
        self.runtime.block_on(async {
            let answer = self.client.get(format!("http://arenad{path}")).send().await.expect("an answer");
            answer.json().await.expect("JSON")
        })
    }

    /// Resets sites in one call; returns how long that took as the client sees it, in milliseconds.
    pub fn reset(&self, sites: &[&str]) -> (f64, Vec<TimedReset>) {
        self.ask(&json!({ "sites": sites }))
    }

    /// Resets a site if clients have touched it.
    pub fn reset_if_dirty(&self, site: &str) -> TimedReset {
        self.ask(&json!({ "sites": [site], "if_dirty": true })).1.remove(0)
    }

    /// Opens a page of a site, as a browser on its first visit.
    pub fn visit(&self, site: &str, path: &str) {
        let page = reqwest::Url::parse(site).and_then(|url| url.join(path)).expect("a URL");
        let status =
            self.runtime.block_on(async { self.visitor.get(page.clone()).send().await.expect("an answer").status() });
        assert!(status.is_success(), "{page}: {status}");
    }

    /// Opens a shop as a browser on its first visit, puts a product into the basket, and opens the basket.
    pub fn shop(&self, site: &str) {
        self.runtime.block_on(shop(&self.visitor, site));
    }

    fn ask(&self, wish: &Value) -> (f64, Vec<TimedReset>) {
        let begun = Instant::now();
        let accepted: Value = self.runtime.block_on(async {
            let request = self.client.post("http://arenad/v1/environments/mini/resets").json(wish);
            request.send().await.expect("an answer").json().await.expect("JSON")
        });
        let operations = accepted["operations"].as_array().unwrap_or_else(|| panic!("operations: {accepted:#}"));
        let ended: Vec<Value> = operations
            .iter()
            .map(|operation| self.get(&format!("/v1/operations/{}?wait=60", operation["id"].as_str().expect("an id"))))
            .collect();
        let took = begun.elapsed().as_secs_f64() * 1e3;
        (took, ended.iter().map(done).collect())
    }

    /// Compares all state of a site with its snapshot; returns the client's time in milliseconds.
    pub fn verify(&self, site: &str) -> f64 {
        let begun = Instant::now();
        let verification: Value = self.runtime.block_on(async {
            let request = self.client.post(format!("http://arenad/v1/environments/mini/sites/{site}/verify"));
            request.send().await.expect("an answer").json().await.expect("JSON")
        });
        assert_eq!(verification["equal"], true, "{verification:#}");
        begun.elapsed().as_secs_f64() * 1e3
    }

    fn site(&self, name: &str) -> Value {
        let status = self.get("/v1/status");
        let sites = status["environments"][0]["sites"].as_array().cloned().unwrap_or_default();
        sites.into_iter().find(|site| site["name"] == name).expect("the site is up")
    }

    /// Waits until each of the sites has all the standbys that it is configured to have.
    pub fn await_standbys(&self, sites: &[&str]) {
        let deadline = Instant::now() + PATIENCE;
        for site in sites {
            loop {
                let standbys = self.site(site)["standbys"].clone();
                let members = standbys["members"].as_array().cloned().unwrap_or_default();
                let is_ready = |member: &&Value| member["state"] == "running" || member["state"] == "frozen";
                let ready = members.iter().filter(is_ready).count();
                if ready as u64 >= standbys["wanted"].as_u64().unwrap_or_default() && ready == members.len() {
                    break;
                }
                assert!(Instant::now() < deadline, "{site} has no standby: {standbys}");
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Returns the image of a site's snapshot.
    pub fn image(&self, arena: &Arena, site: &str) -> String {
        let snapshot = self.site(site)["snapshot"].as_str().expect("a snapshot").to_owned();
        let snapshots = arena.json(&["snapshot", "ls", "--json"]);
        let taken =
            snapshots["snapshots"].as_array().and_then(|all| all.iter().find(|it| it["id"] == snapshot.as_str()));
        taken.and_then(|taken| taken["images"][site].as_str()).expect("an image").to_owned()
    }
}

/// Opens a shop as a browser on its first visit, puts a product into the basket, and opens the basket.
pub async fn shop(visitor: &reqwest::Client, site: &str) {
    let between = |text: &str, before: &str, after: &str| -> String {
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}"));
        rest.split_once(after).expect("its end").0.to_owned()
    };
    let origin = reqwest::Url::parse(site).and_then(|url| url.join("/")).expect("a URL");
    let page = visitor.get(origin.clone()).send().await.expect("an answer");
    let cookies = |answer: &reqwest::Response| -> Vec<String> {
        let all = answer.headers().get_all("set-cookie").into_iter().filter_map(|cookie| cookie.to_str().ok());
        all.filter_map(|cookie| cookie.split(';').next().map(str::to_owned)).collect()
    };
    let mut known = cookies(&page);
    let page = page.text().await.expect("a page");
    let product = between(&page, "action=\"/basket/add/", "\"");
    let token = between(&page, "name=\"csrfmiddlewaretoken\" value=\"", "\"");
    let added = visitor
        .post(origin.join(&format!("/basket/add/{product}")).expect("a URL"))
        .header("cookie", known.join("; "))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("csrfmiddlewaretoken={token}&quantity=1"))
        .send()
        .await
        .expect("an answer");
    assert!(added.status().is_redirection(), "the product was not added: {}", added.status());
    known.extend(cookies(&added));
    let basket = visitor.get(origin.join("/basket/").expect("a URL")).header("cookie", known.join("; "));
    let basket = basket.send().await.expect("an answer").text().await.expect("a page");
    assert!(!basket.contains("Your basket is empty"), "the basket is empty");
}

fn done(operation: &Value) -> TimedReset {
    assert_eq!(operation["state"], "done", "{operation:#}");
    let stages = operation["reset"]["stages"].as_array().into_iter().flatten();
    TimedReset {
        way: operation["reset"]["strategy"].as_str().expect("a way").to_owned(),
        took: operation["duration_ms"].as_f64().expect("a duration"),
        stages: stages
            .map(|stage| {
                let name = stage["stage"].as_str().unwrap_or_default().to_owned();
                (name, stage["duration_ms"].as_f64().unwrap_or_default())
            })
            .collect(),
    }
}
