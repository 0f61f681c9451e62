//! Oracles and near misses of `shopping_admin.yaml`, one function for each template.

use crate::attempt::Attempt;
use crate::files::Task;
use crate::office::{self, Offer};
use crate::shop;
use crate::shopping::{near_amounts, unachievable};
use crate::stage::Stage;

/// A product that no task mentions.
const OTHER: &str = "OSM00088";

/// Returns the attempts at a task of the back office, or `None` if its template is unknown here.
pub fn attempts(task: &'static Task) -> Option<Vec<Attempt>> {
    Some(match task.template.as_str() {
        "shopping_admin.customer-orders" => customer_orders(task),
        "shopping_admin.customer-spending" => customer_spending(task),
        "shopping_admin.orders-of-status" => orders_of_status(task),
        "shopping_admin.sold-out" => sold_out(task),
        "shopping_admin.open-order" => open_order(task),
        "shopping_admin.open-product" => open_product(task),
        "shopping_admin.price" => price(task),
        "shopping_admin.price-cut" => price_cut(task),
        "shopping_admin.stock" => stock(task),
        "shopping_admin.title" => title(task),
        "shopping_admin.hide" => hide(task),
        "shopping_admin.order-status" => order_status(task),
        "shopping_admin.order-note" => order_note(task),
        "shopping_admin.approve-reviews" => approve_reviews(task),
        "shopping_admin.lock-customer" => lock_customer(task),
        "shopping_admin.offer" => offer(task),
        "shopping_admin.unachievable" => unachievable(),
        _ => return None,
    })
}

fn customer_orders(task: &'static Task) -> Vec<Attempt> {
    let (name, orders) = (task.text("customer"), task.number("orders"));
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let visitor = stage.administrator();
            let found = office::customers(&visitor, "name", name).await;
            visitor.open(&found.link_beside(name)).await.beside("Number of orders")
        }),
        Attempt::answers("one too few", (orders - 1.0).to_string()),
        Attempt::answers("one too many", (orders + 1.0).to_string()),
        Attempt::answers("two numbers to choose from", format!("{orders} or {}", orders + 1.0)),
    ]
}

fn customer_spending(task: &'static Task) -> Vec<Attempt> {
    let email = task.text("email");
    let spent = |stage: Stage, email: &'static str| async move {
        office::customer(&stage.administrator(), email).await.beside("Total spent")
    };
    let mut attempts = vec![
        Attempt::oracle(move |stage| spent(stage, email)),
        Attempt::miss("another customer's", move |stage| spent(stage, "ivy.patel@islandpost.test")),
    ];
    attempts.extend(near_amounts(task.number("spent")));
    attempts
}

fn orders_of_status(task: &'static Task) -> Vec<Attempt> {
    let status = task.text("status");
    let orders = |stage: Stage, status: &'static str| async move {
        office::orders_of_status(&stage.administrator(), status).await
    };
    vec![
        Attempt::oracle(async move |stage| orders(stage, status).await.join(", ")),
        Attempt::miss("all but one", async move |stage| orders(stage, status).await[1..].join(", ")),
        Attempt::miss("one more", async move |stage| orders(stage, status).await.join(", ") + ", 100250"),
        Attempt::miss("those of another status", async move |stage| orders(stage, "Pending").await.join(", ")),
        Attempt::miss("how many there are", async move |stage| orders(stage, status).await.len().to_string()),
    ]
}

fn sold_out(task: &'static Task) -> Vec<Attempt> {
    let maker = task.text("maker");
    // The UPCs of the maker's products, each with whether it is sold out.
    let products = move |stage: Stage| async move {
        let visitor = stage.administrator();
        let mut products = Vec::new();
        for upc in office::products_of(&visitor, maker).await {
            let stock = shop::product(&visitor, &upc).await.beside("Availability");
            products.push((upc, stock == "Unavailable"));
        }
        products
    };
    let named = move |stage: Stage, wanted: fn(&(String, bool)) -> bool| async move {
        let chosen = products(stage).await.into_iter().filter(wanted).map(|(upc, _)| upc);
        chosen.collect::<Vec<_>>()
    };
    vec![
        Attempt::oracle(async move |stage| named(stage, |(_, is_gone)| *is_gone).await.join(", ")),
        Attempt::miss("all but one", async move |stage| named(stage, |(_, is_gone)| *is_gone).await[1..].join(", ")),
        Attempt::miss("those that are left", async move |stage| named(stage, |(_, is_gone)| !is_gone).await.join(", ")),
        Attempt::miss("all of the maker", async move |stage| named(stage, |_| true).await.join(", ")),
    ]
}

fn open_order(task: &'static Task) -> Vec<Attempt> {
    let customer = task.text("customer");
    let open = move |stage: Stage, nth: usize| async move {
        let visitor = stage.administrator();
        let orders = office::orders_of_customer(&visitor, customer).await;
        visitor.open(&format!("/dashboard/orders/{}/", orders[nth])).await
    };
    vec![
        Attempt::oracle(move |stage| open(stage, 0)),
        Attempt::miss("an earlier one", move |stage| open(stage, 1)),
        Attempt::miss("the list", async |stage: Stage| stage.administrator().open("/dashboard/orders/").await),
        Attempt::miss("the customer", async move |stage: Stage| {
            let visitor = stage.administrator();
            let found = office::customers(&visitor, "name", customer).await;
            visitor.open(&found.link_beside(customer)).await
        }),
    ]
}

fn open_product(task: &'static Task) -> Vec<Attempt> {
    let upc = task.text("upc");
    let open = |stage: Stage, upc: &'static str| async move { office::product(&stage.administrator(), upc).await };
    vec![
        Attempt::oracle(move |stage| open(stage, upc)),
        Attempt::miss("another product", move |stage| open(stage, OTHER)),
        Attempt::miss("the list", async |stage: Stage| stage.administrator().open("/dashboard/catalogue/").await),
        Attempt::miss("its page in the shop", async move |stage: Stage| {
            shop::product(&stage.administrator(), upc).await
        }),
    ]
}

fn sets(upc: &'static str, field: &'static str, value: String) -> impl FnOnce(Stage) -> Edited + Send + 'static {
    move |stage| Box::pin(office::set(stage.administrator(), upc, field, value))
}

type Edited = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

const PRICE: &str = "stockrecords-0-price";
const STOCK: &str = "stockrecords-0-num_in_stock";

fn price(task: &'static Task) -> Vec<Attempt> {
    let (upc, price) = (task.text("upc"), task.number("price"));
    let right = format!("{price:.2}");
    vec![
        Attempt::oracle(sets(upc, PRICE, right.clone())),
        Attempt::miss("a cent too much", sets(upc, PRICE, format!("{:.2}", price + 0.01))),
        Attempt::miss("another product's", sets(OTHER, PRICE, right.clone())),
        Attempt::miss("and the stock too", async move |stage: Stage| {
            let change = |form: crate::visitor::Form| form.set(PRICE, &right).set(STOCK, "1");
            office::edit(&stage.administrator(), upc, change).await;
        }),
        Attempt::miss("and another product's too", async move |stage: Stage| {
            for upc in [upc, OTHER] {
                office::set(stage.administrator(), upc, PRICE, format!("{price:.2}")).await;
            }
        }),
    ]
}

fn price_cut(task: &'static Task) -> Vec<Attempt> {
    let (maker, category, amount) = (task.text("maker"), task.text("category"), task.number("amount"));
    let cut = move |stage: Stage, leave_out: usize, amount: f64, besides: Option<&'static str>| async move {
        let visitor = stage.administrator();
        let made = office::products_of(&visitor, maker).await;
        let lying = shop::products_in(&visitor, category).await;
        let lies = |upc: &str| lying.iter().any(|(_, link, _)| link.ends_with(&format!("_{}/", shop::number(upc))));
        let meant: Vec<_> = made.iter().map(String::as_str).filter(|upc| lies(upc)).collect();
        assert!(meant.len() > 2 && meant.len() < made.len(), "{maker} has several in {category}, and others");
        for upc in meant.into_iter().skip(leave_out).chain(besides) {
            office::cut_price(&visitor, upc, amount).await;
        }
    };
    vec![
        Attempt::oracle(move |stage| cut(stage, 0, amount, None)),
        Attempt::miss("all but one", move |stage| cut(stage, 1, amount, None)),
        Attempt::miss("a dollar too much", move |stage| cut(stage, 0, amount + 1.0, None)),
        Attempt::miss("and one of another maker", move |stage| cut(stage, 0, amount, Some(OTHER))),
    ]
}

fn stock(task: &'static Task) -> Vec<Attempt> {
    let (upc, number) = (task.text("upc"), task.number("number"));
    vec![
        Attempt::oracle(sets(upc, STOCK, number.to_string())),
        Attempt::miss("one too many", sets(upc, STOCK, (number + 1.0).to_string())),
        Attempt::miss("another product's", sets(OTHER, STOCK, number.to_string())),
        Attempt::miss("the threshold", sets(upc, "stockrecords-0-low_stock_threshold", number.to_string())),
    ]
}

fn title(task: &'static Task) -> Vec<Attempt> {
    let (upc, title) = (task.text("upc"), task.text("title"));
    vec![
        Attempt::oracle(sets(upc, "title", title.to_owned())),
        Attempt::miss("misspelt", sets(upc, "title", title.replacen('e', "", 1))),
        Attempt::miss("another product's", sets(OTHER, "title", title.to_owned())),
        Attempt::miss("for search engines alone", sets(upc, "meta_title", title.to_owned())),
        Attempt::miss("and its address too", async move |stage: Stage| {
            let change = |form: crate::visitor::Form| form.set("title", title).set("slug", "box");
            office::edit(&stage.administrator(), upc, change).await;
        }),
    ]
}

fn hide(task: &'static Task) -> Vec<Attempt> {
    let upc = task.text("upc");
    vec![
        Attempt::oracle(move |stage: Stage| office::untick(stage.administrator(), upc, "is_public")),
        Attempt::miss("deleted", move |stage: Stage| office::delete_product(stage.administrator(), upc)),
        Attempt::miss("another product", |stage: Stage| office::untick(stage.administrator(), OTHER, "is_public")),
        Attempt::miss("the wrong box", move |stage: Stage| {
            office::untick(stage.administrator(), upc, "is_discountable")
        }),
        Attempt::miss("sold out", sets(upc, STOCK, "0".to_owned())),
    ]
}

fn order_status(task: &'static Task) -> Vec<Attempt> {
    let (order, status) = (task.text("order"), task.text("status"));
    let set = |stage: Stage, orders: &'static [&'static str], status: &'static str| async move {
        for order in orders {
            office::set_status(&stage.administrator(), order, status).await;
        }
    };
    let both: &[&str] = Vec::leak(vec![order, "100290"]);
    // Every order can be cancelled; a complete or cancelled order cannot change its status.
    let wrong = if status == "Cancelled" { "Pending" } else { "Cancelled" };
    vec![
        Attempt::oracle(move |stage| set(stage, &both[..1], status)),
        Attempt::miss("another status", move |stage| set(stage, &both[..1], wrong)),
        Attempt::miss("another order", move |stage| set(stage, &both[1..], "Cancelled")),
        Attempt::miss("another order too", async move |stage: Stage| {
            set(stage.clone(), &both[..1], status).await;
            set(stage, &both[1..], "Cancelled").await;
        }),
        Attempt::miss("the lines alone", move |stage: Stage| {
            office::set_line_statuses(stage.administrator(), order, "Cancelled")
        }),
    ]
}

fn order_note(task: &'static Task) -> Vec<Attempt> {
    let (order, note) = (task.text("order"), task.text("note"));
    let add = |order: &'static str, note: &'static str| {
        async move |stage: Stage| office::add_note(&stage.administrator(), order, note).await
    };
    vec![
        Attempt::oracle(add(order, note)),
        Attempt::miss("to another order", add("100250", note)),
        Attempt::miss("another text", add(order, "The customer called.")),
        Attempt::miss("half of it", add(order, &note[..note.len() / 2])),
        Attempt::miss("twice", async move |stage: Stage| {
            for _ in 0..2 {
                office::add_note(&stage.administrator(), order, note).await;
            }
        }),
    ]
}

fn approve_reviews(task: &'static Task) -> Vec<Attempt> {
    let product = task.text("product");
    let moderate = |stage: Stage, product: &'static str, leave_out: usize, status: &'static str| async move {
        let visitor = stage.administrator();
        let waiting = office::waiting_reviews(&visitor, product).await;
        for review in waiting.iter().skip(leave_out) {
            office::moderate(&visitor, review, status).await;
        }
        waiting.len()
    };
    let moderated = move |product, leave_out, status| {
        async move |stage| {
            assert!(moderate(stage, product, leave_out, status).await > 0, "{product} has reviews that wait")
        }
    };
    vec![
        Attempt::oracle(moderated(product, 0, "1")),
        Attempt::miss("all but one", moderated(product, 1, "1")),
        Attempt::miss("rejected", moderated(product, 0, "2")),
        Attempt::miss("those of another product", moderated(WAITING, 0, "1")),
        Attempt::miss("those of another product too", async move |stage: Stage| {
            for product in [product, WAITING] {
                moderate(stage.clone(), product, 0, "1").await;
            }
        }),
    ]
}

/// A product with a pending review that no task mentions.
const WAITING: &str = "Thornwick Time GPS Smart Watch, Moss Green";

fn lock_customer(task: &'static Task) -> Vec<Attempt> {
    let email = task.text("email");
    let other = "rowan.lindqvist@courier.test";
    let lock = move |emails| move |stage: Stage| office::lock(stage.administrator(), emails, "make_inactive");
    vec![
        Attempt::oracle(lock(vec![email])),
        Attempt::miss("another customer", lock(vec![other])),
        Attempt::miss("another customer too", lock(vec![email, other])),
        Attempt::miss("made active", move |stage: Stage| {
            office::lock(stage.administrator(), vec![email], "make_active")
        }),
    ]
}

fn offer(task: &'static Task) -> Vec<Attempt> {
    let percent = task.number("percent");
    let right = Offer {
        range: task.text("range"),
        upcs: Some(task.text("upcs")),
        name: Some(task.text("offer")),
        kind: "Percentage",
        value: String::leak(percent.to_string()),
        from: "1",
    };
    let make = |offer: Offer| move |stage: Stage| office::make_offer(stage.administrator(), offer);
    vec![
        Attempt::oracle(make(right)),
        Attempt::miss("the range alone", make(Offer { name: None, ..right })),
        Attempt::miss("less off", make(Offer { value: "10", ..right })),
        Attempt::miss("dollars instead of percents", make(Offer { kind: "Absolute", ..right })),
        Attempt::miss("one product alone", make(Offer { upcs: right.upcs.map(|upcs| &upcs[..OTHER.len()]), ..right })),
        Attempt::miss("every product", make(Offer { upcs: None, ..right })),
        Attempt::miss("from two products on", make(Offer { from: "2", ..right })),
        Attempt::miss("under another name", make(Offer { name: Some("Sale"), ..right })),
    ]
}
