//! Actions of developers in the forge, through its pages and forms.

use std::time::Duration;

use tokio::time::Instant;

use super::visitor::{PageForm, TaskVisitor, VisitedPage};

/// The time limit for a job that a page gives to the forge's worker.
const WORKER_LIMIT: Duration = Duration::from_secs(120);

/// Waits until the worker has finished the job of a form, and returns the page that then follows.
async fn finished(visitor: &TaskVisitor, mut page: VisitedPage) -> VisitedPage {
    let deadline = Instant::now() + WORKER_LIMIT;
    while page.url.path().starts_with("/wait/") {
        assert!(Instant::now() < deadline, "the worker has finished {}", page.url);
        tokio::time::sleep(Duration::from_millis(100)).await;
        page = visitor.open(page.url.as_str()).await;
    }
    page
}

/// Opens an issue and returns its page.
pub async fn open_issue(visitor: &TaskVisitor, project: &str, title: &str, text: &str) -> VisitedPage {
    let form = visitor.open(&format!("/{project}/new_issue")).await.form("form:has([name=issue_content])");
    let page = visitor.send(form.set("title", title).set("issue_content", text)).await;
    assert!(page.url.path().contains("/issue/"), "the issue is opened: {}", page.url);
    page
}

/// Returns the number of the issue with this title.
pub async fn issue(visitor: &TaskVisitor, project: &str, title: &str) -> u64 {
    number_with(visitor, &format!("/api/0/{project}/issues?status=all&per_page=100"), "issues", title).await
}

/// Returns the number of the pull request with this title.
pub async fn request(visitor: &TaskVisitor, project: &str, title: &str) -> u64 {
    number_with(visitor, &format!("/api/0/{project}/pull-requests?status=all&per_page=100"), "requests", title).await
}

async fn number_with(visitor: &TaskVisitor, path: &str, list: &str, title: &str) -> u64 {
    let answer = visitor.json(path).await;
    let entries = answer[list].as_array().expect("a list");
    let found = entries.iter().find(|entry| entry["title"] == title);
    found.unwrap_or_else(|| panic!("no {title:?} at {path}"))["id"].as_u64().expect("a number")
}

/// Edits an issue. `change` fills its form: `comment`, `status`, `close_status`, `assignee`, `tag`, `milestone`,
/// `priority`.
pub async fn update_issue(
    visitor: &TaskVisitor,
    project: &str,
    number: u64,
    change: impl FnOnce(PageForm) -> PageForm,
) {
    let page = visitor.open(&format!("/{project}/issue/{number}")).await;
    visitor.send(change(page.form("form.mainform"))).await;
}

/// Creates a project that belongs to the visitor.
pub async fn new_project(visitor: &TaskVisitor, name: &str, description: &str, with_readme: bool) {
    let form = visitor.open("/new/").await.form("form:has([name=create_readme])");
    let form = form.set("name", name).set("description", description);
    let form = if with_readme { form.set("create_readme", "y") } else { form.untick("create_readme") };
    let page = visitor.send(form).await;
    let page = finished(visitor, page).await;
    assert!(page.url.path().ends_with(name), "the project is made: {}", page.url);
}

pub async fn fork(visitor: &TaskVisitor, project: &str) {
    let form = visitor.open(&format!("/{project}")).await.form("#fork_project");
    let page = visitor.send(form).await;
    let page = finished(visitor, page).await;
    assert!(page.url.path().starts_with("/fork/"), "the project is forked: {}", page.url);
}

/// Marks a project with a star.
pub async fn star(visitor: &TaskVisitor, project: &str) {
    let form = visitor.open(&format!("/{project}")).await.form("#star_project");
    visitor.send(form).await;
}

/// Edits a file of the main branch with `change` and commits the edit, to the same branch or to a new one.
pub async fn edit_file(
    visitor: &TaskVisitor,
    project: &str,
    file: &str,
    title: &str,
    to: Option<&str>,
    change: impl FnOnce(&str) -> String,
) {
    let page = visitor.open(&format!("/{project}/edit/main/f/{file}")).await;
    let form = page.form("form:has([name=commit_title])");
    let text = change(form.value("content"));
    let form = form.set("content", &text).set("commit_title", title);
    let form = match to {
        Some(branch) => form.set("braction", "new").set("branch", branch),
        None => form,
    };
    let page = visitor.send(form).await;
    finished(visitor, page).await;
}

pub async fn merge(visitor: &TaskVisitor, project: &str, number: u64) {
    let page = visitor.open(&format!("/{project}/pull-request/{number}")).await;
    let page = visitor.send(page.form("form[action$='/merge']")).await;
    finished(visitor, page).await;
}

/// Closes a pull request without merging it.
pub async fn close_request(visitor: &TaskVisitor, project: &str, number: u64) {
    let page = visitor.open(&format!("/{project}/pull-request/{number}")).await;
    let page = visitor.send(page.form("form[action*='/pull-request/close/']")).await;
    finished(visitor, page).await;
}

pub async fn comment_request(visitor: &TaskVisitor, project: &str, number: u64, text: &str) {
    let page = visitor.open(&format!("/{project}/pull-request/{number}")).await;
    visitor.send(page.form("form[action$='/comment']:has([name=comment])").set("comment", text)).await;
}

/// Gives a user access to a project.
pub async fn add_user(visitor: &TaskVisitor, project: &str, name: &str, access: &str) {
    let form = visitor.open(&format!("/{project}/adduser")).await.form("form:has([name=access])");
    let page = visitor.send(form.set("user", name).set("access", access)).await;
    finished(visitor, page).await;
}
