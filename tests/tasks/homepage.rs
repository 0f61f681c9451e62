//! Oracles and near misses of `homepage.yaml`, one function for each template, and actions in the scratchpad.

use crate::attempt::Attempt;
use crate::files::Task;
use crate::shopping::unachievable;
use crate::stage::Stage;

/// Returns the attempts at a task of the homepage, or `None` if its template is unknown here.
pub fn attempts(task: &'static Task) -> Option<Vec<Attempt>> {
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
pub async fn write_note(stage: &Stage, title: &str, text: &str) {
    let visitor = stage.host();
    let form = visitor.open("/scratchpad.html").await.form("form.wide");
    visitor.send(form.set("title", title).set("text", text).set("action", "save")).await;
}

/// Edits the text of a scratchpad note, found by its title.
async fn rewrite(stage: &Stage, title: &str, change: impl FnOnce(&str) -> String) {
    let visitor = stage.host();
    let page = visitor.open("/scratchpad.html").await;
    let titles = page.texts("#notes .note h2");
    let place = titles.iter().position(|known| known == title).expect("the note is there");
    let link = page.attributes("#notes .note a.button", "href").remove(place);
    let form = visitor.open(&link).await.form("form.wide");
    let text = change(form.value("text"));
    visitor.send(form.set("text", &text).set("action", "save")).await;
}

async fn delete(stage: &Stage, number: u32) {
    let visitor = stage.host();
    let form = visitor.open("/scratchpad.html").await.form(&format!("#note-{number} form"));
    visitor.send(form.set("action", "delete")).await;
}

fn account(task: &'static Task) -> Vec<Attempt> {
    let (name, site) = (task.text("account"), task.text("site_name"));
    let passwords = |stage: Stage| async move { stage.host().open("/password.html").await.rows("tr") };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let rows = passwords(stage).await;
            let row = rows.into_iter().find(|row| row[0] == site && row[2] == name).expect("the account is listed");
            row[3].clone()
        }),
        Attempt::miss("the administrator's", async move |stage: Stage| {
            let rows = passwords(stage).await;
            rows.into_iter().find(|row| row[0] == site && row[1] == "administrator").expect("there is one")[3].clone()
        }),
        Attempt::answers("the name", name),
        Attempt::answers("with a digit more", format!("{}5", task.text("password"))),
    ]
}

fn open_manual(task: &'static Task) -> Vec<Attempt> {
    let manual = task.text("manual");
    let open = |stage: Stage, path: String| async move { stage.host().open(&path).await };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let visitor = stage.host();
            let link = visitor.open("/manuals/").await.link(&format!("a[href='/manuals/{manual}.html']"));
            visitor.open(&link).await
        }),
        Attempt::miss("another manual", move |stage| open(stage, "/manuals/forum.html".to_owned())),
        Attempt::miss("the list of manuals", move |stage| open(stage, "/manuals/".to_owned())),
        Attempt::miss("a search in the manuals", move |stage| open(stage, format!("/manuals/?q={manual}"))),
    ]
}

fn calculate(task: &'static Task) -> Vec<Attempt> {
    let expression = task.text("expression");
    let calculate = |stage: Stage, expression: String| async move {
        let visitor = stage.host();
        let form = visitor.open("/calculator.html").await.form("form");
        visitor.send(form.set("expression", &expression)).await
    };
    vec![
        Attempt::oracle(move |stage| calculate(stage, expression.to_owned())),
        Attempt::miss("a part of it", move |stage| calculate(stage, expression[..expression.len() - 4].to_owned())),
        Attempt::miss("without brackets", move |stage| calculate(stage, expression.replace(['(', ')'], ""))),
        Attempt::miss("the empty calculator", async |stage: Stage| stage.host().open("/calculator.html").await),
    ]
}

fn note(task: &'static Task) -> Vec<Attempt> {
    let (title, text) = (task.text("title"), task.text("text"));
    let write = |stage: Stage, title: &'static str, text: &'static str| async move {
        write_note(&stage, title, text).await;
    };
    vec![
        Attempt::oracle(move |stage| write(stage, title, text)),
        Attempt::miss("with title and text exchanged", move |stage| write(stage, text, title)),
        Attempt::miss("without a title", move |stage| write(stage, "", text)),
        Attempt::miss("twice", async move |stage: Stage| {
            write_note(&stage, title, text).await;
            write_note(&stage, title, text).await;
        }),
        Attempt::miss("over the packing list", async move |stage: Stage| {
            rewrite(&stage, "Packing list", |_| format!("{title}\n{text}")).await;
        }),
    ]
}

fn edit_note(task: &'static Task) -> Vec<Attempt> {
    let thing = task.text("thing");
    vec![
        Attempt::oracle(async move |stage: Stage| {
            rewrite(&stage, "Packing list", |text| format!("{text}\n{thing}")).await;
        }),
        Attempt::miss("on the last line", async move |stage: Stage| {
            rewrite(&stage, "Packing list", |text| format!("{text} {thing}")).await;
        }),
        Attempt::miss("at the beginning", async move |stage: Stage| {
            rewrite(&stage, "Packing list", |text| format!("{thing}\n{text}")).await;
        }),
        Attempt::miss("alone", async move |stage: Stage| {
            rewrite(&stage, "Packing list", |_| thing.to_owned()).await;
        }),
        Attempt::miss("in a note of its own", async move |stage: Stage| {
            write_note(&stage, "Packing list", thing).await;
        }),
    ]
}

fn delete_note() -> Vec<Attempt> {
    vec![
        Attempt::oracle(async |stage: Stage| delete(&stage, 3).await),
        Attempt::miss("another note", async |stage: Stage| delete(&stage, 2).await),
        Attempt::miss("two notes", async |stage: Stage| {
            delete(&stage, 3).await;
            delete(&stage, 2).await;
        }),
        Attempt::miss("by emptying it", async |stage: Stage| {
            rewrite(&stage, "Ask the museum of clocks", |_| "-".to_owned()).await;
        }),
    ]
}
