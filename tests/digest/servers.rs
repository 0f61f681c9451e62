//! Digests of database servers report every difference in content, whatever caused it, and ignore differences in
//! storage.

use arenad_digest::{Known, StoreConnections, Taken};
use arenad_model::site::DatabaseAccess;
use arenad_model::store::{RedisAccess, Store, StoreKind, Volatile, VolatilePart};

use super::instance::{Alone, TestInstance};
use super::subject::differences;

/// Keeps only the site's store of this name, and excludes parts of it.
fn only(stores: &mut Vec<Store>, name: &str, volatile: Vec<VolatilePart>) {
    stores.retain(|store| store.name == name);
    let part = |part| Volatile { part, reason: "a test's".to_owned() };
    stores[0].volatile = volatile.into_iter().map(part).collect();
}

async fn take(instance: &TestInstance) -> Taken {
    instance.take(Known::default()).await.0
}

/// Takes a digest with a mark, after the servers' background work has ended.
async fn settled(instance: &TestInstance) -> Taken {
    for _ in 0..100 {
        let taken = take(instance).await;
        if instance.moved(&taken).await.0.is_empty() {
            return taken;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("no client writes, and the digest does not settle");
}

#[tokio::test]
async fn postgres_is_known_by_its_rows_its_sequences_and_its_definitions() {
    let left_out = vec![
        VolatilePart::Column { table: "misago_users_user".into(), column: "last_login".into() },
        VolatilePart::Table("django_session".into()),
        VolatilePart::Sequence("misago_users_ban_id_seq".into()),
    ];
    let forum = Alone::start("reddit", |site| only(&mut site.stores, "database", left_out)).await;
    let instance = &forum.instance;
    let sql = |statement: &str| {
        instance.exec("reddit", &["psql", "-h", "/run/forum", "-U", "forum", "-d", "forum", "-qAtc", statement])
    };

    let before = settled(instance).await;
    sql("update misago_users_user set last_login = now(); select nextval('misago_users_ban_id_seq')");
    sql("insert into django_session values ('a', 'b', now())");
    sql("vacuum full misago_users_user");
    sql("cluster misago_threads_post using misago_threads_post_pkey");
    let now = settled(instance).await;
    let found: Vec<String> = differences(&before, &now).into_iter().filter(|words| !words.contains("index ")).collect();
    assert_eq!(found, Vec::<String>::new(), "what does not count, and where rows lie");

    // The log contains one record for the next 32 values of a sequence.
    sql("select nextval('misago_threads_post_id_seq')");
    let before = settled(instance).await;
    sql("select nextval('misago_threads_post_id_seq')");
    assert_eq!(instance.moved(&before).await.0, ["database"]);
    // A row of an unlogged table is not in the log either.
    sql("create unlogged table scratch (id int)");
    let unlogged = settled(instance).await;
    sql("insert into scratch values (1)");
    assert_eq!(instance.moved(&unlogged).await.0, ["database"]);
    sql("drop table scratch");

    let before = settled(instance).await;
    sql("update misago_threads_post set original = 'x' where id = 1; delete from misago_threads_postlike");
    sql("select setval('misago_threads_post_id_seq', 77); alter table misago_users_rank alter name drop not null");
    sql("create index by_hand on misago_threads_post (posted_on); create view seen as select 1 as one");
    sql("create function act() returns trigger language plpgsql as 'begin return new; end'");
    sql("create trigger acts before insert on misago_users_rank for each row execute function act()");
    sql(
        "create schema \"o'hare\" create table \"T x\" (\"C \\ 'd\" text); insert into \"o'hare\".\"T x\" values (e'\\t\\n'), (null), ('')",
    );
    let now = settled(instance).await;
    let found = differences(&before, &now);
    for expected in [
        "database: table misago_threads_post: ",
        "database: table misago_threads_postlike: ",
        "database: table o'hare.T x: new, 3 rows",
        "database: counter misago_threads_post_id_seq: ",
        "database: index by_hand: new",
        "database: function act(): new",
        "database: trigger misago_users_rank.acts: new",
        "database: table misago_users_rank: as in the baseline before, otherwise now",
        "database: view seen: new",
        "database: schema o'hare: new",
    ] {
        assert!(found.iter().any(|words| words.starts_with(expected)), "no {expected} in {found:#?}");
    }
    assert!(found[0].contains("as many with other content"), "{found:#?}");

    let through_client = Alone::start("reddit", |site| {
        only(&mut site.stores, "database", Vec::new());
        let database = site.databases.get_mut("forum").expect("declared");
        database.access = DatabaseAccess::Client { program: "psql".to_owned() };
    });
    let over_tcp = Alone::start("reddit", |site| only(&mut site.stores, "database", Vec::new()));
    let (through_client, over_tcp) = tokio::join!(through_client, over_tcp);
    let (one, other) = (take(&through_client.instance).await, take(&over_tcp.instance).await);
    assert_eq!(differences(&one, &other), Vec::<String>::new(), "whichever way it is asked");
}

#[tokio::test]
async fn an_empty_database_beside_ones_that_no_store_names_is_no_reference() {
    // Declares another database of the same server.
    let declare = |alone: &mut Alone, key: &str, name: &str| {
        let instance = &mut alone.instance;
        instance.site.databases.get_mut(key).expect("declared").database = name.to_owned();
        instance.lines = StoreConnections::kept();
    };
    let mut forum = Alone::start("reddit", |site| only(&mut site.stores, "database", Vec::new())).await;
    declare(&mut forum, "forum", "postgres");
    let refused = forum.instance.refusal().await;
    assert!(refused.contains("no table is in forum, and the server also has forum;"), "{refused}");

    let mut shop = Alone::start("shopping", |site| only(&mut site.stores, "database", Vec::new())).await;
    let create = "create database bare; grant all on bare.* to shop@'%'";
    shop.instance.exec("shopping", &["mariadb", "-e", create]);
    declare(&mut shop, "shop-owned", "bare");
    let refused = shop.instance.refusal().await;
    assert!(refused.contains("no table is in shop-owned, and the server also has shop;"), "{refused}");
}

#[tokio::test]
async fn mariadb_is_known_by_its_rows_its_counters_and_its_definitions() {
    let left_out = vec![VolatilePart::Table("django_session".into())];
    let shop = Alone::start("shopping", |site| only(&mut site.stores, "database", left_out)).await;
    let instance = &shop.instance;
    let sql = |statement: &str| instance.exec("shopping", &["mariadb", "shop", "-e", statement]);

    let before = settled(instance).await;
    sql("insert into django_session values ('a', 'b', now()); optimize table catalogue_product");
    assert_eq!(differences(&before, &settled(instance).await), Vec::<String>::new(), "what does not count");

    sql(
        "create table kinds (id int auto_increment primary key, f float, d double, t text, b blob, n varchar(9), w datetime(6)) engine = InnoDB",
    );
    sql(
        "insert into kinds (f, d, t, b, n, w) values (0.1, 0.1, 'a', 0x00, null, '2023-01-01'), (16777216, 1e300, '', '', '', null)",
    );
    let before = settled(instance).await;
    for (change, back) in [
        ("f = 16777218 where id = 2", "f = 16777216 where id = 2"),
        ("n = '' where id = 1", "n = null where id = 1"),
        ("b = 0x01 where id = 1", "b = 0x00 where id = 1"),
        ("w = '2023-01-01 00:00:00.000001' where id = 1", "w = '2023-01-01' where id = 1"),
        ("t = 'A' where id = 1", "t = 'a' where id = 1"),
    ] {
        sql(&format!("update kinds set {change}"));
        let found = differences(&before, &take(instance).await);
        assert_eq!(found, ["database: table kinds: 2 rows before, as many with other content now"], "{change}");
        sql(&format!("update kinds set {back}"));
        assert_eq!(differences(&before, &take(instance).await), Vec::<String>::new(), "{back}");
    }
    let before = settled(instance).await;
    sql("alter table kinds auto_increment = 50");
    assert_eq!(instance.moved(&before).await.0, ["database"]);
    sql("create index by_n on kinds (n); create trigger acts before insert on kinds for each row set new.n = 'x'");
    sql(
        "create view seen as select 1 as one; create function f() returns int deterministic return 1; alter table kinds alter n set default 'y'",
    );
    let shaped = settled(instance).await;
    sql("create view lone as select 2 as two");
    assert_eq!(instance.moved(&shaped).await.0, ["database"], "what is a file of its own");
    sql("drop view lone");
    sql("create table memory (id int) engine = memory; insert into memory values (1)");
    let found = differences(&before, &settled(instance).await);
    for expected in [
        "database: table memory: new, 1 row",
        "database: counter kinds: 3 before, 50 now",
        "database: column kinds.n: as in the baseline before, otherwise now",
        "database: index kinds.by_n: new",
        "database: trigger acts: new",
        "database: view seen: new",
        "database: function f: new",
    ] {
        assert!(found.iter().any(|words| words.starts_with(expected)), "no {expected} in {found:#?}");
    }
    let before = settled(instance).await;
    sql("insert into memory values (2)");
    assert_eq!(instance.moved(&before).await.0, ["database"], "what InnoDB does not know of");

    let through_client = Alone::start("shopping", |site| {
        only(&mut site.stores, "database", Vec::new());
        let database = site.databases.get_mut("shop").expect("declared");
        database.access = DatabaseAccess::Client { program: "mariadb".to_owned() };
    });
    let over_tcp = Alone::start("shopping", |site| only(&mut site.stores, "database", Vec::new()));
    let (through_client, over_tcp) = tokio::join!(through_client, over_tcp);
    let (one, other) = (take(&through_client.instance).await, take(&over_tcp.instance).await);
    assert_eq!(differences(&one, &other), Vec::<String>::new(), "whichever way it is asked");
}

#[tokio::test]
async fn valkey_is_known_by_its_keys_whatever_their_order_in_memory() {
    let forge =
        Alone::start("gitlab", |site| only(&mut site.stores, "queue", vec![VolatilePart::Key("old-*".into())])).await;
    // Two more servers run beside the forge's own. Only the test writes to them.
    let client = |port: u16| vec!["valkey-cli".to_owned(), "-p".to_owned(), port.to_string(), "--raw".to_owned()];
    let start = "valkey-server --port $0 --protected-mode no --save '' --daemonize yes --dir /tmp >/dev/null; \
                 until [ \"$(valkey-cli -p $0 ping 2>/dev/null)\" = PONG ]; do sleep 0.02; done";
    for port in [6400, 6401] {
        forge.instance.exec("gitlab", &["sh", "-c", start, &port.to_string()]);
    }
    let mut forge = forge;
    let run = |forge: &Alone, port: u16, words: &[&str]| {
        let client = client(port);
        let command: Vec<&str> = client.iter().map(String::as_str).chain(words.iter().copied()).collect();
        forge.instance.exec("gitlab", &command)
    };
    let members: Vec<String> = (0..2000).map(|number| format!("member-{number}")).collect();
    let forwards: Vec<&str> = ["SADD", "set"].into_iter().chain(members.iter().map(String::as_str)).collect();
    let backwards: Vec<&str> = ["SADD", "set"].into_iter().chain(members.iter().rev().map(String::as_str)).collect();
    for (port, set) in [(6400, &forwards), (6401, &backwards)] {
        run(&forge, port, set);
        run(&forge, port, &["SET", "text", "two\nlines"]);
        run(&forge, port, &["HSET", "hash", "b", "2", "a", "1"]);
        run(&forge, port, &["ZADD", "scores", "1.5", "a", "0.1", "b"]);
        run(&forge, port, &["RPUSH", "list", "a", "b"]);
        run(&forge, port, &["-n", "3", "SET", "elsewhere", "x"]);
    }
    let ask = |forge: &mut Alone, access| {
        forge.instance.site.stores[0].kind = StoreKind::Redis { access };
        // The kept connections lead to the previous server.
        forge.instance.lines = StoreConnections::kept();
    };
    ask(&mut forge, RedisAccess::Client { command: client(6400) });
    let one = settled(&forge.instance).await;
    ask(&mut forge, RedisAccess::Tcp { port: 6401 });
    let other = settled(&forge.instance).await;
    assert_eq!(differences(&one, &other), Vec::<String>::new());
    assert_eq!(one.digest.stores["queue"].keys.len(), 6, "{:?}", one.digest.stores["queue"].keys);

    run(&forge, 6401, &["SET", "old-result", "x"]);
    assert_eq!(differences(&other, &settled(&forge.instance).await), Vec::<String>::new(), "what does not count");
    let other = settled(&forge.instance).await;
    run(&forge, 6401, &["RPUSH", "list", "c"]);
    assert_eq!(forge.instance.moved(&other).await.0, ["queue"]);
    run(&forge, 6401, &["EXPIRE", "text", "5000"]);
    run(&forge, 6401, &["SREM", "set", "member-7"]);
    run(&forge, 6401, &["-n", "3", "DEL", "elsewhere"]);
    assert_eq!(
        differences(&other, &settled(&forge.instance).await),
        [
            "queue: key 3:elsewhere: set before, gone now",
            "queue: key list: as in the baseline before, otherwise now",
            "queue: key set: as in the baseline before, otherwise now",
            "queue: key text: as in the baseline before, otherwise now",
        ]
    );
}
