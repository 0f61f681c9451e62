//! Oracles and near misses of `wikipedia.yaml`, one function for each template.

use crate::attempt::Attempt;
use crate::files::Task;
use crate::shopping::unachievable;
use crate::stage::Stage;
use crate::visitor::{Page, Visitor};

/// Returns the attempts at a task of the encyclopaedia, or `None` if its template is unknown here.
pub fn attempts(task: &'static Task) -> Option<Vec<Attempt>> {
    Some(match task.template.as_str() {
        "wikipedia.population" => population(task),
        "wikipedia.museum-day" => museum_day(task),
        "wikipedia.river-towns" => river_towns(task),
        "wikipedia.founder-born" => founder_born(task),
        "wikipedia.open-mayor" => open_mayor(task),
        "wikipedia.search" => search(task),
        "wikipedia.unachievable" => unachievable(),
        _ => return None,
    })
}

/// Returns the article with this title.
async fn article(reader: &Visitor, title: &str) -> Page {
    reader.open(&format!("/arena_en_all/A/{}.html", title.replace(' ', "_"))).await
}

/// Returns the value beside a heading in the info box of an article.
async fn fact(stage: Stage, title: &'static str, heading: &'static str) -> String {
    article(&stage.reader(), title).await.beside(heading)
}

fn population(task: &'static Task) -> Vec<Attempt> {
    let (town, people) = (task.text("town"), task.number("people"));
    vec![
        Attempt::oracle(move |stage| fact(stage, town, "Population (2023)")),
        Attempt::miss("its density", move |stage| fact(stage, town, "Density")),
        Attempt::miss("another town's", |stage| fact(stage, "Thornwick", "Population (2023)")),
        Attempt::answers("one too many", (people + 1.0).to_string()),
        Attempt::answers("a digit short", (people / 10.0).trunc().to_string()),
    ]
}

fn museum_day(task: &'static Task) -> Vec<Attempt> {
    let museum = task.text("museum");
    vec![
        Attempt::oracle(move |stage| fact(stage, museum, "Closed on")),
        Attempt::miss("another museum's", |stage| fact(stage, "Lowmere Museum of Fishing", "Closed on")),
        Attempt::miss("the year of its opening", move |stage| fact(stage, museum, "Opened")),
        Attempt::answers("a day of no museum", "Sunday"),
    ]
}

fn river_towns(task: &'static Task) -> Vec<Attempt> {
    let river = task.text("river");
    let towns = |stage: Stage, river: &'static str| async move {
        let towns = fact(stage, river, "Towns").await.replace(" and ", ", ");
        towns.split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    vec![
        Attempt::oracle(async move |stage| towns(stage, river).await.join(", ")),
        Attempt::miss("all but one", async move |stage| towns(stage, river).await[1..].join(", ")),
        Attempt::miss("one more", async move |stage| towns(stage, river).await.join(", ") + " and Thornwick"),
        Attempt::miss("another river's", async move |stage| towns(stage, "River Salt").await.join(", ")),
    ]
}

fn founder_born(task: &'static Task) -> Vec<Attempt> {
    let company = task.text("company");
    let born = move |stage: Stage, who: &'static str| async move {
        let reader = stage.reader();
        let person = article(&reader, company).await.beside(who);
        let born = article(&reader, &person).await.beside("Born");
        born.split(',').next().unwrap_or_default().to_owned()
    };
    vec![
        Attempt::oracle(move |stage| born(stage, "Founder")),
        Attempt::miss("the chief executive's", move |stage| born(stage, "Chief executive")),
        Attempt::miss("the company's", move |stage| fact(stage, company, "Founded")),
        Attempt::answers("a year late", (task.number("year") + 1.0).to_string()),
        Attempt::miss("the founder's name", move |stage| fact(stage, company, "Founder")),
    ]
}

fn open_mayor(task: &'static Task) -> Vec<Attempt> {
    let town = task.text("town");
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let reader = stage.reader();
            let mayor = article(&reader, town).await.beside("Mayor");
            article(&reader, &mayor).await
        }),
        Attempt::miss("the town", async move |stage: Stage| article(&stage.reader(), town).await),
        Attempt::miss("another town's", async |stage: Stage| article(&stage.reader(), "Ella Wilson").await),
        Attempt::miss("a search for the mayor", async |stage: Stage| search_for(stage, "mayor").await),
    ]
}

async fn search_for(stage: Stage, words: &'static str) -> Page {
    let reader = stage.reader();
    let form = article(&reader, "Larkmoor County").await.form("#kiwixsearchform");
    reader.send(form.set("pattern", words)).await
}

fn search(task: &'static Task) -> Vec<Attempt> {
    let words = task.text("words");
    vec![
        Attempt::oracle(move |stage| search_for(stage, words)),
        Attempt::miss("another word", |stage| search_for(stage, "museum")),
        Attempt::miss("a word more", move |stage| search_for(stage, String::leak(format!("{words} history")))),
        Attempt::miss("an article", async |stage: Stage| article(&stage.reader(), "Great Salt Strike").await),
    ]
}
