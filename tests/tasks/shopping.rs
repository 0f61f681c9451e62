//! Oracles and near misses of `shopping.yaml`, one function for each template.

use super::attempt::AgentAttempt;
use super::files::TemplateTask;
use super::shop::{self, DeliveryAddress, Review, cents, dollars};
use super::stage::AgentStage;
use super::visitor::VisitedPage;

/// A product that no task mentions and that has ample stock.
const OTHER: &str = "OSM00088";

/// The customer's own address.
const HOME: DeliveryAddress =
    DeliveryAddress { first: "Emma", last: "Lopez", line: "106 Chandler Lane", town: "Kestrel Bay", postcode: "00149" };

/// Returns the attempts at a task of the shop, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
    Some(match task.template.as_str() {
        "shopping.order-total" => order_total(task),
        "shopping.month-total" => month_total(task),
        "shopping.review-authors" => review_authors(task),
        "shopping.dearest-product" => dearest_product(task),
        "shopping.maker-chief" => maker_chief(task),
        "shopping.open-category" => open_category(task),
        "shopping.search" => search(task),
        "shopping.open-order" => open_order(task),
        "shopping.order" => order(task),
        "shopping.order-present" => order_present(task),
        "shopping.basket" => basket(task),
        "shopping.reorder" => reorder(task),
        "shopping.review" => review(task),
        "shopping.wish-list" => wish_list(task),
        "shopping.move-house" => move_house(task),
        "shopping.change-name" => change_name(task),
        "shopping.stock-alert" => stock_alert(task),
        "shopping.unachievable" => unachievable(),
        _ => return None,
    })
}

/// Wrong answers close to an amount of money.
pub fn near_amounts(amount: f64) -> Vec<AgentAttempt> {
    vec![
        AgentAttempt::answers("a cent too much", format!("{:.2}", amount + 0.01)),
        AgentAttempt::answers("without the cents", format!("{}", amount.trunc() + f64::from(amount.fract() == 0.0))),
        AgentAttempt::answers("two amounts to choose from", format!("{amount:.2} or {:.2}", amount + 10.0)),
    ]
}

/// The right answer to a request that cannot be fulfilled, and wrong answers to it.
pub fn unachievable() -> Vec<AgentAttempt> {
    vec![
        AgentAttempt::oracle(async |_| "N/A".to_owned()),
        AgentAttempt::answers("as if it were done", "Done."),
        AgentAttempt::answers("an invented fact", "555-1234"),
        AgentAttempt::answers("hedging", "It is done, unless this is not possible"),
    ]
}

fn order_total(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let number = task.text("order");
    let mut attempts = vec![AgentAttempt::oracle(async move |stage: AgentStage| {
        let orders = shop::orders(&stage.customer()).await;
        orders.into_iter().find(|order| order.number == number).expect("the order is listed").total
    })];
    attempts.extend(near_amounts(task.number("total")));
    attempts.push(AgentAttempt::miss("the total of another order", async move |stage: AgentStage| {
        let orders = shop::orders(&stage.customer()).await;
        orders.into_iter().find(|order| order.number != number).expect("there are others").total
    }));
    attempts
}

fn month_total(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (month, year) = (task.text("month"), task.text("year"));
    let sum = move |stage: AgentStage, leave_out: usize| async move {
        let orders = shop::orders(&stage.customer()).await;
        let is_meant = |date: &str| {
            let name = date.split(['.', ' ']).next().expect("a month");
            month.starts_with(name) && date.contains(&format!(", {year},"))
        };
        let meant = orders.iter().filter(|order| is_meant(&order.date));
        dollars(meant.skip(leave_out).map(|order| cents(&order.total)).sum())
    };
    let mut attempts = vec![
        AgentAttempt::oracle(move |stage| sum(stage, 0)),
        AgentAttempt::miss("without the latest order", move |stage| sum(stage, 1)),
    ];
    attempts.extend(near_amounts(task.number("total")));
    attempts
}

fn review_authors(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let product = task.text("product");
    let stars = ["Zero", "One", "Two", "Three", "Four", "Five"][task.number("stars") as usize];
    let authors = move |stage: AgentStage, of: String| async move {
        let visitor = stage.customer();
        let path = shop::search_product(&visitor, product).await.url.path().to_owned();
        let page = visitor.open(&format!("{path}reviews/")).await;
        let names = page.texts(&format!("{of} p small strong"));
        // The number of people who found a review useful may stand beside the author.
        names.into_iter().filter(|name| name.parse::<u32>().is_err()).collect::<Vec<_>>()
    };
    let rated = move |stars: &str| format!("article.review:has(.star-rating.{stars})");
    vec![
        AgentAttempt::oracle(async move |stage| authors(stage, rated(stars)).await.join(", ")),
        AgentAttempt::miss("all but one", async move |stage| authors(stage, rated(stars)).await[1..].join(", ")),
        AgentAttempt::miss("everybody", async move |stage| {
            authors(stage, "article.review".to_owned()).await.join(", ")
        }),
        AgentAttempt::miss("those of three stars", async move |stage| authors(stage, rated("Three")).await.join(", ")),
    ]
}

fn dearest_product(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let category = task.text("category");
    // Titles and prices, highest price first.
    let products = move |stage: AgentStage| async move {
        let mut products = shop::products_in(&stage.customer(), category).await;
        products.sort_by_key(|(_, _, price)| std::cmp::Reverse(cents(price)));
        products
    };
    let nth = move |stage, title: usize, price: usize| async move {
        let products = products(stage).await;
        format!("{}, at {}", products[title].0, products[price].2)
    };
    vec![
        AgentAttempt::oracle(move |stage| nth(stage, 0, 0)),
        AgentAttempt::miss("the second dearest", move |stage| nth(stage, 1, 1)),
        AgentAttempt::miss("its price with another title", move |stage| nth(stage, 1, 0)),
        AgentAttempt::miss("its title with another price", move |stage| nth(stage, 0, 1)),
        AgentAttempt::miss("its title alone", async move |stage| products(stage).await.remove(0).0),
    ]
}

fn maker_chief(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let product = task.text("product");
    let beside = move |stage: AgentStage, heading: &'static str| async move {
        let maker = shop::search_product(&stage.customer(), product).await.beside("Brand");
        let reader = stage.reader();
        let list = reader.open("/arena_en_all/A/List_of_companies_of_Larkmoor.html").await;
        let company = list.url.join(&list.link_with(&maker)).expect("an address");
        reader.open(company.path()).await.beside(heading)
    };
    vec![
        AgentAttempt::oracle(move |stage| beside(stage, "Chief executive")),
        AgentAttempt::miss("the founder", move |stage| beside(stage, "Founder")),
        AgentAttempt::miss("the maker's address", move |stage| beside(stage, "Headquarters")),
        AgentAttempt::answers("the first name alone", task.text("name").split(' ').next().unwrap_or_default()),
        AgentAttempt::answers("two names to choose from", format!("{} or Owen Weber", task.text("name"))),
    ]
}

fn open_category(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let category = task.text("category");
    let open = move |stage: AgentStage, link: &'static str| async move {
        let visitor = stage.customer();
        let home = visitor.open("/").await;
        visitor.open(&home.link_with(link)).await
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, category)),
        AgentAttempt::miss("another category", move |stage| open(stage, "Cookware")),
        AgentAttempt::miss("the department", move |stage| open(stage, "Grocery")),
        AgentAttempt::miss("a search for its name", move |stage| search_for(stage, category)),
    ]
}

async fn search_for(stage: AgentStage, words: &'static str) -> VisitedPage {
    let visitor = stage.customer();
    let form = visitor.open("/").await.form("form[action='/search/']");
    visitor.send(form.set("q", words)).await
}

fn search(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let words = task.text("words");
    let first = words.split(' ').next().unwrap_or_default();
    let fewer = if first == words { &words[..words.len() - 1] } else { first };
    vec![
        AgentAttempt::oracle(move |stage| search_for(stage, words)),
        AgentAttempt::miss("not all words", move |stage| search_for(stage, fewer)),
        AgentAttempt::miss("other words", move |stage| search_for(stage, "shoes")),
        AgentAttempt::miss("all products", async |stage: AgentStage| stage.customer().open("/catalogue/").await),
    ]
}

fn open_order(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let product = task.text("product");
    // Opens the `nth` order that contains the product, latest first.
    let open = move |stage: AgentStage, nth: usize| async move {
        let visitor = stage.customer();
        let mut left = nth;
        for order in shop::orders(&visitor).await {
            let page = visitor.open(&format!("/accounts/orders/{}/", order.number)).await;
            match (page.texts("td a").iter().any(|text| text == product), left) {
                (true, 0) => return page,
                (true, _) => left -= 1,
                (false, _) => {}
            }
        }
        panic!("there is an order with {product}")
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, 0)),
        AgentAttempt::miss("an earlier one", move |stage| open(stage, 1)),
        AgentAttempt::miss("the list of orders", async |stage: AgentStage| {
            stage.customer().open("/accounts/orders/").await
        }),
        AgentAttempt::miss("the product", async move |stage: AgentStage| {
            shop::search_product(&stage.customer(), product).await
        }),
    ]
}

fn order(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (upc, quantity) = (task.text("upc"), task.number("quantity") as u32);
    let elsewhere = DeliveryAddress { line: "107 Chandler Lane", ..HOME };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| shop::order(stage.customer(), upc, quantity, None)),
        AgentAttempt::miss("another product", move |stage: AgentStage| {
            shop::order(stage.customer(), OTHER, quantity, None)
        }),
        AgentAttempt::miss("one too many", move |stage: AgentStage| {
            shop::order(stage.customer(), upc, quantity + 1, None)
        }),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            shop::order(stage.stranger().await, upc, quantity, Some(HOME)).await;
        }),
        AgentAttempt::miss("in the basket, not ordered", async move |stage: AgentStage| {
            shop::put_in_basket(&stage.customer(), upc, quantity).await;
        }),
        AgentAttempt::miss("to another address", move |stage: AgentStage| {
            shop::order(stage.customer(), upc, quantity, Some(elsewhere))
        }),
        AgentAttempt::miss("with something else besides", async move |stage: AgentStage| {
            let customer = stage.customer();
            shop::put_in_basket(&customer, OTHER, 1).await;
            shop::order(customer, upc, quantity, None).await;
        }),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            shop::order(stage.customer(), upc, quantity, None).await;
            shop::order(stage.customer(), upc, quantity, None).await;
        }),
    ]
}

fn order_present(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let upc = task.text("upc");
    let address = DeliveryAddress {
        first: task.text("first"),
        last: task.text("last"),
        line: task.text("line"),
        town: task.text("town"),
        postcode: task.text("postcode"),
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| shop::order(stage.customer(), upc, 1, Some(address))),
        AgentAttempt::miss("to the customer's own address", move |stage: AgentStage| {
            shop::order(stage.customer(), upc, 1, None)
        }),
        AgentAttempt::miss("with the customer's postcode", move |stage: AgentStage| {
            shop::order(stage.customer(), upc, 1, Some(DeliveryAddress { postcode: HOME.postcode, ..address }))
        }),
        AgentAttempt::miss("another product", move |stage: AgentStage| {
            shop::order(stage.customer(), OTHER, 1, Some(address))
        }),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            shop::order(stage.stranger().await, upc, 1, Some(address)).await;
        }),
    ]
}

fn basket(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (upc, quantity) = (task.text("upc"), task.number("quantity") as u32);
    let put = |stage: AgentStage, upc: &'static str, quantity: u32| async move {
        shop::put_in_basket(&stage.customer(), upc, quantity).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| put(stage, upc, quantity)),
        AgentAttempt::miss("one too many", move |stage| put(stage, upc, quantity + 1)),
        AgentAttempt::miss("another product", move |stage| put(stage, OTHER, quantity)),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            shop::put_in_basket(&stage.stranger().await, upc, quantity).await;
        }),
        AgentAttempt::miss("ordered at once", move |stage: AgentStage| {
            shop::order(stage.customer(), upc, quantity, None)
        }),
    ]
}

fn reorder(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let number = task.text("order");
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| shop::reorder(&stage.customer(), number).await),
        AgentAttempt::miss("its first line alone", move |stage: AgentStage| {
            shop::reorder_first_line(stage.customer(), number)
        }),
        AgentAttempt::miss("another order", async |stage: AgentStage| shop::reorder(&stage.customer(), "100284").await),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            shop::reorder(&stage.customer(), number).await;
            shop::reorder(&stage.customer(), number).await;
        }),
        AgentAttempt::miss("ordered at once", async move |stage: AgentStage| {
            let customer = stage.customer();
            shop::reorder(&customer, number).await;
            shop::check_out(&customer, None).await;
        }),
    ]
}

fn review(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let upc = task.text("upc");
    let stars = ["0", "1", "2", "3", "4", "5"];
    let given = task.number("stars") as usize;
    let right = Review { stars: stars[given], title: task.text("title"), text: task.text("text") };
    let by_customer = move |review| move |stage: AgentStage| shop::review(stage.customer(), upc, review);
    vec![
        AgentAttempt::oracle(by_customer(right)),
        AgentAttempt::miss("a star too few", by_customer(Review { stars: stars[given - 1], ..right })),
        AgentAttempt::miss("another title", by_customer(Review { title: "My opinion", ..right })),
        AgentAttempt::miss("without the text", by_customer(Review { text: right.title, ..right })),
        AgentAttempt::miss("of another product", move |stage: AgentStage| shop::review(stage.customer(), OTHER, right)),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            shop::review(stage.stranger().await, upc, right).await;
        }),
    ]
}

fn wish_list(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    const PLENTY: &str = "Tolliver & Sons Heather Honey Hand Balm, 100 ml";
    let (list, first, second) = (task.text("list"), task.text("first"), task.text("second"));
    let make = move |name, visibility, titles| {
        move |stage: AgentStage| shop::make_wish_list(stage.customer(), name, visibility, titles)
    };
    vec![
        AgentAttempt::oracle(make(list, "Private", vec![first, second])),
        AgentAttempt::miss("one of the two", make(list, "Private", vec![first])),
        AgentAttempt::miss("one more", make(list, "Private", vec![first, second, PLENTY])),
        AgentAttempt::miss("another product", make(list, "Private", vec![first, PLENTY])),
        AgentAttempt::miss("under another name", make("Default", "Private", vec![first, second])),
        AgentAttempt::miss("for all to see", make(list, "Public", vec![first, second])),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            shop::make_wish_list(stage.stranger().await, list, "Private", vec![first, second]).await;
        }),
    ]
}

fn move_house(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let address =
        DeliveryAddress { line: task.text("line"), town: task.text("town"), postcode: task.text("postcode"), ..HOME };
    let add = |stage: AgentStage, address: DeliveryAddress| async move {
        let customer = stage.customer();
        shop::add_address(&customer, address).await;
        shop::deliver_there_by_default(&customer).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| add(stage, address)),
        AgentAttempt::miss("added, but not the default", async move |stage: AgentStage| {
            shop::add_address(&stage.customer(), address).await;
        }),
        AgentAttempt::miss("the old address overwritten", move |stage: AgentStage| {
            shop::overwrite_address(stage.customer(), address)
        }),
        AgentAttempt::miss("with the old postcode", move |stage| {
            add(stage, DeliveryAddress { postcode: HOME.postcode, ..address })
        }),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            let stranger = stage.stranger().await;
            shop::add_address(&stranger, address).await;
            shop::deliver_there_by_default(&stranger).await;
        }),
    ]
}

fn change_name(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (first, last) = (("first_name", task.text("first")), ("last_name", task.text("last")));
    let change = |fields| move |stage: AgentStage| shop::change_profile(stage.customer(), fields);
    vec![
        AgentAttempt::oracle(change(vec![first, last])),
        AgentAttempt::miss("the last name alone", change(vec![last])),
        AgentAttempt::miss("the first name alone", change(vec![first])),
        AgentAttempt::miss("the address of mails too", change(vec![first, last, ("email", "emma@larkmail.test")])),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            shop::change_profile(stage.stranger().await, vec![first, last]).await;
        }),
    ]
}

fn stock_alert(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let upc = task.text("upc");
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| shop::ask_for_alert(stage.customer(), upc)),
        AgentAttempt::miss("for another product", |stage: AgentStage| {
            shop::ask_for_alert(stage.customer(), "OSM00058")
        }),
        AgentAttempt::miss("for two products", async move |stage: AgentStage| {
            shop::ask_for_alert(stage.customer(), upc).await;
            shop::ask_for_alert(stage.customer(), "OSM00058").await;
        }),
        AgentAttempt::miss("as another customer", async move |stage: AgentStage| {
            shop::ask_for_alert(stage.stranger().await, upc).await;
        }),
    ]
}
