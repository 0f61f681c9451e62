//! Thousands of switches under load. No byte of an earlier generation may reach a client after a switch.
//!
//! Every switch has a number. `fence` holds the number of the latest switch that has *returned*. A site connection belongs
//! to the generation in which it was accepted. Every response carries the fence at the time of writing, and every request
//! carries the fence at the time of sending. Both sides can therefore detect a violation without comparing clocks:
//! - a client that reads "generation g, fence f" with f > g received bytes that were written after g's end;
//! - a site of generation g that reads "fence f" with f > g received a request that was sent after g's end;
//! - a client that sent "fence f" and gets an answer of generation g < f was answered by an earlier generation.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arenad_gateway::{HoldLimits, RecordingFilter, Target, WriteRules};

use super::support::*;

const SITES: usize = 3;
const CLIENTS: usize = 16;
const SWITCHES: u64 = 5000;

#[derive(Default)]
struct StormState {
    fence: AtomicU64,
    run: StormRun,
    answers: AtomicU64,
    unavailable: AtomicU64,
}

impl AsRef<StormRun> for StormState {
    fn as_ref(&self) -> &StormRun {
        &self.run
    }
}

fn site(shared: &Arc<StormState>, generation: &Arc<AtomicU64>) -> ScriptedSite {
    let (shared, generation) = (Arc::clone(shared), Arc::clone(generation));
    ScriptedSite::start(move |visit| {
        let own = generation.load(Ordering::SeqCst);
        let stamp = |shared: &StormState| format!("{own} {:>8};", shared.fence.load(Ordering::SeqCst));
        loop {
            let request = visit.request()?;
            let sent: u64 = request.header("x-fence").and_then(|fence| fence.parse().ok()).expect("a fence");
            if sent > own {
                shared.run.violation(format!("a request sent after {sent} reached {own}"));
            }
            let head = format!("HTTP/1.1 200 OK\r\nX-Generation: {own}\r\n");
            if request.path() == "/stream" {
                visit.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"))?;
                for _ in 0..20 {
                    let text = stamp(&shared);
                    visit.send(format!("{:x}\r\n{text}\r\n", text.len()))?;
                }
                visit.send("0\r\n\r\n")?;
            } else {
                let text = stamp(&shared);
                visit.send(format!("{head}Content-Length: {}\r\n\r\n{text}", text.len()))?;
            }
        }
    })
}

/// Checks the part of a body that has arrived.
fn examine(shared: &StormState, body: &[u8], sent: u64) {
    for stamp in String::from_utf8_lossy(body).split_inclusive(';').filter(|stamp| stamp.ends_with(';')) {
        let mut numbers =
            stamp.trim_end_matches(';').split_whitespace().map(|number| number.parse::<u64>().expect("a number"));
        let (own, fence) = (numbers.next().expect("a generation"), numbers.next().expect("a fence"));
        if fence > own {
            shared.run.violation(format!("bytes written after {fence} by {own} reached a client"));
        }
        if own < sent {
            shared.run.violation(format!("a request sent after {sent} was answered by {own}"));
        }
    }
}

fn exchange(shared: &StormState, client: &mut RawClient, dice: &mut Dice) -> io::Result<bool> {
    let sent = shared.fence.load(Ordering::SeqCst);
    let lines = format!("Host: shop.test\r\nX-Fence: {sent}\r\n");
    let count = match dice.roll(5) {
        0 => {
            client.send(format!("GET /stream HTTP/1.1\r\n{lines}\r\n"))?;
            1
        }
        1 => {
            client.send(format!("POST / HTTP/1.1\r\n{lines}Content-Length: 5\r\n\r\nhello"))?;
            1
        }
        2 => {
            client.send(format!("GET / HTTP/1.1\r\n{lines}\r\n").repeat(3))?;
            3
        }
        _ => {
            client.send(format!("GET / HTTP/1.1\r\n{lines}\r\n"))?;
            1
        }
    };
    for _ in 0..count {
        let mut answer = client.head()?;
        let read = read_body(&mut client.reader, &mut answer, true).map_err(in_time);
        match answer.status() {
            200 => examine(shared, &answer.body, sent),
            503 if answer.header("retry-after").is_some() => {}
            other => shared.run.violation(format!("status {other}: {}", answer.text())),
        }
        read?;
        match answer.status() {
            200 => shared.answers.fetch_add(1, Ordering::SeqCst),
            _ => shared.unavailable.fetch_add(1, Ordering::SeqCst),
        };
        if answer.header("connection") == Some("close") {
            return Ok(false);
        }
    }
    Ok(true)
}

#[test]
fn nothing_of_the_past_arrives_however_often_the_route_is_switched() {
    let shared = Arc::new(StormState::default());
    let generations: Vec<Arc<AtomicU64>> = (0..SITES).map(|_| Arc::default()).collect();
    let sites: Vec<ScriptedSite> = generations.iter().map(|generation| site(&shared, generation)).collect();
    // There are many more workers than processors, so they are interrupted at every possible point.
    let gateway = gateway_with(|settings| settings.workers = 16);
    let limits = HoldLimits { requests: CLIENTS, timeout: Duration::from_secs(20) };
    let route =
        gateway.open(loopback(), limits, WriteRules::default(), RecordingFilter::Nothing, "shop").expect("a free port");
    let clients = storm_clients(CLIENTS, route.local_addr(), &shared, exchange);
    let mut dice = Dice(7);
    let until = Instant::now() + DEADLINE * 4;
    for number in 1..=SWITCHES {
        match dice.roll(8) {
            0 => route.refuse("refusing", Duration::from_secs(1)),
            1 | 2 => route.hold("holding"),
            _ => {
                let at = usize::try_from(dice.roll(SITES as u64)).expect("small");
                // The number is stored before the switch, because the gateway's connections for the switch belong to
                // it.
                generations[at].store(number, Ordering::SeqCst);
                route.serve(Target { address: sites[at].address, instance: format!("shop-{at}"), generation: number });
            }
        }
        shared.fence.store(number, Ordering::SeqCst);
        if dice.roll(2) > 0 {
            // Lets other threads run in between; their progress does not matter.
            std::thread::sleep(Duration::from_micros(dice.roll(2000)));
        }
        assert!(Instant::now() < until, "{number} switches took too long");
    }
    let last = SWITCHES + 1;
    generations[0].store(last, Ordering::SeqCst);
    route.serve(Target { address: sites[0].address, instance: "shop-0".to_owned(), generation: last });
    shared.fence.store(last, Ordering::SeqCst);
    let before = shared.answers.load(Ordering::SeqCst);
    eventually("everybody is served again", || shared.answers.load(Ordering::SeqCst) > before + 200);
    shared.run.end(clients);
    eventually("nothing is left over", || {
        let stats = route.stats();
        (stats.in_flight, stats.held, stats.connections) == (0, 0, 0)
    });
    assert_eq!(route.stats().target_failures, 0, "a switch was blamed on a target");
    // The storm must have produced each of the three results.
    let met = [&shared.answers, &shared.unavailable, &shared.run.cut].map(|counter| counter.load(Ordering::SeqCst));
    println!("answers, 503, cut: {met:?}; {:?}", route.stats());
    assert!(met.iter().all(|count| *count > 0), "{met:?}");
}
