//! The gateway hands the exchanges of an episode over before their clients can have read the responses to their ends.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arenad_gateway::{
    EndedExchange, EpisodeRecorder, ExchangeKeeper, Loss, RecordedBody, RecordingFilter, Route, WriteRules,
};

use super::arena::{open, proxy};
use super::support::*;

/// The time in which a response would arrive that is not withheld.
const MOMENT: Duration = Duration::from_millis(200);

/// Keeps exchanges in memory, and their receipts until they are asked for.
#[derive(Default, Clone)]
struct TestKeeper {
    held: Arc<Mutex<Vec<EndedExchange>>>,
    left_out: Arc<AtomicUsize>,
    is_prompt: bool,
    kept: Arc<Mutex<Vec<KeptExchange>>>,
}

/// An exchange in the form that tests compare.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeptExchange {
    site: Option<String>,
    url: String,
    status: Option<u16>,
    sent: String,
    received: String,
}

fn text(body: &RecordedBody) -> String {
    match body {
        RecordedBody::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        RecordedBody::None => String::new(),
        RecordedBody::Lost { why, .. } => format!("{why:?}"),
    }
}

impl ExchangeKeeper for TestKeeper {
    fn keep(&self, ended: EndedExchange) {
        let exchange = &ended.exchange;
        let kept = KeptExchange {
            site: ended.site.clone(),
            url: exchange.request.url.clone(),
            status: exchange.answer.as_ref().map(|answer| answer.status.as_u16()),
            sent: text(&exchange.sent),
            received: text(&exchange.received),
        };
        self.kept.lock().expect("no panic").push(kept);
        if !self.is_prompt {
            self.held.lock().expect("no panic").push(ended);
        }
    }

    fn leave_out(&self) {
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }
}

impl TestKeeper {
    fn prompt() -> Self {
        Self { is_prompt: true, ..Self::default() }
    }

    fn recorder(&self, records: RecordingFilter) -> Arc<EpisodeRecorder> {
        Arc::new(EpisodeRecorder::new(records, Box::new(self.clone())))
    }

    fn kept(&self) -> Vec<KeptExchange> {
        self.kept.lock().expect("no panic").clone()
    }

    fn held(&self) -> usize {
        self.held.lock().expect("no panic").len()
    }

    fn release(&self) {
        let held = std::mem::take(&mut *self.held.lock().expect("no panic"));
        drop(held);
    }
}

/// A site whose responses end in every way in which a response can.
fn site() -> ScriptedSite {
    ScriptedSite::answering(|request| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
        match request.path() {
            "/chunked" => format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            "/empty" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            "/redirect" => "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "/broken" => "nothing that is HTTP\r\n\r\n".to_owned(),
            _ => format!("{head}Content-Length: 5\r\n\r\nhello"),
        }
    })
}

fn recorded(route: &Route, keeper: &TestKeeper) -> Arc<EpisodeRecorder> {
    let recorder = keeper.recorder(RecordingFilter::All);
    route.record_for(Some((1, recorder.clone())));
    recorder
}

#[test]
fn a_response_ends_only_when_its_exchange_is_kept() {
    let site = site();
    let (_gateway, route) = serving(&site);
    for (path, status, end) in [
        ("/length", 200, "hello"),
        ("/chunked", 200, "0\r\n\r\n"),
        ("/empty", 204, "\r\n\r\n"),
        ("/redirect", 302, "\r\n\r\n"),
        ("/broken", 502, ""),
    ] {
        let keeper = TestKeeper::default();
        let recorder = recorded(&route, &keeper);
        let mut client = std::net::TcpStream::connect(route.local_addr()).expect("connected");
        client.set_read_timeout(Some(MOMENT)).expect("set");
        std::io::Write::write_all(&mut client, format!("GET {path} HTTP/1.1\r\nHost: shop.test\r\n\r\n").as_bytes())
            .expect("sent");
        eventually("the exchange is handed over", || keeper.held() == 1);
        assert_eq!(recorder.under_way().len(), 1, "not kept yet");
        let mut early = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(read) = client.read(&mut bytes) {
            assert_ne!(read, 0, "{path} was closed");
            early.extend_from_slice(&bytes[..read]);
        }
        let early = String::from_utf8_lossy(&early).into_owned();
        assert!(early.is_empty() || !early.ends_with(end), "{path}: {early:?} was complete before it was kept");
        keeper.release();
        client.set_read_timeout(Some(DEADLINE)).expect("set");
        let mut whole = early;
        while !(whole.contains("\r\n\r\n") && whole.ends_with(end)) {
            let read = client.read(&mut bytes).expect("the rest");
            assert_ne!(read, 0, "{path}: {whole:?}");
            whole.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        assert!(whole.starts_with(&format!("HTTP/1.1 {status} ")), "{whole}");
        assert_eq!(keeper.kept()[0].status, Some(status));
        assert!(recorder.under_way().is_empty());
    }
}

#[test]
fn a_switch_cuts_a_client_whose_response_is_withheld() {
    let (old, new) = (site(), ScriptedSite::echoing());
    let (_gateway, route) = serving(&old);
    for path in ["/length", "/chunked", "/empty"] {
        route.serve(target(&old, 1));
        let keeper = TestKeeper::default();
        let _recorder = recorded(&route, &keeper);
        let mut client = RawClient::connect(route.local_addr());
        client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.test\r\n\r\n")).expect("sent");
        eventually("the exchange is handed over", || keeper.held() == 1);
        route.serve(target(&new, 2));
        keeper.release();
        assert!(client.answer().is_err(), "{path}: the response of the earlier target was completed");
        route.record_for(None);
    }
}

#[test]
fn both_doors_lead_to_the_record_and_other_generations_do_not() {
    let site = ScriptedSite::echoing();
    let (gateway, proxy, arena) = proxy();
    let route = open(&gateway);
    route.serve(target(&site, 1));
    let keeper = TestKeeper::prompt();
    let recorder = keeper.recorder(RecordingFilter::All);
    arena.start_recorded("one", recorder.clone());
    arena.add_site("one", &["shop.test:80"], "localhost:7770", &route, Some(1));
    arena.allow("one", "127.0.0.1");
    arena.start("other");
    arena.add_site("other", &["shop.test:80"], "localhost:7770", &route, None);
    route.record_for(Some((1, recorder)));

    let mut through_proxy = RawClient::connect(proxy.local_addr());
    through_proxy.get_as("one", "http://shop.test/proxied").expect("an answer");
    through_proxy.get_as("other", "http://shop.test/of-another").expect("an answer");
    let external = format!("http://{}/outside", site.address);
    through_proxy.get_as("one", &external).expect("an answer");
    let mut at_the_port = RawClient::connect(route.local_addr());
    at_the_port.send("POST /port HTTP/1.1\r\nHost: localhost:7770\r\nContent-Length: 3\r\n\r\nabc").expect("sent");
    at_the_port.answer().expect("an answer");
    let kept = keeper.kept();
    let seen: Vec<(Option<&str>, &str)> =
        kept.iter().map(|exchange| (exchange.site.as_deref(), exchange.url.as_str())).collect();
    let expected = [
        (Some("shop"), "http://shop.test/proxied"),
        (None, external.as_str()),
        (Some("shop"), "http://localhost:7770/port"),
    ];
    assert_eq!(seen, expected);
    assert_eq!(kept[2].sent, "abc");

    // The slot has another generation, as it has for the next episode.
    route.serve(target(&site, 2));
    RawClient::connect(route.local_addr()).get("/later").expect("an answer");
    route.record_for(None);
    RawClient::connect(route.local_addr()).get("/unrecorded").expect("an answer");
    assert_eq!(keeper.kept().len(), 3, "{:#?}", keeper.kept());
}

#[test]
fn a_client_that_goes_away_is_recorded_without_its_response() {
    let silent = ScriptedSite::start(|visit| {
        loop {
            visit.request()?;
        }
    });
    let (_gateway, route) = serving(&silent);
    let keeper = TestKeeper::prompt();
    let recorder = recorded(&route, &keeper);
    let mut client = RawClient::connect(route.local_addr());
    client.send("GET /unanswered HTTP/1.1\r\nHost: shop.test\r\n\r\n").expect("sent");
    eventually("the request is under way", || recorder.under_way().len() == 1);
    assert_eq!(recorder.under_way()[0].request.url, "http://shop.test/unanswered");
    drop(client);
    // Until the worker has noticed that, it would write the refusal for the client, which is then recorded.
    eventually("the connection is gone", || route.stats().connections == 0);
    route.refuse("it is being reset", Duration::from_secs(1));
    eventually("the exchange is handed over", || keeper.kept().len() == 1);
    assert!(recorder.under_way().is_empty());
    assert!(keeper.kept()[0].received.is_empty() || keeper.kept()[0].received == format!("{:?}", Loss::CutOff));
}

#[test]
fn requests_that_only_read_can_be_left_out_and_a_busy_record_is_bounded() {
    let site = ScriptedSite::echoing();
    let gateway = gateway();
    let route =
        gateway.open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop").expect("open");
    route.serve(target(&site, 1));
    let keeper = TestKeeper::default();
    let recorder = keeper.recorder(RecordingFilter::Writes);
    route.record_for(Some((1, recorder.clone())));
    RawClient::connect(route.local_addr()).get("/read").expect("an answer");
    assert!(keeper.kept().is_empty());
    // Each takes 1 MiB until its receipt is given.
    let body = "x".repeat(1 << 20);
    let mut clients: Vec<RawClient> = (0..20)
        .map(|_| {
            let mut client = RawClient::connect(route.local_addr());
            let head = format!("POST /write HTTP/1.1\r\nHost: shop.test\r\nContent-Length: {}\r\n\r\n", body.len());
            client.send(format!("{head}{body}")).expect("sent");
            client
        })
        .collect();
    eventually("all exchanges are handed over", || keeper.kept().len() == 20);
    let is_lost = |exchange: &&KeptExchange| {
        [&exchange.sent, &exchange.received].into_iter().any(|body| *body == format!("{:?}", Loss::MadeRoom))
    };
    assert!(keeper.kept().iter().filter(is_lost).count() >= 4, "16 MiB in all");
    keeper.release();
    for client in &mut clients {
        client.answer().expect("an answer");
    }
    assert!(recorder.under_way().is_empty());
}
