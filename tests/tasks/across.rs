//! Oracles and near misses of `across.yaml`, one function for each template. These tasks use on one site a fact that
//! the agent has read on another.

use crate::attempt::Attempt;
use crate::board;
use crate::crowd;
use crate::files::Task;
use crate::forge;
use crate::homepage::write_note;
use crate::map::{self, CAR, FOOT, kilometres};
use crate::shop::{self, cents, dollars};
use crate::shopping::unachievable;
use crate::stage::Stage;
use crate::visitor::Form;

/// A member of the forum and developer of the forge that no task mentions.
const OTHER: &str = "elopez55";

/// Returns the attempts at a task that spans sites, or `None` if its template is unknown here.
pub fn attempts(task: &'static Task) -> Option<Vec<Attempt>> {
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
async fn fact(stage: &Stage, title: &str, heading: &str) -> String {
    let path = format!("/arena_en_all/A/{}.html", title.replace(' ', "_"));
    stage.reader().open(&path).await.beside(heading)
}

fn price_thread(task: &'static Task) -> Vec<Attempt> {
    let (product, forum, title) = (task.text("product"), task.text("forum"), task.text("title"));
    let other = task.own([
        "Harrow Ironworks Ironbark Non-Stick Saucepan, Slate Grey",
        "Elsing Audio Skylark Wireless Headphones, Ivory",
    ]);
    let price = |stage: Stage, product: &'static str| async move {
        shop::search_product(&stage.customer(), product).await.texts(".product_main .price_color").remove(0)
    };
    let post = move |stage: Stage, forum: &'static str, text: String| async move {
        board::start(&stage.member(), forum, title, &text).await;
    };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let text = price(stage.clone(), product).await;
            post(stage, forum, text).await;
        }),
        Attempt::miss("another product's price", async move |stage: Stage| {
            let text = price(stage.clone(), other).await;
            post(stage, forum, text).await;
        }),
        Attempt::miss("in another forum", async move |stage: Stage| {
            let text = price(stage.clone(), product).await;
            post(stage, "larkmoor", text).await;
        }),
        Attempt::miss("as another member", async move |stage: Stage| {
            let text = price(stage.clone(), product).await;
            board::start(&stage.other_member(OTHER).await, forum, title, &text).await;
        }),
        Attempt::miss("two prices to choose from", async move |stage: Stage| {
            let text = format!("{} or $1.00", price(stage.clone(), product).await);
            post(stage, forum, text).await;
        }),
        Attempt::miss("twice", async move |stage: Stage| {
            let text = price(stage.clone(), product).await;
            post(stage.clone(), forum, text.clone()).await;
            post(stage, forum, text).await;
        }),
    ]
}

fn order_asked_about(task: &'static Task) -> Vec<Attempt> {
    let category = task.own(["Bedding", "Headphones"]);
    // UPCs and prices of the products whose titles begin with these words, cheapest first.
    let products = move |stage: Stage, words: &'static str| async move {
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
    let order = move |stage: Stage, words: &'static str, place: usize, quantity: u32| async move {
        let upc = products(stage.clone(), words).await.remove(place).1;
        shop::order(stage.customer(), String::leak(upc), quantity, None).await;
    };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            board::thread(&stage.member(), task.text("forum"), task.text("title")).await;
            order(stage, line, 0, 1).await;
        }),
        Attempt::miss("the second cheapest", move |stage| order(stage, line, 1, 1)),
        Attempt::miss("two of it", move |stage| order(stage, line, 0, 2)),
        Attempt::miss("another product", move |stage: Stage| shop::order(stage.customer(), "OSM00088", 1, None)),
        Attempt::miss("as another customer", async move |stage: Stage| {
            let upc = products(stage.clone(), line).await.remove(0).1;
            let home = shop::Address {
                first: "Emma",
                last: "Lopez",
                line: "106 Chandler Lane",
                town: "Kestrel Bay",
                postcode: "00149",
            };
            shop::order(stage.stranger().await, String::leak(upc), 1, Some(home)).await;
        }),
        Attempt::miss("in the basket, not ordered", async move |stage: Stage| {
            let upc = products(stage.clone(), line).await.remove(0).1;
            shop::put_in_basket(&stage.customer(), &upc, 1).await;
        }),
    ]
}

fn issue_note(task: &'static Task) -> Vec<Attempt> {
    let (project, label, note) = (task.text("project"), task.text("label"), task.text("note"));
    let title = move |stage: Stage, place: usize| async move {
        let answer =
            stage.developer().json(&format!("/api/0/{project}/issues?status=Open&tags={label}&per_page=100")).await;
        let mut issues = answer["issues"].as_array().expect("issues").clone();
        issues.sort_by_key(|issue| std::cmp::Reverse(issue["id"].as_u64()));
        issues[place]["title"].as_str().expect("a title").to_owned()
    };
    vec![
        Attempt::oracle(async move |stage: Stage| write_note(&stage, note, &title(stage.clone(), 0).await).await),
        Attempt::miss("the one before", async move |stage: Stage| {
            write_note(&stage, note, &title(stage.clone(), 1).await).await
        }),
        Attempt::miss("under another title", async move |stage: Stage| {
            write_note(&stage, "Issue", &title(stage.clone(), 0).await).await;
        }),
        Attempt::miss("both", async move |stage: Stage| {
            let text = format!("{}\n{}", title(stage.clone(), 0).await, title(stage.clone(), 1).await);
            write_note(&stage, note, &text).await;
        }),
        Attempt::miss("twice", async move |stage: Stage| {
            write_note(&stage, note, &title(stage.clone(), 0).await).await;
            write_note(&stage, note, &title(stage.clone(), 0).await).await;
        }),
    ]
}

fn distance_note(task: &'static Task) -> Vec<Attempt> {
    let (from, to, note) = (task.text("from"), task.text("to"), task.text("note"));
    let far = move |stage: Stage, means: map::Means, to: &'static str| async move {
        kilometres(map::route(&stage.traveller(), means, from, to).await.0)
    };
    vec![
        Attempt::oracle(async move |stage: Stage| write_note(&stage, note, &far(stage.clone(), CAR, to).await).await),
        Attempt::miss("to another place", async move |stage: Stage| {
            write_note(&stage, note, &far(stage.clone(), CAR, "Saltmarsh Museum of Salt").await).await;
        }),
        Attempt::miss("under another title", async move |stage: Stage| {
            write_note(&stage, "Distance", &far(stage.clone(), CAR, to).await).await;
        }),
        Attempt::miss("a few kilometres more", async move |stage: Stage| {
            let far: f64 = far(stage.clone(), CAR, to).await.parse().expect("a number");
            write_note(&stage, note, &format!("{:.1}", far + 3.0)).await;
        }),
        Attempt::miss("as an answer alone", move |stage| far(stage, CAR, to)),
    ]
}

fn orders_note(task: &'static Task) -> Vec<Attempt> {
    let note = task.text("note");
    let sum = move |stage: Stage, numbers: Vec<&'static str>| async move {
        let orders = shop::orders(&stage.customer()).await.into_iter();
        dollars(orders.filter(|order| numbers.contains(&order.number.as_str())).map(|order| cents(&order.total)).sum())
    };
    let (first, second) = (task.text("first"), task.text("second"));
    vec![
        Attempt::oracle(async move |stage: Stage| {
            write_note(&stage, note, &sum(stage.clone(), vec![first, second]).await).await
        }),
        Attempt::miss("one of both", async move |stage: Stage| {
            write_note(&stage, note, &sum(stage.clone(), vec![first]).await).await
        }),
        Attempt::miss("with a third one", async move |stage: Stage| {
            write_note(&stage, note, &sum(stage.clone(), vec![first, second, task.own(["100284", "100158"])]).await)
                .await;
        }),
        Attempt::miss("both amounts", async move |stage: Stage| {
            let text =
                format!("{} + {}", sum(stage.clone(), vec![first]).await, sum(stage.clone(), vec![second]).await);
            write_note(&stage, note, &text).await;
        }),
        Attempt::miss("as the title", async move |stage: Stage| {
            write_note(&stage, &sum(stage.clone(), vec![first, second]).await, note).await;
        }),
    ]
}

fn museum_reply(task: &'static Task) -> Vec<Attempt> {
    let (museum, title) = (task.text("museum"), task.text("title"));
    let sentence = |year: String| format!("It has been open since {year}.");
    let say = move |stage: Stage, title: &'static str, text: String| async move {
        let visitor = stage.member();
        let thread = board::thread(&visitor, "museums", title).await;
        board::reply(&visitor, thread.id, &text).await;
    };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let year = fact(&stage, museum, "Opened").await;
            say(stage, title, sentence(year)).await;
        }),
        Attempt::miss("another museum's", async move |stage: Stage| {
            let year = fact(&stage, "Lowmere Museum of Fishing", "Opened").await;
            say(stage, title, sentence(year)).await;
        }),
        Attempt::miss("in another thread", async move |stage: Stage| {
            let year = fact(&stage, museum, "Opened").await;
            let threads = board::threads(&stage.member(), "museums").await.into_iter();
            let other =
                threads.filter(|thread| !thread.is_closed && thread.title != title).nth(4).expect("another thread");
            board::reply(&stage.member(), other.id, &sentence(year)).await;
        }),
        Attempt::miss("as another member", async move |stage: Stage| {
            let year = fact(&stage, museum, "Opened").await;
            let visitor = stage.other_member(OTHER).await;
            let thread = board::thread(&visitor, "museums", title).await;
            board::reply(&visitor, thread.id, &sentence(year)).await;
        }),
        Attempt::miss("two years to choose from", async move |stage: Stage| {
            let year = fact(&stage, museum, "Opened").await;
            say(stage, title, sentence(format!("{year} or 1900"))).await;
        }),
    ]
}

fn hotel_issue(task: &'static Task) -> Vec<Attempt> {
    let (project, title) = (task.text("project"), task.text("title"));
    let hotel: &'static str = String::leak(format!("{}, {}", task.text("name"), task.text("town")));
    let other = task.own(["Larkmoor Arms, Fernhollow", "Station Hotel, Upper Dunmore"]);
    let number = |stage: Stage, place: &'static str| async move {
        let found = map::find(&stage.traveller(), place).await;
        found["extratags"]["phone"].as_str().expect("a number").to_owned()
    };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let text = number(stage.clone(), hotel).await;
            forge::open_issue(&stage.developer(), project, title, &text).await;
        }),
        Attempt::miss("another hotel's", async move |stage: Stage| {
            let text = number(stage.clone(), other).await;
            forge::open_issue(&stage.developer(), project, title, &text).await;
        }),
        Attempt::miss("in another project", async move |stage: Stage| {
            let text = number(stage.clone(), hotel).await;
            forge::open_issue(&stage.developer(), "byteblaze/tidegauge", title, &text).await;
        }),
        Attempt::miss("as another developer", async move |stage: Stage| {
            let text = number(stage.clone(), hotel).await;
            forge::open_issue(&stage.other_developer(OTHER).await, project, title, &text).await;
        }),
        Attempt::miss("the name alone", async move |stage: Stage| {
            forge::open_issue(&stage.developer(), project, title, hotel).await;
        }),
    ]
}

fn release_thread(task: &'static Task) -> Vec<Attempt> {
    let (project, name) = (task.text("project"), task.text("name"));
    // The version number of the release at this place in the list of all releases, latest first.
    let version = move |stage: Stage, place: usize| async move {
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
    let post = move |stage: Stage, forum: &'static str, version: String| async move {
        board::start(&stage.member(), forum, &format!("{name} {version} for everybody"), task.text("text")).await;
    };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let version = version(stage.clone(), 0).await;
            post(stage, "programming", version).await;
        }),
        Attempt::miss("the release before", async move |stage: Stage| {
            let version = version(stage.clone(), 1).await;
            post(stage, "programming", version).await;
        }),
        Attempt::miss("in another forum", async move |stage: Stage| {
            let version = version(stage.clone(), 0).await;
            post(stage, "technology", version).await;
        }),
        Attempt::miss("without a number", move |stage| post(stage, "programming", "X".to_owned())),
        Attempt::miss("two threads", async move |stage: Stage| {
            let version = version(stage.clone(), 0).await;
            post(stage.clone(), "programming", version.clone()).await;
            post(stage, "programming", version).await;
        }),
    ]
}

fn museum_walk(task: &'static Task) -> Vec<Attempt> {
    let (town, day) = (task.text("town"), task.text("day"));
    let walk = move |stage: Stage, closed: bool, means: map::Means| async move {
        let station = format!("{town} Railway Station");
        for museum in ["Harrowgate Mills Museum of Weaving", "Harrowgate Mills Museum of Toys"] {
            if (fact(&stage, museum, "Closed on").await == day) == closed {
                return kilometres(map::route(&stage.traveller(), means, &station, museum).await.0);
            }
        }
        panic!("no museum")
    };
    vec![
        Attempt::oracle(move |stage| walk(stage, true, FOOT)),
        Attempt::miss("to the other museum", move |stage| walk(stage, false, FOOT)),
        Attempt::answers("half a kilometre more", format!("{:.1}", task.number("kilometres") + 0.5)),
        Attempt::answers("two distances to choose from", format!("{} or 7", task.number("kilometres"))),
    ]
}

fn museum_place(task: &'static Task) -> Vec<Attempt> {
    let year = task.number("year").to_string();
    let year: &'static str = String::leak(year);
    let museums = task.own([
        ["Harrowgate Mills Museum of Toys", "Harrowgate Mills Museum of Weaving"],
        ["Upper Dunmore Museum of Astronomy", "Kestrel Bay Museum of Lighthouses"],
    ]);
    let open = move |stage: Stage, opened: bool| async move {
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
        Attempt::oracle(move |stage| open(stage, true)),
        Attempt::miss("another museum", move |stage| open(stage, false)),
        Attempt::miss("the article", async move |stage: Stage| {
            let path = format!("/arena_en_all/A/{}.html", museums[0].replace(' ', "_"));
            stage.reader().open(&path).await
        }),
        Attempt::miss("the map alone", async |stage: Stage| stage.traveller().open("/").await),
    ]
}

fn project_page(task: &'static Task) -> Vec<Attempt> {
    let (company, language) = (task.text("company"), task.text("language"));
    let projects = ["quarry", "orchardist", "switchyard", "ferryboard"];
    let open = move |stage: Stage| async move {
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
        Attempt::oracle(open),
        Attempt::miss("another project", async |stage: Stage| stage.developer().open("/byteblaze/tidegauge").await),
        Attempt::miss("the list of projects", async |stage: Stage| stage.developer().open("/browse/projects/").await),
        Attempt::miss("the article", async move |stage: Stage| {
            let path = format!("/arena_en_all/A/{}_(software).html", projects[1]);
            stage.reader().open(&path).await
        }),
    ]
}

fn museum_check(task: &'static Task) -> Vec<Attempt> {
    let museum = task.text("museum");
    let wrong: &'static [&'static str] = task.own([&["objects"], &[], &["opened"]]);
    let right_facts: &'static str = String::leak((5 - wrong.len()).to_string());
    let fill = move |form: Form, opened: String| {
        let form = form.set("correct", if wrong.is_empty() { "yes" } else { "no" }).set("right_facts", right_facts);
        let form =
            form.set("opened", &opened).set("town", task.text("town")).set("corrections", task.text("corrections"));
        wrong.iter().fold(form, |form, fact| form.tick("wrong", fact))
    };
    let send = move |stage: Stage, museum: &'static str, other: bool, change: fn(Form) -> Form| async move {
        let opened = fact(&stage, task.text("museum"), "Opened").await;
        let visitor = if other { stage.other_worker() } else { stage.worker() };
        let (number, _) = crowd::museum_task(&visitor, museum).await;
        let form = fill(crowd::accept(&visitor, number).await, opened);
        crowd::submit(&visitor, change(form)).await;
    };
    let as_it_is: fn(Form) -> Form = |form| form;
    vec![
        Attempt::oracle(move |stage| send(stage, museum, false, as_it_is)),
        Attempt::miss("into another museum's task", move |stage| {
            send(stage, "Upper Dunmore Museum of Astronomy", false, as_it_is)
        }),
        Attempt::miss("as another worker", move |stage| send(stage, museum, true, as_it_is)),
        Attempt::miss("with a wrong fact more", move |stage| {
            send(stage, museum, false, |form| form.tick("wrong", "address"))
        }),
        Attempt::miss("with another year", move |stage| send(stage, museum, false, |form| form.set("opened", "1900"))),
        Attempt::miss("with the other answer", move |stage| {
            send(stage, museum, false, |form| {
                let other = if form.value("correct") == "yes" { "no" } else { "yes" };
                form.set("correct", other)
            })
        }),
        Attempt::miss("accepted, not sent", async move |stage: Stage| {
            let (number, _) = crowd::museum_task(&stage.worker(), museum).await;
            crowd::accept(&stage.worker(), number).await;
        }),
    ]
}
