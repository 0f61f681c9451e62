//! Actions of workers and of the administrator in Turkle, through its pages and forms.

use crate::visitor::{Form, Page, Visitor};

/// Returns the first task of a batch whose page contains these words, and that page.
pub async fn task_saying(visitor: &Visitor, batch: &str, words: &str) -> (u64, Page) {
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
pub async fn museum_task(visitor: &Visitor, museum: &str) -> (u64, Page) {
    task_saying(visitor, "Museums of Larkmoor", &format!(">{museum}<")).await
}

/// Returns the task that shows this review card.
pub async fn card_task(visitor: &Visitor, card: &str) -> (u64, Page) {
    task_saying(visitor, "Reviews of May 2023", &format!("card-{card}.png")).await
}

/// Accepts the next task of a batch and returns its page.
pub async fn accept_next(visitor: &Visitor, batch: &str) -> Page {
    let index = visitor.open("/").await;
    let preview = index.link_beside(batch);
    let accept = preview.replace("preview_next_task", "accept_next_task");
    let page = visitor.send(index.form(&format!("form[action='{accept}']"))).await;
    assert!(page.url.path().contains("/assignment/"), "a task is accepted: {}", page.url);
    page
}

/// Accepts a task and returns the form to fill in.
pub async fn accept(visitor: &Visitor, task: u64) -> Form {
    let preview = visitor.open(&format!("/task/{task}/")).await;
    let page = visitor.send(preview.form("form[action*='/accept_task/']")).await;
    let path = page.url.path().replace("/assignment/", "/assignment/iframe/");
    visitor.open(&path).await.form("#mturk_form")
}

/// Returns an accepted task.
pub async fn give_back(visitor: &Visitor, page: &Page) {
    visitor.send(page.form("form[action$='/return/']")).await;
}

pub async fn submit(visitor: &Visitor, form: Form) {
    visitor.send(form).await;
}

/// Edits an object of the administration site, found by its name in the list of `kind` (such as `turkle/batch`).
/// `change` fills its form.
pub async fn edit(visitor: &Visitor, kind: &str, name: &str, change: impl FnOnce(Form) -> Form) {
    let list = visitor.open(&format!("/admin/{kind}/")).await;
    let page = visitor.open(list.url.join(&list.link_with(name)).expect("an address").as_ref()).await;
    let form = change(page.form("#content-main form[method=post]")).set("_save", "Save");
    let end = visitor.send(form).await;
    assert_ne!(end.url.path(), page.url.path(), "{name} is saved: {:?}", end.texts(".errorlist, .errornote"));
}

pub async fn add_user(visitor: &Visitor, fields: &[(&str, &str)]) {
    let form = visitor.open("/admin/auth/user/add/").await.form("#user_form");
    let form = fields.iter().fold(form, |form, (name, value)| form.set(name, value));
    let end = visitor.send(form.set("_save", "Save")).await;
    assert!(!end.url.path().ends_with("/add/"), "the account is made: {:?}", end.texts(".errorlist, .errornote"));
}

/// Deletes an object of the administration site, found by its name.
pub async fn delete(visitor: &Visitor, kind: &str, name: &str) {
    let list = visitor.open(&format!("/admin/{kind}/")).await;
    let change = list.url.join(&list.link_with(name)).expect("an address");
    let page = visitor.open(&change.path().replace("/change/", "/delete/")).await;
    visitor.send(page.form("#content form[method=post]")).await;
}
