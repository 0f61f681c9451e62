//! The sites of the mini environment: visitors' writes are found and named, and everything else stays equal.

use std::collections::BTreeMap;
use std::time::Duration;

use arenad_digest::{Known, Taken, compare};

use super::instance::TestInstance;
use super::visitor;
use crate::arena::Arena;

/// The sites that have stores.
const SITES: [&str; 7] = ["shopping", "shopping_admin", "reddit", "turkle", "homepage", "map", "gitlab"];

/// The time without visitors in which changes by the sites themselves become visible.
const IDLE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_visitors_write_is_named_and_nothing_else_differs() {
    let arena = Arena::up(&SITES);
    let first = take_all(&arena, "baseline").await;

    tokio::time::sleep(IDLE).await;
    assert_equal(&first, &take_all(&arena, "idle").await, "after half a minute without visitors");

    arena.json(&["reset", "--all", "--json"]);
    assert_equal(&first, &take_all(&arena, "recreated").await, "another instance of the same snapshot");

    for site in SITES {
        let instance = TestInstance::of(&arena, site);
        let (before, _) = instance.take(Known::default()).await;
        write(&arena, &instance).await;
        let (after, _) = instance.take(Known { last: Some(&before), ..Known::default() }).await;
        let found = words(&first[site], &after);
        println!("{site}: {found:#?}");
        for expected in expected(site) {
            assert!(found.iter().any(|words| words.starts_with(expected)), "{site}: no {expected} in {found:#?}");
        }
        for words in &found {
            assert!(may_differ(site).iter().any(|part| words.starts_with(part)), "{site}: no visitor wrote {words}");
        }
        rewind(&instance, &first[site]).await;
        look(&arena, site).await;
    }
    let rewound = take_all(&arena, "rewound").await;
    for site in SITES {
        let sessions = words(&first[site], &rewound[site]);
        assert_eq!(sessions, Vec::<String>::new(), "{site}: reading a page writes nothing");
    }
}

/// Stops the writers, exchanges the stores and starts the writers; the digest must be the baseline's.
async fn rewind(instance: &TestInstance, baseline: &Taken) {
    let site = &instance.site;
    let writers = site.writers.as_ref().expect("declared");
    let stop = instance.run(&writers.stop).await;
    assert_eq!(instance.holders(), Vec::<String>::new(), "{}: no process has a file of the stores open", site.name);
    instance.restore();
    let start = instance.run(&writers.start).await;
    println!("{}: stop {} ms, start {} ms", site.name, stop.as_millis(), start.as_millis());
    let (now, _) = instance.take(Known::default()).await;
    assert_eq!(words(baseline, &now), Vec::<String>::new(), "{}: rewound", site.name);
}

/// Opens the site's first page, which must succeed.
async fn look(arena: &Arena, site: &str) {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().expect("a client");
    let answer = client.get(arena.url(site)).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{site}: {}", answer.status());
}

async fn write(arena: &Arena, instance: &TestInstance) {
    let url = arena.url(instance.site.name.as_str());
    match instance.site.name.as_str() {
        "shopping" => visitor::shop(&url).await,
        "shopping_admin" => visitor::shop_admin(&url).await,
        "reddit" => visitor::forum(&url).await,
        "turkle" => visitor::turkle(&url).await,
        "homepage" => visitor::homepage(&url).await,
        "gitlab" => visitor::forge(&url).await,
        "map" => {
            // The map has no form that writes, so the test writes to its database.
            let statements = "delete from places where ctid = (select min(ctid) from places)";
            instance.exec("map-db", &["psql", "-h", "/tmp", "-U", "map", "-d", "gis", "-qc", statements]);
        }
        other => panic!("no visitor for {other}"),
    }
}

/// Returns the differences that must be found on a site.
fn expected(site: &str) -> &'static [&'static str] {
    match site {
        "shopping" => &[
            "database: table reviews_productreview: 380 rows before, 381 rows now",
            "database: counter reviews_productreview: 381 before, 382 now",
            "files: search/",
        ],
        "shopping_admin" => &["database: table django_session: 1 row before, 2 rows now"],
        "reddit" => &[
            "database: table misago_threads_thread: 1000 rows before, 1001 rows now",
            "database: counter misago_threads_thread_id_seq: 1000 before, 1001 now",
            "database: table misago_threads_post: 5000 rows before, 5001 rows now",
        ],
        "turkle" => &["database: table turkle_taskassignment: 11 rows before, 12 rows now"],
        "homepage" => &["database: table note: 3 rows before, 4 rows now", "database: counter note: 3 before, 4 now"],
        "gitlab" => &["database: table issues: 200 rows before, 201 rows now", "queue: key pagure_webhook: new, set"],
        "map" => &["database: table tiles:places: "],
        _ => &[],
    }
}

/// Returns the differences that may be found on a site, because its visitors write there.
fn may_differ(site: &str) -> &'static [&'static str] {
    match site {
        "map" => &["database: table tiles:places: "],
        "homepage" | "turkle" | "reddit" | "shopping_admin" => &["database: table ", "database: counter "],
        "shopping" => &["database: table ", "database: counter ", "files: search/"],
        _ => &["database: table ", "database: counter ", "queue: key "],
    }
}

async fn take_all(arena: &Arena, when: &str) -> BTreeMap<&'static str, Taken> {
    let mut all = BTreeMap::new();
    for site in SITES {
        let instance = TestInstance::of(arena, site);
        let (full, took) = instance.take(Known::default()).await;
        let (moved, looked) = instance.moved(&full).await;
        let costs: Vec<String> =
            full.costs.iter().map(|cost| format!("{} {} ms", cost.store, cost.took.as_millis())).collect();
        println!(
            "{when}: {site}: {} in {} ms ({}); looked again in {} ms, moved: {moved:?}",
            &full.digest.total()[..12],
            took.as_millis(),
            costs.join(", "),
            looked.as_millis()
        );
        all.insert(site, full);
    }
    all
}

fn words(before: &Taken, now: &Taken) -> Vec<String> {
    let comparison = compare(&before.digest, &now.digest);
    let words = comparison.differences.iter().map(ToString::to_string).collect();
    assert_eq!(comparison.is_equal(), before.digest.total() == now.digest.total(), "the two agree: {words:?}");
    words
}

fn assert_equal(first: &BTreeMap<&str, Taken>, now: &BTreeMap<&str, Taken>, why: &str) {
    let differing: Vec<String> = SITES
        .iter()
        .flat_map(|site| words(&first[site], &now[site]).into_iter().map(move |words| format!("{site}: {words}")))
        .collect();
    assert_eq!(differing, Vec::<String>::new(), "{why}");
}
