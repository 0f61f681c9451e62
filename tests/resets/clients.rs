//! Clients that write to a site as fast as it allows. Each write is a unique text, and the clients record the times of
//! the acknowledgements.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::{RequestBuilder, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::arena::Arena;

/// The number of concurrent clients of a site.
const CLIENTS: usize = 3;

/// A limit that no operation reaches on a slow, busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The API credentials of the seeded accounts of two sites.
const FORGE_CREDENTIALS: &str = "token BYTEBLAZE0TOKEN0FOR0EVERYTHING0THAT0A0TOKEN0MAY0DO00000000000001";
const TURKLE_CREDENTIALS: &str = "Token larkmoorlarkmoorlarkmoorlarkmoorlarkmoor";

/// A write of one client.
#[derive(Debug)]
pub struct ClientWrite {
    /// The unique text that was written.
    pub token: String,
    /// The time of the site's acknowledgement; `None` if there was none.
    pub acknowledged: Option<Instant>,
}

/// The way in which each site is written to.
pub struct Clients {
    recipes: BTreeMap<String, WritableSite>,
    count: Arc<AtomicU64>,
}

/// A site's URL, and the cookies of an account that may write.
#[derive(Clone)]
struct WritableSite {
    site: String,
    url: String,
    cookies: String,
}

pub struct Load {
    stop: Arc<AtomicBool>,
    clients: JoinSet<Vec<ClientWrite>>,
}

impl Clients {
    /// Signs in if necessary, with sessions that are part of the snapshots.
    pub fn of(arena: &Arena, sites: &[&str]) -> Self {
        let account = |site: &str| match site {
            "shopping" => Some("customer"),
            "reddit" => Some("member"),
            _ => None,
        };
        let recipe = |site: &&str| {
            let cookies = account(site).map_or_else(String::new, |account| cookies(arena, site, account));
            ((*site).to_owned(), WritableSite { site: (*site).to_owned(), url: origin(&arena.url(site)), cookies })
        };
        Self { recipes: sites.iter().map(recipe).collect(), count: Arc::default() }
    }

    /// Returns whether clients write to a site.
    pub fn writes_to(&self, site: &str) -> bool {
        self.recipes.contains_key(site)
    }

    /// The headers of an account that sees the written texts.
    pub fn headers(&self, site: &str) -> Vec<(&'static str, String)> {
        let credentials = match site {
            "gitlab" => ("authorization", FORGE_CREDENTIALS.to_owned()),
            "turkle" => ("authorization", TURKLE_CREDENTIALS.to_owned()),
            _ => ("cookie", self.recipes[site].cookies.clone()),
        };
        vec![credentials]
    }

    /// Writes once, and returns the text that was acknowledged.
    pub async fn write_once(&self, site: &str) -> String {
        let (client, recipe) = (client(), &self.recipes[site]);
        let token = recipe.token(&self.count);
        let answer = recipe.request(&client, &token).send().await.expect("an answer");
        assert!(recipe.is_taken(answer.status()), "{site} takes what is written: {}", answer.status());
        token
    }

    /// Starts clients that write to a site.
    pub fn start(&self, site: &str) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(write(self.recipes[site].clone(), stop.clone(), self.count.clone()));
        }
        Load { stop, clients }
    }
}

impl Load {
    /// Prevents further writes from starting.
    pub fn begin_no_more(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Waits until all clients have their answers.
    pub async fn end(mut self) -> Vec<ClientWrite> {
        let mut all = Vec::new();
        while let Some(ended) = self.clients.join_next().await {
            all.extend(ended.expect("no client panics"));
        }
        all
    }
}

fn client() -> reqwest::Client {
    let no_redirects = reqwest::redirect::Policy::none();
    let client = reqwest::Client::builder().no_proxy().redirect(no_redirects).timeout(PATIENCE);
    client.build().expect("a client")
}

async fn write(recipe: WritableSite, stop: Arc<AtomicBool>, count: Arc<AtomicU64>) -> Vec<ClientWrite> {
    let client = client();
    let mut written = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let token = recipe.token(&count);
        let answer = recipe.request(&client, &token).send().await;
        let is_taken = match &answer {
            Ok(answer) => recipe.is_taken(answer.status()),
            Err(_) => false,
        };
        written.push(ClientWrite { token, acknowledged: is_taken.then(Instant::now) });
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    written
}

impl WritableSite {
    /// Returns a unique text that is not the beginning of another.
    fn token(&self, count: &AtomicU64) -> String {
        format!("written-{}-{}-", self.site, count.fetch_add(1, Ordering::SeqCst))
    }

    fn request(&self, client: &reqwest::Client, token: &str) -> RequestBuilder {
        let Self { site, url, cookies } = self;
        match site.as_str() {
            "shopping" => {
                let form = [
                    ("name", token),
                    ("visibility", "Private"),
                    ("csrfmiddlewaretoken", self.forgery_token()),
                    ("shared_emails-TOTAL_FORMS", "0"),
                    ("shared_emails-INITIAL_FORMS", "0"),
                ];
                client.post(format!("{url}/accounts/wishlists/create/")).header("cookie", cookies).form(&form)
            }
            "reddit" => {
                let post = client.post(format!("{url}/api/threads/1/posts/")).json(&json!({ "post": token }));
                post.header("cookie", cookies).header("X-CSRFToken", self.forgery_token())
            }
            "gitlab" => {
                let form = [("title", token), ("issue_content", token)];
                client
                    .post(format!("{url}/api/0/byteblaze/tidegauge/new_issue"))
                    .header("authorization", FORGE_CREDENTIALS)
                    .form(&form)
            }
            "turkle" => {
                let form = [("name", token), ("filename", "t.html"), ("html_template", "<input name=\"answer\">")];
                client.post(format!("{url}/api/projects/")).header("authorization", TURKLE_CREDENTIALS).form(&form)
            }
            _ => client.post(format!("{url}/scratchpad.html")).form(&[("title", token), ("text", "x")]),
        }
    }

    /// Returns whether the site has accepted a write. An accepted form leads to another page; a rejected one is shown
    /// again.
    fn is_taken(&self, status: StatusCode) -> bool {
        match self.site.as_str() {
            "shopping" | "homepage" => status.is_redirection(),
            _ => status.is_success(),
        }
    }

    /// The cookie whose value forms repeat.
    fn forgery_token(&self) -> &str {
        let pairs = self.cookies.split("; ").filter_map(|pair| pair.split_once('='));
        pairs.filter(|(name, _)| name.contains("csrf")).map(|(_, value)| value).next().unwrap_or_default()
    }
}

/// A request whose second half has not been sent.
pub struct HalfSent(TcpStream);

/// Sends the first half of a note to the homepage, which waits for the rest.
pub async fn half_sent(url: &str) -> HalfSent {
    let host = origin(url).trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&host).await.expect("connect");
    let head = format!("POST /scratchpad.html HTTP/1.1\r\nHost: {host}\r\nContent-Length: 10\r\n\r\ntitle");
    stream.write_all(head.as_bytes()).await.expect("send");
    HalfSent(stream)
}

impl HalfSent {
    /// Asserts that the connection is closed or gets an answer that refuses.
    pub async fn assert_ended(mut self, what: &str) {
        let _ = self.0.write_all(b"=past").await;
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, self.0.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "{what}: the connection to the old container is still open");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|word| word.parse::<u16>().ok());
        // These are the gateway's own answers; 502 means that the container had crashed.
        let is_refused = |status| matches!(status, 410 | 502 | 503);
        assert!(status.is_none_or(is_refused), "{what}: the past is answered: {answer}");
    }
}

fn cookies(arena: &Arena, site: &str, account: &str) -> String {
    let output = arena.arenad(&["login", site, "--account", account, "--format", "header"]);
    assert!(output.status.success(), "log in: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("a header");
    text.trim().trim_start_matches("Cookie: ").to_owned()
}

/// `http://HOST:PORT`
fn origin(url: &str) -> String {
    let end = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
    url[..end].to_owned()
}
