//! Oracles and near misses of `homepage.yaml`, one function for each template, and actions in the scratchpad.

use super::attempt::AgentAttempt;
use super::files::TemplateTask;
use super::shopping::unachievable;
use super::stage::AgentStage;

/// Returns the attempts at a task of the homepage, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
    Some(match task.template.as_str() {
        "homepage.account" => account(task),
        "homepage.open-manual" => open_manual(task),
        "homepage.calculate" => calculate(task),
        "homepage.note" => note(task),
        "homepage.edit-note" => edit_note(task),
        "homepage.delete-note" => delete_note(),
        "homepage.unachievable" => unachievable(),
        _ => return None,
    })
}

/// Adds a note to the scratchpad.
pub async fn write_note(stage: &AgentStage, title: &str, text: &str) {
    let visitor = stage.host();
    let form = visitor.open("/scratchpad.html").await.form("form.wide");
    visitor.send(form.set("title", title).set("text", text).set("action", "save")).await;
}

/// Edits the text of a scratchpad note, found by its title.
async fn rewrite(stage: &AgentStage, title: &str, change: impl FnOnce(&str) -> String) {
    let visitor = stage.host();
    let page = visitor.open("/scratchpad.html").await;
    let titles = page.texts("#notes .note h2");
    let place = titles.iter().position(|known| known == title).expect("the note is there");
    let link = page.attributes("#notes .note a.button", "href").remove(place);
    let form = visitor.open(&link).await.form("form.wide");
    let text = change(form.value("text"));
    visitor.send(form.set("text", &text).set("action", "save")).await;
}

async fn delete(stage: &AgentStage, number: u32) {
    let visitor = stage.host();
    let form = visitor.open("/scratchpad.html").await.form(&format!("#note-{number} form"));
    visitor.send(form.set("action", "delete")).await;
}

fn account(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (name, site) = (task.text("account"), task.text("site_name"));
    let passwords = |stage: AgentStage| async move { stage.host().open("/password.html").await.rows("tr") };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let rows = passwords(stage).await;
            let row = rows.into_iter().find(|row| row[0] == site && row[2] == name).expect("the account is listed");
            row[3].clone()
        }),
        AgentAttempt::miss("the administrator's", async move |stage: AgentStage| {
            let rows = passwords(stage).await;
            rows.into_iter().find(|row| row[0] == site && row[1] == "administrator").expect("there is one")[3].clone()
        }),
        AgentAttempt::answers("the name", name),
        AgentAttempt::answers("with a digit more", format!("{}5", task.text("password"))),
    ]
}

fn open_manual(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let manual = task.text("manual");
    let open = |stage: AgentStage, path: String| async move { stage.host().open(&path).await };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let visitor = stage.host();
            let link = visitor.open("/manuals/").await.link(&format!("a[href='/manuals/{manual}.html']"));
            visitor.open(&link).await
        }),
        AgentAttempt::miss("another manual", move |stage| open(stage, "/manuals/forum.html".to_owned())),
        AgentAttempt::miss("the list of manuals", move |stage| open(stage, "/manuals/".to_owned())),
        AgentAttempt::miss("a search in the manuals", move |stage| open(stage, format!("/manuals/?q={manual}"))),
    ]
}

fn calculate(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let expression = task.text("expression");
    let calculate = |stage: AgentStage, expression: String| async move {
        let visitor = stage.host();
        let form = visitor.open("/calculator.html").await.form("form");
        visitor.send(form.set("expression", &expression)).await
    };
    vec![
        AgentAttempt::oracle(move |stage| calculate(stage, expression.to_owned())),
        AgentAttempt::miss("a part of it", move |stage| {
            calculate(stage, expression[..expression.len() - 4].to_owned())
        }),
        AgentAttempt::miss("without brackets", move |stage| calculate(stage, expression.replace(['(', ')'], ""))),
        AgentAttempt::miss("the empty calculator", async |stage: AgentStage| {
            stage.host().open("/calculator.html").await
        }),
    ]
}

fn note(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (title, text) = (task.text("title"), task.text("text"));
    let write = |stage: AgentStage, title: &'static str, text: &'static str| async move {
        write_note(&stage, title, text).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| write(stage, title, text)),
        AgentAttempt::miss("with title and text exchanged", move |stage| write(stage, text, title)),
        AgentAttempt::miss("without a title", move |stage| write(stage, "", text)),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            write_note(&stage, title, text).await;
            write_note(&stage, title, text).await;
        }),
        AgentAttempt::miss("over the packing list", async move |stage: AgentStage| {
            rewrite(&stage, "Packing list", |_| format!("{title}\n{text}")).await;
        }),
    ]
}

fn edit_note(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let thing = task.text("thing");
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            rewrite(&stage, "Packing list", |text| format!("{text}\n{thing}")).await;
        }),
        AgentAttempt::miss("on the last line", async move |stage: AgentStage| {
            rewrite(&stage, "Packing list", |text| format!("{text} {thing}")).await;
        }),
        AgentAttempt::miss("at the beginning", async move |stage: AgentStage| {
            rewrite(&stage, "Packing list", |text| format!("{thing}\n{text}")).await;
        }),
        AgentAttempt::miss("alone", async move |stage: AgentStage| {
            rewrite(&stage, "Packing list", |_| thing.to_owned()).await;
        }),
        AgentAttempt::miss("in a note of its own", async move |stage: AgentStage| {
            write_note(&stage, "Packing list", thing).await;
        }),
    ]
}

fn delete_note() -> Vec<AgentAttempt> {
    vec![
        AgentAttempt::oracle(async |stage: AgentStage| delete(&stage, 3).await),
        AgentAttempt::miss("another note", async |stage: AgentStage| delete(&stage, 2).await),
        AgentAttempt::miss("two notes", async |stage: AgentStage| {
            delete(&stage, 3).await;
            delete(&stage, 2).await;
        }),
        AgentAttempt::miss("by emptying it", async |stage: AgentStage| {
            rewrite(&stage, "Ask the museum of clocks", |_| "-".to_owned()).await;
        }),
    ]
}
