//! Hundreds of episodes that end under load. Nothing of an ended episode passes, in either direction.
//!
//! Each episode has a number, a slot of the shop for itself, and the wiki together with all others. `ended` is set when
//! its end has *returned*. Requests carry the number and whether the end had returned when they were sent; responses
//! carry the number and whether it had when they were written. Both sides detect a violation without comparing clocks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::arena::*;
use super::support::*;

const SLOTS: usize = 3;
const CLIENTS: usize = 12;
const EPISODES: usize = 800;

struct StormState {
    /// Number of episodes that clients may use.
    started: AtomicU64,
    is_ending: Vec<AtomicBool>,
    ended: Vec<AtomicBool>,
    run: StormRun,
    answers: AtomicU64,
    refused: AtomicU64,
    unavailable: AtomicU64,
}

impl AsRef<StormRun> for StormState {
    fn as_ref(&self) -> &StormRun {
        &self.run
    }
}

impl StormState {
    fn has_ended(&self, episode: usize) -> bool {
        self.ended[episode].load(Ordering::SeqCst)
    }
}

/// A site that belongs to one episode, or to all of them.
fn site(shared: &Arc<StormState>, owner: Option<usize>) -> ScriptedSite {
    let shared = Arc::clone(shared);
    ScriptedSite::start(move |visit| {
        loop {
            let request = visit.request()?;
            let number = |name: &str| request.header(name).and_then(|value| value.parse::<usize>().ok());
            let (episode, sent_late) = (number("x-episode").expect("a number"), number("x-late").expect("a flag"));
            if owner.is_some_and(|owner| owner != episode) {
                shared.run.violation(format!("a request of {episode} reached the slot of {owner:?}"));
            }
            if sent_late == 1 {
                shared.run.violation(format!("a request of {episode} that was sent after its end reached a site"));
            }
            let stamp = |shared: &StormState| format!("{episode} {};", u8::from(shared.has_ended(episode)));
            if request.path() == "/stream" {
                visit.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                for _ in 0..20 {
                    let text = stamp(&shared);
                    visit.send(format!("{:x}\r\n{text}\r\n", text.len()))?;
                }
                visit.send("0\r\n\r\n")?;
            } else {
                visit.answer(&stamp(&shared))?;
            }
        }
    })
}

/// Checks the part of a body that has arrived.
fn examine(shared: &StormState, body: &[u8], episode: usize) {
    for stamp in String::from_utf8_lossy(body).split_inclusive(';').filter(|stamp| stamp.ends_with(';')) {
        if stamp != format!("{episode} 0;") {
            shared.run.violation(format!("the client of {episode} received {stamp}"));
        }
    }
}

fn exchange(shared: &StormState, client: &mut RawClient, dice: &mut Dice) -> io::Result<bool> {
    let started = usize::try_from(shared.started.load(Ordering::SeqCst)).expect("small");
    let mut asked = Vec::new();
    // Requests of several episodes and to both sites may follow one another without a pause.
    for _ in 0..[1, 1, 1, 3][dice.index(4)] {
        let episode = started - 1 - dice.index(started.min(SLOTS + 2));
        let host = ["shop.test", "wiki.test"][dice.index(2)];
        let late = u8::from(shared.has_ended(episode));
        let stamp = format!("X-Episode: {episode}\r\nX-Late: {late}\r\n");
        let (method, path, body) = match dice.roll(4) {
            0 => ("GET", "/stream", ""),
            1 => ("POST", "/", "hello"),
            _ => ("GET", "/", ""),
        };
        let length = if body.is_empty() { "" } else { "Content-Length: 5\r\n" };
        client.send_as(&format!("e{episode}"), method, &format!("http://{host}{path}"), &format!("{stamp}{length}"))?;
        client.send(body)?;
        asked.push(episode);
    }
    for episode in asked {
        let mut answer = client.head()?;
        let read = read_body(&mut client.reader, &mut answer, true).map_err(in_time);
        let counter = match answer.status() {
            200 => {
                examine(shared, &answer.body, episode);
                &shared.answers
            }
            407 if shared.is_ending[episode].load(Ordering::SeqCst) => &shared.refused,
            503 if answer.header("retry-after").is_some() => &shared.unavailable,
            other => {
                shared.run.violation(format!("status {other}: {}", answer.text()));
                return Ok(false);
            }
        };
        read?;
        counter.fetch_add(1, Ordering::SeqCst);
        if answer.header("connection") == Some("close") {
            return Ok(false);
        }
    }
    Ok(true)
}

#[test]
fn nothing_of_an_ended_episode_passes_however_many_end() {
    let flags = || (0..EPISODES + SLOTS).map(|_| AtomicBool::new(false)).collect();
    let shared = Arc::new(StormState {
        started: AtomicU64::new(0),
        is_ending: flags(),
        ended: flags(),
        run: StormRun::default(),
        answers: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        unavailable: AtomicU64::new(0),
    });
    let gateway = gateway_with(|settings| settings.workers = 8);
    let arena = Arc::new(TestArena::default());
    let proxy = gateway.open_proxy(loopback(), arena.clone()).expect("a free port");
    let routes: Vec<_> = (0..SLOTS).map(|_| open(&gateway)).collect();
    let wiki = site(&shared, None);
    let wiki_route = route_to(&gateway, &wiki, 1);
    // The generation of a slot is the number of its episode plus one.
    let begin = |slot: usize, episode: usize| {
        let generation = episode as u64 + 1;
        routes[slot].serve(target(&site(&shared, Some(episode)), generation));
        let id = format!("e{episode}");
        arena.start(&id);
        arena.add_site(&id, &["shop.test:80"], "localhost:7770", &routes[slot], Some(generation));
        arena.add_site(&id, &["wiki.test:80"], "localhost:8888", &wiki_route, None);
        shared.started.store(episode as u64 + 1, Ordering::SeqCst);
    };
    let mut holders: Vec<usize> = (0..SLOTS).collect();
    for slot in 0..SLOTS {
        begin(slot, slot);
    }
    let clients = storm_clients(CLIENTS, proxy.local_addr(), &shared, exchange);
    let mut dice = Dice(7);
    let until = Instant::now() + DEADLINE * 4;
    for episode in SLOTS..EPISODES {
        let slot = dice.index(SLOTS);
        let old = holders[slot];
        shared.is_ending[old].store(true, Ordering::SeqCst);
        // The order in which the daemon closes the route and revokes the access does not matter.
        if dice.roll(2) == 0 {
            routes[slot].hold("the slot is being recycled");
        }
        arena.end(&format!("e{old}"));
        shared.ended[old].store(true, Ordering::SeqCst);
        if dice.roll(2) == 0 {
            routes[slot].hold("the slot is being recycled");
            std::thread::sleep(Duration::from_micros(dice.roll(500)));
        }
        begin(slot, episode);
        holders[slot] = episode;
        if dice.roll(2) > 0 {
            // Lets other threads run in between; their progress does not matter.
            std::thread::sleep(Duration::from_micros(dice.roll(3000)));
        }
        assert!(Instant::now() < until, "{episode} episodes took too long");
    }
    let before = shared.answers.load(Ordering::SeqCst);
    eventually("everybody is served", || shared.answers.load(Ordering::SeqCst) > before + 100);
    shared.run.end(clients);
    eventually("nothing is left over", || {
        let stats = wiki_route.stats();
        (proxy.stats().connections, stats.in_flight, stats.held) == (0, 0, 0)
    });
    assert_eq!(wiki_route.stats().target_failures, 0, "an end was blamed on a target");
    // The storm must have produced answers, refusals and cuts; a 503 needs a switch in a short moment.
    let met = [&shared.answers, &shared.refused, &shared.unavailable, &shared.run.cut];
    let met = met.map(|counter| counter.load(Ordering::SeqCst));
    println!("answers, 407, 503, cut: {met:?}");
    assert!(met[0] > 0 && met[1] > 0 && met[3] > 0, "{met:?}");
}
