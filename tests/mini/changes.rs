//! The changes in a real site, by the API and the command line: writes appear with their keys, no other row is named,
//! and after a reset nothing is.

use serde_json::{Value, json};

use crate::arena::Arena;
use crate::arena::shared::SharedArena;

/// Returns the changes of a site, without what differs between runs.
fn changes(arena: &Arena, site: &str, options: &[&str]) -> Value {
    let found = arena.json(&[&["changes", site, "--json"], options].concat());
    let found = &found[0];
    assert_eq!(found["settled"], true, "{found:#}");
    assert_eq!(found["equal"], found["stores"].as_array().expect("stores").is_empty());
    found["stores"].clone()
}

fn rows(listed: Value, counts: [u64; 3]) -> Value {
    let [added, changed, removed] = counts;
    json!({ "key": ["id"], "added": added, "changed": changed, "removed": removed, "listed": listed, "omitted": 0 })
}

#[tokio::test]
async fn writes_to_the_shop_are_named_by_table_and_key_until_the_reset() {
    let arena = Arena::up(&["shopping"]);
    assert_eq!(changes(&arena, "shopping", &[]), json!([]), "no client has written");
    let text = String::from_utf8_lossy(&arena.arenad(&["changes", "shopping"]).stdout).into_owned();
    assert!(text.starts_with("shopping equals its snapshot "), "{text}");

    arena.sql("shopping", "update catalogue_product set title = 'Lamp' where id = 7");
    let look = arena.json(&["look", "shopping", "--json"]);
    assert_eq!(look, json!({ "number": 1 }));
    arena.sql(
        "shopping",
        "insert into wishlists_wishlist (name, `key`, visibility, date_created, owner_id) select 'Later', 'abcdef', 'Private', '2023-05-01', min(id) from auth_user",
    );
    arena.exec("shopping", &["sh", "-c", "printf 'one\\ntwo\\n' > /data/media/note.txt"]);

    let found = changes(&arena, "shopping", &["--values"]);
    let names: Vec<&str> =
        found.as_array().expect("stores").iter().filter_map(|store| store["name"].as_str()).collect();
    assert_eq!(names, ["database", "files"]);
    let tables = found[0]["tables"].as_array().expect("tables");
    let names: Vec<&str> = tables.iter().filter_map(|table| table["name"].as_str()).collect();
    assert_eq!(names, ["catalogue_product", "wishlists_wishlist"]);
    let product = &tables[0]["rows"]["listed"][0];
    assert_eq!((&product["change"], &product["key"]), (&json!("changed"), &json!(["7"])));
    assert_eq!(product["now"], json!({ "title": "Lamp" }));
    assert!(product["before"]["title"].is_string(), "{product}");
    let wish = &tables[1]["rows"]["listed"][0];
    assert_eq!((&wish["change"], &wish["before"]), (&json!("added"), &Value::Null));
    assert_eq!(wish["now"]["name"], "Later");
    let files = &found[1]["files"];
    assert_eq!(files[files.as_array().expect("files").len() - 1]["path"], "media/note.txt", "{files:#}");
    assert_eq!(files[files.as_array().expect("files").len() - 1]["diff"], "@@ -0,0 +1,2 @@\n+one\n+two\n");

    let since = changes(&arena, "shopping", &["--since", "1"]);
    let tables = since[0]["tables"].as_array().expect("tables");
    assert_eq!((tables.len(), &tables[0]["name"]), (1, &json!("wishlists_wishlist")));
    let until = changes(&arena, "shopping", &["--until", "1"]);
    let expected = rows(json!([{ "change": "changed", "key": ["7"] }]), [0, 1, 0]);
    assert_eq!((until.as_array().map(Vec::len), &until[0]["tables"][0]["rows"]), (Some(1), &expected));
    assert_eq!(changes(&arena, "shopping", &["--since", "1", "--until", "1"]), json!([]));
    let mut table = String::from_utf8_lossy(&arena.arenad(&["changes", "shopping"]).stdout).into_owned();
    assert!(table.contains("catalogue_product") && table.contains("changed id 7"), "{table}");
    table = String::from_utf8_lossy(&arena.arenad(&["changes", "shopping", "--values"]).stdout).into_owned();
    assert!(table.contains(", Lamp now") || table.contains("Lamp now"), "{table}");

    // The rows of the snapshot and the looks are found by the next daemon.
    arena.stop_daemon();
    arena.up_again();
    let again = changes(&arena, "shopping", &["--since", "1"]);
    assert_eq!(again, since);

    arena.reset("shopping");
    assert_eq!(changes(&arena, "shopping", &[]), json!([]), "nothing is left");
    let refused = arena.arenad(&["changes", "shopping", "--since", "1"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("there is no look 1"), "{said}");
}

#[tokio::test]
async fn the_changes_of_an_episode_are_named_on_all_of_its_sites() {
    let arena = SharedArena::with(&["shopping", "reddit", "wikipedia"]);
    let started = arena.json(&["episode", "start", "shopping", "reddit", "wikipedia", "--json"]);
    let id = started["episode"]["id"].as_str().expect("an id").to_owned();
    arena.sql("shopping", "update catalogue_product set title = 'Lamp' where id = 7");
    let rename = "update misago_threads_thread set title = 'Lamps' where id = 1";
    arena.exec("reddit", &["psql", "-h", "/run/forum", "-U", "forum", "-d", "forum", "-qAtc", rename]);
    let found = arena.json(&["episode", "changes", &id, "--values", "--json"]);
    println!("the changes of an episode on two sites took {} ms", found["duration_ms"]);
    assert_eq!((&found["equal"], &found["settled"]), (&json!(false), &json!(true)), "{found:#}");
    let expected = [("shopping", "catalogue_product", "Lamp"), ("reddit", "misago_threads_thread", "Lamps")];
    assert_eq!(found["sites"].as_array().map(Vec::len), Some(expected.len()));
    for (site, (name, table, title)) in found["sites"].as_array().expect("sites").iter().zip(expected) {
        let stores = site["stores"].as_array().expect("stores");
        let tables = stores[0]["tables"].as_array().expect("tables");
        assert_eq!((&site["site"], stores.len(), tables.len()), (&json!(name), 1, 1), "{site:#}");
        let rows = &tables[0]["rows"];
        assert_eq!((&tables[0]["name"], rows["changed"].as_u64()), (&json!(table), Some(1)), "{site:#}");
        assert_eq!(rows["listed"][0]["now"], json!({ "title": title }));
    }
    assert_eq!(found["left_out"][0]["site"], "wikipedia", "{found:#}");
    arena.json(&["episode", "end", &id, "--json"]);
}
