//! Episodes as their clients see them: over the API and with `arenad run`, most of them on a site with a single slot.

#![allow(clippy::unwrap_used)]

mod browsed;
mod certified;
mod changed;
mod command;
mod compat;
mod forks;
mod harnesses;
mod judged;
mod killed;
mod leases;
mod limits;
mod numbered;
mod openapi;
mod openenv;
mod ported;
mod proxied;
mod python;
mod recorded;
mod replayed;
mod trainers;
mod trajectories;

use std::time::Duration;

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::world::list;

/// The time in which a slot must be free after the end of its episode's client.
const FREE_WITHIN: Duration = Duration::from_secs(2);

/// A client of the API of a world, over its socket.
struct EpisodeClient {
    client: Client,
}

impl EpisodeClient {
    fn of(world: &World) -> Self {
        let socket = world.state_dir().join("arenad.sock");
        Self { client: Client::builder().no_proxy().unix_socket(socket).build().unwrap() }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        self.with_key(method, path, body, None).await
    }

    async fn with_key(&self, method: Method, path: &str, body: Option<Value>, key: Option<&str>) -> (u16, Value) {
        let mut request = self.client.request(method, format!("http://arenad{path}"));
        if let Some(body) = &body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, None).await
    }

    /// Starts an episode, which must be granted, and returns the answer.
    async fn start(&self, body: Value) -> Value {
        let (status, started) = self.ask(Method::POST, "/v1/episodes", Some(body)).await;
        assert_eq!(status, 201, "{started:#}");
        started
    }

    /// Requests an episode without waiting for it, and returns its id.
    async fn queue(&self, body: Value) -> String {
        let mut body = body;
        body["detach"] = json!(true);
        let (status, started) = self.ask(Method::POST, "/v1/episodes", Some(body)).await;
        assert_eq!(status, 202, "{started:#}");
        id(&started)
    }

    async fn end(&self, id: &str) {
        let (status, problem) = self.ask(Method::DELETE, &format!("/v1/episodes/{id}"), None).await;
        assert_eq!(status, 204, "{problem:#}");
    }

    async fn state(&self, id: &str) -> String {
        let (_, episode) = self.get(&format!("/v1/episodes/{id}")).await;
        episode["state"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an episode has a state, at most for a time.
    async fn until(&self, id: &str, state: &str, limit: Duration) {
        let wait = async {
            while self.state(id).await != state {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(limit, wait).await.is_err() {
            let (_, episode) = self.get(&format!("/v1/episodes/{id}")).await;
            panic!("{id} is not {state} within {limit:?}: {episode:#}");
        }
    }

    /// Opens a stream of events, which must succeed.
    async fn stream(&self, path: &str) -> Response {
        let answer = self.client.get(format!("http://arenad{path}")).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer
    }

    /// The ids of the requests that wait.
    async fn waiting(&self) -> Vec<String> {
        list(&self.get("/v1/episodes/queue").await.1["requests"], "id")
    }
}

fn id(started: &Value) -> String {
    started["episode"]["id"].as_str().unwrap().to_owned()
}

/// Kills the container of the site, as the kernel does.
fn kill_container(world: &World) {
    let site = world.site().unwrap();
    for container in list(&site["containers"], "id") {
        world.engine.docker(&["kill", "--signal", "KILL", &container]);
    }
}
