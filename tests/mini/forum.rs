//! The forum in a browser: a thread, a reply and a like, made as a person would, and undone by a reset.

use super::second_build::{DataScripts, assert_equals_first};
use crate::arena::Arena;
use crate::arena::shared::SharedArena;
use crate::browser::{BrowserTab, HeadlessBrowser};

const MEMBER: (&str, &str) = ("MarvelsGrantMan136", "test1234");
const TITLE: &str = "Harrowgate Mills Museum of Weaving: is the lift broken?";

/// The editor appears before it is enabled.
const EDITOR: &str = "#posting-mount textarea:not([disabled])";
const POST: &str = "#posting-mount .btn-primary:not([disabled])";

#[tokio::test]
async fn a_thread_a_reply_and_a_like_are_undone() {
    let arena = SharedArena::with(&["reddit"]);
    let before = dump(&arena);
    let browser = HeadlessBrowser::start().await;

    let page = browser.page(&arena.url("reddit")).await;
    read(&page).await;
    assert!(dump(&arena) == before, "a guest who reads writes nothing");

    log_in(&page).await;
    let known = dump(&arena);
    read(&page).await;
    assert!(dump(&arena) == known, "a member who reads writes nothing");

    start_thread(&page).await;
    reply(&page).await;
    like(&page).await;
    let asked = "select t.title, t.replies, (select count(*) from misago_threads_postlike l where l.post_id = 1) \
                 from misago_threads_thread t where t.id > 1000";
    let found = arena.exec("reddit", &["psql", "-h", "/run/forum", "-U", "forum", "-qAt", "-c", asked]);
    assert!(found.starts_with(TITLE) && found.contains("|1|"), "one thread with one reply: {found}");

    arena.json(&["reset", "reddit", "--json"]);
    assert!(dump(&arena) == before, "the baseline is back");
    page.open(&format!("{}/f/museums", arena.url("reddit"))).await;
    page.wait_for_text("Welcome to museums").await;
    assert!(!page.text().await.contains(TITLE), "the thread is gone");
}

/// The image contains one build of the data; the test makes a second build in a fresh container and compares them.
#[test]
fn two_builds_from_nothing_give_the_same_forum() {
    let arena = SharedArena::with(&["reddit"]);
    let scripts = DataScripts { build: "/srv/forum/build-db.sh", dump: "/srv/forum/dump", lines: 10_000 };
    assert_equals_first(&arena, "reddit", &scripts);
}

fn dump(arena: &Arena) -> String {
    arena.exec("reddit", &["/srv/forum/dump"])
}

async fn origin(page: &BrowserTab) -> String {
    page.eval("location.origin").await
}

/// Opens a page of each kind, by WebArena's addresses if there are any.
async fn read(page: &BrowserTab) {
    let origin = origin(page).await;
    for (path, text) in [
        ("/", "Larkboard"),
        ("/categories/", "AskLarkmoor"),
        ("/f/museums", "Welcome to museums"),
        ("/f/museums/17", "Be kind to newcomers"),
        ("/user/rowanlindqvist", "rowanlindqvist"),
        ("/search/threads/?q=lighthouses", "Kestrel Bay Museum of Lighthouses"),
    ] {
        page.open(&format!("{origin}{path}")).await;
        page.wait_for_text(text).await;
    }
}

async fn log_in(page: &BrowserTab) {
    page.open(&origin(page).await).await;
    page.click(".log-in-link a").await;
    page.fill("input[name=username]", MEMBER.0).await;
    page.fill("input[name=password]", MEMBER.1).await;
    page.click(".log-in-form button").await;
    page.wait_for("#navbar-user-nav-dropdown").await;
    // The page that BrowserGym reads to check whether a log-in is still valid.
    page.open(&format!("{}/user/{}/account", origin(page).await, MEMBER.0)).await;
    page.wait_for_text("Delete account").await;
}

async fn start_thread(page: &BrowserTab) {
    page.open(&format!("{}/f/museums", origin(page).await)).await;
    page.click(".toolbar .btn-primary").await;
    page.wait_for(EDITOR).await;
    page.fill("#posting-mount input[placeholder='Thread title']", TITLE).await;
    page.fill(EDITOR, "We stood before it with a pram.").await;
    page.click(POST).await;
    page.wait_until("new thread", "location.pathname.startsWith('/t/')").await;
    page.wait_for_text("We stood before it with a pram.").await;
}

/// Replies directly after the thread: the forum enforces no pause between two posts.
async fn reply(page: &BrowserTab) {
    page.click(".toolbar .btn-primary").await;
    page.fill(EDITOR, "It works again.").await;
    page.click(POST).await;
    page.wait_until("reply", "document.querySelectorAll('.post-body').length === 2").await;
    page.wait_for_text("It works again.").await;
}

async fn like(page: &BrowserTab) {
    page.open(&format!("{}/f/AskLarkmoor/1", origin(page).await)).await;
    page.click("#post-1 .post-footer .pull-left").await;
    page.wait_until("like", "document.querySelector('#post-1 .post-footer .pull-left')?.innerText === 'Liked'").await;
}
