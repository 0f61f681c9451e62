//! Oracles and near misses of `map.yaml`, one function for each template, and searches on the map.

use reqwest::Url;
use serde_json::Value;

use super::attempt::AgentAttempt;
use super::files::TemplateTask;
use super::shopping::unachievable;
use super::stage::AgentStage;
use super::visitor::{TaskVisitor, VisitedPage};

/// Returns the attempts at a task of the map, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
    Some(match task.template.as_str() {
        "map.phone" => phone(task),
        "map.address" => address(task),
        "map.coordinates" => coordinates(task),
        "map.distance" => distance(task),
        "map.duration" => duration(task),
        "map.nearest" => nearest(task),
        "map.sooner" => sooner(task),
        "map.search" => search(task),
        "map.open-place" => open_place(task),
        "map.directions" => directions(task),
        "map.unachievable" => unachievable(),
        _ => return None,
    })
}

/// A means of travel: the names of its engine and of its server on the page.
#[derive(Clone, Copy)]
pub struct Means(&'static str, &'static str);

pub const CAR: Means = Means("fossgis_osrm_car", "routed-car");
pub const BICYCLE: Means = Means("fossgis_osrm_bicycle", "routed-bike");
pub const FOOT: Means = Means("fossgis_osrm_foot", "routed-foot");

fn means(name: &str) -> Means {
    match name {
        "by car" => CAR,
        "by bicycle" => BICYCLE,
        "on foot" => FOOT,
        _ => panic!("no means {name:?}"),
    }
}

/// Returns the first result of a search on the map.
pub async fn find(visitor: &TaskVisitor, query: &str) -> Value {
    let fields = [("q", query), ("format", "jsonv2"), ("limit", "1"), ("addressdetails", "1"), ("extratags", "1")];
    let url = Url::parse_with_params("http://map/nominatim/search", fields).expect("a URL");
    let mut found = visitor.json(&format!("{}?{}", url.path(), url.query().expect("a query"))).await;
    assert!(found[0].is_object(), "{query} is found");
    found[0].take()
}

fn position(place: &Value) -> (f64, f64) {
    let number = |key: &str| place[key].as_str().expect("a coordinate").parse().expect("a number");
    (number("lat"), number("lon"))
}

/// Returns the length in metres and the duration in seconds of the route between two places, both found by their names.
pub async fn route(visitor: &TaskVisitor, means: Means, from: &str, to: &str) -> (f64, f64) {
    let (from, to) = (position(&find(visitor, from).await), position(&find(visitor, to).await));
    let points = format!("{},{};{},{}", from.1, from.0, to.1, to.0);
    let answer = visitor.json(&format!("/osrm/{}/route/v1/driving/{points}?overview=false", means.1)).await;
    let number = |key: &str| answer["routes"][0][key].as_f64().expect("a number");
    (number("distance"), number("duration"))
}

/// Formats a distance in kilometres as the page does.
pub fn kilometres(metres: f64) -> String {
    if metres < 10_000.0 { format!("{:.1}", metres / 1000.0) } else { format!("{:.0}", metres / 1000.0) }
}

async fn detail(stage: AgentStage, place: &'static str, key: &'static str) -> String {
    let found = find(&stage.traveller(), place).await;
    found["extratags"][key].as_str().unwrap_or_else(|| panic!("{place} has no {key}")).to_owned()
}

fn phone(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let place = String::leak(format!("{}, {}", task.text("name"), task.text("town")));
    let other = task.own(["Coach House, Ashby Cross", "Window Seat, Saltmarsh"]);
    let place: &'static str = place;
    vec![
        AgentAttempt::oracle(move |stage| detail(stage, place, "phone")),
        AgentAttempt::miss("of its namesake elsewhere", move |stage| detail(stage, other, "phone")),
        AgentAttempt::miss("when it is open", move |stage| detail(stage, place, "opening_hours")),
        AgentAttempt::answers("a digit short", &task.text("phone")[..task.text("phone").len() - 1]),
        AgentAttempt::answers("two numbers to choose from", format!("{} or 555-1000", task.text("phone"))),
    ]
}

fn address(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (place, other) = task.own([
        ("White Hart, Kestrel Bay", "White Hart, Saltmarsh"),
        ("Ashby Cross Museum of Farming", "Lowmere Museum of Fishing"),
    ]);
    let line = |stage: AgentStage, place: &'static str| async move {
        let found = find(&stage.traveller(), place).await;
        let part = |key: &str| found["address"][key].as_str().expect("a part of an address").to_owned();
        format!("{} {}", part("house_number"), part("road"))
    };
    let right = task.text("line");
    vec![
        AgentAttempt::oracle(move |stage| line(stage, place)),
        AgentAttempt::miss("another place's", move |stage| line(stage, other)),
        AgentAttempt::answers("the street alone", right.split_once(' ').expect("number and street").1),
        AgentAttempt::answers("the house beside it", format!("1{right}")),
    ]
}

fn coordinates(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (place, other) = (task.text("place"), "Saltmarsh Museum of Salt");
    let at = |stage: AgentStage, place: &'static str, turn: bool| async move {
        let (lat, lon) = position(&find(&stage.traveller(), place).await);
        if turn { format!("{lon:.5}, {lat:.5}") } else { format!("{lat:.5}, {lon:.5}") }
    };
    vec![
        AgentAttempt::oracle(move |stage| at(stage, place, false)),
        AgentAttempt::miss("another place's", move |stage| at(stage, other, false)),
        AgentAttempt::miss("the other way round", move |stage| at(stage, place, true)),
        AgentAttempt::miss("the latitude alone", async move |stage| {
            at(stage, place, false).await.split(',').next().unwrap_or_default().to_owned()
        }),
        AgentAttempt::miss("of the wrong side of the meridian", async move |stage| {
            at(stage, place, false).await.replace('-', "")
        }),
    ]
}

fn distance(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (from, to) = (task.text("from"), task.text("to"));
    let far = move |stage: AgentStage, means: Means, to: &'static str| async move {
        kilometres(route(&stage.traveller(), means, from, to).await.0)
    };
    let right = task.number("kilometres");
    vec![
        AgentAttempt::oracle(move |stage| far(stage, means(task.text("means")), to)),
        AgentAttempt::miss("to another place", move |stage| {
            far(stage, means(task.text("means")), "Saltmarsh Museum of Salt")
        }),
        AgentAttempt::answers("in metres", format!("{}", right * 1000.0)),
        AgentAttempt::answers("a tenth more", format!("{:.1}", right * 1.1)),
        AgentAttempt::answers("two distances to choose from", format!("{right} or {}", right + 2.0)),
    ]
}

fn duration(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (from, to) = (task.text("from"), task.text("to"));
    let long = move |stage: AgentStage, means: Means| async move {
        format!("{:.0}", route(&stage.traveller(), means, from, to).await.1 / 60.0)
    };
    let (by, right) = (task.text("means"), task.number("minutes"));
    let mut attempts = vec![
        AgentAttempt::oracle(move |stage| long(stage, means(by))),
        AgentAttempt::miss("by other means", move |stage| long(stage, if by == "by car" { FOOT } else { CAR })),
        AgentAttempt::answers("in hours", format!("{:.2}", right / 60.0)),
        AgentAttempt::answers("two minutes more", (right + 2.0).to_string()),
    ];
    attempts.push(AgentAttempt::answers("two times to choose from", format!("{right} or {}", right + 10.0)));
    attempts
}

fn nearest(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let from = task.text("from");
    let places: Vec<&str> = task.text("listed").split(", ").collect();
    let places: &'static [&'static str] = Vec::leak(places);
    let ranked = move |stage: AgentStage, place: usize| async move {
        let visitor = stage.traveller();
        let mut ranked = Vec::new();
        for name in places {
            let (metres, _) = route(&visitor, FOOT, from, &format!("{name}, {}", task.text("town"))).await;
            ranked.push((metres, (*name).to_owned()));
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked.remove(place).1
    };
    vec![
        AgentAttempt::oracle(move |stage| ranked(stage, 0)),
        AgentAttempt::miss("the second", move |stage| ranked(stage, 1)),
        AgentAttempt::miss("the farthest", move |stage| ranked(stage, places.len() - 1)),
        AgentAttempt::answers("all of them", task.text("listed")),
    ]
}

fn sooner(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (from, by) = (task.text("from"), task.text("means"));
    let (first, second) = (task.text("first"), task.text("second"));
    let compared = move |stage: AgentStage, later: bool| async move {
        let visitor = stage.traveller();
        let (_, one) = route(&visitor, means(by), from, first).await;
        let (_, two) = route(&visitor, means(by), from, second).await;
        if (one < two) ^ later { first.to_owned() } else { second.to_owned() }
    };
    vec![
        AgentAttempt::oracle(move |stage| compared(stage, false)),
        AgentAttempt::miss("the later one", move |stage| compared(stage, true)),
        AgentAttempt::answers("both", format!("{first} or {second}")),
        AgentAttempt::answers("where one starts", from),
    ]
}

/// Returns the page with the results of a search.
async fn search_for(visitor: &TaskVisitor, words: &str) -> VisitedPage {
    let url = Url::parse_with_params("http://map/search", [("query", words)]).expect("a URL");
    visitor.open(&format!("/search?{}", url.query().expect("a query"))).await
}

fn search(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let words = task.text("words");
    let look = |stage: AgentStage, words: String| async move { search_for(&stage.traveller(), &words).await };
    vec![
        AgentAttempt::oracle(move |stage| look(stage, words.to_owned())),
        AgentAttempt::miss("not all words", move |stage| {
            look(stage, words.split(' ').next().unwrap_or_default().to_owned())
        }),
        AgentAttempt::miss("in another town", move |stage| {
            look(stage, words.replace(task.own(["Stonebridge", "Brambleford"]), "Lowmere"))
        }),
        AgentAttempt::miss("the map alone", async |stage: AgentStage| stage.traveller().open("/").await),
    ]
}

fn open_place(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (place, other) = (task.text("place"), "Saltmarsh Museum of Salt");
    let open = |stage: AgentStage, place: &'static str| async move {
        let found = find(&stage.traveller(), place).await;
        let kind = found["osm_type"].as_str().expect("a kind").to_owned();
        stage.traveller().open(&format!("/{kind}/{}", found["osm_id"])).await
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, place)),
        AgentAttempt::miss("another place", move |stage| open(stage, other)),
        AgentAttempt::miss("a search for it", async move |stage: AgentStage| {
            search_for(&stage.traveller(), place).await
        }),
        AgentAttempt::miss("the map alone", async |stage: AgentStage| stage.traveller().open("/").await),
    ]
}

fn directions(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (from, to) = (task.text("from"), task.text("to"));
    // The page replaces the words in its address by the coordinates of the places that it found.
    let show = |stage: AgentStage, means: Means, from: &'static str, to: &'static str| async move {
        let visitor = stage.traveller();
        let (a, b) = (position(&find(&visitor, from).await), position(&find(&visitor, to).await));
        let route = format!("{:.5},{:.5};{:.5},{:.5}", a.0, a.1, b.0, b.1);
        let url =
            Url::parse_with_params("http://map/directions", [("engine", means.0), ("route", &route)]).expect("a URL");
        visitor.open(&format!("/directions?{}", url.query().expect("a query"))).await
    };
    let by = means(task.text("means"));
    let other = if task.text("means") == "by car" { FOOT } else { CAR };
    vec![
        AgentAttempt::oracle(move |stage| show(stage, by, from, to)),
        AgentAttempt::miss("by other means", move |stage| show(stage, other, from, to)),
        AgentAttempt::miss("the way back", move |stage| show(stage, by, to, from)),
        AgentAttempt::miss("to another place", move |stage| show(stage, by, from, "Saltmarsh Museum of Salt")),
        AgentAttempt::miss("a search for the end", async move |stage: AgentStage| {
            search_for(&stage.traveller(), to).await
        }),
    ]
}
