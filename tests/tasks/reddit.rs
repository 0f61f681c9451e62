//! Oracles and near misses of `reddit.yaml`, one function for each template.

use serde_json::json;

use crate::attempt::Attempt;
use crate::board::{self, Thread};
use crate::files::Task;
use crate::shopping::unachievable;
use crate::stage::Stage;
use crate::turkle::near_numbers;
use crate::visitor::Visitor;

/// The member account that the tasks use.
const ME: &str = "MarvelsGrantMan136";

/// A member that no task mentions.
const OTHER: &str = "elopez55";

/// Returns the attempts at a task of the forum, or `None` if its template is unknown here.
pub fn attempts(task: &'static Task) -> Option<Vec<Attempt>> {
    Some(match task.template.as_str() {
        "reddit.starter" => starter(task),
        "reddit.replies" => replies(task),
        "reddit.most-liked" => most_liked(task),
        "reddit.own-posts" => own_posts(task),
        "reddit.home" => home(task),
        "reddit.open-forum" => open_forum(task),
        "reddit.search" => search(task),
        "reddit.open-longest" => open_longest(task),
        "reddit.start-thread" => start_thread(task),
        "reddit.reply" => reply(task),
        "reddit.like" => like(task),
        "reddit.unlike" => unlike(task),
        "reddit.edit" => edit(task),
        "reddit.rename" => rename(task),
        "reddit.profile" => profile(task),
        "reddit.poll" => poll(task),
        "reddit.private" => private(task),
        "reddit.follow" => follow(task),
        "reddit.close" => close(task),
        "reddit.move" => move_thread(task),
        "reddit.pin" => pin(task),
        "reddit.hide-post" => hide_post(task),
        "reddit.unachievable" => unachievable(),
        _ => return None,
    })
}

/// Returns the thread that the task names.
async fn named(visitor: &Visitor, task: &'static Task) -> Thread {
    board::thread(visitor, task.text("forum"), task.text("title")).await
}

/// Returns another thread of the same forum that accepts replies.
async fn beside(visitor: &Visitor, task: &'static Task) -> Thread {
    let threads = board::threads(visitor, task.text("forum")).await.into_iter();
    let is_other = |thread: &Thread| thread.title != task.text("title") && !thread.is_closed && !thread.is_pinned;
    threads.filter(is_other).nth(3).expect("a forum has more threads")
}

fn starter(task: &'static Task) -> Vec<Attempt> {
    vec![
        Attempt::oracle(async move |stage: Stage| named(&stage.member(), task).await.starter),
        Attempt::miss("another thread's", async move |stage: Stage| {
            let threads = board::threads(&stage.member(), task.text("forum")).await;
            let other = threads.into_iter().find(|thread| thread.starter != task.text("starter"));
            other.expect("another member has started one").starter
        }),
        Attempt::miss("who answered first", async move |stage: Stage| {
            let thread = named(&stage.member(), task).await;
            board::posts(&stage.member(), thread.id).await[1].poster.clone()
        }),
        Attempt::answers("two names to choose from", format!("{} or {OTHER}", task.text("starter"))),
    ]
}

fn replies(task: &'static Task) -> Vec<Attempt> {
    let mut attempts = vec![
        Attempt::oracle(async move |stage: Stage| named(&stage.member(), task).await.replies.to_string()),
        // The first post does not count as a reply.
        Attempt::miss("how many posts", async move |stage: Stage| {
            let thread = named(&stage.member(), task).await;
            board::posts(&stage.member(), thread.id).await.len().to_string()
        }),
    ];
    attempts.extend(near_numbers(task.number("replies")));
    attempts
}

fn most_liked(task: &'static Task) -> Vec<Attempt> {
    let ranked = move |stage: Stage, place: usize| async move {
        let visitor = stage.member();
        let mut posts = board::posts(&visitor, named(&visitor, task).await.id).await;
        posts.sort_by_key(|post| std::cmp::Reverse(post.likes));
        let best = posts[0].poster.clone();
        if place == 0 { best } else { posts.into_iter().find(|post| post.poster != best).expect("others wrote").poster }
    };
    vec![
        Attempt::oracle(move |stage| ranked(stage, 0)),
        Attempt::miss("the second", move |stage| ranked(stage, 1)),
        Attempt::answers("a member who wrote nothing there", "admin"),
        Attempt::miss("two of them", async move |stage: Stage| {
            format!("{}, {}", ranked(stage.clone(), 0).await, ranked(stage, 1).await)
        }),
    ]
}

fn own_posts(task: &'static Task) -> Vec<Attempt> {
    let mut attempts = vec![
        Attempt::oracle(async move |stage: Stage| {
            let visitor = stage.member();
            let posts = board::posts(&visitor, named(&visitor, task).await.id).await.into_iter();
            posts.filter(|post| post.poster == task.text("member")).count().to_string()
        }),
        Attempt::miss("everybody's", async move |stage: Stage| {
            let visitor = stage.member();
            board::posts(&visitor, named(&visitor, task).await.id).await.len().to_string()
        }),
    ];
    attempts.extend(near_numbers(task.number("posts")));
    attempts
}

fn home(task: &'static Task) -> Vec<Attempt> {
    let member = task.text("member");
    let home = |stage: Stage, member: &'static str| async move {
        let visitor = stage.member();
        let number = board::member(&visitor, member).await;
        let details = visitor.json(&format!("/api/users/{number}/details/")).await;
        let groups = details["groups"].as_array().expect("groups").iter();
        let mut fields = groups.flat_map(|group| group["fields"].as_array().expect("fields"));
        let location = fields.find(|field| field["name"] == "Location").expect("the location is told");
        location["text"].as_str().expect("a place").split(',').next().unwrap_or_default().to_owned()
    };
    vec![
        Attempt::oracle(move |stage| home(stage, member)),
        Attempt::miss("another member's", move |stage| home(stage, OTHER)),
        Attempt::answers("the county alone", "Larkmoor"),
        Attempt::answers("two towns to choose from", format!("{} or Saltmarsh Heights", task.text("town"))),
    ]
}

fn open_forum(task: &'static Task) -> Vec<Attempt> {
    let forum = task.own(["space", "travel"]);
    vec![
        Attempt::oracle(async move |stage: Stage| stage.member().open(&format!("/f/{forum}")).await),
        Attempt::miss("another forum", async |stage: Stage| stage.member().open("/f/larkmoor").await),
        Attempt::miss("the list of forums", async |stage: Stage| stage.member().open("/categories/").await),
        Attempt::miss("a search for its name", move |stage| search_for(stage, forum.to_owned())),
        Attempt::miss("a thread in it", async move |stage: Stage| {
            let visitor = stage.member();
            let thread = board::threads(&visitor, forum).await.remove(2);
            visitor.open(&thread.path).await
        }),
    ]
}

async fn search_for(stage: Stage, words: String) -> crate::visitor::Page {
    let words: String = reqwest::Url::parse_with_params("http://forum/", [("q", words)])
        .expect("a URL")
        .query()
        .expect("words")
        .to_owned();
    stage.member().open(&format!("/search/threads/?{words}")).await
}

fn search(task: &'static Task) -> Vec<Attempt> {
    let words = task.text("words");
    vec![
        Attempt::oracle(move |stage| search_for(stage, words.to_owned())),
        Attempt::miss("not all words", move |stage| {
            search_for(stage, words.split(' ').next().unwrap_or_default().to_owned())
        }),
        Attempt::miss("a word more", move |stage| search_for(stage, format!("{words} today"))),
        Attempt::miss("nothing", async |stage: Stage| stage.member().open("/search/").await),
    ]
}

fn open_longest(task: &'static Task) -> Vec<Attempt> {
    let forum = task.text("forum");
    let open = move |stage: Stage, place: usize| async move {
        let visitor = stage.member();
        let mut threads = board::threads(&visitor, forum).await;
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.replies));
        visitor.open(&threads[place].path).await
    };
    vec![
        Attempt::oracle(move |stage| open(stage, 0)),
        Attempt::miss("the second", move |stage| open(stage, 1)),
        Attempt::miss("the latest", async move |stage: Stage| {
            let visitor = stage.member();
            let threads = board::threads(&visitor, forum).await;
            let latest = threads.iter().find(|thread| !thread.is_pinned).expect("there are threads");
            visitor.open(&latest.path).await
        }),
        Attempt::miss("the forum", async move |stage: Stage| stage.member().open(&format!("/f/{forum}")).await),
    ]
}

fn start_thread(task: &'static Task) -> Vec<Attempt> {
    let (forum, title, text) = (task.text("forum"), task.text("title"), task.text("text"));
    let start = |visitor: Visitor, forum: &'static str, title: &'static str, text: &'static str| async move {
        board::start(&visitor, forum, title, text).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| start(stage.member(), forum, title, text)),
        Attempt::miss("in another forum", move |stage: Stage| start(stage.member(), "AskLarkmoor", title, text)),
        Attempt::miss("with another title", move |stage: Stage| {
            start(stage.member(), forum, "A question to all", text)
        }),
        Attempt::miss("with another text", move |stage: Stage| start(stage.member(), forum, title, title)),
        Attempt::miss("as another member", async move |stage: Stage| {
            board::start(&stage.other_member(OTHER).await, forum, title, text).await;
        }),
        Attempt::miss("twice", async move |stage: Stage| {
            board::start(&stage.member(), forum, title, text).await;
            board::start(&stage.member(), forum, title, text).await;
        }),
        Attempt::miss("and an answer to it", async move |stage: Stage| {
            let thread = board::start(&stage.member(), forum, title, text).await;
            board::reply(&stage.member(), thread, "Nobody?").await;
        }),
    ]
}

fn reply(task: &'static Task) -> Vec<Attempt> {
    let text = task.text("text");
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
        }),
        Attempt::miss("in another thread", async move |stage: Stage| {
            let visitor = stage.member();
            board::reply(&visitor, beside(&visitor, task).await.id, text).await;
        }),
        Attempt::miss("with another text", async move |stage: Stage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, "I agree with all of you.").await;
        }),
        Attempt::miss("as another member", async move |stage: Stage| {
            let visitor = stage.other_member(OTHER).await;
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
        }),
        Attempt::miss("as a thread of its own", async move |stage: Stage| {
            board::start(&stage.member(), task.text("forum"), task.text("title"), text).await;
        }),
        Attempt::miss("in two threads", async move |stage: Stage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
            board::reply(&visitor, beside(&visitor, task).await.id, text).await;
        }),
    ]
}

fn like(task: &'static Task) -> Vec<Attempt> {
    let (poster, other) = (task.text("poster"), task.own(["leila_chen", "brandtm"]));
    let like = move |visitor: Visitor, whose: &'static str| async move {
        let thread = named(&visitor, task).await.id;
        let post = board::post_of(&visitor, thread, whose).await;
        board::like(&visitor, thread, post.id, true).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| like(stage.member(), poster)),
        Attempt::miss("another post", move |stage: Stage| like(stage.member(), other)),
        Attempt::miss("as another member", async move |stage: Stage| {
            like(stage.other_member(OTHER).await, poster).await
        }),
        Attempt::miss("and another post besides", async move |stage: Stage| {
            like(stage.member(), poster).await;
            like(stage.member(), other).await;
        }),
        Attempt::miss("in words", async move |stage: Stage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, &format!("I like what @{poster} says.")).await;
        }),
    ]
}

fn unlike(task: &'static Task) -> Vec<Attempt> {
    let set = move |visitor: Visitor, whose: &'static str, value: bool| async move {
        let thread = named(&visitor, task).await.id;
        let post = board::post_of(&visitor, thread, whose).await;
        board::like(&visitor, thread, post.id, value).await;
    };
    let (poster, other) = (task.text("poster"), task.own(["grooke62", "alderm"]));
    let liker = task.own(["skestrel64", "brandte"]);
    vec![
        Attempt::oracle(move |stage: Stage| set(stage.member(), poster, false)),
        Attempt::miss("another member's like", async move |stage: Stage| {
            set(stage.other_member(liker).await, poster, false).await;
        }),
        Attempt::miss("and another like besides", async move |stage: Stage| {
            set(stage.member(), poster, false).await;
            set(stage.member(), other, true).await;
        }),
        Attempt::miss("taken back, and given again", async move |stage: Stage| {
            set(stage.member(), poster, false).await;
            set(stage.member(), poster, true).await;
        }),
    ]
}

fn edit(task: &'static Task) -> Vec<Attempt> {
    let (text, post) = (task.text("text"), task.number("post") as u64);
    let rewrite = move |stage: Stage, post: u64, text: &'static str| async move {
        let visitor = stage.member();
        board::edit(&visitor, named(&visitor, task).await.id, post, text).await;
    };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let visitor = stage.member();
            let thread = named(&visitor, task).await.id;
            let mine = board::post_of(&visitor, thread, ME).await;
            board::edit(&visitor, thread, mine.id, text).await;
        }),
        Attempt::miss("with another text", move |stage| rewrite(stage, post, "I have changed my mind.")),
        Attempt::miss("with something behind it", move |stage| {
            rewrite(stage, post, String::leak(format!("{text} And there is more to say.")))
        }),
        Attempt::miss("as a new reply", async move |stage: Stage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
        }),
        Attempt::miss("and as a new reply", async move |stage: Stage| {
            rewrite(stage.clone(), post, text).await;
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
        }),
    ]
}

fn rename(task: &'static Task) -> Vec<Attempt> {
    let (forum, title) = (task.text("forum"), task.text("new_title"));
    let rename = move |stage: Stage, place: usize, title: &'static str| async move {
        let visitor = stage.member();
        let mut threads = board::threads(&visitor, forum).await.into_iter();
        let is_mine = |thread: &Thread| thread.starter == ME && thread.title != task.text("title") && !thread.is_closed;
        let thread = match place {
            0 => named(&visitor, task).await,
            _ => threads.find(is_mine).expect("another thread of one's own"),
        };
        board::change(&visitor, thread.id, "title", json!(title)).await;
    };
    vec![
        Attempt::oracle(move |stage| rename(stage, 0, title)),
        Attempt::miss("another thread", move |stage| rename(stage, 1, title)),
        Attempt::miss("with another title", move |stage| rename(stage, 0, "Solved, thank you all")),
        Attempt::miss("as a new thread", async move |stage: Stage| {
            board::start(&stage.member(), forum, title, title).await;
        }),
    ]
}

fn profile(task: &'static Task) -> Vec<Attempt> {
    let (location, bio) = (task.text("location"), task.text("bio"));
    let edit = |visitor: Visitor, who: &'static str, fields: Vec<(&'static str, &'static str)>| async move {
        board::edit_profile(&visitor, who, &fields).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| edit(stage.member(), ME, vec![("location", location), ("bio", bio)])),
        Attempt::miss("only one of both", move |stage: Stage| edit(stage.member(), ME, vec![("bio", bio)])),
        Attempt::miss("both exchanged", move |stage: Stage| {
            edit(stage.member(), ME, vec![("location", bio), ("bio", location)])
        }),
        Attempt::miss("as another member", async move |stage: Stage| {
            edit(stage.other_member(OTHER).await, OTHER, vec![("location", location), ("bio", bio)]).await;
        }),
        Attempt::miss("and a name besides", move |stage: Stage| {
            edit(stage.member(), ME, vec![("location", location), ("bio", bio), ("real_name", "Grant Marvel")])
        }),
    ]
}

fn poll(task: &'static Task) -> Vec<Attempt> {
    let (question, days) = (task.text("question"), task.number("days") as u32);
    let choices = ["first", "second", "third"].map(|name| task.text(name));
    let open = move |stage: Stage, question: &'static str, days: u32, skip: usize, turn: bool| async move {
        let visitor = stage.member();
        let mut choices = choices[skip..].to_vec();
        if turn {
            choices.reverse();
        }
        board::start_poll(&visitor, named(&visitor, task).await.id, question, &choices, days).await;
    };
    vec![
        Attempt::oracle(move |stage| open(stage, question, days, 0, false)),
        Attempt::miss("without the first choice", move |stage| open(stage, question, days, 1, false)),
        Attempt::miss("the choices the other way round", move |stage| open(stage, question, days, 0, true)),
        Attempt::miss("for a day more", move |stage| open(stage, question, days + 1, 0, false)),
        Attempt::miss("with another question", move |stage| open(stage, "What do you think?", days, 0, false)),
        Attempt::miss("in words", async move |stage: Stage| {
            let visitor = stage.member();
            let text = format!("{question}\n\n{}", choices.join("\n\n"));
            board::reply(&visitor, named(&visitor, task).await.id, &text).await;
        }),
    ]
}

fn private(task: &'static Task) -> Vec<Attempt> {
    let (title, text) = (task.text("title"), task.text("text"));
    let names = move || task.text("to").split(" and ").collect::<Vec<_>>();
    let write = move |visitor: Visitor, names: Vec<&'static str>, text: &'static str| async move {
        board::write_to(&visitor, &names, title, text).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| write(stage.member(), names(), text)),
        Attempt::miss("to one more", move |stage: Stage| {
            write(stage.member(), names().into_iter().chain([OTHER]).collect(), text)
        }),
        Attempt::miss("to another member", move |stage: Stage| write(stage.member(), vec![OTHER], text)),
        Attempt::miss("with another text", move |stage: Stage| write(stage.member(), names(), title)),
        Attempt::miss("as another member", async move |stage: Stage| {
            write(stage.other_member(OTHER).await, names(), text).await;
        }),
        Attempt::miss("in public", async move |stage: Stage| {
            board::start(&stage.member(), "AskLarkmoor", title, text).await;
        }),
        Attempt::miss("twice", async move |stage: Stage| {
            write(stage.member(), names(), text).await;
            write(stage.member(), names(), text).await;
        }),
    ]
}

fn follow(task: &'static Task) -> Vec<Attempt> {
    let (member, other) = (task.text("member"), task.own(["smithf", "brandte"]));
    vec![
        Attempt::oracle(async move |stage: Stage| board::follow(&stage.member(), member).await),
        Attempt::miss("somebody else", async move |stage: Stage| board::follow(&stage.member(), other).await),
        Attempt::miss("as another member", async move |stage: Stage| {
            board::follow(&stage.other_member(other).await, member).await;
        }),
        Attempt::miss("and another member besides", async move |stage: Stage| {
            board::follow(&stage.member(), member).await;
            board::follow(&stage.member(), other).await;
        }),
    ]
}

fn close(task: &'static Task) -> Vec<Attempt> {
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "is-closed", json!(true)).await;
        }),
        Attempt::miss("another thread", async move |stage: Stage| {
            let visitor = stage.moderator();
            board::change(&visitor, beside(&visitor, task).await.id, "is-closed", json!(true)).await;
        }),
        Attempt::miss("by hiding it", async move |stage: Stage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "is-hidden", json!(true)).await;
        }),
        Attempt::miss("closed and hidden", async move |stage: Stage| {
            let visitor = stage.moderator();
            let thread = named(&visitor, task).await.id;
            board::change(&visitor, thread, "is-closed", json!(true)).await;
            board::change(&visitor, thread, "is-hidden", json!(true)).await;
        }),
        Attempt::miss("and another thread besides", async move |stage: Stage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "is-closed", json!(true)).await;
            board::change(&visitor, beside(&visitor, task).await.id, "is-closed", json!(true)).await;
        }),
    ]
}

fn move_thread(task: &'static Task) -> Vec<Attempt> {
    let move_to = move |stage: Stage, thread: Thread, forum: &'static str| async move {
        let visitor = stage.moderator();
        let forum = board::forum(&visitor, forum).await;
        board::change(&visitor, thread.id, "category", json!(forum)).await;
    };
    let target = task.text("target");
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let thread = named(&stage.moderator(), task).await;
            move_to(stage, thread, target).await;
        }),
        Attempt::miss("another thread", async move |stage: Stage| {
            let thread = beside(&stage.moderator(), task).await;
            move_to(stage, thread, target).await;
        }),
        Attempt::miss("to another forum", async move |stage: Stage| {
            let thread = named(&stage.moderator(), task).await;
            move_to(stage, thread, "larkmoor").await;
        }),
        Attempt::miss("as a copy", async move |stage: Stage| {
            board::start(&stage.moderator(), target, task.text("title"), "Moved here.").await;
        }),
    ]
}

fn pin(task: &'static Task) -> Vec<Attempt> {
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "weight", json!(1)).await;
        }),
        Attempt::miss("in all forums", async move |stage: Stage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "weight", json!(2)).await;
        }),
        Attempt::miss("another thread", async move |stage: Stage| {
            let visitor = stage.moderator();
            board::change(&visitor, beside(&visitor, task).await.id, "weight", json!(1)).await;
        }),
        Attempt::miss("in place of the one that is pinned", async move |stage: Stage| {
            let visitor = stage.moderator();
            let threads = board::threads(&visitor, task.text("forum")).await;
            let pinned = threads.iter().find(|thread| thread.is_pinned).expect("a thread is pinned").id;
            board::change(&visitor, named(&visitor, task).await.id, "weight", json!(1)).await;
            board::change(&visitor, pinned, "weight", json!(0)).await;
        }),
    ]
}

fn hide_post(task: &'static Task) -> Vec<Attempt> {
    let (poster, other) = (task.text("poster"), task.own(["mfairweather59", "orooke57"]));
    let hide = move |stage: Stage, whose: &'static str| async move {
        let visitor = stage.moderator();
        let thread = named(&visitor, task).await.id;
        let post = board::post_of(&visitor, thread, whose).await;
        board::hide_post(&visitor, thread, post.id).await;
    };
    vec![
        Attempt::oracle(move |stage| hide(stage, poster)),
        Attempt::miss("another post", move |stage| hide(stage, other)),
        Attempt::miss("two posts", async move |stage: Stage| {
            hide(stage.clone(), poster).await;
            hide(stage, other).await;
        }),
        Attempt::miss("the whole thread", async move |stage: Stage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "is-hidden", json!(true)).await;
        }),
        Attempt::miss("by emptying it", async move |stage: Stage| {
            let visitor = stage.moderator();
            let thread = named(&visitor, task).await.id;
            let post = board::post_of(&visitor, thread, poster).await;
            board::edit(&visitor, thread, post.id, "(removed)").await;
        }),
    ]
}
