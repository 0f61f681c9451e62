//! A browser like those of episodes, in this process: a step of it takes what a session's step cannot save.

use std::time::Instant;

use arenad_agent_browser::{BlankBrowser, BrowserPool, BrowserSettings, EpisodeBrowser};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// The largest body of a request that is passed on.
const BODY_MAX: usize = 1 << 20;

/// A browser on a page.
pub struct DirectBrowser {
    browser: EpisodeBrowser,
    /// The number of lines of its first observation.
    pub lines: usize,
    pool: BrowserPool,
    proxy: JoinHandle<()>,
    _folder: TempDir,
}

impl DirectBrowser {
    /// Opens a page, and observes it as a session does by default.
    pub async fn open(url: &str) -> Self {
        let (proxy_address, proxy) = open_proxy().await;
        let folder = tempfile::tempdir().expect("a folder");
        let pool = BrowserPool::new(folder.path().join("browsers"));
        let settings = BrowserSettings::default();
        let seat = pool.seat().await.expect("a browser starts");
        let blank = BlankBrowser::make(seat, &proxy_address).await.expect("it is made");
        let (mut browser, error) = EpisodeBrowser::open(blank, settings, Some(url)).await.expect("it opens");
        assert_eq!(error, None, "{url}");
        let lines = browser.observe().await.expect("an observation").text.lines().count();
        Self { browser, lines, pool, proxy, _folder: folder }
    }

    /// Performs an action; returns the time until the observation, in milliseconds.
    pub async fn step(&mut self, action: &str) -> f64 {
        let begun = Instant::now();
        let outcome = self.browser.step(action).await.expect("the browser works");
        assert_eq!(outcome.error, None, "{action}");
        begun.elapsed().as_secs_f64() * 1e3
    }

    /// Closes the browser, and ends its process.
    pub async fn close(self) {
        drop(self.browser);
        self.pool.close().await;
        self.proxy.abort();
    }
}

/// Opens a proxy that passes requests on, as the one of an episode does.
async fn open_proxy() -> (String, JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
    let router = Router::new().fallback(forward).with_state(client.expect("a client"));
    (address, tokio::spawn(async move { axum::serve(listener, router).await.expect("served") }))
}

async fn forward(State(client): State<reqwest::Client>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let refused = || StatusCode::BAD_GATEWAY.into_response();
    // The browser asks for tunnels to hosts of its own.
    let Ok(url) = reqwest::Url::parse(&parts.uri.to_string()) else { return refused() };
    let Ok(body) = to_bytes(body, BODY_MAX).await else { return refused() };
    let Ok(answer) = client.request(parts.method, url).headers(parts.headers).body(body).send().await else {
        return refused();
    };
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::CONNECTION);
    match answer.bytes().await {
        Ok(body) => (status, headers, Body::from(body)).into_response(),
        Err(_) => refused(),
    }
}
