//! The sites that agents work on, and arenad's API beside them.

use std::path::Path;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::attempt::Done;
use crate::files::Task;
use crate::visitor::Visitor;

/// A customer who is not the one that tasks are about.
const STRANGER: (&str, &str) = ("rowan.lindqvist@courier.test", "Password.123");

/// How long a request to the API may take; a reset is the longest of them.
const PATIENCE: Duration = Duration::from_secs(180);

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
