//! The homepage in a browser: its information about the other sites is correct, its tools work, and a reset restores
//! the notes.

use super::second_build::{DataScripts, assert_equals_first};
use crate::arena::Arena;
use crate::arena::shared::SharedArena;
use crate::browser::HeadlessBrowser;

const DUMP: &str = "/srv/homepage/dump";

#[tokio::test]
async fn a_note_that_was_written_is_undone() {
    let arena = SharedArena::with(&["homepage"]);
    let before = arena.exec("homepage", &[DUMP]);
    let browser = HeadlessBrowser::start().await;
    let home = arena.url("homepage");

    let page = browser.page(&format!("{home}/calculator.html")).await;
    page.fill("#expression", "(129.99 + 4.50) * 3").await;
    page.click("#calculate").await;
    page.wait_for_text("403.47").await;

    page.open(&format!("{home}/scratchpad.html")).await;
    page.fill("#title", "Price of three lamps").await;
    page.fill("#text", "403.47 <dollars> & not a cent more").await;
    page.click("#save").await;
    page.wait_for_text("403.47 <dollars> & not a cent more").await;
    page.click("#note-1 button[value=delete]").await;
    page.wait_until("page without the first note", "!document.querySelector('#note-1')").await;

    arena.json(&["reset", "homepage", "--json"]);
    assert_eq!(arena.exec("homepage", &[DUMP]), before, "the baseline is back");
    page.open(&format!("{home}/scratchpad.html")).await;
    page.wait_for("#note-1").await;
    assert!(!page.text().await.contains("403.47"), "the note is gone");

    page.open(&format!("{home}/static/input_images/")).await;
    let shown = "[...document.images].filter(image => image.complete && image.naturalWidth).length === 12";
    page.wait_until("page with all twelve pictures", shown).await;
}

/// Ports, paths and passwords are in the definition and repeated in the page's own files.
#[tokio::test]
async fn it_lists_the_sites_and_accounts_of_the_definition() {
    let arena = SharedArena::with(&["homepage"]);
    let definition = arena.json(&["config", "mini", "--json"]);
    let sites = definition["environment"]["sites"].as_object().expect("sites");
    let home = page(&arena, "/").await;
    let accounts = page(&arena, "/password.html").await;
    for (name, site) in sites.iter().filter(|(name, _)| *name != "homepage") {
        let public = &site["public"];
        let url = format!("http://localhost:{}{}", public["port"], public["path"].as_str().unwrap_or_default());
        assert!(home.contains(&format!("href=\"{url}\"")), "{name} is said to be at {url}: {home}");
        for account in site["accounts"].as_object().into_iter().flat_map(|accounts| accounts.values()) {
            let cell = |key: &str| format!("<td>{}</td>", account[key].as_str().unwrap_or_default());
            assert!(accounts.contains(&(cell("username") + &cell("password"))), "{name}: {account} is listed");
        }
    }
}

async fn page(arena: &Arena, path: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer = client.get(format!("{}{path}", arena.url("homepage"))).send().await.expect("an answer");
    answer.text().await.expect("a page")
}

#[test]
fn two_builds_from_nothing_are_equal() {
    let arena = SharedArena::with(&["homepage"]);
    let scripts = DataScripts { build: "/srv/homepage/build-db.sh", dump: DUMP, lines: 10 };
    assert_equals_first(&arena, "homepage", &scripts);
}
