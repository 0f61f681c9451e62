//! Turkle in a browser: a worker does a task, and a reset makes the task available again.

use serde_json::{Value, json};

use super::second_build::{DataScripts, assert_equals_first};
use crate::arena::Arena;
use crate::arena::shared::SharedArena;
use crate::browser::{BrowserTab, HeadlessBrowser};

const DUMP: &str = "/srv/turkle/dump";

#[tokio::test]
async fn a_task_that_was_done_is_undone() {
    let arena = SharedArena::with(&["turkle"]);
    let before = arena.exec("turkle", &[DUMP]);
    let browser = HeadlessBrowser::start().await;

    let page = browser.page(&format!("{}/login/", arena.url("turkle"))).await;
    sign_in(&page).await;
    check_museum(&page).await;
    assert_eq!(
        answers(&arena),
        json!({
            "correct": "no", "wrong": ["objects", "closed"], "right_facts": "3", "opened": "1937", "town": "Harrowgate Mills",
            "corrections": "objects: 2000",
        })
    );

    arena.json(&["reset", "turkle", "--json"]);
    assert!(arena.exec("turkle", &[DUMP]) == before, "the baseline is back");
    let page = browser.page(&format!("{}/login/", arena.url("turkle"))).await;
    sign_in(&page).await;
    page.wait_for_text("Museums of Larkmoor").await;
    assert!(!page.text().await.contains("abandoned"), "nothing was begun");
}

async fn sign_in(page: &BrowserTab) {
    page.fill("#username", "worker").await;
    page.fill("#password", "worker1234").await;
    page.click("form button.form-control").await;
    page.wait_for_text("Logged in as worker").await;
}

/// Does the first task of the first batch, using every kind of field.
async fn check_museum(page: &BrowserTab) {
    page.click("form[action='/batch/1/accept_next_task/'] input[type=submit]").await;
    page.wait_for("#task_assignment_iframe").await;
    // The content of the frame is opened as a page of its own, so that selectors can reach it.
    let frame: String = page.eval("document.querySelector('#task_assignment_iframe').src").await;
    page.open(&frame).await;
    page.wait_for_text("Harrowgate Mills Museum of Weaving").await;
    page.click("#correct-no").await;
    page.click("#wrong-objects").await;
    page.click("#wrong-closed").await;
    page.choose("#right_facts", "3").await;
    page.fill("#opened", "1937").await;
    page.choose("#town", "Harrowgate Mills").await;
    page.fill("#corrections", "objects: 2000").await;
    page.click("#submitButton").await;
    page.wait_until("next task", "location.pathname.startsWith('/task/2/assignment/')").await;
}

/// The answers to the first task, as Turkle stores them.
fn answers(arena: &Arena) -> Value {
    let script = "import sqlite3; database = sqlite3.connect('file:/data/turkle.sqlite3?mode=ro', uri=True); \
                  print(database.execute('select answers from turkle_taskassignment where task_id = 1').fetchone()[0])";
    serde_json::from_str(&arena.exec("turkle", &["python", "-c", script])).expect("JSON")
}

/// The image contains one build of the database; the test makes a second build in a fresh container and compares them.
#[test]
fn two_builds_from_nothing_are_equal() {
    let arena = SharedArena::with(&["turkle"]);
    let scripts = DataScripts {
        build: "/srv/turkle/build-db.sh",
        dump: "/srv/turkle/publish /srv/turkle/tasks >/dev/null && /srv/turkle/dump",
        lines: 300,
    };
    assert_equals_first(&arena, "turkle", &scripts);
}
