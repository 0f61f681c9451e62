//! Clients that request one page continuously and check every answer.
//!
//! Before each reset the page is changed to show a marker. A request sent after the reset must never see the marker,
//! because that would be an answer of an old instance. An answer that is neither the page, nor 503, nor a cut
//! connection would come from a half-ready instance.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

/// The number of concurrent clients.
const CLIENTS: usize = 3;

#[derive(Default)]
struct HammerState {
    stop: AtomicBool,
    pages: AtomicUsize,
    /// The last received page, for tests that wait for a change to appear.
    last: Mutex<String>,
    /// Markers that no request begun after this time may see.
    gone: Mutex<Vec<(String, Instant)>>,
    wrong: Mutex<Vec<String>>,
}

pub struct Hammer {
    shared: Arc<HammerState>,
    clients: JoinSet<()>,
}

/// The counts of the clients' answers.
#[derive(Debug)]
pub struct AnswerCounts {
    /// Answers with the whole page.
    pub pages: usize,
    /// Answers that are not allowed.
    pub wrong: Vec<String>,
}

impl Hammer {
    pub fn start(url: String) -> Self {
        let shared = Arc::new(HammerState::default());
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(ask(shared.clone(), url.clone()));
        }
        Self { shared, clients }
    }

    /// Waits until the page shows the marker.
    pub async fn expect_shown(&self, marker: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.shared.last.lock().expect("no panic").contains(marker) {
            assert!(Instant::now() < deadline, "the page never showed {marker}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Declares that the marker must not appear in answers to requests sent after `done`.
    pub fn forget(&self, marker: &str, done: Instant) {
        self.shared.gone.lock().expect("no panic").push((marker.to_owned(), done));
    }

    /// Stops the clients and returns their counts.
    pub async fn stop(mut self) -> AnswerCounts {
        self.shared.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("no client panics");
        }
        AnswerCounts {
            pages: self.shared.pages.load(Ordering::SeqCst),
            wrong: std::mem::take(&mut self.shared.wrong.lock().expect("no panic")),
        }
    }
}

async fn ask(shared: Arc<HammerState>, url: String) {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().expect("a client");
    while !shared.stop.load(Ordering::SeqCst) {
        let begun = Instant::now();
        let answer = async {
            let answer = client.get(&url).send().await?;
            let status = answer.status().as_u16();
            Ok::<_, reqwest::Error>((status, answer.text().await?))
        };
        match answer.await {
            Ok((200, page)) => judge(&shared, begun, page),
            Ok((503, _)) => {}
            Ok((status, page)) => {
                let excerpt: String = page.chars().take(200).collect();
                shared.wrong.lock().expect("no panic").push(format!("status {status}: {excerpt}"));
            }
            // A connection to the old container was cut, as required.
            Err(_) => {}
        }
        // The pause leaves processor time for the resets.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn judge(shared: &HammerState, begun: Instant, page: String) {
    shared.pages.fetch_add(1, Ordering::SeqCst);
    let gone = shared.gone.lock().expect("no panic");
    if let Some((marker, _)) = gone.iter().find(|(marker, done)| begun > *done && page.contains(marker.as_str())) {
        shared.wrong.lock().expect("no panic").push(format!("an answer of the old container: {marker}"));
    }
    drop(gone);
    if !page.contains("</html>") {
        shared.wrong.lock().expect("no panic").push("half a page".to_owned());
    }
    *shared.last.lock().expect("no panic") = page;
}
