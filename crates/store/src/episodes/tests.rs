//! Tests on a database file that is opened again after each write.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sqlx::Executor;

use super::*;
use arenad_model::episode::ending::{ReleaseCause, VoidReason};
use arenad_model::episode::fence::TokenHash;
use arenad_model::episode::ids::{EpisodeLabels, IdempotencyKey, Owner, RecordBeginningId};
use arenad_model::episode::life::EpisodeTerms;
use arenad_model::episode::request::SiteWant;
use arenad_model::ids::{EnvironmentName, ReplayName, SiteId, SiteName};
use arenad_model::site::RecordedRequests;
use arenad_model::snapshot::Snapshot;
use arenad_seams::wall_clock::WallClock;

const TTL: Duration = Duration::from_secs(60);

/// A database file and a clock that the test sets.
struct TestDatabase {
    folder: tempfile::TempDir,
    seconds: Arc<AtomicI64>,
}

impl TestDatabase {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), seconds: Arc::new(AtomicI64::new(2_000_000_000)) }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("arenad.db")
    }

    async fn open(&self) -> DaemonStore {
        open(&self.path(), &self.seconds).await
    }

    async fn record(&self, changes: EpisodeChanges) -> Option<i64> {
        let store = self.open().await;
        let newest = store.record_episodes(&changes).await.expect("recorded");
        store.close().await;
        newest
    }

    async fn live(&self) -> Vec<StoredEpisode> {
        self.open().await.live_episodes().await.expect("rows")
    }

    async fn ended(&self) -> Vec<StoredEpisode> {
        self.open().await.ended_episodes().await.expect("rows")
    }
}

async fn open(path: &Path, seconds: &Arc<AtomicI64>) -> DaemonStore {
    let seconds = seconds.clone();
    let clock = WallClock::new(move || Timestamp::from_second(seconds.load(Ordering::Relaxed)).expect("a time"));
    DaemonStore::open(path, clock).await.expect("a store")
}

fn id(number: u8) -> EpisodeId {
    EpisodeId::from_random([number; 10])
}

fn site(name: &str) -> SiteId {
    SiteId { environment: EnvironmentName::parse("mini").expect("valid"), site: SiteName::parse(name).expect("valid") }
}

fn slot(text: &str, generation: Option<u64>) -> StoredSlot {
    StoredSlot { instance: format!("mini/{text}").parse().expect("valid"), generation }
}

fn live_in(state: EpisodeState) -> StoredEpisodeLife {
    let terms = EpisodeTerms::new(TTL, TTL).expect("valid");
    StoredEpisodeLife::Live(StoredLife { state, terms, left: TTL, was_held: false, is_frozen_by_client: false })
}

fn queued(number: u8) -> StoredEpisode {
    let want = |name, slot, start| SiteWant { site: site(name), slot, start };
    let labels = [("run".to_owned(), "7".to_owned()), ("task".to_owned(), "a b".to_owned())];
    StoredEpisode {
        id: id(number),
        request: Arc::new(EpisodeRequest {
            owner: Owner::parse("ann").expect("valid"),
            key: Some(IdempotencyKey::parse(&format!("key-{number}")).expect("valid")),
            sites: vec![
                want("wiki", None, StartPoint::Baseline),
                want("shop", Some(2), StartPoint::Snapshot("full".to_owned())),
                want("forge", None, StartPoint::Fork { parent: id(200), copy: "0123456789abcdef".to_owned().into() }),
            ],
            terms: EpisodeTerms::new(TTL, TTL).expect("valid"),
            labels: EpisodeLabels::parse(labels.into()).expect("valid"),
            record: RecordedRequests::Writes,
            beginning: Some(RecordBeginningId::from_random([number; 8])),
            replays: ["first", "second"].map(|name| ReplayName::parse(name).expect("valid")).to_vec(),
        }),
        tokens: EpisodeTokens::new(TokenHash::new([number; 32])),
        slots: Vec::new(),
        life: live_in(EpisodeState::Queued),
        asked_at: Timestamp::from_second(1_999_999_999).expect("a time"),
        granted_at: None,
    }
}

fn granted(number: u8, state: EpisodeState) -> StoredEpisode {
    StoredEpisode {
        slots: vec![slot("shop/2", Some(7)), slot("forge/1", None)],
        life: live_in(state),
        granted_at: Some(Timestamp::UNIX_EPOCH),
        ..queued(number)
    }
}

fn over(episode: StoredEpisode, ending: EpisodeEnding) -> StoredEpisode {
    StoredEpisode { life: StoredEpisodeLife::Ended { ending, at: Timestamp::UNIX_EPOCH }, ..episode }
}

fn released() -> EpisodeEnding {
    EpisodeEnding::Released(ReleaseCause::Client)
}

fn writing(written: Vec<(EpisodePart, StoredEpisode)>) -> EpisodeChanges {
    EpisodeChanges { written, is_durable: true, ..EpisodeChanges::default() }
}

/// Returns an episode as text. Tokens are hidden in it, and are compared separately.
fn shown(episode: &StoredEpisode) -> String {
    let tokens: Vec<&[u8; 32]> = episode.tokens.iter().map(TokenHash::as_bytes).collect();
    format!("{episode:?} {tokens:?}")
}

#[track_caller]
fn assert_same(read: &[StoredEpisode], written: &[StoredEpisode]) {
    let texts = |episodes: &[StoredEpisode]| episodes.iter().map(shown).collect::<Vec<_>>();
    assert_eq!(texts(read), texts(written));
}

#[tokio::test]
async fn every_part_of_an_episode_is_read_back_after_each_write() {
    use EpisodePart::{Everything, Life, Slots, Tokens};
    let database = TestDatabase::new();
    let mut episode = queued(1);
    database.record(writing(vec![(Everything, episode.clone())])).await;
    assert_same(&database.live().await, &[episode.clone()]);
    episode.tokens.add(TokenHash::new([9; 32]));
    database.record(writing(vec![(Tokens, episode.clone())])).await;
    assert_same(&database.live().await, &[episode.clone()]);
    for state in [EpisodeState::Preparing, EpisodeState::Active, EpisodeState::Frozen] {
        episode = StoredEpisode { tokens: episode.tokens, ..granted(1, state) };
        database.record(writing(vec![(Slots, episode.clone())])).await;
        assert_same(&database.live().await, &[episode.clone()]);
    }
    let StoredEpisodeLife::Live(life) = &mut episode.life else { panic!("it is live") };
    (life.was_held, life.is_frozen_by_client, life.left) = (true, true, Duration::from_millis(1500));
    database.record(writing(vec![(Life, episode.clone())])).await;
    assert_same(&database.live().await, &[episode.clone()]);
    let slot = episode.slots[0].instance.clone();
    let died = EpisodeEnding::Void(VoidReason::ContainerDied { slot, detail: "exited with code 1".to_owned() });
    let ended = over(episode, died);
    database.record(writing(vec![(Life, ended.clone())])).await;
    assert_same(&database.live().await, &[]);
    assert_same(&database.ended().await, &[ended]);
}

#[tokio::test]
async fn live_episodes_are_in_order_of_arrival_and_ended_ones_in_the_order_of_their_ends() {
    let database = TestDatabase::new();
    let all = [9, 3, 7, 5].map(|number| (EpisodePart::Everything, queued(number)));
    database.record(writing(all.to_vec())).await;
    for number in [7, 9] {
        database.record(writing(vec![(EpisodePart::Life, over(queued(number), released()))])).await;
    }
    // A second attempt to write the same end does not change the order.
    database.record(writing(vec![(EpisodePart::Everything, over(queued(7), released()))])).await;
    let ids = |episodes: Vec<StoredEpisode>| episodes.into_iter().map(|episode| episode.id).collect::<Vec<_>>();
    assert_eq!(ids(database.live().await), [id(3), id(5)]);
    assert_eq!(ids(database.ended().await), [id(7), id(9)]);
}

#[tokio::test]
async fn the_time_that_is_left_is_the_smaller_one() {
    let database = TestDatabase::new();
    database.record(writing(vec![(EpisodePart::Everything, queued(1))])).await;
    let left = async |seconds: i64| {
        database.seconds.fetch_add(seconds, Ordering::Relaxed);
        let StoredEpisodeLife::Live(life) = database.live().await.remove(0).life else { panic!("it is live") };
        database.seconds.fetch_sub(seconds, Ordering::Relaxed);
        life.left.as_secs()
    };
    assert_eq!((left(0).await, left(20).await, left(3600).await), (60, 40, 0));
    assert_eq!(left(-3600).await, 60, "a clock that is set back does not prolong an episode");
}

#[tokio::test]
async fn no_slot_belongs_to_two_episodes() {
    let database = TestDatabase::new();
    let all = [1, 2].map(|number| (EpisodePart::Everything, queued(number)));
    database.record(writing(all.to_vec())).await;
    let first = (EpisodePart::Slots, granted(1, EpisodeState::Active));
    let second = (EpisodePart::Slots, granted(2, EpisodeState::Active));
    database.record(writing(vec![first.clone()])).await;
    let store = database.open().await;
    store.record_episodes(&writing(vec![second.clone()])).await.expect_err("the slots are taken");
    assert_same(&database.live().await, &[first.1.clone(), queued(2)]);
    // The end of the first and the grant to the second are one transaction, in whatever order they are given.
    let first = over(first.1, released());
    database.record(writing(vec![second.clone(), (EpisodePart::Life, first.clone())])).await;
    assert_same(&database.live().await, &[second.1]);
    assert_same(&database.ended().await, &[first]);
}

#[tokio::test]
async fn a_transaction_is_written_as_a_whole_or_not_at_all() {
    let database = TestDatabase::new();
    let same_key = StoredEpisode { request: queued(1).request, ..queued(2) };
    let both = writing(vec![(EpisodePart::Everything, queued(1)), (EpisodePart::Everything, same_key.clone())]);
    database.open().await.record_episodes(&both).await.expect_err("the key is taken");
    assert_same(&database.live().await, &[]);
    database.record(writing(vec![(EpisodePart::Everything, queued(1))])).await;
    // A forgotten episode makes room for its key in the same transaction.
    let forgotten = vec![id(1)];
    let changes = EpisodeChanges { forgotten, ..writing(vec![(EpisodePart::Everything, same_key.clone())]) };
    database.record(changes).await;
    assert_same(&database.live().await, &[same_key]);
}

#[tokio::test]
async fn ended_episodes_are_kept_by_number_and_age_and_live_ones_always() {
    let database = TestDatabase::new();
    let everything = |episode| vec![(EpisodePart::Everything, episode)];
    database.record(writing(everything(queued(100)))).await;
    for number in 1..=6 {
        let at = Timestamp::from_second(if number < 3 { 0 } else { 2_000_000_000 }).expect("a time");
        let life = StoredEpisodeLife::Ended { ending: released(), at };
        database.record(writing(everything(StoredEpisode { life, ..queued(number) }))).await;
    }
    let store = database.open().await;
    let keep = Retention { most: 5, least: 5, age: Duration::from_secs(3600) };
    assert_eq!(store.forget_episodes(keep).await.expect("rows go"), 1, "by number");
    assert_eq!(store.forget_episodes(Retention { least: 2, ..keep }).await.expect("rows go"), 1, "by age");
    let left: Vec<EpisodeId> = database.ended().await.into_iter().map(|episode| episode.id).collect();
    assert_eq!((left, database.live().await.len()), (vec![id(3), id(4), id(5), id(6)], 1));
}

#[tokio::test]
async fn events_have_numbers_without_gaps_and_are_pruned() {
    let database = TestDatabase::new();
    let event = |status, ending| NewEpisodeEvent { episode: id(1), status, ending };
    let events = vec![event(EpisodeStatus::Queued, None), event(EpisodeStatus::Released, Some(released()))];
    let changes = EpisodeChanges { events: events.clone(), ..EpisodeChanges::default() };
    assert_eq!(database.record(EpisodeChanges::default()).await, None);
    assert_eq!(database.record(changes.clone()).await, Some(2));
    assert_eq!(database.record(changes).await, Some(4));
    let store = database.open().await;
    let read = store.episode_events_after(1, 2).await.expect("events");
    let parts = read.iter().map(|event| (event.seq, event.status, event.ending.clone())).collect::<Vec<_>>();
    assert_eq!(parts, [(2, EpisodeStatus::Released, Some(released())), (3, EpisodeStatus::Queued, None)]);
    let keep = Retention { most: 1, least: 1, age: Duration::MAX };
    assert_eq!(store.prune_episode_events(keep).await.expect("rows go"), 3);
    assert_eq!((store.newest_episode_event().await.expect("a number"), read[0].at.as_second()), (4, 2_000_000_000));
}

#[tokio::test]
async fn a_database_of_an_earlier_version_has_no_episodes() {
    let database = TestDatabase::new();
    crate::tests::with_schema_before(26, &database.path()).await.close().await;
    assert_same(&database.live().await, &[]);
    database.record(writing(vec![(EpisodePart::Everything, queued(1))])).await;
    assert_same(&database.live().await, &[queued(1)]);
}

#[tokio::test]
async fn evaluations_are_kept_with_their_episode_and_are_bounded() {
    let database = TestDatabase::new();
    database.record(writing(vec![(EpisodePart::Everything, queued(1)), (EpisodePart::Everything, queued(2))])).await;
    let store = database.open().await;
    let given = |number: u32| NewEvaluation {
        task: format!("shop.{number}"),
        verdict: "passed".to_owned(),
        reward: (number > 0).then_some(1.0),
    };
    for number in 0..103 {
        store.note_evaluation(&id(1), &given(number)).await.expect("a row");
    }
    store.note_evaluation(&id(2), &given(0)).await.expect("a row");
    let read = store.evaluations(&id(1)).await.expect("rows");
    assert_eq!(
        read.iter().map(|read| read.evaluation.clone()).collect::<Vec<_>>(),
        (3..103).map(given).collect::<Vec<_>>()
    );
    let other = store.evaluations(&id(2)).await.expect("rows");
    assert_eq!((other.len(), &other[0].evaluation, other[0].at.as_second()), (1, &given(0), 2_000_000_000));
    // They go with their episode, and none is written for an episode without a row.
    let forgotten = EpisodeChanges { forgotten: vec![id(1)], is_durable: true, ..writing(Vec::new()) };
    store.record_episodes(&forgotten).await.expect("recorded");
    assert_eq!(store.evaluations(&id(1)).await.expect("rows"), []);
    assert!(store.note_evaluation(&id(1), &given(1)).await.is_err());
}

#[tokio::test]
async fn the_beginning_of_a_record_is_needed_until_all_of_its_episodes_have_ended() {
    let database = TestDatabase::new();
    let store = database.open().await;
    let record = async |part, episode| {
        store.record_episodes(&writing(vec![(part, episode)])).await.expect("recorded");
    };
    let needed = async || store.live_record_beginnings().await.expect("rows");
    assert_eq!(needed().await, BTreeSet::new());
    let beginning = |number| RecordBeginningId::from_random([number; 8]);
    let sibling = {
        let mut sibling = queued(3);
        Arc::make_mut(&mut sibling.request).beginning = Some(beginning(1));
        sibling
    };
    for episode in [queued(1), queued(2), sibling.clone()] {
        record(EpisodePart::Everything, episode).await;
    }
    assert_eq!(needed().await, BTreeSet::from([beginning(1), beginning(2)]));
    for episode in [queued(1), queued(2)] {
        record(EpisodePart::Life, over(episode, released())).await;
    }
    assert_eq!(needed().await, BTreeSet::from([beginning(1)]));
    record(EpisodePart::Life, over(sibling, released())).await;
    assert_eq!(needed().await, BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durable_changes_are_on_disk_when_they_are_recorded() {
    let database = TestDatabase::new();
    let store = database.open().await;
    let durable = writing(vec![(EpisodePart::Everything, queued(1))]);
    store.record_episodes(&durable).await.expect("recorded");
    // SQLite goes on with the file, and the store cannot flush it.
    let wal = database.folder.path().join("arenad.db-wal");
    std::fs::rename(&wal, database.folder.path().join("aside")).expect("renamed");
    let quick = EpisodeChanges { is_durable: false, ..durable.clone() };
    store.record_episodes(&quick).await.expect("nothing is flushed");
    store.record_episodes(&durable).await.expect_err("nothing could be flushed");
}

#[tokio::test]
async fn a_copy_is_needed_by_live_forks_and_by_instances_that_were_brought_to_it() {
    let database = TestDatabase::new();
    let copy = |name: &str, copied_from| Snapshot {
        id: name.to_owned().into(),
        environment: EnvironmentName::parse("mini").expect("valid"),
        site: SiteName::parse("forge").expect("valid"),
        baseline_key: None,
        name: None,
        images: Default::default(),
        volumes: Default::default(),
        state: Vec::new(),
        recipe: None,
        copied_from,
        is_imported: false,
        size_bytes: 0,
        created_at: Timestamp::UNIX_EPOCH,
    };
    let store = database.open().await;
    for snapshot in [copy("0123456789abcdef", Some(id(200))), copy("other", Some(id(200))), copy("named", None)] {
        store.save_snapshot(&snapshot).await.expect("saved");
        assert_eq!(store.snapshot(&snapshot.id).await.expect("a row"), Some(snapshot));
    }
    let unused = async || {
        let found = store.unused_copies().await.expect("rows");
        found.into_iter().map(|copy| String::from(copy.id)).collect::<BTreeSet<_>>()
    };
    let both = BTreeSet::from(["0123456789abcdef".to_owned(), "other".to_owned()]);
    assert_eq!(unused().await, both, "no fork has been requested");
    let record = async |part, episode| {
        store.record_episodes(&writing(vec![(part, episode)])).await.expect("recorded");
    };
    record(EpisodePart::Everything, queued(1)).await;
    assert_eq!(unused().await, BTreeSet::from(["other".to_owned()]));
    record(EpisodePart::Life, over(queued(1), released())).await;
    assert_eq!(unused().await, both, "the fork has ended");
    for insert in [
        "INSERT INTO environments VALUES ('mini', '/', 'e', '', 'c', '', NULL, NULL, '{}', '2026-01-01T00:00:00Z')",
        "INSERT INTO instances (id, environment, site, desired, state, generation, snapshot, since) \
         VALUES ('mini/forge/2', 'mini', 'forge', 'up', 'ready', 7, 'other', '2026-01-04T00:00:00Z')",
    ] {
        store.durable.execute(insert).await.expect("a row");
    }
    assert_eq!(unused().await, BTreeSet::from(["0123456789abcdef".to_owned()]), "a slot has not been recycled yet");
    store.durable.execute("UPDATE instances SET state = 'down'").await.expect("a change");
    assert_eq!(unused().await, both);
}
