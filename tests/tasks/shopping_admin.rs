//! Oracles and near misses of `shopping_admin.yaml`, one function for each template.

use super::attempt::AgentAttempt;
use super::files::TemplateTask;
use super::office::{self, Offer};
use super::shop;
use super::shopping::{near_amounts, unachievable};
use super::stage::AgentStage;

/// A product that no task mentions.
const OTHER: &str = "OSM00088";

/// Returns the attempts at a task of the back office, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
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

fn customer_orders(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (name, orders) = (task.text("customer"), task.number("orders"));
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let visitor = stage.administrator();
            let found = office::customers(&visitor, "name", name).await;
            visitor.open(&found.link_beside(name)).await.beside("Number of orders")
        }),
        AgentAttempt::answers("one too few", (orders - 1.0).to_string()),
        AgentAttempt::answers("one too many", (orders + 1.0).to_string()),
        AgentAttempt::answers("two numbers to choose from", format!("{orders} or {}", orders + 1.0)),
    ]
}

fn customer_spending(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let email = task.text("email");
    let spent = |stage: AgentStage, email: &'static str| async move {
        office::customer(&stage.administrator(), email).await.beside("Total spent")
    };
    let mut attempts = vec![
        AgentAttempt::oracle(move |stage| spent(stage, email)),
        AgentAttempt::miss("another customer's", move |stage| spent(stage, "ivy.patel@islandpost.test")),
    ];
    attempts.extend(near_amounts(task.number("spent")));
    attempts
}

fn orders_of_status(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let status = task.text("status");
    let orders = |stage: AgentStage, status: &'static str| async move {
        office::orders_of_status(&stage.administrator(), status).await
    };
    vec![
        AgentAttempt::oracle(async move |stage| orders(stage, status).await.join(", ")),
        AgentAttempt::miss("all but one", async move |stage| orders(stage, status).await[1..].join(", ")),
        AgentAttempt::miss("one more", async move |stage| orders(stage, status).await.join(", ") + ", 100250"),
        AgentAttempt::miss("those of another status", async move |stage| orders(stage, "Pending").await.join(", ")),
        AgentAttempt::miss("how many there are", async move |stage| orders(stage, status).await.len().to_string()),
    ]
}

fn sold_out(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let maker = task.text("maker");
    // The UPCs of the maker's products, each with whether it is sold out.
    let products = move |stage: AgentStage| async move {
        let visitor = stage.administrator();
        let mut products = Vec::new();
        for upc in office::products_of(&visitor, maker).await {
            let stock = shop::product(&visitor, &upc).await.beside("Availability");
            products.push((upc, stock == "Unavailable"));
        }
        products
    };
    let named = move |stage: AgentStage, wanted: fn(&(String, bool)) -> bool| async move {
        let chosen = products(stage).await.into_iter().filter(wanted).map(|(upc, _)| upc);
        chosen.collect::<Vec<_>>()
    };
    vec![
        AgentAttempt::oracle(async move |stage| named(stage, |(_, is_gone)| *is_gone).await.join(", ")),
        AgentAttempt::miss("all but one", async move |stage| {
            named(stage, |(_, is_gone)| *is_gone).await[1..].join(", ")
        }),
        AgentAttempt::miss("those that are left", async move |stage| {
            named(stage, |(_, is_gone)| !is_gone).await.join(", ")
        }),
        AgentAttempt::miss("all of the maker", async move |stage| named(stage, |_| true).await.join(", ")),
    ]
}

fn open_order(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let customer = task.text("customer");
    let open = move |stage: AgentStage, nth: usize| async move {
        let visitor = stage.administrator();
        let orders = office::orders_of_customer(&visitor, customer).await;
        visitor.open(&format!("/dashboard/orders/{}/", orders[nth])).await
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, 0)),
        AgentAttempt::miss("an earlier one", move |stage| open(stage, 1)),
        AgentAttempt::miss("the list", async |stage: AgentStage| {
            stage.administrator().open("/dashboard/orders/").await
        }),
        AgentAttempt::miss("the customer", async move |stage: AgentStage| {
            let visitor = stage.administrator();
            let found = office::customers(&visitor, "name", customer).await;
            visitor.open(&found.link_beside(customer)).await
        }),
    ]
}

fn open_product(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let upc = task.text("upc");
    let open = |stage: AgentStage, upc: &'static str| async move { office::product(&stage.administrator(), upc).await };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, upc)),
        AgentAttempt::miss("another product", move |stage| open(stage, OTHER)),
        AgentAttempt::miss("the list", async |stage: AgentStage| {
            stage.administrator().open("/dashboard/catalogue/").await
        }),
        AgentAttempt::miss("its page in the shop", async move |stage: AgentStage| {
            shop::product(&stage.administrator(), upc).await
        }),
    ]
}

fn sets(upc: &'static str, field: &'static str, value: String) -> impl FnOnce(AgentStage) -> Edited + Send + 'static {
    move |stage| Box::pin(office::set(stage.administrator(), upc, field, value))
}

type Edited = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

const PRICE: &str = "stockrecords-0-price";
const STOCK: &str = "stockrecords-0-num_in_stock";

fn price(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (upc, price) = (task.text("upc"), task.number("price"));
    let right = format!("{price:.2}");
    vec![
        AgentAttempt::oracle(sets(upc, PRICE, right.clone())),
        AgentAttempt::miss("a cent too much", sets(upc, PRICE, format!("{:.2}", price + 0.01))),
        AgentAttempt::miss("another product's", sets(OTHER, PRICE, right.clone())),
        AgentAttempt::miss("and the stock too", async move |stage: AgentStage| {
            let change = |form: super::visitor::PageForm| form.set(PRICE, &right).set(STOCK, "1");
            office::edit(&stage.administrator(), upc, change).await;
        }),
        AgentAttempt::miss("and another product's too", async move |stage: AgentStage| {
            for upc in [upc, OTHER] {
                office::set(stage.administrator(), upc, PRICE, format!("{price:.2}")).await;
            }
        }),
    ]
}

fn price_cut(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (maker, category, amount) = (task.text("maker"), task.text("category"), task.number("amount"));
    let cut = move |stage: AgentStage, leave_out: usize, amount: f64, besides: Option<&'static str>| async move {
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
        AgentAttempt::oracle(move |stage| cut(stage, 0, amount, None)),
        AgentAttempt::miss("all but one", move |stage| cut(stage, 1, amount, None)),
        AgentAttempt::miss("a dollar too much", move |stage| cut(stage, 0, amount + 1.0, None)),
        AgentAttempt::miss("and one of another maker", move |stage| cut(stage, 0, amount, Some(OTHER))),
    ]
}

fn stock(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (upc, number) = (task.text("upc"), task.number("number"));
    vec![
        AgentAttempt::oracle(sets(upc, STOCK, number.to_string())),
        AgentAttempt::miss("one too many", sets(upc, STOCK, (number + 1.0).to_string())),
        AgentAttempt::miss("another product's", sets(OTHER, STOCK, number.to_string())),
        AgentAttempt::miss("the threshold", sets(upc, "stockrecords-0-low_stock_threshold", number.to_string())),
    ]
}

fn title(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (upc, title) = (task.text("upc"), task.text("title"));
    vec![
        AgentAttempt::oracle(sets(upc, "title", title.to_owned())),
        AgentAttempt::miss("misspelt", sets(upc, "title", title.replacen('e', "", 1))),
        AgentAttempt::miss("another product's", sets(OTHER, "title", title.to_owned())),
        AgentAttempt::miss("for search engines alone", sets(upc, "meta_title", title.to_owned())),
        AgentAttempt::miss("and its address too", async move |stage: AgentStage| {
            let change = |form: super::visitor::PageForm| form.set("title", title).set("slug", "box");
            office::edit(&stage.administrator(), upc, change).await;
        }),
    ]
}

fn hide(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let upc = task.text("upc");
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| office::untick(stage.administrator(), upc, "is_public")),
        AgentAttempt::miss("deleted", move |stage: AgentStage| office::delete_product(stage.administrator(), upc)),
        AgentAttempt::miss("another product", |stage: AgentStage| {
            office::untick(stage.administrator(), OTHER, "is_public")
        }),
        AgentAttempt::miss("the wrong box", move |stage: AgentStage| {
            office::untick(stage.administrator(), upc, "is_discountable")
        }),
        AgentAttempt::miss("sold out", sets(upc, STOCK, "0".to_owned())),
    ]
}

fn order_status(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (order, status) = (task.text("order"), task.text("status"));
    let set = |stage: AgentStage, orders: &'static [&'static str], status: &'static str| async move {
        for order in orders {
            office::set_status(&stage.administrator(), order, status).await;
        }
    };
    let both: &[&str] = Vec::leak(vec![order, "100290"]);
    // Every order can be cancelled; a complete or cancelled order cannot change its status.
    let wrong = if status == "Cancelled" { "Pending" } else { "Cancelled" };
    vec![
        AgentAttempt::oracle(move |stage| set(stage, &both[..1], status)),
        AgentAttempt::miss("another status", move |stage| set(stage, &both[..1], wrong)),
        AgentAttempt::miss("another order", move |stage| set(stage, &both[1..], "Cancelled")),
        AgentAttempt::miss("another order too", async move |stage: AgentStage| {
            set(stage.clone(), &both[..1], status).await;
            set(stage, &both[1..], "Cancelled").await;
        }),
        AgentAttempt::miss("the lines alone", move |stage: AgentStage| {
            office::set_line_statuses(stage.administrator(), order, "Cancelled")
        }),
    ]
}

fn order_note(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (order, note) = (task.text("order"), task.text("note"));
    let add = |order: &'static str, note: &'static str| {
        async move |stage: AgentStage| office::add_note(&stage.administrator(), order, note).await
    };
    vec![
        AgentAttempt::oracle(add(order, note)),
        AgentAttempt::miss("to another order", add("100250", note)),
        AgentAttempt::miss("another text", add(order, "The customer called.")),
        AgentAttempt::miss("half of it", add(order, &note[..note.len() / 2])),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            for _ in 0..2 {
                office::add_note(&stage.administrator(), order, note).await;
            }
        }),
    ]
}

fn approve_reviews(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let product = task.text("product");
    let moderate = |stage: AgentStage, product: &'static str, leave_out: usize, status: &'static str| async move {
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
        AgentAttempt::oracle(moderated(product, 0, "1")),
        AgentAttempt::miss("all but one", moderated(product, 1, "1")),
        AgentAttempt::miss("rejected", moderated(product, 0, "2")),
        AgentAttempt::miss("those of another product", moderated(WAITING, 0, "1")),
        AgentAttempt::miss("those of another product too", async move |stage: AgentStage| {
            for product in [product, WAITING] {
                moderate(stage.clone(), product, 0, "1").await;
            }
        }),
    ]
}

/// A product with a pending review that no task mentions.
const WAITING: &str = "Thornwick Time GPS Smart Watch, Moss Green";

fn lock_customer(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let email = task.text("email");
    let other = "rowan.lindqvist@courier.test";
    let lock = move |emails| move |stage: AgentStage| office::lock(stage.administrator(), emails, "make_inactive");
    vec![
        AgentAttempt::oracle(lock(vec![email])),
        AgentAttempt::miss("another customer", lock(vec![other])),
        AgentAttempt::miss("another customer too", lock(vec![email, other])),
        AgentAttempt::miss("made active", move |stage: AgentStage| {
            office::lock(stage.administrator(), vec![email], "make_active")
        }),
    ]
}

fn offer(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let percent = task.number("percent");
    let right = Offer {
        range: task.text("range"),
        upcs: Some(task.text("upcs")),
        name: Some(task.text("offer")),
        kind: "Percentage",
        value: String::leak(percent.to_string()),
        from: "1",
    };
    let make = |offer: Offer| move |stage: AgentStage| office::make_offer(stage.administrator(), offer);
    vec![
        AgentAttempt::oracle(make(right)),
        AgentAttempt::miss("the range alone", make(Offer { name: None, ..right })),
        AgentAttempt::miss("less off", make(Offer { value: "10", ..right })),
        AgentAttempt::miss("dollars instead of percents", make(Offer { kind: "Absolute", ..right })),
        AgentAttempt::miss(
            "one product alone",
            make(Offer { upcs: right.upcs.map(|upcs| &upcs[..OTHER.len()]), ..right }),
        ),
        AgentAttempt::miss("every product", make(Offer { upcs: None, ..right })),
        AgentAttempt::miss("from two products on", make(Offer { from: "2", ..right })),
        AgentAttempt::miss("under another name", make(Offer { name: Some("Sale"), ..right })),
    ]
}
