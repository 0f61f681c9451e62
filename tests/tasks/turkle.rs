//! Oracles and near misses of `turkle.yaml`, one function for each template.

use super::attempt::AgentAttempt;
use super::crowd;
use super::files::TemplateTask;
use super::shopping::unachievable;
use super::stage::AgentStage;
use super::visitor::{PageForm, TaskVisitor};

/// Returns the attempts at a task of Turkle, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
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
pub fn near_numbers(number: f64) -> Vec<AgentAttempt> {
    vec![
        AgentAttempt::answers("one too few", (number - 1.0).to_string()),
        AgentAttempt::answers("one too many", (number + 1.0).to_string()),
        AgentAttempt::answers("two numbers to choose from", format!("{number} or {}", number + 1.0)),
    ]
}

fn left(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let batch = task.text("batch");
    let left = |stage: AgentStage, batch: &'static str| async move {
        let rows = stage.worker().open("/").await.rows("tr").into_iter();
        let mut rows = rows.filter(|row| row.iter().any(|cell| cell == batch));
        let row = rows.next().expect("the batch is listed");
        row.into_iter().find(|cell| cell.parse::<u32>().is_ok()).expect("a number of tasks")
    };
    let mut attempts = vec![
        AgentAttempt::oracle(move |stage| left(stage, batch)),
        AgentAttempt::miss("another batch's", move |stage| left(stage, "Reviews of May 2023")),
    ];
    attempts.extend(near_numbers(task.number("left")));
    attempts
}

fn described(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let museum = task.text("museum");
    let said = |stage: AgentStage, museum: &'static str| async move {
        let (_, page) = crowd::museum_task(&stage.worker(), museum).await;
        let text = page.texts(".card-text").remove(0);
        text.split(" objects").next().and_then(|text| text.rsplit(' ').next()).expect("a number").to_owned()
    };
    vec![
        AgentAttempt::oracle(move |stage| said(stage, museum)),
        AgentAttempt::miss("another museum's", move |stage| said(stage, "Thornwick Museum of Clocks")),
        AgentAttempt::answers("what is true", task.own(["2000", "16000"])),
        AgentAttempt::answers("both numbers", format!("{} or {}", task.number("said"), task.own(["2000", "16000"]))),
    ]
}

fn username(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let name = task.text("name");
    let (other, both) =
        if name == "Maud Brandt" { ("worker2", "worker, worker2") } else { ("worker", "worker or worker2") };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let mut rows = stage.requester().open("/admin/auth/user/").await.rows("#result_list tbody tr").into_iter();
            let (first, last) = name.split_once(' ').expect("two names");
            let is_meant =
                |row: &Vec<String>| row.iter().any(|cell| cell == first) && row.iter().any(|cell| cell == last);
            let row = rows.find(is_meant).expect("the account is listed");
            row.into_iter().find(|cell| !cell.is_empty()).expect("a username")
        }),
        AgentAttempt::answers("somebody else's", other),
        AgentAttempt::answers("the name", name),
        AgentAttempt::answers("more than one", both),
    ]
}

fn finished() -> Vec<AgentAttempt> {
    let mut attempts = vec![AgentAttempt::oracle(async |stage: AgentStage| {
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
    attempts.push(AgentAttempt::answers("what is left of the batch", "7"));
    attempts.extend(near_numbers(11.0));
    attempts
}

fn preview(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let museum = task.text("museum");
    let open = |stage: AgentStage, museum: &'static str| async move {
        let visitor = stage.worker();
        let (task, _) = crowd::museum_task(&visitor, museum).await;
        visitor.open(&format!("/task/{task}/")).await
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, museum)),
        AgentAttempt::miss("another museum's", move |stage| open(stage, "Saltmarsh Museum of Salt")),
        AgentAttempt::miss("the list of batches", async |stage: AgentStage| stage.worker().open("/").await),
        AgentAttempt::miss("the batch's first task", async |stage: AgentStage| {
            let visitor = stage.worker();
            let link = visitor.open("/").await.link_beside("Museums of Larkmoor");
            visitor.open(&link).await
        }),
    ]
}

fn statistics() -> Vec<AgentAttempt> {
    vec![
        AgentAttempt::oracle(async |stage: AgentStage| {
            let visitor = stage.worker();
            let link = visitor.open("/").await.link_with("Stats");
            visitor.open(&link).await
        }),
        AgentAttempt::miss("the list of batches", async |stage: AgentStage| stage.worker().open("/").await),
        AgentAttempt::miss("the help", async |stage: AgentStage| stage.worker().open("/help/").await),
        AgentAttempt::miss("a task", async |stage: AgentStage| stage.worker().open("/task/1/").await),
    ]
}

fn accept(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let batch = task.text("batch");
    let accept = |visitor: TaskVisitor, batch: &'static str| async move {
        crowd::accept_next(&visitor, batch).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| accept(stage.worker(), batch)),
        AgentAttempt::miss("as another worker", move |stage: AgentStage| accept(stage.other_worker(), batch)),
        AgentAttempt::miss("of another batch", move |stage: AgentStage| {
            accept(stage.worker(), "Reviews of April 2023")
        }),
        AgentAttempt::miss("two of them", async move |stage: AgentStage| {
            crowd::accept_next(&stage.worker(), batch).await;
            crowd::accept_next(&stage.worker(), batch).await;
        }),
        AgentAttempt::miss("given back at once", async move |stage: AgentStage| {
            let page = crowd::accept_next(&stage.worker(), batch).await;
            crowd::give_back(&stage.worker(), &page).await;
        }),
        AgentAttempt::miss("sent at once", async move |stage: AgentStage| {
            let page = crowd::accept_next(&stage.worker(), batch).await;
            let path = page.url.path().replace("/assignment/", "/assignment/iframe/");
            let form = stage.worker().open(&path).await.form("#mturk_form");
            crowd::submit(&stage.worker(), form).await;
        }),
    ]
}

fn transcribe(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (card, stars) = (task.text("card"), task.number("stars").to_string());
    let fields = [
        ("transcription", task.text("text")),
        ("product", task.text("product")),
        ("department", task.text("department")),
        ("sentiment", task.text("sentiment")),
        ("topics", task.text("topic")),
        ("stars", &*String::leak(stars)),
    ];
    let fill = move |form: PageForm| fields.iter().fold(form, |form, (name, value)| form.set(name, value));
    let send = move |visitor: TaskVisitor, card: &'static str, change: fn(PageForm) -> PageForm| async move {
        let (task, _) = crowd::card_task(&visitor, card).await;
        let form = fill(crowd::accept(&visitor, task).await);
        crowd::submit(&visitor, change(form)).await;
    };
    let as_it_is: fn(PageForm) -> PageForm = |form| form;
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| send(stage.worker(), card, as_it_is)),
        AgentAttempt::miss("into another card's task", move |stage: AgentStage| send(stage.worker(), "29", as_it_is)),
        AgentAttempt::miss("as another worker", move |stage: AgentStage| send(stage.other_worker(), card, as_it_is)),
        AgentAttempt::miss("with other stars", move |stage: AgentStage| {
            send(stage.worker(), card, |form| form.set("stars", "3"))
        }),
        AgentAttempt::miss("with a topic more", move |stage: AgentStage| {
            send(stage.worker(), card, |form| form.tick("topics", "quality"))
        }),
        AgentAttempt::miss("with half of the text", move |stage: AgentStage| {
            send(stage.worker(), card, |form| {
                let text = form.value("transcription").split(". ").next().unwrap_or_default().to_owned();
                form.set("transcription", &text)
            })
        }),
        AgentAttempt::miss("accepted, not sent", async move |stage: AgentStage| {
            let (task, _) = crowd::card_task(&stage.worker(), card).await;
            crowd::accept(&stage.worker(), task).await;
        }),
        AgentAttempt::miss("and another one besides", async move |stage: AgentStage| {
            send(stage.worker(), card, as_it_is).await;
            send(stage.worker(), "30", as_it_is).await;
        }),
    ]
}

fn deactivate(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let batch = task.text("batch");
    let untick = |stage: AgentStage, kind: &'static str, name: &'static str| async move {
        crowd::edit(&stage.requester(), kind, name, |form| form.untick("active")).await;
    };
    let project = if batch.starts_with("Museums") { "Check a museum description" } else { "Transcribe a shop review" };
    vec![
        AgentAttempt::oracle(move |stage| untick(stage, "turkle/batch", batch)),
        AgentAttempt::miss("another batch", move |stage| untick(stage, "turkle/batch", "Reviews of April 2023")),
        AgentAttempt::miss("its project", move |stage| untick(stage, "turkle/project", project)),
        AgentAttempt::miss("and another batch besides", async move |stage: AgentStage| {
            untick(stage.clone(), "turkle/batch", batch).await;
            untick(stage, "turkle/batch", "Reviews of April 2023").await;
        }),
    ]
}

fn rename(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (batch, title) = (task.text("batch"), task.text("title"));
    let name = |stage: AgentStage, batch: &'static str, title: &'static str| async move {
        crowd::edit(&stage.requester(), "turkle/batch", batch, |form| form.set("name", title)).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| name(stage, batch, title)),
        AgentAttempt::miss("another batch", move |stage| name(stage, "Reviews of May 2023", title)),
        AgentAttempt::miss("half of the name", move |stage| {
            name(stage, batch, title.split(' ').next().unwrap_or_default())
        }),
        AgentAttempt::miss("and made inactive", async move |stage: AgentStage| {
            let change = |form: PageForm| form.set("name", title).untick("active");
            crowd::edit(&stage.requester(), "turkle/batch", batch, change).await;
        }),
    ]
}

fn workers_per_task(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, workers) = (task.text("project"), task.number("workers"));
    let set = |stage: AgentStage, project: &'static str, workers: f64| async move {
        let change = |form: PageForm| form.set("assignments_per_task", &workers.to_string());
        crowd::edit(&stage.requester(), "turkle/project", project, change).await;
    };
    let other = if project.starts_with("Check") { "Transcribe a shop review" } else { "Check a museum description" };
    vec![
        AgentAttempt::oracle(move |stage| set(stage, project, workers)),
        AgentAttempt::miss("one too many", move |stage| set(stage, project, workers + 1.0)),
        AgentAttempt::miss("the other project", move |stage| set(stage, other, workers)),
        AgentAttempt::miss("both projects", async move |stage: AgentStage| {
            set(stage.clone(), project, workers).await;
            set(stage, other, workers).await;
        }),
    ]
}

fn new_worker(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let right = [
        ("username", task.text("username")),
        ("password1", task.text("password")),
        ("password2", task.text("password")),
        ("first_name", task.text("first")),
        ("last_name", task.text("last")),
        ("email", task.text("email")),
    ];
    let add = move |stage: AgentStage, changes: Vec<(&'static str, &'static str)>| async move {
        let fields: Vec<_> = right.into_iter().chain(changes).collect();
        crowd::add_user(&stage.requester(), &fields).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| add(stage, vec![])),
        AgentAttempt::miss("with the names exchanged", move |stage| {
            add(stage, vec![("first_name", task.text("last")), ("last_name", task.text("first"))])
        }),
        AgentAttempt::miss("with rights in the administration", move |stage| add(stage, vec![("is_staff", "on")])),
        AgentAttempt::miss("with another address", move |stage| add(stage, vec![("email", "worker9@turkle.test")])),
        AgentAttempt::miss("and another account besides", async move |stage: AgentStage| {
            add(stage.clone(), vec![]).await;
            add(stage, vec![("username", "somebody")]).await;
        }),
    ]
}

fn lock_worker() -> Vec<AgentAttempt> {
    let lock = |stage: AgentStage, name: &'static str| async move {
        crowd::edit(&stage.requester(), "auth/user", name, |form| form.untick("is_active")).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| lock(stage, "worker2")),
        AgentAttempt::miss("another worker", move |stage| lock(stage, "worker")),
        AgentAttempt::miss("both workers", async move |stage: AgentStage| {
            lock(stage.clone(), "worker2").await;
            lock(stage, "worker").await;
        }),
        AgentAttempt::miss("by deleting the account", async |stage: AgentStage| {
            crowd::delete(&stage.requester(), "auth/user", "worker2").await;
        }),
    ]
}
