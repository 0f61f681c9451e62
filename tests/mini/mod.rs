//! The mini environment as users have it: real shop, real back office, real wiki, real engine, real program.
//!
//! The tests work on a copy of the definition with its own ports, so a running mini environment is not disturbed; the
//! tests share its images.

mod accounts;
mod changes;
mod clock;
mod confined;
mod dumps;
mod forge;
mod forum;
mod hammer;
mod homepage;
mod init;
mod map;
mod pages;
mod paused;
mod ported;
mod sabotage;
mod second_build;
mod shop;
mod shop_browsed;
mod turking;
mod turkle;
mod wiki;
mod workflows;

use std::process::Command;
use std::time::Instant;

use self::hammer::Hammer;
use self::second_build::{DataScripts, assert_equals_first};
use crate::arena::Arena;
use crate::arena::shared::SharedArena;

/// The number of rounds in which the shops are damaged and reset. Long runs are those of `tests/resets`.
const ROUNDS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_under_load_bring_the_baseline_back() {
    let arena = Arena::up(&["shopping", "shopping_admin"]);
    let (shopping, admin) = (arena.url("shopping"), arena.url("shopping_admin"));
    let product = shop::first_product(&shopping).await;
    let baseline = Photo::of(&arena, &product).await;
    assert!(baseline.databases.iter().all(|dump| dump.contains("INSERT INTO `order_order`")), "a real dump");

    let hammer = Hammer::start(format!("{shopping}{product}"));
    for round in 1..=ROUNDS {
        let order = shop::place_order(&shopping, &product).await;
        assert_eq!(order, "100301", "round {round}: orders are numbered from the baseline's last");
        shop::post_review(&shopping, &product, &format!("Round {round}")).await;
        shop::change_price(&admin, "123.45").await;
        let marker = format!("{}.77", 500 + round);
        arena.sql("shopping", &format!("update partner_stockrecord set price = {marker} where product_id = 1"));
        hammer.expect_shown(&marker).await;

        arena.json(&["reset", "shopping", "shopping_admin", "--json"]);
        hammer.forget(&marker, Instant::now());
        Photo::of(&arena, &product).await.assert_equals(&baseline, round);
    }
    let seen = hammer.stop().await;
    assert!(seen.pages > 2 * ROUNDS, "the load was real: {seen:?}");
    assert_eq!(seen.wrong, Vec::<String>::new(), "{seen:?}");
}

/// The state that must be equal after a reset.
struct Photo {
    databases: Vec<String>,
    media: Vec<String>,
    page: String,
}

impl Photo {
    async fn of(arena: &Arena, product: &str) -> Self {
        let sites = ["shopping", "shopping_admin"];
        let list = "cd /data/media && find . -type f | sort | xargs sha256sum";
        let databases = sites.iter().map(|site| arena.exec(site, &["/srv/shop/db-dump"])).collect();
        let media = sites.iter().map(|site| arena.exec(site, &["sh", "-c", list])).collect();
        Self { databases, media, page: shop::page(&format!("{}{product}", arena.url("shopping"))).await }
    }

    fn assert_equals(&self, baseline: &Self, round: usize) {
        for (before, after) in baseline.databases.iter().zip(&self.databases) {
            let differing = before.lines().zip(after.lines()).find(|(before, after)| before != after);
            assert_eq!(differing, None, "round {round}: the databases differ");
            assert_eq!(before.len(), after.len(), "round {round}: the databases differ in length");
        }
        assert_eq!(self.media, baseline.media, "round {round}: the pictures differ");
        assert_eq!(self.page, baseline.page, "round {round}: the product's page differs");
    }
}

/// The image contains one build of the database; the test makes a second build in a fresh container and compares them.
#[test]
fn two_builds_from_nothing_give_the_same_database() {
    let arena = SharedArena::with(&["shopping"]);
    let dump = "/srv/shop/db-dump && cd /data/media && find . -type f | sort | xargs sha256sum";
    let scripts = DataScripts { build: "/srv/shop/build-db.sh", dump, lines: 5000 };
    assert_equals_first(&arena, "shopping", &scripts);
}

#[test]
fn compose_itself_accepts_the_file() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/compose/mini.yaml");
    let output = Command::new("docker-compose").args(["-f", file, "config"]).output().expect("docker-compose runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
