//! Oracles and near misses of `turkle.yaml`, one function for each template.

use crate::attempt::Attempt;
use crate::crowd;
use crate::files::Task;
use crate::shopping::unachievable;
use crate::stage::Stage;
use crate::visitor::{Form, Visitor};

/// Returns the attempts at a task of Turkle, or `None` if its template is unknown here.
pub fn attempts(task: &'static Task) -> Option<Vec<Attempt>> {
    Some(match task.template.as_str() {
        "turkle.left" => left(task),
        "turkle.described" => described(task),
        "turkle.username" => username(task),
        "turkle.finished" => finished(),
        "turkle.preview" => preview(task),
        "turkle.statistics" => statistics(),
        "turkle.accept" => accept(task),
        "turkle.transcribe" => transcribe(task),
        "turkle.deactivate" => deactivate(task),
        "turkle.rename" => rename(task),
        "turkle.workers-per-task" => workers_per_task(task),
        "turkle.new-worker" => new_worker(task),
        "turkle.lock-worker" => lock_worker(),
        "turkle.unachievable" => unachievable(),
        _ => return None,
    })
}

/// Wrong answers close to a number.
pub fn near_numbers(number: f64) -> Vec<Attempt> {
    vec![
        Attempt::answers("one too few", (number - 1.0).to_string()),
        Attempt::answers("one too many", (number + 1.0).to_string()),
        Attempt::answers("two numbers to choose from", format!("{number} or {}", number + 1.0)),
    ]
}

fn left(task: &'static Task) -> Vec<Attempt> {
    let batch = task.text("batch");
    let left = |stage: Stage, batch: &'static str| async move {
        let rows = stage.worker().open("/").await.rows("tr").into_iter();
        let mut rows = rows.filter(|row| row.iter().any(|cell| cell == batch));
        let row = rows.next().expect("the batch is listed");
        row.into_iter().find(|cell| cell.parse::<u32>().is_ok()).expect("a number of tasks")
    };
    let mut attempts = vec![
        Attempt::oracle(move |stage| left(stage, batch)),
        Attempt::miss("another batch's", move |stage| left(stage, "Reviews of May 2023")),
    ];
    attempts.extend(near_numbers(task.number("left")));
    attempts
}

fn described(task: &'static Task) -> Vec<Attempt> {
    let museum = task.text("museum");
    let said = |stage: Stage, museum: &'static str| async move {
        let (_, page) = crowd::museum_task(&stage.worker(), museum).await;
        let text = page.texts(".card-text").remove(0);
        text.split(" objects").next().and_then(|text| text.rsplit(' ').next()).expect("a number").to_owned()
    };
    vec![
        Attempt::oracle(move |stage| said(stage, museum)),
        Attempt::miss("another museum's", move |stage| said(stage, "Thornwick Museum of Clocks")),
        Attempt::answers("what is true", task.own(["2000", "16000"])),
        Attempt::answers("both numbers", format!("{} or {}", task.number("said"), task.own(["2000", "16000"]))),
    ]
}

fn username(task: &'static Task) -> Vec<Attempt> {
    let name = task.text("name");
    let (other, both) =
        if name == "Maud Brandt" { ("worker2", "worker, worker2") } else { ("worker", "worker or worker2") };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let mut rows = stage.requester().open("/admin/auth/user/").await.rows("#result_list tbody tr").into_iter();
            let (first, last) = name.split_once(' ').expect("two names");
            let is_meant =
                |row: &Vec<String>| row.iter().any(|cell| cell == first) && row.iter().any(|cell| cell == last);
            let row = rows.find(is_meant).expect("the account is listed");
            row.into_iter().find(|cell| !cell.is_empty()).expect("a username")
        }),
        Attempt::answers("somebody else's", other),
        Attempt::answers("the name", name),
        Attempt::answers("more than one", both),
    ]
}

fn finished() -> Vec<Attempt> {
    let mut attempts = vec![Attempt::oracle(async |stage: Stage| {
        let visitor = stage.requester();
        let list = visitor.open("/admin/auth/user/").await;
        let link = list.link_with("worker2");
        let number = link.trim_end_matches("/change/").rsplit('/').next().expect("a number").to_owned();
        let page = visitor.open(&format!("/stats/user/{number}/")).await;
        let rows = page.rows("tr").into_iter();
        let mut rows = rows.filter(|row| row.iter().any(|cell| cell.contains("Reviews of April 2023")));
        let row = rows.next().expect("the batch is listed");
        row.into_iter().find(|cell| cell.parse::<u32>().is_ok()).expect("a number of tasks")
    })];
    attempts.push(Attempt::answers("what is left of the batch", "7"));
    attempts.extend(near_numbers(11.0));
    attempts
}

fn preview(task: &'static Task) -> Vec<Attempt> {
    let museum = task.text("museum");
    let open = |stage: Stage, museum: &'static str| async move {
        let visitor = stage.worker();
        let (task, _) = crowd::museum_task(&visitor, museum).await;
        visitor.open(&format!("/task/{task}/")).await
    };
    vec![
        Attempt::oracle(move |stage| open(stage, museum)),
        Attempt::miss("another museum's", move |stage| open(stage, "Saltmarsh Museum of Salt")),
        Attempt::miss("the list of batches", async |stage: Stage| stage.worker().open("/").await),
        Attempt::miss("the batch's first task", async |stage: Stage| {
            let visitor = stage.worker();
            let link = visitor.open("/").await.link_beside("Museums of Larkmoor");
            visitor.open(&link).await
        }),
    ]
}

fn statistics() -> Vec<Attempt> {
    vec![
        Attempt::oracle(async |stage: Stage| {
            let visitor = stage.worker();
            let link = visitor.open("/").await.link_with("Stats");
            visitor.open(&link).await
        }),
        Attempt::miss("the list of batches", async |stage: Stage| stage.worker().open("/").await),
        Attempt::miss("the help", async |stage: Stage| stage.worker().open("/help/").await),
        Attempt::miss("a task", async |stage: Stage| stage.worker().open("/task/1/").await),
    ]
}

fn accept(task: &'static Task) -> Vec<Attempt> {
    let batch = task.text("batch");
    let accept = |visitor: Visitor, batch: &'static str| async move {
        crowd::accept_next(&visitor, batch).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| accept(stage.worker(), batch)),
        Attempt::miss("as another worker", move |stage: Stage| accept(stage.other_worker(), batch)),
        Attempt::miss("of another batch", move |stage: Stage| accept(stage.worker(), "Reviews of April 2023")),
        Attempt::miss("two of them", async move |stage: Stage| {
            crowd::accept_next(&stage.worker(), batch).await;
            crowd::accept_next(&stage.worker(), batch).await;
        }),
        Attempt::miss("given back at once", async move |stage: Stage| {
            let page = crowd::accept_next(&stage.worker(), batch).await;
            crowd::give_back(&stage.worker(), &page).await;
        }),
        Attempt::miss("sent at once", async move |stage: Stage| {
            let page = crowd::accept_next(&stage.worker(), batch).await;
            let path = page.url.path().replace("/assignment/", "/assignment/iframe/");
            let form = stage.worker().open(&path).await.form("#mturk_form");
            crowd::submit(&stage.worker(), form).await;
        }),
    ]
}

fn transcribe(task: &'static Task) -> Vec<Attempt> {
    let (card, stars) = (task.text("card"), task.number("stars").to_string());
    let fields = [
        ("transcription", task.text("text")),
        ("product", task.text("product")),
        ("department", task.text("department")),
        ("sentiment", task.text("sentiment")),
        ("topics", task.text("topic")),
        ("stars", &*String::leak(stars)),
    ];
    let fill = move |form: Form| fields.iter().fold(form, |form, (name, value)| form.set(name, value));
    let send = move |visitor: Visitor, card: &'static str, change: fn(Form) -> Form| async move {
        let (task, _) = crowd::card_task(&visitor, card).await;
        let form = fill(crowd::accept(&visitor, task).await);
        crowd::submit(&visitor, change(form)).await;
    };
    let as_it_is: fn(Form) -> Form = |form| form;
    vec![
        Attempt::oracle(move |stage: Stage| send(stage.worker(), card, as_it_is)),
        Attempt::miss("into another card's task", move |stage: Stage| send(stage.worker(), "29", as_it_is)),
        Attempt::miss("as another worker", move |stage: Stage| send(stage.other_worker(), card, as_it_is)),
        Attempt::miss("with other stars", move |stage: Stage| {
            send(stage.worker(), card, |form| form.set("stars", "3"))
        }),
        Attempt::miss("with a topic more", move |stage: Stage| {
            send(stage.worker(), card, |form| form.tick("topics", "quality"))
        }),
        Attempt::miss("with half of the text", move |stage: Stage| {
            send(stage.worker(), card, |form| {
                let text = form.value("transcription").split(". ").next().unwrap_or_default().to_owned();
                form.set("transcription", &text)
            })
        }),
        Attempt::miss("accepted, not sent", async move |stage: Stage| {
            let (task, _) = crowd::card_task(&stage.worker(), card).await;
            crowd::accept(&stage.worker(), task).await;
        }),
        Attempt::miss("and another one besides", async move |stage: Stage| {
            send(stage.worker(), card, as_it_is).await;
            send(stage.worker(), "30", as_it_is).await;
        }),
    ]
}

fn deactivate(task: &'static Task) -> Vec<Attempt> {
    let batch = task.text("batch");
    let untick = |stage: Stage, kind: &'static str, name: &'static str| async move {
        crowd::edit(&stage.requester(), kind, name, |form| form.untick("active")).await;
    };
    let project = if batch.starts_with("Museums") { "Check a museum description" } else { "Transcribe a shop review" };
    vec![
        Attempt::oracle(move |stage| untick(stage, "turkle/batch", batch)),
        Attempt::miss("another batch", move |stage| untick(stage, "turkle/batch", "Reviews of April 2023")),
        Attempt::miss("its project", move |stage| untick(stage, "turkle/project", project)),
        Attempt::miss("and another batch besides", async move |stage: Stage| {
            untick(stage.clone(), "turkle/batch", batch).await;
            untick(stage, "turkle/batch", "Reviews of April 2023").await;
        }),
    ]
}

fn rename(task: &'static Task) -> Vec<Attempt> {
    let (batch, title) = (task.text("batch"), task.text("title"));
    let name = |stage: Stage, batch: &'static str, title: &'static str| async move {
        crowd::edit(&stage.requester(), "turkle/batch", batch, |form| form.set("name", title)).await;
    };
    vec![
        Attempt::oracle(move |stage| name(stage, batch, title)),
        Attempt::miss("another batch", move |stage| name(stage, "Reviews of May 2023", title)),
        Attempt::miss("half of the name", move |stage| name(stage, batch, title.split(' ').next().unwrap_or_default())),
        Attempt::miss("and made inactive", async move |stage: Stage| {
            let change = |form: Form| form.set("name", title).untick("active");
            crowd::edit(&stage.requester(), "turkle/batch", batch, change).await;
        }),
    ]
}

fn workers_per_task(task: &'static Task) -> Vec<Attempt> {
    let (project, workers) = (task.text("project"), task.number("workers"));
    let set = |stage: Stage, project: &'static str, workers: f64| async move {
        let change = |form: Form| form.set("assignments_per_task", &workers.to_string());
        crowd::edit(&stage.requester(), "turkle/project", project, change).await;
    };
    let other = if project.starts_with("Check") { "Transcribe a shop review" } else { "Check a museum description" };
    vec![
        Attempt::oracle(move |stage| set(stage, project, workers)),
        Attempt::miss("one too many", move |stage| set(stage, project, workers + 1.0)),
        Attempt::miss("the other project", move |stage| set(stage, other, workers)),
        Attempt::miss("both projects", async move |stage: Stage| {
            set(stage.clone(), project, workers).await;
            set(stage, other, workers).await;
        }),
    ]
}

fn new_worker(task: &'static Task) -> Vec<Attempt> {
    let right = [
        ("username", task.text("username")),
        ("password1", task.text("password")),
        ("password2", task.text("password")),
        ("first_name", task.text("first")),
        ("last_name", task.text("last")),
        ("email", task.text("email")),
    ];
    let add = move |stage: Stage, changes: Vec<(&'static str, &'static str)>| async move {
        let fields: Vec<_> = right.into_iter().chain(changes).collect();
        crowd::add_user(&stage.requester(), &fields).await;
    };
    vec![
        Attempt::oracle(move |stage| add(stage, vec![])),
        Attempt::miss("with the names exchanged", move |stage| {
            add(stage, vec![("first_name", task.text("last")), ("last_name", task.text("first"))])
        }),
        Attempt::miss("with rights in the administration", move |stage| add(stage, vec![("is_staff", "on")])),
        Attempt::miss("with another address", move |stage| add(stage, vec![("email", "worker9@turkle.test")])),
        Attempt::miss("and another account besides", async move |stage: Stage| {
            add(stage.clone(), vec![]).await;
            add(stage, vec![("username", "somebody")]).await;
        }),
    ]
}

fn lock_worker() -> Vec<Attempt> {
    let lock = |stage: Stage, name: &'static str| async move {
        crowd::edit(&stage.requester(), "auth/user", name, |form| form.untick("is_active")).await;
    };
    vec![
        Attempt::oracle(move |stage| lock(stage, "worker2")),
        Attempt::miss("another worker", move |stage| lock(stage, "worker")),
        Attempt::miss("both workers", async move |stage: Stage| {
            lock(stage.clone(), "worker2").await;
            lock(stage, "worker").await;
        }),
        Attempt::miss("by deleting the account", async |stage: Stage| {
            crowd::delete(&stage.requester(), "auth/user", "worker2").await;
        }),
    ]
}
