//! Oracles and near misses of `across.yaml`, one function for each template. These tasks use on one site a fact that
//! the agent has read on another.

use super::attempt::AgentAttempt;
use super::board;
use super::crowd;
use super::files::TemplateTask;
use super::forge;
use super::homepage::write_note;
use super::map::{self, CAR, FOOT, kilometres};
use super::shop::{self, cents, dollars};
use super::shopping::unachievable;
use super::stage::AgentStage;
use super::visitor::PageForm;

/// A member of the forum and developer of the forge that no task mentions.
const OTHER: &str = "elopez55";

/// Returns the attempts at a task that spans sites, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
    Some(match task.template.as_str() {
        "across.price-thread" => price_thread(task),
        "across.order-asked-about" => order_asked_about(task),
        "across.issue-note" => issue_note(task),
        "across.distance-note" => distance_note(task),
        "across.orders-note" => orders_note(task),
        "across.museum-reply" => museum_reply(task),
        "across.hotel-issue" => hotel_issue(task),
        "across.release-thread" => release_thread(task),
        "across.museum-walk" => museum_walk(task),
        "across.museum-place" => museum_place(task),
        "across.project-page" => project_page(task),
        "across.museum-check" => museum_check(task),
        "across.unachievable" => unachievable(),
        _ => return None,
    })
}

/// Returns the value beside a heading in the info box of an article.
async fn fact(stage: &AgentStage, title: &str, heading: &str) -> String {
    let path = format!("/arena_en_all/A/{}.html", title.replace(' ', "_"));
    stage.reader().open(&path).await.beside(heading)
}

fn price_thread(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (product, forum, title) = (task.text("product"), task.text("forum"), task.text("title"));
    let other = task.own([
        "Harrow Ironworks Ironbark Non-Stick Saucepan, Slate Grey",
        "Elsing Audio Skylark Wireless Headphones, Ivory",
    ]);
    let price = |stage: AgentStage, product: &'static str| async move {
        shop::search_product(&stage.customer(), product).await.texts(".product_main .price_color").remove(0)
    };
    let post = move |stage: AgentStage, forum: &'static str, text: String| async move {
        board::start(&stage.member(), forum, title, &text).await;
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let text = price(stage.clone(), product).await;
            post(stage, forum, text).await;
        }),
        AgentAttempt::miss("another product's price", async move |stage: AgentStage| {
            let text = price(stage.clone(), other).await;
            post(stage, forum, text).await;
        }),
        AgentAttempt::miss("in another forum", async move |stage: AgentStage| {
            let text = price(stage.clone(), product).await;
            post(stage, "larkmoor", text).await;
        }),
        AgentAttempt::miss("as another member", async move |stage: AgentStage| {
            let text = price(stage.clone(), product).await;
            board::start(&stage.other_member(OTHER).await, forum, title, &text).await;
        }),
        AgentAttempt::miss("two prices to choose from", async move |stage: AgentStage| {
            let text = format!("{} or $1.00", price(stage.clone(), product).await);
            post(stage, forum, text).await;
        }),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            let text = price(stage.clone(), product).await;
            post(stage.clone(), forum, text.clone()).await;
            post(stage, forum, text).await;
        }),
    ]
}

fn order_asked_about(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let category = task.own(["Bedding", "Headphones"]);
    // UPCs and prices of the products whose titles begin with these words, cheapest first.
    let products = move |stage: AgentStage, words: &'static str| async move {
        let visitor = stage.customer();
        let mut found = Vec::new();
        for (title, link, price) in shop::products_in(&visitor, category).await {
            if title.starts_with(words) {
                let number: u32 =
                    link.trim_end_matches('/').rsplit('_').next().expect("a number").parse().expect("a number");
                found.push((cents(&price), format!("OSM{number:05}")));
            }
        }
        found.sort();
        found
    };
    let line = task.own(["Dunmore Wool Nightmoor ", "Elsing Audio Skylark "]);
    let order = move |stage: AgentStage, words: &'static str, place: usize, quantity: u32| async move {
        let upc = products(stage.clone(), words).await.remove(place).1;
        shop::order(stage.customer(), String::leak(upc), quantity, None).await;
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            board::thread(&stage.member(), task.text("forum"), task.text("title")).await;
            order(stage, line, 0, 1).await;
        }),
        AgentAttempt::miss("the second cheapest", move |stage| order(stage, line, 1, 1)),
        AgentAttempt::miss("two of it", move |stage| order(stage, line, 0, 2)),
        AgentAttempt::miss("another product", move |stage: AgentStage| {
            shop::order(stage.customer(), "OSM00088", 1, None)
        }),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            let upc = products(stage.clone(), line).await.remove(0).1;
            let home = shop::DeliveryAddress {
                first: "Emma",
                last: "Lopez",
                line: "106 Chandler Lane",
                town: "Kestrel Bay",
                postcode: "00149",
            };
            shop::order(stage.stranger().await, String::leak(upc), 1, Some(home)).await;
        }),
        AgentAttempt::miss("in the basket, not ordered", async move |stage: AgentStage| {
            let upc = products(stage.clone(), line).await.remove(0).1;
            shop::put_in_basket(&stage.customer(), &upc, 1).await;
        }),
    ]
}

fn issue_note(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, label, note) = (task.text("project"), task.text("label"), task.text("note"));
    let title = move |stage: AgentStage, place: usize| async move {
        let answer =
            stage.developer().json(&format!("/api/0/{project}/issues?status=Open&tags={label}&per_page=100")).await;
        let mut issues = answer["issues"].as_array().expect("issues").clone();
        issues.sort_by_key(|issue| std::cmp::Reverse(issue["id"].as_u64()));
        issues[place]["title"].as_str().expect("a title").to_owned()
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            write_note(&stage, note, &title(stage.clone(), 0).await).await
        }),
        AgentAttempt::miss("the one before", async move |stage: AgentStage| {
            write_note(&stage, note, &title(stage.clone(), 1).await).await
        }),
        AgentAttempt::miss("under another title", async move |stage: AgentStage| {
            write_note(&stage, "Issue", &title(stage.clone(), 0).await).await;
        }),
        AgentAttempt::miss("both", async move |stage: AgentStage| {
            let text = format!("{}\n{}", title(stage.clone(), 0).await, title(stage.clone(), 1).await);
            write_note(&stage, note, &text).await;
        }),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            write_note(&stage, note, &title(stage.clone(), 0).await).await;
            write_note(&stage, note, &title(stage.clone(), 0).await).await;
        }),
    ]
}

fn distance_note(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (from, to, note) = (task.text("from"), task.text("to"), task.text("note"));
    let far = move |stage: AgentStage, means: map::Means, to: &'static str| async move {
        kilometres(map::route(&stage.traveller(), means, from, to).await.0)
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            write_note(&stage, note, &far(stage.clone(), CAR, to).await).await
        }),
        AgentAttempt::miss("to another place", async move |stage: AgentStage| {
            write_note(&stage, note, &far(stage.clone(), CAR, "Saltmarsh Museum of Salt").await).await;
        }),
        AgentAttempt::miss("under another title", async move |stage: AgentStage| {
            write_note(&stage, "Distance", &far(stage.clone(), CAR, to).await).await;
        }),
        AgentAttempt::miss("a few kilometres more", async move |stage: AgentStage| {
            let far: f64 = far(stage.clone(), CAR, to).await.parse().expect("a number");
            write_note(&stage, note, &format!("{:.1}", far + 3.0)).await;
        }),
        AgentAttempt::miss("as an answer alone", move |stage| far(stage, CAR, to)),
    ]
}

fn orders_note(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let note = task.text("note");
    let sum = move |stage: AgentStage, numbers: Vec<&'static str>| async move {
        let orders = shop::orders(&stage.customer()).await.into_iter();
        dollars(orders.filter(|order| numbers.contains(&order.number.as_str())).map(|order| cents(&order.total)).sum())
    };
    let (first, second) = (task.text("first"), task.text("second"));
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            write_note(&stage, note, &sum(stage.clone(), vec![first, second]).await).await
        }),
        AgentAttempt::miss("one of both", async move |stage: AgentStage| {
            write_note(&stage, note, &sum(stage.clone(), vec![first]).await).await
        }),
        AgentAttempt::miss("with a third one", async move |stage: AgentStage| {
            write_note(&stage, note, &sum(stage.clone(), vec![first, second, task.own(["100284", "100158"])]).await)
                .await;
        }),
        AgentAttempt::miss("both amounts", async move |stage: AgentStage| {
            let text =
                format!("{} + {}", sum(stage.clone(), vec![first]).await, sum(stage.clone(), vec![second]).await);
            write_note(&stage, note, &text).await;
        }),
        AgentAttempt::miss("as the title", async move |stage: AgentStage| {
            write_note(&stage, &sum(stage.clone(), vec![first, second]).await, note).await;
        }),
    ]
}

fn museum_reply(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (museum, title) = (task.text("museum"), task.text("title"));
    let sentence = |year: String| format!("It has been open since {year}.");
    let say = move |stage: AgentStage, title: &'static str, text: String| async move {
        let visitor = stage.member();
        let thread = board::thread(&visitor, "museums", title).await;
        board::reply(&visitor, thread.id, &text).await;
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let year = fact(&stage, museum, "Opened").await;
            say(stage, title, sentence(year)).await;
        }),
        AgentAttempt::miss("another museum's", async move |stage: AgentStage| {
            let year = fact(&stage, "Lowmere Museum of Fishing", "Opened").await;
            say(stage, title, sentence(year)).await;
        }),
        AgentAttempt::miss("in another thread", async move |stage: AgentStage| {
            let year = fact(&stage, museum, "Opened").await;
            let threads = board::threads(&stage.member(), "museums").await.into_iter();
            let other =
                threads.filter(|thread| !thread.is_closed && thread.title != title).nth(4).expect("another thread");
            board::reply(&stage.member(), other.id, &sentence(year)).await;
        }),
        AgentAttempt::miss("as another member", async move |stage: AgentStage| {
            let year = fact(&stage, museum, "Opened").await;
            let visitor = stage.other_member(OTHER).await;
            let thread = board::thread(&visitor, "museums", title).await;
            board::reply(&visitor, thread.id, &sentence(year)).await;
        }),
        AgentAttempt::miss("two years to choose from", async move |stage: AgentStage| {
            let year = fact(&stage, museum, "Opened").await;
            say(stage, title, sentence(format!("{year} or 1900"))).await;
        }),
    ]
}

fn hotel_issue(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, title) = (task.text("project"), task.text("title"));
    let hotel: &'static str = String::leak(format!("{}, {}", task.text("name"), task.text("town")));
    let other = task.own(["Larkmoor Arms, Fernhollow", "Station Hotel, Upper Dunmore"]);
    let number = |stage: AgentStage, place: &'static str| async move {
        let found = map::find(&stage.traveller(), place).await;
        found["extratags"]["phone"].as_str().expect("a number").to_owned()
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let text = number(stage.clone(), hotel).await;
            forge::open_issue(&stage.developer(), project, title, &text).await;
        }),
        AgentAttempt::miss("another hotel's", async move |stage: AgentStage| {
            let text = number(stage.clone(), other).await;
            forge::open_issue(&stage.developer(), project, title, &text).await;
        }),
        AgentAttempt::miss("in another project", async move |stage: AgentStage| {
            let text = number(stage.clone(), hotel).await;
            forge::open_issue(&stage.developer(), "byteblaze/tidegauge", title, &text).await;
        }),
        AgentAttempt::miss("as another developer", async move |stage: AgentStage| {
            let text = number(stage.clone(), hotel).await;
            forge::open_issue(&stage.other_developer(OTHER).await, project, title, &text).await;
        }),
        AgentAttempt::miss("the name alone", async move |stage: AgentStage| {
            forge::open_issue(&stage.developer(), project, title, hotel).await;
        }),
    ]
}

fn release_thread(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, name) = (task.text("project"), task.text("name"));
    // The version number of the release at this place in the list of all releases, latest first.
    let version = move |stage: AgentStage, place: usize| async move {
        let answer = stage.developer().json(&format!("/api/0/{project}/git/tags")).await;
        let tags = answer["tags"].as_array().expect("tags").iter().map(|tag| tag.as_str().expect("a tag"));
        let parts = |tag: &str| -> Vec<u32> {
            tag.trim_start_matches('v').split('.').map(|part| part.parse().expect("a number")).collect()
        };
        let mut versions: Vec<_> = tags.map(|tag| (parts(tag), tag.trim_start_matches('v').to_owned())).collect();
        versions.sort();
        versions.reverse();
        versions.remove(place).1
    };
    let post = move |stage: AgentStage, forum: &'static str, version: String| async move {
        board::start(&stage.member(), forum, &format!("{name} {version} for everybody"), task.text("text")).await;
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let version = version(stage.clone(), 0).await;
            post(stage, "programming", version).await;
        }),
        AgentAttempt::miss("the release before", async move |stage: AgentStage| {
            let version = version(stage.clone(), 1).await;
            post(stage, "programming", version).await;
        }),
        AgentAttempt::miss("in another forum", async move |stage: AgentStage| {
            let version = version(stage.clone(), 0).await;
            post(stage, "technology", version).await;
        }),
        AgentAttempt::miss("without a number", move |stage| post(stage, "programming", "X".to_owned())),
        AgentAttempt::miss("two threads", async move |stage: AgentStage| {
            let version = version(stage.clone(), 0).await;
            post(stage.clone(), "programming", version.clone()).await;
            post(stage, "programming", version).await;
        }),
    ]
}

fn museum_walk(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (town, day) = (task.text("town"), task.text("day"));
    let walk = move |stage: AgentStage, closed: bool, means: map::Means| async move {
        let station = format!("{town} Railway Station");
        for museum in ["Harrowgate Mills Museum of Weaving", "Harrowgate Mills Museum of Toys"] {
            if (fact(&stage, museum, "Closed on").await == day) == closed {
                return kilometres(map::route(&stage.traveller(), means, &station, museum).await.0);
            }
        }
        panic!("no museum")
    };
    vec![
        AgentAttempt::oracle(move |stage| walk(stage, true, FOOT)),
        AgentAttempt::miss("to the other museum", move |stage| walk(stage, false, FOOT)),
        AgentAttempt::answers("half a kilometre more", format!("{:.1}", task.number("kilometres") + 0.5)),
        AgentAttempt::answers("two distances to choose from", format!("{} or 7", task.number("kilometres"))),
    ]
}

fn museum_place(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let year = task.number("year").to_string();
    let year: &'static str = String::leak(year);
    let museums = task.own([
        ["Harrowgate Mills Museum of Toys", "Harrowgate Mills Museum of Weaving"],
        ["Upper Dunmore Museum of Astronomy", "Kestrel Bay Museum of Lighthouses"],
    ]);
    let open = move |stage: AgentStage, opened: bool| async move {
        for museum in museums {
            if (fact(&stage, museum, "Opened").await == year) == opened {
                let found = map::find(&stage.traveller(), museum).await;
                let kind = found["osm_type"].as_str().expect("a kind").to_owned();
                return stage.traveller().open(&format!("/{kind}/{}", found["osm_id"])).await;
            }
        }
        panic!("no museum")
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, true)),
        AgentAttempt::miss("another museum", move |stage| open(stage, false)),
        AgentAttempt::miss("the article", async move |stage: AgentStage| {
            let path = format!("/arena_en_all/A/{}.html", museums[0].replace(' ', "_"));
            stage.reader().open(&path).await
        }),
        AgentAttempt::miss("the map alone", async |stage: AgentStage| stage.traveller().open("/").await),
    ]
}

fn project_page(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (company, language) = (task.text("company"), task.text("language"));
    let projects = ["quarry", "orchardist", "switchyard", "ferryboard"];
    let open = move |stage: AgentStage| async move {
        for name in projects {
            let article = format!("{name} (software)");
            let (of, written) = (fact(&stage, &article, "Developer").await, fact(&stage, &article, "Written in").await);
            if of == company && written == language {
                return stage.developer().open(&format!("/{}/{name}", task.text("owner"))).await;
            }
        }
        panic!("no project")
    };
    vec![
        AgentAttempt::oracle(open),
        AgentAttempt::miss("another project", async |stage: AgentStage| {
            stage.developer().open("/byteblaze/tidegauge").await
        }),
        AgentAttempt::miss("the list of projects", async |stage: AgentStage| {
            stage.developer().open("/browse/projects/").await
        }),
        AgentAttempt::miss("the article", async move |stage: AgentStage| {
            let path = format!("/arena_en_all/A/{}_(software).html", projects[1]);
            stage.reader().open(&path).await
        }),
    ]
}

fn museum_check(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let museum = task.text("museum");
    let wrong: &'static [&'static str] = task.own([&["objects"], &[], &["opened"]]);
    let right_facts: &'static str = String::leak((5 - wrong.len()).to_string());
    let fill = move |form: PageForm, opened: String| {
        let form = form.set("correct", if wrong.is_empty() { "yes" } else { "no" }).set("right_facts", right_facts);
        let form =
            form.set("opened", &opened).set("town", task.text("town")).set("corrections", task.text("corrections"));
        wrong.iter().fold(form, |form, fact| form.tick("wrong", fact))
    };
    let send = move |stage: AgentStage, museum: &'static str, other: bool, change: fn(PageForm) -> PageForm| async move {
        let opened = fact(&stage, task.text("museum"), "Opened").await;
        let visitor = if other { stage.other_worker() } else { stage.worker() };
        let (number, _) = crowd::museum_task(&visitor, museum).await;
        let form = fill(crowd::accept(&visitor, number).await, opened);
        crowd::submit(&visitor, change(form)).await;
    };
    let as_it_is: fn(PageForm) -> PageForm = |form| form;
    vec![
        AgentAttempt::oracle(move |stage| send(stage, museum, false, as_it_is)),
        AgentAttempt::miss("into another museum's task", move |stage| {
            send(stage, "Upper Dunmore Museum of Astronomy", false, as_it_is)
        }),
        AgentAttempt::miss("as another worker", move |stage| send(stage, museum, true, as_it_is)),
        AgentAttempt::miss("with a wrong fact more", move |stage| {
            send(stage, museum, false, |form| form.tick("wrong", "address"))
        }),
        AgentAttempt::miss("with another year", move |stage| {
            send(stage, museum, false, |form| form.set("opened", "1900"))
        }),
        AgentAttempt::miss("with the other answer", move |stage| {
            send(stage, museum, false, |form| {
                let other = if form.value("correct") == "yes" { "no" } else { "yes" };
                form.set("correct", other)
            })
        }),
        AgentAttempt::miss("accepted, not sent", async move |stage: AgentStage| {
            let (number, _) = crowd::museum_task(&stage.worker(), museum).await;
            crowd::accept(&stage.worker(), number).await;
        }),
    ]
}
