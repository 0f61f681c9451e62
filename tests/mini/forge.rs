//! The forge in a browser: an issue, a change and its pull request, which is merged; a reset undoes them. The data of
//! its image is built twice and compared.

use super::second_build::{DataScripts, assert_equals_first};
use crate::arena::shared::SharedArena;
use crate::browser::{BrowserTab, HeadlessBrowser};

const PROJECT: &str = "/byteblaze/heronry";

#[tokio::test]
async fn an_issue_and_a_merged_pull_request_are_undone() {
    let arena = SharedArena::with(&["gitlab"]);
    let before = arena.exec("gitlab", &["/srv/forge/dump"]);
    let browser = HeadlessBrowser::start().await;
    let page = browser.page(&arena.url("gitlab")).await;
    let origin: String = page.eval("location.origin").await;

    sign_in(&page, &origin).await;
    open_issue(&page, &origin).await;
    change_readme(&page, &origin).await;
    merge_request(&page, &origin).await;
    assert!(arena.exec("gitlab", &["/srv/forge/dump"]) != before, "something was written");

    arena.json(&["reset", "gitlab", "--json"]);
    assert!(arena.exec("gitlab", &["/srv/forge/dump"]) == before, "the baseline is back");
    page.open(&format!("{origin}{PROJECT}")).await;
    page.wait_for_text("Counts birds on photographs").await;
    let text = page.text().await;
    assert!(text.contains("Log In") && !text.contains("Wing beats"), "session and commit are gone: {text}");
}

async fn sign_in(page: &BrowserTab, origin: &str) {
    page.open(&format!("{origin}/users/sign_in")).await;
    page.fill("input[name=username]", "byteblaze").await;
    page.fill("input[name=password]", "hello1234").await;
    page.click("button[type=submit]").await;
    page.wait_for_text("Welcome byteblaze").await;
}

async fn open_issue(page: &BrowserTab, origin: &str) {
    page.open(&format!("{origin}{PROJECT}/-/issues/new")).await;
    page.fill("#title", "Herons at dusk are missed").await;
    page.fill("#issue_content", "Seen at the lake, not in the list.").await;
    page.click("input[type=submit][value='Create Issue']").await;
    page.wait_until("issue", "/\\/issue\\/\\d+$/.test(location.pathname)").await;
    page.wait_for_text("Herons at dusk are missed").await;
}

/// Edits the file in the browser on a branch of its own; the worker commits the change.
async fn change_readme(page: &BrowserTab, origin: &str) {
    page.open(&format!("{origin}{PROJECT}/-/edit/main/README.md")).await;
    page.wait_for(".CodeMirror").await;
    page.eval::<bool>(
        "document.querySelector('.CodeMirror').CodeMirror.setValue('# heronry\\n\\nWing beats count.\\n') || true",
    )
    .await;
    page.click("input[name=braction][value=new]").await;
    page.fill("input[name=branch]", "wing-beats").await;
    page.fill("#commit_title", "Wing beats count").await;
    page.click("input[type=submit][value='Commit changes']").await;
    page.wait_until("commits of the branch", "location.pathname.endsWith('/commits/wing-beats')").await;
}

async fn merge_request(page: &BrowserTab, origin: &str) {
    page.open(&format!("{origin}{PROJECT}/diff/main..wing-beats")).await;
    page.fill("#title", "Count wing beats").await;
    page.click("input[type=submit][value='Create Pull Request']").await;
    page.wait_until("pull request", "/\\/pull-request\\/\\d+$/.test(location.pathname)").await;
    // The button opens the merge status that the page has received.
    page.wait_until("merge status", "!document.querySelector('#merge_dropdown_btn .fa-spin')").await;
    page.click("#merge_dropdown_btn").await;
    page.click("#merge_btn").await;
    page.wait_for_text("Merged").await;
    page.open(&format!("{origin}{PROJECT}")).await;
    page.wait_for_text("Wing beats count.").await;
}

/// The image contains one build of all data; the test makes a second build in a fresh container and compares them.
#[test]
fn two_builds_from_nothing_give_the_same_forge() {
    let arena = SharedArena::with(&["gitlab"]);
    let scripts = DataScripts { build: "/srv/forge/build-db.sh", dump: "/srv/forge/dump", lines: 5000 };
    assert_equals_first(&arena, "gitlab", &scripts);
}
