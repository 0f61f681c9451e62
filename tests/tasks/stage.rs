//! The sites that agents work on, and arenad's API beside them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::attempt::Done;
use crate::files::Task;
use crate::visitor::Visitor;

/// A customer who is not the one that tasks are about.
const STRANGER: (&str, &str) = ("rowan.lindqvist@courier.test", "Password.123");

/// The password that every member of the forum has.
const FORUM_PASSWORD: &str = "test1234";

/// The password that every developer of the forge has, but for the one that tasks are about.
const FORGE_PASSWORD: &str = "Password.123";

/// The accounts that agents are signed in with, by site.
const ACCOUNTS: [(&str, &str); 8] = [
    ("shopping", "customer"),
    ("shopping_admin", "administrator"),
    ("reddit", "member"),
    ("reddit", "moderator"),
    ("gitlab", "byteblaze"),
    ("turkle", "worker"),
    ("turkle", "second"),
    ("turkle", "administrator"),
];

/// How long a request to the API may take; a reset is the longest of them.
const PATIENCE: Duration = Duration::from_secs(180);

/// Where agents work; cheap to copy.
#[derive(Clone)]
pub struct Stage {
    api: Client,
    origins: Arc<BTreeMap<&'static str, &'static str>>,
    sessions: Arc<BTreeMap<(&'static str, &'static str), Vec<String>>>,
}

impl Stage {
    /// The stage of an arena with these sites.
    pub async fn new(arena: &Arena, sites: &[&'static str]) -> Self {
        let socket = arena.state_dir().join("arenad.sock");
        let origin = |site: &'static str| {
            let url = reqwest::Url::parse(&arena.url(site)).expect("a URL");
            (site, &*String::leak(url.origin().ascii_serialization()))
        };
        let origins = Arc::new(sites.iter().map(|site| origin(site)).collect());
        let mut stage = Self { api: api(&socket), origins, sessions: Arc::default() };
        let mut sessions = BTreeMap::new();
        for (site, account) in ACCOUNTS {
            sessions.insert((site, account), stage.session(site, account).await);
        }
        stage.sessions = Arc::new(sessions);
        stage
    }

    /// The customer of the tasks in the shop, signed in as agents are: by the session of the baseline.
    pub fn customer(&self) -> Visitor {
        self.signed_in("shopping", "customer")
    }

    /// Another customer, who signs in by the form.
    pub async fn stranger(&self) -> Visitor {
        let visitor = self.guest("shopping");
        let form = visitor.open("/customer/account/login/").await.form("#login_form");
        let form = form.set("login-username", STRANGER.0).set("login-password", STRANGER.1);
        let page = visitor.send(form.set("login_submit", "Sign In")).await;
        assert!(!page.url.path().contains("login"), "signed in: {}", page.url);
        visitor
    }

    /// The administrator in the back office.
    pub fn administrator(&self) -> Visitor {
        self.signed_in("shopping_admin", "administrator")
    }

    /// Somebody with the encyclopaedia.
    pub fn reader(&self) -> Visitor {
        self.guest("wikipedia")
    }

    /// The member of the tasks in the forum.
    pub fn member(&self) -> Visitor {
        self.signed_in("reddit", "member")
    }

    /// The member who keeps order in the forum.
    pub fn moderator(&self) -> Visitor {
        self.signed_in("reddit", "moderator")
    }

    /// Another member of the forum, who signs in by the form.
    pub async fn other_member(&self, name: &str) -> Visitor {
        let visitor = self.guest("reddit");
        let form = visitor.open("/login").await.form("form:has([name=password])");
        let page = visitor.send(form.set("username", name).set("password", FORUM_PASSWORD)).await;
        assert!(!page.url.path().contains("login"), "signed in: {}", page.url);
        visitor
    }

    /// The developer of the tasks in the forge.
    pub fn developer(&self) -> Visitor {
        self.signed_in("gitlab", "byteblaze")
    }

    /// Another developer, who signs in by the form.
    pub async fn other_developer(&self, name: &str) -> Visitor {
        let visitor = self.guest("gitlab");
        let form = visitor.open("/login/").await.form("form:has([name=password])");
        let page = visitor.send(form.set("username", name).set("password", FORGE_PASSWORD)).await;
        assert!(!page.url.path().contains("login"), "signed in: {}", page.url);
        visitor
    }

    /// The worker of the tasks in Turkle.
    pub fn worker(&self) -> Visitor {
        self.signed_in("turkle", "worker")
    }

    /// Another worker.
    pub fn other_worker(&self) -> Visitor {
        self.signed_in("turkle", "second")
    }

    /// Who publishes the work in Turkle.
    pub fn requester(&self) -> Visitor {
        self.signed_in("turkle", "administrator")
    }

    /// Somebody with the map.
    pub fn traveller(&self) -> Visitor {
        self.guest("map")
    }

    /// Somebody at the homepage.
    pub fn host(&self) -> Visitor {
        self.guest("homepage")
    }

    fn guest(&self, site: &'static str) -> Visitor {
        Visitor::new(self.origins[site], &[])
    }

    fn signed_in(&self, site: &'static str, account: &'static str) -> Visitor {
        Visitor::new(self.origins[site], &self.sessions[&(site, account)])
    }

    /// The cookies of an account's session, which every reset brings back.
    async fn session(&self, site: &str, account: &str) -> Vec<String> {
        let session = self.post(&format!("sites/{site}/accounts/{account}/login"), &json!(null)).await;
        assert_eq!(session["is_kept"], true, "the session of {account} is part of the baseline");
        let cookies = session["cookies"].as_array().expect("cookies").iter();
        let text = |cookie: &Value, key: &str| cookie[key].as_str().expect("a text").to_owned();
        cookies.map(|cookie| format!("{}={}", text(cookie, "name"), text(cookie, "value"))).collect()
    }

    /// Brings the task's sites to where it starts, where that is asked, and notes what its check compares with.
    pub async fn begin(&self, task: &Task, reset: bool) -> Value {
        self.post("checks/begin", &json!({ "task": task.name, "reset": reset })).await
    }

    /// Checks what an agent has done.
    pub async fn check(&self, task: &Task, begun: &Value, done: &Done) -> Value {
        let url = if done.url.is_empty() { begun["start"].as_str().expect("a URL") } else { &done.url };
        let request = json!({ "task": task.name, "begun": begun, "answer": done.answer, "url": url });
        self.post("checks", &request).await["report"].take()
    }

    async fn post(&self, resource: &str, body: &Value) -> Value {
        let mut request = self.api.post(format!("http://localhost/v1/environments/mini/{resource}"));
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap_or_else(|error| panic!("{resource}: {error}"));
        let status = answer.status();
        let text = answer.text().await.expect("an answer");
        assert!(status.is_success(), "{resource}: {status} {text}");
        serde_json::from_str(&text).expect("JSON")
    }
}

fn api(socket: &Path) -> Client {
    Client::builder().unix_socket(socket).timeout(PATIENCE).build().expect("a client")
}
