//! Sites with another clock: pages and databases show its time, accounts can sign in, and every way of resetting
//! preserves it.

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

use crate::arena::Arena;

/// The time at which the clocks start.
const START: &str = "2024-03-01T12:00:00Z";

/// The largest advance of a clock since its containers were created; a standby's are created ahead of time.
const LATEST: SignedDuration = SignedDuration::from_mins(15);

/// A site with a clock.
struct Timed {
    site: &'static str,
    is_frozen: bool,
    page: &'static str,
    /// The way in which it is reset. Only sites that swap get a standby.
    way: &'static str,
}

/// They include MariaDB, PostgreSQL, Valkey, SQLite and nginx, and programs in C, C++ and Python.
const SITES: [Timed; 6] = [
    Timed { site: "shopping", is_frozen: false, page: "/", way: "recreate" },
    Timed { site: "wikipedia", is_frozen: false, page: "/arena_en_all/A/Larkmoor_County.html", way: "keep" },
    Timed { site: "reddit", is_frozen: true, page: "/", way: "rewind" },
    Timed { site: "turkle", is_frozen: true, page: "/", way: "swap" },
    Timed { site: "map", is_frozen: true, page: "/", way: "keep" },
    Timed { site: "gitlab", is_frozen: false, page: "/byteblaze/tidegauge", way: "swap" },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sites_show_the_time_that_they_are_given_also_after_resets() {
    let names = SITES.map(|timed| timed.site);
    let arena = Arena::up_edited(&names, |definition| SITES.iter().fold(definition, given_a_clock));
    succeeds(&arena, &["login", "--check"]);
    for timed in &SITES {
        timed.assert_time(&arena).await;
        if timed.way == "swap" {
            // A site gets a standby once it has been used.
            arena.reset(timed.site);
            arena.await_standby(timed.site);
        }
        assert_eq!(arena.reset(timed.site), timed.way, "{}", timed.site);
        timed.assert_time(&arena).await;
    }
    succeeds(&arena, &["verify"]);
    succeeds(&arena, &["login", "--check"]);
}

fn given_a_clock(definition: String, timed: &Timed) -> String {
    let head = format!("\n  {}:\n", timed.site);
    let (before, site) = definition.split_once(&head).expect("the site is in the definition");
    let mode = if timed.is_frozen { "frozen" } else { "running" };
    let clock = format!("    clock: {{ start: \"{START}\", mode: {mode} }}\n");
    let site = match timed.way {
        "rewind" | "recreate" => site.replacen("reset: { standby: 1 }", "reset: { standby: 0 }", 1),
        _ => site.to_owned(),
    };
    format!("{before}{head}{clock}{site}")
}

#[track_caller]
fn succeeds(arena: &Arena, args: &[&str]) {
    let output = arena.arenad(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
}

impl Timed {
    /// Asserts that the site's web server and database show the clock's time, to the second if it is frozen.
    async fn assert_time(&self, arena: &Arena) {
        let mut shown = vec![page_date(arena, self.site, self.page).await];
        if matches!(self.site, "shopping" | "reddit" | "gitlab") {
            shown.push(database_time(arena, self.site));
        }
        let start: Timestamp = START.parse().expect("a time");
        let latest = if self.is_frozen { SignedDuration::ZERO } else { LATEST };
        for time in shown {
            let since = time.duration_since(start);
            assert!((SignedDuration::ZERO..=latest).contains(&since), "{} shows {time}", self.site);
        }
    }
}

/// Returns the time according to the site's web server.
async fn page_date(arena: &Arena, site: &str, page: &str) -> Timestamp {
    let mut url: url::Url = arena.url(site).parse().expect("a URL");
    url.set_path(page);
    let answer = reqwest::get(url).await.expect("an answer").error_for_status().expect("a page");
    let date = answer.headers()["date"].to_str().expect("a date");
    DateTimeParser::new().parse_timestamp(date).expect("a date")
}

/// Returns the time according to the site's database.
fn database_time(arena: &Arena, site: &str) -> Timestamp {
    let found = arena.json(&["locate", site, "sql: SELECT now()", "--json"]);
    let time = found["value"].as_str().unwrap_or_else(|| panic!("no time: {found:#}"));
    time.parse().expect("a time")
}
