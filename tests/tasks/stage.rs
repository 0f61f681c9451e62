//! The sites on which agents work, and access to arenad's API.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use super::attempt::AttemptOutcome;
use super::files::TemplateTask;
use super::visitor::TaskVisitor;
use crate::arena::Arena;

/// A customer other than the one that the tasks use.
const STRANGER: (&str, &str) = ("rowan.lindqvist@courier.test", "Password.123");

/// The password of every forum member.
const FORUM_PASSWORD: &str = "test1234";

/// The password of every developer of the forge except the one that the tasks use.
const FORGE_PASSWORD: &str = "Password.123";

/// The accounts that agents are signed in to, by site.
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

/// The time limit for a request to the API; a reset takes longest.
const PATIENCE: Duration = Duration::from_secs(180);

/// The sites, sessions and API client that agents share; cheap to clone.
#[derive(Clone)]
pub struct AgentStage {
    api: Client,
    origins: Arc<BTreeMap<&'static str, &'static str>>,
    sessions: Arc<BTreeMap<(&'static str, &'static str), Vec<String>>>,
}

impl AgentStage {
    /// Connects to the API of an arena with these sites and obtains the session of every account.
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

    /// The shop customer that the tasks use, signed in with the session of the baseline as agents are.
    pub fn customer(&self) -> TaskVisitor {
        self.signed_in("shopping", "customer")
    }

    /// Another customer, who signs in through the form.
    pub async fn stranger(&self) -> TaskVisitor {
        let visitor = self.guest("shopping");
        let form = visitor.open("/customer/account/login/").await.form("#login_form");
        let form = form.set("login-username", STRANGER.0).set("login-password", STRANGER.1);
        let page = visitor.send(form.set("login_submit", "Sign In")).await;
        assert!(!page.url.path().contains("login"), "signed in: {}", page.url);
        visitor
    }

    /// The administrator in the back office.
    pub fn administrator(&self) -> TaskVisitor {
        self.signed_in("shopping_admin", "administrator")
    }

    /// A visitor of the encyclopaedia without an account.
    pub fn reader(&self) -> TaskVisitor {
        self.guest("wikipedia")
    }

    /// The forum member that the tasks use.
    pub fn member(&self) -> TaskVisitor {
        self.signed_in("reddit", "member")
    }

    /// The moderator of the forum.
    pub fn moderator(&self) -> TaskVisitor {
        self.signed_in("reddit", "moderator")
    }

    /// Another member of the forum, who signs in through the form.
    pub async fn other_member(&self, name: &str) -> TaskVisitor {
        let visitor = self.guest("reddit");
        let form = visitor.open("/login").await.form("form:has([name=password])");
        let page = visitor.send(form.set("username", name).set("password", FORUM_PASSWORD)).await;
        assert!(!page.url.path().contains("login"), "signed in: {}", page.url);
        visitor
    }

    /// The developer in the forge that the tasks use.
    pub fn developer(&self) -> TaskVisitor {
        self.signed_in("gitlab", "byteblaze")
    }

    /// Another developer, who signs in through the form.
    pub async fn other_developer(&self, name: &str) -> TaskVisitor {
        let visitor = self.guest("gitlab");
        let form = visitor.open("/login/").await.form("form:has([name=password])");
        let page = visitor.send(form.set("username", name).set("password", FORGE_PASSWORD)).await;
        assert!(!page.url.path().contains("login"), "signed in: {}", page.url);
        visitor
    }

    /// The Turkle worker that the tasks use.
    pub fn worker(&self) -> TaskVisitor {
        self.signed_in("turkle", "worker")
    }

    /// The second worker in Turkle.
    pub fn other_worker(&self) -> TaskVisitor {
        self.signed_in("turkle", "second")
    }

    /// The administrator who publishes the work in Turkle.
    pub fn requester(&self) -> TaskVisitor {
        self.signed_in("turkle", "administrator")
    }

    /// A visitor of the map without an account.
    pub fn traveller(&self) -> TaskVisitor {
        self.guest("map")
    }

    /// A visitor of the homepage without an account.
    pub fn host(&self) -> TaskVisitor {
        self.guest("homepage")
    }

    fn guest(&self, site: &'static str) -> TaskVisitor {
        TaskVisitor::new(self.origins[site], &[])
    }

    fn signed_in(&self, site: &'static str, account: &'static str) -> TaskVisitor {
        TaskVisitor::new(self.origins[site], &self.sessions[&(site, account)])
    }

    /// Returns the session cookies of an account. The session is part of the baseline, so every reset restores it.
    async fn session(&self, site: &str, account: &str) -> Vec<String> {
        let session = self.post(&format!("sites/{site}/accounts/{account}/login"), &json!(null)).await;
        assert_eq!(session["is_kept"], true, "the session of {account} is part of the baseline");
        let cookies = session["cookies"].as_array().expect("cookies").iter();
        let text = |cookie: &Value, key: &str| cookie[key].as_str().expect("a text").to_owned();
        cookies.map(|cookie| format!("{}={}", text(cookie, "name"), text(cookie, "value"))).collect()
    }

    /// Begins a check of the task, with a reset of its sites if `reset` is set, and returns the state that the check
    /// compares with.
    pub async fn begin(&self, task: &TemplateTask, reset: bool) -> Value {
        self.post("checks/begin", &json!({ "task": task.name, "reset": reset })).await
    }

    /// Checks the outcome of an agent's work and returns the report.
    pub async fn check(&self, task: &TemplateTask, begun: &Value, done: &AttemptOutcome) -> Value {
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
