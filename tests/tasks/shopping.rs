//! Oracles and near misses of `shopping.yaml`, one function for each template.

use crate::attempt::Attempt;
use crate::files::Task;
use crate::shop::{self, Address, Review, cents, dollars};
use crate::stage::Stage;
use crate::visitor::Page;

/// A product that no task mentions and that has ample stock.
const OTHER: &str = "OSM00088";

/// The customer's own address.
const HOME: Address =
    Address { first: "Emma", last: "Lopez", line: "106 Chandler Lane", town: "Kestrel Bay", postcode: "00149" };

/// Returns the attempts at a task of the shop, or `None` if its template is unknown here.
pub fn attempts(task: &'static Task) -> Option<Vec<Attempt>> {
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
pub fn near_amounts(amount: f64) -> Vec<Attempt> {
    vec![
        Attempt::answers("a cent too much", format!("{:.2}", amount + 0.01)),
        Attempt::answers("without the cents", format!("{}", amount.trunc() + f64::from(amount.fract() == 0.0))),
        Attempt::answers("two amounts to choose from", format!("{amount:.2} or {:.2}", amount + 10.0)),
    ]
}

/// The right answer to a request that cannot be fulfilled, and wrong answers to it.
pub fn unachievable() -> Vec<Attempt> {
    vec![
        Attempt::oracle(async |_| "N/A".to_owned()),
        Attempt::answers("as if it were done", "Done."),
        Attempt::answers("an invented fact", "555-1234"),
        Attempt::answers("hedging", "It is done, unless this is not possible"),
    ]
}

fn order_total(task: &'static Task) -> Vec<Attempt> {
    let number = task.text("order");
    let mut attempts = vec![Attempt::oracle(async move |stage: Stage| {
        let orders = shop::orders(&stage.customer()).await;
        orders.into_iter().find(|order| order.number == number).expect("the order is listed").total
    })];
    attempts.extend(near_amounts(task.number("total")));
    attempts.push(Attempt::miss("the total of another order", async move |stage: Stage| {
        let orders = shop::orders(&stage.customer()).await;
        orders.into_iter().find(|order| order.number != number).expect("there are others").total
    }));
    attempts
}

fn month_total(task: &'static Task) -> Vec<Attempt> {
    let (month, year) = (task.text("month"), task.text("year"));
    let sum = move |stage: Stage, leave_out: usize| async move {
        let orders = shop::orders(&stage.customer()).await;
        let is_meant = |date: &str| {
            let name = date.split(['.', ' ']).next().expect("a month");
            month.starts_with(name) && date.contains(&format!(", {year},"))
        };
        let meant = orders.iter().filter(|order| is_meant(&order.date));
        dollars(meant.skip(leave_out).map(|order| cents(&order.total)).sum())
    };
    let mut attempts = vec![
        Attempt::oracle(move |stage| sum(stage, 0)),
        Attempt::miss("without the latest order", move |stage| sum(stage, 1)),
    ];
    attempts.extend(near_amounts(task.number("total")));
    attempts
}

fn review_authors(task: &'static Task) -> Vec<Attempt> {
    let product = task.text("product");
    let stars = ["Zero", "One", "Two", "Three", "Four", "Five"][task.number("stars") as usize];
    let authors = move |stage: Stage, of: String| async move {
        let visitor = stage.customer();
        let path = shop::search_product(&visitor, product).await.url.path().to_owned();
        let page = visitor.open(&format!("{path}reviews/")).await;
        let names = page.texts(&format!("{of} p small strong"));
        // The number of people who found a review useful may stand beside the author.
        names.into_iter().filter(|name| name.parse::<u32>().is_err()).collect::<Vec<_>>()
    };
    let rated = move |stars: &str| format!("article.review:has(.star-rating.{stars})");
    vec![
        Attempt::oracle(async move |stage| authors(stage, rated(stars)).await.join(", ")),
        Attempt::miss("all but one", async move |stage| authors(stage, rated(stars)).await[1..].join(", ")),
        Attempt::miss("everybody", async move |stage| authors(stage, "article.review".to_owned()).await.join(", ")),
        Attempt::miss("those of three stars", async move |stage| authors(stage, rated("Three")).await.join(", ")),
    ]
}

fn dearest_product(task: &'static Task) -> Vec<Attempt> {
    let category = task.text("category");
    // Titles and prices, highest price first.
    let products = move |stage: Stage| async move {
        let mut products = shop::products_in(&stage.customer(), category).await;
        products.sort_by_key(|(_, _, price)| std::cmp::Reverse(cents(price)));
        products
    };
    let nth = move |stage, title: usize, price: usize| async move {
        let products = products(stage).await;
        format!("{}, at {}", products[title].0, products[price].2)
    };
    vec![
        Attempt::oracle(move |stage| nth(stage, 0, 0)),
        Attempt::miss("the second dearest", move |stage| nth(stage, 1, 1)),
        Attempt::miss("its price with another title", move |stage| nth(stage, 1, 0)),
        Attempt::miss("its title with another price", move |stage| nth(stage, 0, 1)),
        Attempt::miss("its title alone", async move |stage| products(stage).await.remove(0).0),
    ]
}

fn maker_chief(task: &'static Task) -> Vec<Attempt> {
    let product = task.text("product");
    let beside = move |stage: Stage, heading: &'static str| async move {
        let maker = shop::search_product(&stage.customer(), product).await.beside("Brand");
        let reader = stage.reader();
        let list = reader.open("/arena_en_all/A/List_of_companies_of_Larkmoor.html").await;
        let company = list.url.join(&list.link_with(&maker)).expect("an address");
        reader.open(company.path()).await.beside(heading)
    };
    vec![
        Attempt::oracle(move |stage| beside(stage, "Chief executive")),
        Attempt::miss("the founder", move |stage| beside(stage, "Founder")),
        Attempt::miss("the maker's address", move |stage| beside(stage, "Headquarters")),
        Attempt::answers("the first name alone", task.text("name").split(' ').next().unwrap_or_default()),
        Attempt::answers("two names to choose from", format!("{} or Owen Weber", task.text("name"))),
    ]
}

fn open_category(task: &'static Task) -> Vec<Attempt> {
    let category = task.text("category");
    let open = move |stage: Stage, link: &'static str| async move {
        let visitor = stage.customer();
        let home = visitor.open("/").await;
        visitor.open(&home.link_with(link)).await
    };
    vec![
        Attempt::oracle(move |stage| open(stage, category)),
        Attempt::miss("another category", move |stage| open(stage, "Cookware")),
        Attempt::miss("the department", move |stage| open(stage, "Grocery")),
        Attempt::miss("a search for its name", move |stage| search_for(stage, category)),
    ]
}

async fn search_for(stage: Stage, words: &'static str) -> Page {
    let visitor = stage.customer();
    let form = visitor.open("/").await.form("form[action='/search/']");
    visitor.send(form.set("q", words)).await
}

fn search(task: &'static Task) -> Vec<Attempt> {
    let words = task.text("words");
    let first = words.split(' ').next().unwrap_or_default();
    let fewer = if first == words { &words[..words.len() - 1] } else { first };
    vec![
        Attempt::oracle(move |stage| search_for(stage, words)),
        Attempt::miss("not all words", move |stage| search_for(stage, fewer)),
        Attempt::miss("other words", move |stage| search_for(stage, "shoes")),
        Attempt::miss("all products", async |stage: Stage| stage.customer().open("/catalogue/").await),
    ]
}

fn open_order(task: &'static Task) -> Vec<Attempt> {
    let product = task.text("product");
    // Opens the `nth` order that contains the product, latest first.
    let open = move |stage: Stage, nth: usize| async move {
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
        Attempt::oracle(move |stage| open(stage, 0)),
        Attempt::miss("an earlier one", move |stage| open(stage, 1)),
        Attempt::miss("the list of orders", async |stage: Stage| stage.customer().open("/accounts/orders/").await),
        Attempt::miss("the product", async move |stage: Stage| shop::search_product(&stage.customer(), product).await),
    ]
}

fn order(task: &'static Task) -> Vec<Attempt> {
    let (upc, quantity) = (task.text("upc"), task.number("quantity") as u32);
    let elsewhere = Address { line: "107 Chandler Lane", ..HOME };
    vec![
        Attempt::oracle(move |stage: Stage| shop::order(stage.customer(), upc, quantity, None)),
        Attempt::miss("another product", move |stage: Stage| shop::order(stage.customer(), OTHER, quantity, None)),
        Attempt::miss("one too many", move |stage: Stage| shop::order(stage.customer(), upc, quantity + 1, None)),
        Attempt::miss("as another customer", async move |stage: Stage| {
            shop::order(stage.stranger().await, upc, quantity, Some(HOME)).await;
        }),
        Attempt::miss("in the basket, not ordered", async move |stage: Stage| {
            shop::put_in_basket(&stage.customer(), upc, quantity).await;
        }),
        Attempt::miss("to another address", move |stage: Stage| {
            shop::order(stage.customer(), upc, quantity, Some(elsewhere))
        }),
        Attempt::miss("with something else besides", async move |stage: Stage| {
            let customer = stage.customer();
            shop::put_in_basket(&customer, OTHER, 1).await;
            shop::order(customer, upc, quantity, None).await;
        }),
        Attempt::miss("twice", async move |stage: Stage| {
            shop::order(stage.customer(), upc, quantity, None).await;
            shop::order(stage.customer(), upc, quantity, None).await;
        }),
    ]
}

fn order_present(task: &'static Task) -> Vec<Attempt> {
    let upc = task.text("upc");
    let address = Address {
        first: task.text("first"),
        last: task.text("last"),
        line: task.text("line"),
        town: task.text("town"),
        postcode: task.text("postcode"),
    };
    vec![
        Attempt::oracle(move |stage: Stage| shop::order(stage.customer(), upc, 1, Some(address))),
        Attempt::miss("to the customer's own address", move |stage: Stage| shop::order(stage.customer(), upc, 1, None)),
        Attempt::miss("with the customer's postcode", move |stage: Stage| {
            shop::order(stage.customer(), upc, 1, Some(Address { postcode: HOME.postcode, ..address }))
        }),
        Attempt::miss("another product", move |stage: Stage| shop::order(stage.customer(), OTHER, 1, Some(address))),
        Attempt::miss("as another customer", async move |stage: Stage| {
            shop::order(stage.stranger().await, upc, 1, Some(address)).await;
        }),
    ]
}

fn basket(task: &'static Task) -> Vec<Attempt> {
    let (upc, quantity) = (task.text("upc"), task.number("quantity") as u32);
    let put = |stage: Stage, upc: &'static str, quantity: u32| async move {
        shop::put_in_basket(&stage.customer(), upc, quantity).await;
    };
    vec![
        Attempt::oracle(move |stage| put(stage, upc, quantity)),
        Attempt::miss("one too many", move |stage| put(stage, upc, quantity + 1)),
        Attempt::miss("another product", move |stage| put(stage, OTHER, quantity)),
        Attempt::miss("as another customer", async move |stage: Stage| {
            shop::put_in_basket(&stage.stranger().await, upc, quantity).await;
        }),
        Attempt::miss("ordered at once", move |stage: Stage| shop::order(stage.customer(), upc, quantity, None)),
    ]
}

fn reorder(task: &'static Task) -> Vec<Attempt> {
    let number = task.text("order");
    vec![
        Attempt::oracle(async move |stage: Stage| shop::reorder(&stage.customer(), number).await),
        Attempt::miss("its first line alone", move |stage: Stage| shop::reorder_first_line(stage.customer(), number)),
        Attempt::miss("another order", async |stage: Stage| shop::reorder(&stage.customer(), "100284").await),
        Attempt::miss("twice", async move |stage: Stage| {
            shop::reorder(&stage.customer(), number).await;
            shop::reorder(&stage.customer(), number).await;
        }),
        Attempt::miss("ordered at once", async move |stage: Stage| {
            let customer = stage.customer();
            shop::reorder(&customer, number).await;
            shop::check_out(&customer, None).await;
        }),
    ]
}

fn review(task: &'static Task) -> Vec<Attempt> {
    let upc = task.text("upc");
    let stars = ["0", "1", "2", "3", "4", "5"];
    let given = task.number("stars") as usize;
    let right = Review { stars: stars[given], title: task.text("title"), text: task.text("text") };
    let by_customer = move |review| move |stage: Stage| shop::review(stage.customer(), upc, review);
    vec![
        Attempt::oracle(by_customer(right)),
        Attempt::miss("a star too few", by_customer(Review { stars: stars[given - 1], ..right })),
        Attempt::miss("another title", by_customer(Review { title: "My opinion", ..right })),
        Attempt::miss("without the text", by_customer(Review { text: right.title, ..right })),
        Attempt::miss("of another product", move |stage: Stage| shop::review(stage.customer(), OTHER, right)),
        Attempt::miss("as another customer", async move |stage: Stage| {
            shop::review(stage.stranger().await, upc, right).await;
        }),
    ]
}

fn wish_list(task: &'static Task) -> Vec<Attempt> {
    const PLENTY: &str = "Tolliver & Sons Heather Honey Hand Balm, 100 ml";
    let (list, first, second) = (task.text("list"), task.text("first"), task.text("second"));
    let make = move |name, visibility, titles| {
        move |stage: Stage| shop::make_wish_list(stage.customer(), name, visibility, titles)
    };
    vec![
        Attempt::oracle(make(list, "Private", vec![first, second])),
        Attempt::miss("one of the two", make(list, "Private", vec![first])),
        Attempt::miss("one more", make(list, "Private", vec![first, second, PLENTY])),
        Attempt::miss("another product", make(list, "Private", vec![first, PLENTY])),
        Attempt::miss("under another name", make("Default", "Private", vec![first, second])),
        Attempt::miss("for all to see", make(list, "Public", vec![first, second])),
        Attempt::miss("as another customer", async move |stage: Stage| {
            shop::make_wish_list(stage.stranger().await, list, "Private", vec![first, second]).await;
        }),
    ]
}

fn move_house(task: &'static Task) -> Vec<Attempt> {
    let address = Address { line: task.text("line"), town: task.text("town"), postcode: task.text("postcode"), ..HOME };
    let add = |stage: Stage, address: Address| async move {
        let customer = stage.customer();
        shop::add_address(&customer, address).await;
        shop::deliver_there_by_default(&customer).await;
    };
    vec![
        Attempt::oracle(move |stage| add(stage, address)),
        Attempt::miss("added, but not the default", async move |stage: Stage| {
            shop::add_address(&stage.customer(), address).await;
        }),
        Attempt::miss("the old address overwritten", move |stage: Stage| {
            shop::overwrite_address(stage.customer(), address)
        }),
        Attempt::miss("with the old postcode", move |stage| add(stage, Address { postcode: HOME.postcode, ..address })),
        Attempt::miss("as another customer", async move |stage: Stage| {
            let stranger = stage.stranger().await;
            shop::add_address(&stranger, address).await;
            shop::deliver_there_by_default(&stranger).await;
        }),
    ]
}

fn change_name(task: &'static Task) -> Vec<Attempt> {
    let (first, last) = (("first_name", task.text("first")), ("last_name", task.text("last")));
    let change = |fields| move |stage: Stage| shop::change_profile(stage.customer(), fields);
    vec![
        Attempt::oracle(change(vec![first, last])),
        Attempt::miss("the last name alone", change(vec![last])),
        Attempt::miss("the first name alone", change(vec![first])),
        Attempt::miss("the address of mails too", change(vec![first, last, ("email", "emma@larkmail.test")])),
        Attempt::miss("as another customer", async move |stage: Stage| {
            shop::change_profile(stage.stranger().await, vec![first, last]).await;
        }),
    ]
}

fn stock_alert(task: &'static Task) -> Vec<Attempt> {
    let upc = task.text("upc");
    vec![
        Attempt::oracle(move |stage: Stage| shop::ask_for_alert(stage.customer(), upc)),
        Attempt::miss("for another product", |stage: Stage| shop::ask_for_alert(stage.customer(), "OSM00058")),
        Attempt::miss("for two products", async move |stage: Stage| {
            shop::ask_for_alert(stage.customer(), upc).await;
            shop::ask_for_alert(stage.customer(), "OSM00058").await;
        }),
        Attempt::miss("as another customer", async move |stage: Stage| {
            shop::ask_for_alert(stage.stranger().await, upc).await;
        }),
    ]
}
