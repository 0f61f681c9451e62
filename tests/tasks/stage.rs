//! The sites that agents work on, and arenad's API beside them.

use std::path::Path;
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::attempt::Done;
use crate::files::Task;
use crate::visitor::Visitor;

/// A customer who is not the one that tasks are about.
const STRANGER: (&str, &str) = ("rowan.lindqvist@courier.test", "Password.123");

/// How long a reset may take.
const RESET_PATIENCE: u64 = 60;

/// Where agents work; cheap to copy.
#[derive(Clone)]
pub struct Stage {
    api: Client,
    shopping: &'static str,
    shopping_admin: &'static str,
    wikipedia: &'static str,
    customer: Vec<String>,
    administrator: Vec<String>,
}

impl Stage {
    /// The stage of an arena with the three sites.
    pub async fn new(arena: &Arena) -> Self {
        let socket = arena.state_dir().join("arenad.sock");
        let origin = |site: &str| {
            let url = reqwest::Url::parse(&arena.url(site)).expect("a URL");
            &*String::leak(url.origin().ascii_serialization())
        };
        let mut stage = Self {
            api: api(&socket),
            shopping: origin("shopping"),
            shopping_admin: origin("shopping_admin"),
            wikipedia: origin("wikipedia"),
            customer: Vec::new(),
            administrator: Vec::new(),
        };
        stage.customer = stage.session("shopping", "customer").await;
        stage.administrator = stage.session("shopping_admin", "administrator").await;
        stage
    }

    /// The customer of the tasks in the shop, signed in as agents are: by the session of the baseline.
    pub fn customer(&self) -> Visitor {
        Visitor::new(self.shopping, &self.customer)
    }

    /// Another customer, who signs in by the form.
    pub async fn stranger(&self) -> Visitor {
        let visitor = Visitor::new(self.shopping, &[]);
        let form = visitor.open("/customer/account/login/").await.form("#login_form");
        let form = form.set("login-username", STRANGER.0).set("login-password", STRANGER.1);
        let page = visitor.send(form.set("login_submit", "Sign In")).await;
        assert!(!page.url.path().contains("login"), "signed in: {}", page.url);
        visitor
    }

    /// The administrator in the back office.
    pub fn administrator(&self) -> Visitor {
        Visitor::new(self.shopping_admin, &self.administrator)
    }

    /// Somebody with the encyclopaedia.
    pub fn reader(&self) -> Visitor {
        Visitor::new(self.wikipedia, &[])
    }

    /// The cookies of an account's session, which every reset brings back.
    async fn session(&self, site: &str, account: &str) -> Vec<String> {
        let session = self.post(&format!("sites/{site}/accounts/{account}/login"), &json!(null)).await;
        assert_eq!(session["is_kept"], true, "the session of {account} is part of the baseline");
        let cookies = session["cookies"].as_array().expect("cookies").iter();
        let text = |cookie: &Value, key: &str| cookie[key].as_str().expect("a text").to_owned();
        cookies.map(|cookie| format!("{}={}", text(cookie, "name"), text(cookie, "value"))).collect()
    }

    /// Brings a site back to its baseline.
    pub async fn reset(&self, site: &str) {
        let accepted = self.post("resets", &json!({ "sites": [site] })).await;
        let id = accepted["operations"][0]["id"].as_str().expect("an operation").to_owned();
        let ended = self.call(Method::GET, &format!("operations/{id}?wait={RESET_PATIENCE}"), None).await;
        assert_eq!(ended["state"], "done", "{site} is reset: {ended:#}");
    }

    /// Notes what the task's check compares with.
    pub async fn begin(&self, task: &Task) -> Value {
        self.post("checks/begin", &json!({ "task": task.name })).await
    }

    /// Checks what an agent has done.
    pub async fn check(&self, task: &Task, begun: &Value, done: &Done) -> Value {
        let (site, path) = &task.start;
        let url = if done.url.is_empty() { format!("{}{path}", self.origin(site)) } else { done.url.clone() };
        let request = json!({ "task": task.name, "begun": begun, "answer": done.answer, "url": url });
        self.post("checks", &request).await["report"].take()
    }

    fn origin(&self, site: &str) -> &'static str {
        match site {
            "shopping" => self.shopping,
            "shopping_admin" => self.shopping_admin,
            "wikipedia" => self.wikipedia,
            _ => panic!("no task is about {site}"),
        }
    }

    async fn post(&self, resource: &str, body: &Value) -> Value {
        self.call(Method::POST, &format!("environments/mini/{resource}"), Some(body)).await
    }

    async fn call(&self, method: Method, resource: &str, body: Option<&Value>) -> Value {
        let mut request = self.api.request(method, format!("http://localhost/v1/{resource}"));
        if let Some(body) = body.filter(|body| !body.is_null()) {
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
    let patience = Duration::from_secs(2 * RESET_PATIENCE);
    Client::builder().unix_socket(socket).timeout(patience).build().expect("a client")
}
