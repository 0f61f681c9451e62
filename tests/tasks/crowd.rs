//! Actions of workers and of the administrator in Turkle, through its pages and forms.

use super::visitor::{PageForm, TaskVisitor, VisitedPage};

/// Returns the first task of a batch whose page contains these words, and that page.
pub async fn task_saying(visitor: &TaskVisitor, batch: &str, words: &str) -> (u64, VisitedPage) {
    let batches = visitor.json("/get_tasks/").await;
    for task in batches[batch].as_array().unwrap_or_else(|| panic!("no batch {batch}")) {
        let task = task.as_u64().expect("a number");
        let page = visitor.open(&format!("/task/{task}/iframe/")).await;
        if page.html().contains(words) {
            return (task, page);
        }
    }
    panic!("no task of {batch} says {words:?}")
}

/// Returns the task about a museum.
pub async fn museum_task(visitor: &TaskVisitor, museum: &str) -> (u64, VisitedPage) {
    task_saying(visitor, "Museums of Larkmoor", &format!(">{museum}<")).await
}

/// Returns the task that shows this review card.
pub async fn card_task(visitor: &TaskVisitor, card: &str) -> (u64, VisitedPage) {
    task_saying(visitor, "Reviews of May 2023", &format!("card-{card}.png")).await
}

/// Accepts the next task of a batch and returns its page.
pub async fn accept_next(visitor: &TaskVisitor, batch: &str) -> VisitedPage {
    let index = visitor.open("/").await;
    let preview = index.link_beside(batch);
    let accept = preview.replace("preview_next_task", "accept_next_task");
    let page = visitor.send(index.form(&format!("form[action='{accept}']"))).await;
    assert!(page.url.path().contains("/assignment/"), "a task is accepted: {}", page.url);
    page
}

/// Accepts a task and returns the form to fill in.
pub async fn accept(visitor: &TaskVisitor, task: u64) -> PageForm {
    let preview = visitor.open(&format!("/task/{task}/")).await;
    let page = visitor.send(preview.form("form[action*='/accept_task/']")).await;
    let path = page.url.path().replace("/assignment/", "/assignment/iframe/");
    visitor.open(&path).await.form("#mturk_form")
}

/// Returns an accepted task.
pub async fn give_back(visitor: &TaskVisitor, page: &VisitedPage) {
    visitor.send(page.form("form[action$='/return/']")).await;
}

pub async fn submit(visitor: &TaskVisitor, form: PageForm) {
    visitor.send(form).await;
}

/// Edits an object of the administration site, found by its name in the list of `kind` (such as `turkle/batch`).
/// `change` fills its form.
pub async fn edit(visitor: &TaskVisitor, kind: &str, name: &str, change: impl FnOnce(PageForm) -> PageForm) {
    let list = visitor.open(&format!("/admin/{kind}/")).await;
    let page = visitor.open(list.url.join(&list.link_with(name)).expect("an address").as_ref()).await;
    let form = change(page.form("#content-main form[method=post]")).set("_save", "Save");
    let end = visitor.send(form).await;
    assert_ne!(end.url.path(), page.url.path(), "{name} is saved: {:?}", end.texts(".errorlist, .errornote"));
}

pub async fn add_user(visitor: &TaskVisitor, fields: &[(&str, &str)]) {
    let form = visitor.open("/admin/auth/user/add/").await.form("#user_form");
    let form = fields.iter().fold(form, |form, (name, value)| form.set(name, value));
    let end = visitor.send(form.set("_save", "Save")).await;
    assert!(!end.url.path().ends_with("/add/"), "the account is made: {:?}", end.texts(".errorlist, .errornote"));
}

/// Deletes an object of the administration site, found by its name.
pub async fn delete(visitor: &TaskVisitor, kind: &str, name: &str) {
    let list = visitor.open(&format!("/admin/{kind}/")).await;
    let change = list.url.join(&list.link_with(name)).expect("an address");
    let page = visitor.open(&change.path().replace("/change/", "/delete/")).await;
    visitor.send(page.form("#content form[method=post]")).await;
}
