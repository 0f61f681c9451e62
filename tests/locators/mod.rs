//! Locators on the mini environment: their values, their refusals, and the loss of the site or the browser while they
//! run. The tests use real databases, real pages, a real browser and the real program.

mod contained;
mod helpers;
mod hostile;
mod pages;
mod statements;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::arena::Arena;

/// Longer than any locator's limit here plus the time for cleaning up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The sites of the test of pages: the shop, and a site whose database is a SQLite file.
const PAGED: [&str; 2] = ["shopping", "turkle"];

/// Runs a locator that must find a value, and returns its answer.
fn locate(arena: &Arena, site: &str, locator: &str) -> Value {
    locate_with(arena, site, locator, &[])
}

fn locate_with(arena: &Arena, site: &str, locator: &str, options: &[&str]) -> Value {
    let args = [&["locate", site, locator, "--json"], options].concat();
    arena.json(&args)
}

/// Returns the value of a locator without its evidence.
fn value(arena: &Arena, site: &str, locator: &str) -> Value {
    locate(arena, site, locator)["value"].clone()
}

/// Runs a locator that must fail in time, and returns the reason.
fn refused(arena: &Arena, site: &str, locator: &str) -> String {
    let begun = Instant::now();
    let output = arena.arenad(&["locate", site, locator, "--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{locator}: {}", String::from_utf8_lossy(&output.stdout));
    assert!(begun.elapsed() < PATIENCE, "{locator} took {:?}", begun.elapsed());
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{locator}: {error}: {said}"));
    said["error"].as_str().unwrap_or_default().to_owned()
}

/// Adds databases that are queried through the clients in the containers, as the servers' administrators.
fn with_administrators(definition: String) -> String {
    let shop = "      shop: *shop-database\n";
    let inside = format!(
        "{shop}      inside: {{ engine: mariadb, user: root, database: shop, through: container, client: mariadb }}\n"
    );
    let forum = "      forum: { engine: postgres,";
    let superuser = format!(
        "      inside: {{ engine: postgres, user: postgres, database: forum, through: container, client: psql }}\n{forum}"
    );
    let edited = definition.replacen(shop, &inside, 1).replacen(forum, &superuser, 1);
    assert!(edited.len() > definition.len() + 150, "the databases are added");
    edited
}

/// Sets the path of the server's socket for the forum's PostgreSQL client.
fn with_socket(compose: String) -> String {
    let image = "    image: arenad-mini/forum:1\n";
    let edited = compose.replacen(image, &format!("{image}    environment: {{ PGHOST: /run/forum }}\n"), 1);
    assert!(edited.len() > compose.len(), "the forum's image is there");
    edited
}

#[test]
fn statements_read_typed_values_and_do_no_harm() {
    let arena = Arena::up_edited_with_compose(&["shopping", "reddit", "turkle"], with_administrators, with_socket);
    statements::values_are_typed(&arena);
    statements::arguments_are_bound(&arena);
    statements::clients_in_containers_are_asked_too(&arena);
    statements::bounds_hold(&arena);
    hostile::statements_do_no_harm(&arena);
    statements::a_killed_site_is_unavailable(&arena);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_read_and_do_no_harm() {
    let arena = Arena::up(&PAGED);
    pages::requests_take_what_they_ask_for(&arena);
    pages::files_and_commands_are_read(&arena);
    pages::expressions_see_what_the_account_sees(&arena);
    helpers::helpers_find_what_tasks_ask_for(&arena);
    hostile::requests_and_expressions_do_no_harm(&arena).await;
    pages::a_page_forges_nothing(&arena);
    pages::the_browser_is_nobody(&arena);
    pages::the_pages_proxies_know_the_browser(&arena);
    pages::the_browser_comes_back_and_leaves_nothing(&arena);
    pages::the_agents_page_is_looked_at_and_left_alone(&arena).await;
    pages::sixty_looks_leave_no_more_than_ten(&arena);
    pages::a_thousand_locators_leave_nothing(&arena);
    pages::a_site_that_dies_in_the_middle_is_unavailable(&arena);
    helpers::evaluators_get_their_answers(&arena);
    pages::the_browser_ends_with_its_daemon(&arena);
}

/// Whether an error message shows that the environment failed, so that it is not taken for the site's state.
fn is_environment_fault(said: &str) -> bool {
    said.contains("reach the site")
        || said.contains("no value within")
        || said.contains("is failed")
        || said.contains("was reset")
}

/// The table as plain values.
fn rows(value: &Value) -> Value {
    let rows = value["rows"].as_array().into_iter().flatten();
    rows.map(|row| row.as_array().into_iter().flatten().map(|cell| cell["value"].clone()).collect::<Vec<_>>())
        .map(|row| json!(row))
        .collect()
}
