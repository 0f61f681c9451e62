//! Tests of the store, some of them on databases that an earlier version filled.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::Executor;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::connection::Connection;
use super::{DaemonStore, NewGeneration, Retention, SnapshotPlace, StoredStandby, time_text};
use arenad_model::event::EventKind;
use arenad_model::ids::{EnvironmentName, SiteName};
use arenad_model::instance::{InstanceFailure, InstanceId, InstanceState};
use arenad_model::reset_scope::ResetScope;
use arenad_model::snapshot::SnapshotId;
use arenad_seams::wall_clock::WallClock;

fn instance() -> InstanceId {
    InstanceId::serving(&EnvironmentName::parse("mini").expect("a name"), &SiteName::parse("shop").expect("a name"))
}

fn snapshot(id: &str) -> SnapshotId {
    id.to_owned().into()
}

/// Opens a store that an installation has begun to use.
async fn store(folder: &tempfile::TempDir) -> DaemonStore {
    let store = DaemonStore::open(&folder.path().join("arenad.db"), WallClock::system()).await.expect("a store");
    store.installation().await.expect("an installation");
    store
}

/// Inserts an environment and an instance of its site.
async fn with_instance(store: &DaemonStore) {
    let insert = "INSERT INTO environments (name, root, environment_path, environment_text, compose_path, compose_text, \
                  variables, updated_at) VALUES ('mini', '/', 'e', '', 'c', '', '{}', '2026-01-01T00:00:00.000000000Z')";
    store.durable.execute(insert).await.expect("an environment");
    let insert = "INSERT INTO instances (id, environment, site, desired, state, since) \
                  VALUES ('mini/shop/1', 'mini', 'shop', 'up', 'down', '2026-01-01T00:00:00.000000000Z')";
    store.durable.execute(insert).await.expect("an instance");
}

/// Begins a generation with new containers from the snapshot `keep`.
async fn begin(store: &DaemonStore) -> u64 {
    let begun = NewGeneration {
        has_new_containers: true,
        snapshot: &snapshot("keep"),
        state: &InstanceState::Starting,
        since: Timestamp::UNIX_EPOCH,
        reset: None,
        strategy: arenad_model::reset::ResetWay::Recreate,
    };
    store.begin_generation(&instance(), &begun).await.expect("a generation")
}

async fn with_snapshot(store: &DaemonStore, id: &str) {
    let insert = "INSERT INTO snapshots (id, environment, site, name, images, volumes, size_bytes, created_at, engine) \
                  VALUES (?1, 'mini', 'shop', ?1, '{\"app\": \"sha256:1\"}', '{}', 1, '2026-01-01T00:00:00.000000000Z', \
                  (SELECT engine FROM installation))";
    sqlx::query(insert).bind(id).execute(&store.durable).await.expect("a snapshot");
}

async fn texts(pool: &Connection, query: &'static str) -> Vec<String> {
    sqlx::query_scalar(query).fetch_all(pool).await.expect("rows")
}

#[test]
fn times_sort_as_text_the_way_they_follow_each_other() {
    let times = ["2026-03-01T12:00:00Z", "2026-03-01T12:00:00.25Z", "2026-03-01T12:00:00.3Z", "2026-03-01T12:00:01Z"];
    let written = times.map(|time| time_text(Timestamp::from_str(time).expect("a time")));
    assert!(written.is_sorted(), "{written:?}");
    assert!(written.iter().all(|text| text.len() == 30), "{written:?}");
}

/// Creates a database with the schema before a migration.
pub(super) async fn with_schema_before(version: i64, path: &std::path::Path) -> sqlx::SqlitePool {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.expect("a database");
    let mut earlier = crate::schema::migrator();
    earlier.migrations.to_mut().retain(|migration| migration.version < version);
    earlier.run(&pool).await.expect("the earlier schema");
    pool
}

#[tokio::test]
async fn a_database_of_an_earlier_version_keeps_its_rows_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("arenad.db");
    let pool = with_schema_before(13, &path).await;
    let fill = "\
        INSERT INTO installation VALUES ('0123456789ab', '2026-01-01T00:00:00Z');
        INSERT INTO environments VALUES ('mini', '/', 'e', '', 'c', '', NULL, NULL, '{}', '2026-01-01T00:00:00.1Z');
        INSERT INTO snapshots (id, environment, site, images, volumes, size_bytes, created_at, imported_at) VALUES
            ('old', 'mini', 'shop', '{}', '{}', 1, '2026-01-02T00:00:00Z', NULL),
            ('new', 'mini', 'shop', '{}', '{}', 1, '2026-01-02T00:00:00.5Z', '2026-01-03T00:00:00.123456789Z');
        INSERT INTO instances (id, environment, site, desired, state, generation, serving, made, snapshot, since) VALUES
            ('mini/shop/1', 'mini', 'shop', 'up', 'ready', 7, 7, 7, 'old', '2026-01-04T00:00:00.25Z');
        INSERT INTO resets (id, instance, strategy, requested_at, outcome, duration_ms, verified) VALUES
            ('a', 'mini/shop/1', 'swap', '2026-01-05T00:00:00.9Z', 'done', 1.5, 'moved'),
            ('b', 'mini/shop/1', 'swap', '2026-01-05T00:00:00Z', 'done', 1.5, NULL);
        INSERT INTO events (at, kind, message) VALUES ('2026-01-06T00:00:00.5Z', 'x', 'm');
        INSERT INTO health_rounds (instance, generation, kind, at, duration_ms, ok) VALUES
            ('mini/shop/1', 7, 'shallow', '2026-01-06T00:00:00Z', 1.0, 1);";
    pool.execute(fill).await.expect("rows");
    pool.close().await;

    let store = DaemonStore::open(&path, WallClock::system()).await.expect("the rows are brought along");
    let listed: Vec<String> = store.snapshots().await.expect("rows").into_iter().map(|found| found.id.into()).collect();
    assert_eq!(listed, ["new", "old"], "the newest first");
    let instance = store.instance(&instance()).await.expect("a row").expect("an instance");
    assert_eq!(instance.since, Timestamp::from_str("2026-01-04T00:00:00.25Z").expect("a time"));
    assert_eq!(texts(&store.durable, "SELECT since FROM instances").await, ["2026-01-04T00:00:00.250000000Z"]);
    assert_eq!(
        texts(&store.durable, "SELECT imported_at FROM snapshots WHERE id = 'new'").await,
        ["2026-01-03T00:00:00.123456789Z"]
    );
    let last = store.last_reset(&super::tests::instance()).await.expect("a row").expect("a reset");
    assert_eq!((last.id.as_str(), last.requested_at.to_string().as_str()), ("b", "2026-01-05T00:00:00Z"));
    let reset = store.reset("a").await.expect("a row").expect("a reset");
    assert_eq!((reset.verified, reset.duration_ms), (Some(arenad_model::verify::ComparisonExtent::Moved), Some(1.5)));
    assert_eq!(store.rounds(&self::instance(), arenad_model::health::Depth::Shallow, 9).await.expect("rows").len(), 1);
    assert_eq!(store.engine_in_use().await.expect("a row"), None);
}

#[tokio::test]
async fn a_clock_that_is_set_back_or_ahead_keeps_the_newest_resets() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    // The last three were requested after the clock had been set back by years.
    for number in 0..10 {
        let year = if number < 7 { 2026 } else { 2019 };
        let insert =
            "INSERT INTO resets (id, instance, strategy, requested_at, outcome) VALUES (?, 'i', 'swap', ?, 'done')";
        let at = format!("{year}-01-01T00:00:{number:02}.000000000Z");
        sqlx::query(insert).bind(number.to_string()).bind(at).execute(&store.durable).await.expect("a row");
    }
    let keep = Retention { most: 6, least: 3, age: Duration::from_secs(u64::from(u32::MAX)) };
    store.prune_resets(keep).await.expect("rows go");
    let left = "SELECT id FROM resets ORDER BY seq";
    assert_eq!(texts(&store.durable, left).await, ["4", "5", "6", "7", "8", "9"]);
    // By the current clock all of them are old, so only the newest stay.
    store.prune_resets(Retention { age: Duration::ZERO, ..keep }).await.expect("rows go");
    assert_eq!(texts(&store.durable, left).await, ["7", "8", "9"]);
    store.prune_resets(Retention { least: 0, age: Duration::ZERO, most: 0 }).await.expect("rows go");
    assert_eq!(texts(&store.durable, left).await, [""; 0], "all may go");
}

/// Returns the numbers of the oldest and the newest event that are kept.
async fn event_range(store: &DaemonStore) -> Option<(i64, i64)> {
    let events = store.events_after(0, u32::MAX).await.expect("events");
    Some((events.first()?.seq, events.last()?.seq))
}

#[tokio::test]
async fn events_and_rounds_are_kept_by_number_and_age() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    with_instance(&store).await;
    for number in 0..20 {
        store.append_event(EventKind::DaemonStarted, None, &number.to_string()).await.expect("an event");
    }
    store
        .durable
        .execute("UPDATE events SET at = '2020-01-01T00:00:00.000000000Z' WHERE seq <= 15")
        .await
        .expect("old");
    let month = Duration::from_secs(30 * 24 * 3600);
    store.prune_events(Retention { most: 18, least: 10, age: month }).await.expect("events go");
    assert_eq!(event_range(&store).await, Some((11, 20)), "old ones go, ten stay");
    store.prune_events(Retention { most: 4, least: 2, age: month }).await.expect("events go");
    assert_eq!(event_range(&store).await, Some((17, 20)));
    assert_eq!(store.seq_before("2021-01-01T00:00:00Z".parse().expect("a time")).await.expect("events"), 0);
    assert_eq!(store.seq_before(Timestamp::MAX).await.expect("events"), 20);

    let insert = "INSERT INTO health_rounds (instance, generation, kind, at, duration_ms, ok) \
                  VALUES (?, 1, 'shallow', '2020-01-01T00:00:00.000000000Z', 1, 1)";
    for _ in 0..5 {
        for instance in ["mini/shop/1", "gone/shop/1"] {
            sqlx::query(insert).bind(instance).execute(&store.durable).await.expect("a round");
        }
    }
    store.prune_rounds(3, month).await.expect("rounds go");
    assert_eq!(texts(&store.durable, "SELECT instance FROM health_rounds").await, ["mini/shop/1"; 3]);
}

#[tokio::test]
async fn what_was_made_on_one_engine_stays_its_own_while_another_is_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    with_instance(&store).await;
    assert_eq!(store.meet_engine("A", "unix:///a").await.expect("met"), None);
    with_snapshot(&store, "keep").await;
    let made = begin(&store).await;
    assert_eq!(store.meet_engine("A", "unix:///a").await.expect("met"), None, "no news");
    assert_eq!(store.other_engine_of(&instance()).await.expect("a row"), None);
    assert!(store.misplaced().await.expect("rows").is_empty());

    let before = store.meet_engine("B", "unix:///b").await.expect("met").expect("another one");
    assert_eq!((before.id.as_str(), before.endpoint.as_str()), ("A", "unix:///a"));
    let other = store.other_engine_of(&instance()).await.expect("a row").expect("it is A's");
    assert_eq!(other.endpoint, "unix:///a");
    assert_eq!(store.generations_elsewhere().await.expect("rows")[&instance()], [made].into());
    assert_eq!(store.misplaced().await.expect("rows"), [(instance(), made)].into());
    let place = |engine: &str| SnapshotPlace { engine: Some(engine.to_owned()), missing_since: None };
    assert_eq!(store.snapshot_places().await.expect("rows")[&snapshot("keep")], place("A"));

    let elsewhere = store.named_elsewhere("keep").await.expect("rows");
    assert_eq!(elsewhere, Some(("keep".to_owned(), "unix:///a".to_owned())));
    // Brought up on B, the instance now belongs to B; its objects on A are not forgotten.
    begin(&store).await;
    assert_eq!(store.other_engine_of(&instance()).await.expect("a row"), None);
    assert_eq!(store.generations_elsewhere().await.expect("rows")[&instance()], [made].into());

    store.meet_engine("A", "unix:///a").await.expect("met").expect("another one");
    assert_eq!(store.generations_elsewhere().await.expect("rows")[&instance()], [made + 1].into());
    assert_eq!(store.other_engine_of(&instance()).await.expect("a row").expect("it is B's").id, "B");
    assert_eq!(store.snapshot_places().await.expect("rows")[&snapshot("keep")], place("A"));
    assert_eq!(store.named_elsewhere("keep").await.expect("rows"), None, "it is here");
    // The engine got a new id, and the containers are still there.
    assert!(store.place_instance(&instance(), made + 1).await.expect("a row"));
    assert_eq!(store.other_engine_of(&instance()).await.expect("a row"), None);
    assert!(store.generations_elsewhere().await.expect("rows").is_empty());
    assert!(store.misplaced().await.expect("rows").is_empty());
    store.miss_snapshot("keep").await.expect("a row");
    let first = store.snapshot_places().await.expect("rows")[&snapshot("keep")].missing_since.expect("a time");
    store.miss_snapshot("keep").await.expect("a row");
    assert_eq!(store.snapshot_places().await.expect("rows")[&snapshot("keep")].missing_since, Some(first));
    let placed = store.placed_snapshots().await.expect("rows");
    let placed: Vec<_> = placed.iter().map(|(stored, place)| (stored.id.as_str(), place.missing_since)).collect();
    assert_eq!(placed, [("keep", Some(first))]);
    store.place_snapshot("keep").await.expect("a row");
    assert_eq!(store.snapshot_places().await.expect("rows")[&snapshot("keep")], place("A"));
}

#[tokio::test]
async fn what_a_reset_that_was_cut_off_has_left_serves_no_more_once_it_is_brought_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    with_instance(&store).await;
    with_snapshot(&store, "keep").await;
    let made = begin(&store).await;
    let serving = async || store.instance(&instance()).await.expect("a row").expect("one").serving.map(|it| it.made);
    let save = async |state| store.save_state(&instance(), &state, Timestamp::now()).await.expect("a row");
    save(InstanceState::Ready).await;
    save(InstanceState::Preparing).await;
    assert_eq!(serving().await, Some(made), "a daemon that ends while it takes it up leaves it as it was");
    save(InstanceState::Resetting).await;
    save(InstanceState::Preparing).await;
    assert_eq!(serving().await, None);
}

#[tokio::test]
async fn what_is_made_ready_after_a_down_that_failed_is_wanted_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    with_instance(&store).await;
    store.unwant_instance(&instance()).await.expect("a row");
    let trouble = InstanceFailure { reason: "the engine is away".to_owned(), hint: String::new() };
    for (state, is_wanted) in [
        (InstanceState::Failed(trouble), false),
        (InstanceState::Resetting, false),
        (InstanceState::Ready, true),
        (InstanceState::Stopping, false),
        (InstanceState::Down, false),
    ] {
        store.save_state(&instance(), &state, Timestamp::now()).await.expect("a row");
        let row = store.instance(&instance()).await.expect("a row").expect("an instance");
        assert_eq!((row.state, row.desired_up), (state.status(), is_wanted));
    }
}

#[tokio::test]
async fn the_generations_of_what_is_to_be_up_are_claimed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    with_instance(&store).await;
    with_snapshot(&store, "keep").await;
    let claimed = async || store.claimed_generations().await.expect("rows");
    assert!(claimed().await.is_empty(), "nothing is made yet");
    let made = begin(&store).await;
    let standby = store.begin_standby(&instance()).await.expect("a row");
    assert_eq!(claimed().await, [(instance(), [made].into())].into(), "the standby is not ready");
    let ready = StoredStandby { made: standby, snapshot: snapshot("keep"), renewals: 0 };
    store.keep_standby(&instance(), &ready).await.expect("a row");
    assert_eq!(claimed().await, [(instance(), [made, standby].into())].into());
    store.unwant_instance(&instance()).await.expect("a row");
    assert!(claimed().await.is_empty(), "it is to be down");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_moved_is_in_the_database_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    let message = "m".repeat(1000);
    for _ in 0..6 * 1024 {
        store.append_event(EventKind::DaemonStarted, None, &message).await.expect("an event");
    }
    store.checkpoint().await.expect("moved");
    // The database is copied without its WAL.
    let alone = tempfile::tempdir().expect("a folder");
    std::fs::copy(folder.path().join("arenad.db"), alone.path().join("arenad.db")).expect("a copy");
    let copied = DaemonStore::open(&alone.path().join("arenad.db"), WallClock::system()).await.expect("a store");
    assert_eq!(event_range(&copied).await, event_range(&store).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_writes_at_once_gets_a_number_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    with_instance(&store).await;
    let all = (0..50).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.begin_standby(&instance()).await.expect("a number") })
    });
    let mut numbers = Vec::new();
    for one in all.collect::<Vec<_>>() {
        numbers.push(one.await.expect("it ends"));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=50).collect::<Vec<u64>>());
    let row = store.instance(&instance()).await.expect("a row").expect("a row");
    assert_eq!(row.generation, 50, "a reader sees what was committed");
}

/// The manifest of an import as an earlier version saved it.
const MANIFEST: &str = r#"{"id":"0123456789abcdef","environment":"mini","site":"shop","name":null,"baseline":null,
    "services":{"db":{"image":"sha256:2","layers":[]},"web":{"image":"sha256:1","layers":[]}},
    "volumes":{"db":{"/data":"a.tar","/log":"b.tar"}},"fingerprint":null,"id_covers_stores":false,"digest":{"of":"stores"},
    "sessions":[["admin","/",{}]],"size_bytes":1,"created_at":"2026-01-01T00:00:00Z","writer":"arenad","parts":[]}"#;

#[tokio::test]
async fn what_imports_await_is_known_without_their_manifests() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("arenad.db");
    let pool = with_schema_before(25, &path).await;
    let insert = "INSERT INTO imports (snapshot, manifest, touched_at) VALUES \
                  ('0123456789abcdef', ?, '2026-01-01T00:00:00.000000000Z')";
    sqlx::query(insert).bind(MANIFEST).execute(&pool).await.expect("a row");
    pool.close().await;
    let store = DaemonStore::open(&path, WallClock::system()).await.expect("the row is brought along");
    let awaited = async || {
        let mut imports = store.imports().await.expect("rows");
        let found = imports.pop().expect("an import");
        let list = |names: std::collections::BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(" ");
        (imports.len(), String::from(found.snapshot), list(found.images), list(found.volumes))
    };
    let expected = (0, "0123456789abcdef".to_owned(), "sha256:1 sha256:2".to_owned(), "a.tar b.tar".to_owned());
    assert_eq!(awaited().await, expected, "of an earlier version");
    let import = store.import("0123456789abcdef").await.expect("a row").expect("an import");
    store.forget_import("0123456789abcdef").await.expect("forgotten");
    store.save_import(None, &import.manifest).await.expect("kept");
    assert_eq!(awaited().await, expected, "of this one");
    // The manifest is not read until the parts of the import arrive.
    store.durable.execute("UPDATE imports SET manifest = 'gigabytes'").await.expect("a change");
    assert_eq!(awaited().await, expected);
    assert!(store.has_import("0123456789abcdef").await.expect("a row"));
    store.import("0123456789abcdef").await.expect_err("it is none");
}

#[tokio::test]
async fn further_slots_of_an_earlier_version_are_made_anew_with_numbers_of_their_site() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("arenad.db");
    let pool = with_schema_before(31, &path).await;
    // Each slot numbered its own generations, so both slots serve a generation 2.
    let fill = "\
        INSERT INTO installation (id, created_at) VALUES ('0123456789ab', '2026-01-01T00:00:00.000000000Z');
        INSERT INTO environments VALUES ('mini', '/', 'e', '', 'c', '', NULL, NULL, '{}', '2026-01-01T00:00:00.000000000Z');
        INSERT INTO instances (id, environment, site, desired, state, generation, serving, made, since) VALUES
            ('mini/shop/1', 'mini', 'shop', 'up', 'ready', 3, 2, 2, '2026-01-04T00:00:00.000000000Z'),
            ('mini/shop/2', 'mini', 'shop', 'up', 'ready', 9, 2, 2, '2026-01-04T00:00:00.000000000Z');
        INSERT INTO standbys (instance, made, snapshot, renewals) VALUES
            ('mini/shop/1', 3, 'base', 0), ('mini/shop/2', 3, 'base', 0);
        INSERT INTO elsewhere (engine, instance, made) VALUES ('B', 'mini/shop/1', 1), ('B', 'mini/shop/2', 1);";
    pool.execute(fill).await.expect("rows");
    pool.close().await;

    let store = DaemonStore::open(&path, WallClock::system()).await.expect("the rows are brought along");
    let slot = |number: u32| InstanceId { number, ..instance() };
    let serving = async |number| {
        let row = store.instance(&slot(number)).await.expect("a row").expect("an instance");
        (row.desired_up, row.serving.map(|serving| serving.generation))
    };
    assert_eq!(serving(1).await, (true, Some(2)), "the slot that people use goes on");
    assert_eq!(serving(2).await, (true, None), "it is made anew");
    let made = store.begin_standby(&slot(1)).await.expect("a number");
    assert_eq!(made, 10, "no slot has had the number");
    assert_eq!(texts(&store.durable, "SELECT instance || ' ' || made FROM standbys").await, ["mini/shop/1 3"]);
    assert_eq!(store.generations_elsewhere().await.expect("rows"), [(slot(1), [1].into())].into());
}

#[tokio::test]
async fn a_reset_that_was_asked_for_counts_as_failed_until_one_succeeds() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder).await;
    let scope = |slot, site: Option<&str>| ResetScope {
        environment: EnvironmentName::parse("mini").expect("a name"),
        slot,
        site: site.map(|name| SiteName::parse(name).expect("a name")),
    };
    let (all, other, shop) = (scope(1, None), scope(2, None), scope(1, Some("shop")));
    for begun in [&all, &other, &shop] {
        store.begin_asked_reset(begun).await.expect("a row");
    }
    store.fail_asked_reset(&other, "no disk").await.expect("a row");
    store.complete_asked_reset(&shop).await.expect("no row");
    let left = store.interrupt_asked_resets("the daemon ended").await.expect("rows");
    assert_eq!(left, [(all.clone(), "the daemon ended".to_owned()), (other.clone(), "no disk".to_owned())]);

    // A reset of all sites takes the place of failures of single ones, not of those that run.
    store.begin_asked_reset(&shop).await.expect("a row");
    store.fail_asked_reset(&shop, "it differs").await.expect("a row");
    let forum = scope(1, Some("forum"));
    store.begin_asked_reset(&forum).await.expect("a row");
    store.begin_asked_reset(&all).await.expect("a row");
    store.complete_asked_reset(&all).await.expect("no row");
    let left = store.interrupt_asked_resets("killed").await.expect("rows");
    assert_eq!(left, [(forum, "killed".to_owned()), (other, "no disk".to_owned())]);
}
