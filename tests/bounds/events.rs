//! Following the event log from any place in it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use super::store;
use crate::support::World;
use crate::support::wait::PATIENCE;

/// A stream of events, as the API sends it.
struct EventStream(BufReader<UnixStream>);

impl EventStream {
    fn start(world: &World, query: &str) -> Self {
        let mut stream = UnixStream::connect(world.state_dir().join("arenad.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /v1/events?{query}&follow=true HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    /// The next value of a field.
    fn next(&mut self, field: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended before a {field}");
            if let Some(value) = line.strip_prefix(field) {
                return value.trim_start_matches(':').trim().to_owned();
            }
        }
    }

    fn ids(&mut self, count: usize) -> Vec<i64> {
        (0..count).map(|_| self.next("id").parse().unwrap()).collect()
    }
}

#[tokio::test]
async fn events_are_followed_without_a_gap_and_a_gap_is_told() {
    let world = World::single("followed");
    world.up();
    let store = store(&world).await;
    let newest = "SELECT max(seq) FROM events";
    for number in 0..300 {
        let insert = "INSERT INTO events (at, kind, message) VALUES ('2026-01-01T00:00:00.000000000Z', 'test', ?)";
        sqlx::query(insert).bind(number.to_string()).execute(&store).await.unwrap();
    }
    let before: i64 = sqlx::query_scalar(newest).fetch_one(&store).await.unwrap();
    let mut all = EventStream::start(&world, "after=0");
    let mut slow = EventStream::start(&world, "after=0");
    assert_eq!(all.ids(usize::try_from(before).unwrap()), (1..=before).collect::<Vec<_>>());
    world.run(&["reset", "toy"]).code(0);
    // Events are stored independently of the operation that the client waits for.
    let noted = "SELECT count(*) FROM events WHERE seq > ? AND kind IN ('instance.ready', 'instance.reset')";
    let deadline = std::time::Instant::now() + PATIENCE;
    while sqlx::query_scalar::<_, i64>(noted).bind(before).fetch_one(&store).await.unwrap() < 2 {
        assert!(std::time::Instant::now() < deadline, "the reset is not among the events");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let after: i64 = sqlx::query_scalar(newest).fetch_one(&store).await.unwrap();
    assert!(after > before);
    let live = all.ids(usize::try_from(after - before).unwrap());
    assert_eq!(live, (before + 1..=after).collect::<Vec<_>>());
    assert_eq!(slow.ids(5), [1, 2, 3, 4, 5], "one that reads later reads the same");

    // The newest stored events come first, then new ones.
    assert_eq!(EventStream::start(&world, "limit=2").ids(2), [after - 1, after]);
    // Events that are no longer stored are reported as a gap.
    sqlx::query("DELETE FROM events WHERE seq < 200").execute(&store).await.unwrap();
    let mut gone = EventStream::start(&world, "after=7");
    assert_eq!(gone.next("event"), "arenad.gone");
    let said: serde_json::Value = serde_json::from_str(&gone.next("data")).unwrap();
    assert_eq!((said["after"].as_i64(), said["next"].as_i64()), (Some(7), Some(200)), "{said:#}");
    assert_eq!(EventStream::start(&world, "after=199").ids(2), [200, 201]);
    let ran = world.run(&["events", "--follow", "--after", "7"]).code(1);
    ran.says("the events after 7 are not kept any more; the next one is 200");
    let since = world.run(&["events", "--since", "1h", "-n", "1000", "--json"]).code(0).out;
    assert!(!since.contains("\"test\"") && since.contains("instance.reset"), "{since}");
    world.run(&["down"]).code(0);
}
