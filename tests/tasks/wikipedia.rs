//! Oracles and near misses of `wikipedia.yaml`, one function for each template.

use super::attempt::AgentAttempt;
use super::files::TemplateTask;
use super::shopping::unachievable;
use super::stage::AgentStage;
use super::visitor::{TaskVisitor, VisitedPage};

/// Returns the attempts at a task of the encyclopaedia, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
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
async fn article(reader: &TaskVisitor, title: &str) -> VisitedPage {
    reader.open(&format!("/arena_en_all/A/{}.html", title.replace(' ', "_"))).await
}

/// Returns the value beside a heading in the info box of an article.
async fn fact(stage: AgentStage, title: &'static str, heading: &'static str) -> String {
    article(&stage.reader(), title).await.beside(heading)
}

fn population(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (town, people) = (task.text("town"), task.number("people"));
    vec![
        AgentAttempt::oracle(move |stage| fact(stage, town, "Population (2023)")),
        AgentAttempt::miss("its density", move |stage| fact(stage, town, "Density")),
        AgentAttempt::miss("another town's", |stage| fact(stage, "Thornwick", "Population (2023)")),
        AgentAttempt::answers("one too many", (people + 1.0).to_string()),
        AgentAttempt::answers("a digit short", (people / 10.0).trunc().to_string()),
    ]
}

fn museum_day(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let museum = task.text("museum");
    vec![
        AgentAttempt::oracle(move |stage| fact(stage, museum, "Closed on")),
        AgentAttempt::miss("another museum's", |stage| fact(stage, "Lowmere Museum of Fishing", "Closed on")),
        AgentAttempt::miss("the year of its opening", move |stage| fact(stage, museum, "Opened")),
        AgentAttempt::answers("a day of no museum", "Sunday"),
    ]
}

fn river_towns(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let river = task.text("river");
    let towns = |stage: AgentStage, river: &'static str| async move {
        let towns = fact(stage, river, "Towns").await.replace(" and ", ", ");
        towns.split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    vec![
        AgentAttempt::oracle(async move |stage| towns(stage, river).await.join(", ")),
        AgentAttempt::miss("all but one", async move |stage| towns(stage, river).await[1..].join(", ")),
        AgentAttempt::miss("one more", async move |stage| towns(stage, river).await.join(", ") + " and Thornwick"),
        AgentAttempt::miss("another river's", async move |stage| towns(stage, "River Salt").await.join(", ")),
    ]
}

fn founder_born(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let company = task.text("company");
    let born = move |stage: AgentStage, who: &'static str| async move {
        let reader = stage.reader();
        let person = article(&reader, company).await.beside(who);
        let born = article(&reader, &person).await.beside("Born");
        born.split(',').next().unwrap_or_default().to_owned()
    };
    vec![
        AgentAttempt::oracle(move |stage| born(stage, "Founder")),
        AgentAttempt::miss("the chief executive's", move |stage| born(stage, "Chief executive")),
        AgentAttempt::miss("the company's", move |stage| fact(stage, company, "Founded")),
        AgentAttempt::answers("a year late", (task.number("year") + 1.0).to_string()),
        AgentAttempt::miss("the founder's name", move |stage| fact(stage, company, "Founder")),
    ]
}

fn open_mayor(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let town = task.text("town");
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let reader = stage.reader();
            let mayor = article(&reader, town).await.beside("Mayor");
            article(&reader, &mayor).await
        }),
        AgentAttempt::miss("the town", async move |stage: AgentStage| article(&stage.reader(), town).await),
        AgentAttempt::miss("another town's", async |stage: AgentStage| article(&stage.reader(), "Ella Wilson").await),
        AgentAttempt::miss("a search for the mayor", async |stage: AgentStage| search_for(stage, "mayor").await),
    ]
}

async fn search_for(stage: AgentStage, words: &'static str) -> VisitedPage {
    let reader = stage.reader();
    let form = article(&reader, "Larkmoor County").await.form("#kiwixsearchform");
    reader.send(form.set("pattern", words)).await
}

fn search(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let words = task.text("words");
    vec![
        AgentAttempt::oracle(move |stage| search_for(stage, words)),
        AgentAttempt::miss("another word", |stage| search_for(stage, "museum")),
        AgentAttempt::miss("a word more", move |stage| search_for(stage, String::leak(format!("{words} history")))),
        AgentAttempt::miss("an article", async |stage: AgentStage| article(&stage.reader(), "Great Salt Strike").await),
    ]
}
