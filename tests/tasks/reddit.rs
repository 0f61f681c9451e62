//! Oracles and near misses of `reddit.yaml`, one function for each template.

use serde_json::json;

use super::attempt::AgentAttempt;
use super::board::{self, Thread};
use super::files::TemplateTask;
use super::shopping::unachievable;
use super::stage::AgentStage;
use super::turkle::near_numbers;
use super::visitor::TaskVisitor;

/// The member account that the tasks use.
const ME: &str = "MarvelsGrantMan136";

/// A member that no task mentions.
const OTHER: &str = "elopez55";

/// Returns the attempts at a task of the forum, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
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
async fn named(visitor: &TaskVisitor, task: &'static TemplateTask) -> Thread {
    board::thread(visitor, task.text("forum"), task.text("title")).await
}

/// Returns another thread of the same forum that accepts replies.
async fn beside(visitor: &TaskVisitor, task: &'static TemplateTask) -> Thread {
    let threads = board::threads(visitor, task.text("forum")).await.into_iter();
    let is_other = |thread: &Thread| thread.title != task.text("title") && !thread.is_closed && !thread.is_pinned;
    threads.filter(is_other).nth(3).expect("a forum has more threads")
}

fn starter(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| named(&stage.member(), task).await.starter),
        AgentAttempt::miss("another thread's", async move |stage: AgentStage| {
            let threads = board::threads(&stage.member(), task.text("forum")).await;
            let other = threads.into_iter().find(|thread| thread.starter != task.text("starter"));
            other.expect("another member has started one").starter
        }),
        AgentAttempt::miss("who answered first", async move |stage: AgentStage| {
            let thread = named(&stage.member(), task).await;
            board::posts(&stage.member(), thread.id).await[1].poster.clone()
        }),
        AgentAttempt::answers("two names to choose from", format!("{} or {OTHER}", task.text("starter"))),
    ]
}

fn replies(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let mut attempts = vec![
        AgentAttempt::oracle(async move |stage: AgentStage| named(&stage.member(), task).await.replies.to_string()),
        // The first post does not count as a reply.
        AgentAttempt::miss("how many posts", async move |stage: AgentStage| {
            let thread = named(&stage.member(), task).await;
            board::posts(&stage.member(), thread.id).await.len().to_string()
        }),
    ];
    attempts.extend(near_numbers(task.number("replies")));
    attempts
}

fn most_liked(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let ranked = move |stage: AgentStage, place: usize| async move {
        let visitor = stage.member();
        let mut posts = board::posts(&visitor, named(&visitor, task).await.id).await;
        posts.sort_by_key(|post| std::cmp::Reverse(post.likes));
        let best = posts[0].poster.clone();
        if place == 0 { best } else { posts.into_iter().find(|post| post.poster != best).expect("others wrote").poster }
    };
    vec![
        AgentAttempt::oracle(move |stage| ranked(stage, 0)),
        AgentAttempt::miss("the second", move |stage| ranked(stage, 1)),
        AgentAttempt::answers("a member who wrote nothing there", "admin"),
        AgentAttempt::miss("two of them", async move |stage: AgentStage| {
            format!("{}, {}", ranked(stage.clone(), 0).await, ranked(stage, 1).await)
        }),
    ]
}

fn own_posts(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let mut attempts = vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let visitor = stage.member();
            let posts = board::posts(&visitor, named(&visitor, task).await.id).await.into_iter();
            posts.filter(|post| post.poster == task.text("member")).count().to_string()
        }),
        AgentAttempt::miss("everybody's", async move |stage: AgentStage| {
            let visitor = stage.member();
            board::posts(&visitor, named(&visitor, task).await.id).await.len().to_string()
        }),
    ];
    attempts.extend(near_numbers(task.number("posts")));
    attempts
}

fn home(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let member = task.text("member");
    let home = |stage: AgentStage, member: &'static str| async move {
        let visitor = stage.member();
        let number = board::member(&visitor, member).await;
        let details = visitor.json(&format!("/api/users/{number}/details/")).await;
        let groups = details["groups"].as_array().expect("groups").iter();
        let mut fields = groups.flat_map(|group| group["fields"].as_array().expect("fields"));
        let location = fields.find(|field| field["name"] == "Location").expect("the location is told");
        location["text"].as_str().expect("a place").split(',').next().unwrap_or_default().to_owned()
    };
    vec![
        AgentAttempt::oracle(move |stage| home(stage, member)),
        AgentAttempt::miss("another member's", move |stage| home(stage, OTHER)),
        AgentAttempt::answers("the county alone", "Larkmoor"),
        AgentAttempt::answers("two towns to choose from", format!("{} or Saltmarsh Heights", task.text("town"))),
    ]
}

fn open_forum(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let forum = task.own(["space", "travel"]);
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| stage.member().open(&format!("/f/{forum}")).await),
        AgentAttempt::miss("another forum", async |stage: AgentStage| stage.member().open("/f/larkmoor").await),
        AgentAttempt::miss("the list of forums", async |stage: AgentStage| stage.member().open("/categories/").await),
        AgentAttempt::miss("a search for its name", move |stage| search_for(stage, forum.to_owned())),
        AgentAttempt::miss("a thread in it", async move |stage: AgentStage| {
            let visitor = stage.member();
            let thread = board::threads(&visitor, forum).await.remove(2);
            visitor.open(&thread.path).await
        }),
    ]
}

async fn search_for(stage: AgentStage, words: String) -> super::visitor::VisitedPage {
    let words: String = reqwest::Url::parse_with_params("http://forum/", [("q", words)])
        .expect("a URL")
        .query()
        .expect("words")
        .to_owned();
    stage.member().open(&format!("/search/threads/?{words}")).await
}

fn search(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let words = task.text("words");
    vec![
        AgentAttempt::oracle(move |stage| search_for(stage, words.to_owned())),
        AgentAttempt::miss("not all words", move |stage| {
            search_for(stage, words.split(' ').next().unwrap_or_default().to_owned())
        }),
        AgentAttempt::miss("a word more", move |stage| search_for(stage, format!("{words} today"))),
        AgentAttempt::miss("nothing", async |stage: AgentStage| stage.member().open("/search/").await),
    ]
}

fn open_longest(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let forum = task.text("forum");
    let open = move |stage: AgentStage, place: usize| async move {
        let visitor = stage.member();
        let mut threads = board::threads(&visitor, forum).await;
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.replies));
        visitor.open(&threads[place].path).await
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, 0)),
        AgentAttempt::miss("the second", move |stage| open(stage, 1)),
        AgentAttempt::miss("the latest", async move |stage: AgentStage| {
            let visitor = stage.member();
            let threads = board::threads(&visitor, forum).await;
            let latest = threads.iter().find(|thread| !thread.is_pinned).expect("there are threads");
            visitor.open(&latest.path).await
        }),
        AgentAttempt::miss("the forum", async move |stage: AgentStage| {
            stage.member().open(&format!("/f/{forum}")).await
        }),
    ]
}

fn start_thread(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (forum, title, text) = (task.text("forum"), task.text("title"), task.text("text"));
    let start = |visitor: TaskVisitor, forum: &'static str, title: &'static str, text: &'static str| async move {
        board::start(&visitor, forum, title, text).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| start(stage.member(), forum, title, text)),
        AgentAttempt::miss("in another forum", move |stage: AgentStage| {
            start(stage.member(), "AskLarkmoor", title, text)
        }),
        AgentAttempt::miss("with another title", move |stage: AgentStage| {
            start(stage.member(), forum, "A question to all", text)
        }),
        AgentAttempt::miss("with another text", move |stage: AgentStage| start(stage.member(), forum, title, title)),
        AgentAttempt::miss("as another member", async move |stage: AgentStage| {
            board::start(&stage.other_member(OTHER).await, forum, title, text).await;
        }),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            board::start(&stage.member(), forum, title, text).await;
            board::start(&stage.member(), forum, title, text).await;
        }),
        AgentAttempt::miss("and an answer to it", async move |stage: AgentStage| {
            let thread = board::start(&stage.member(), forum, title, text).await;
            board::reply(&stage.member(), thread, "Nobody?").await;
        }),
    ]
}

fn reply(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let text = task.text("text");
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
        }),
        AgentAttempt::miss("in another thread", async move |stage: AgentStage| {
            let visitor = stage.member();
            board::reply(&visitor, beside(&visitor, task).await.id, text).await;
        }),
        AgentAttempt::miss("with another text", async move |stage: AgentStage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, "I agree with all of you.").await;
        }),
        AgentAttempt::miss("as another member", async move |stage: AgentStage| {
            let visitor = stage.other_member(OTHER).await;
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
        }),
        AgentAttempt::miss("as a thread of its own", async move |stage: AgentStage| {
            board::start(&stage.member(), task.text("forum"), task.text("title"), text).await;
        }),
        AgentAttempt::miss("in two threads", async move |stage: AgentStage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
            board::reply(&visitor, beside(&visitor, task).await.id, text).await;
        }),
    ]
}

fn like(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (poster, other) = (task.text("poster"), task.own(["leila_chen", "brandtm"]));
    let like = move |visitor: TaskVisitor, whose: &'static str| async move {
        let thread = named(&visitor, task).await.id;
        let post = board::post_of(&visitor, thread, whose).await;
        board::like(&visitor, thread, post.id, true).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| like(stage.member(), poster)),
        AgentAttempt::miss("another post", move |stage: AgentStage| like(stage.member(), other)),
        AgentAttempt::miss("as another member", async move |stage: AgentStage| {
            like(stage.other_member(OTHER).await, poster).await
        }),
        AgentAttempt::miss("and another post besides", async move |stage: AgentStage| {
            like(stage.member(), poster).await;
            like(stage.member(), other).await;
        }),
        AgentAttempt::miss("in words", async move |stage: AgentStage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, &format!("I like what @{poster} says.")).await;
        }),
    ]
}

fn unlike(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let set = move |visitor: TaskVisitor, whose: &'static str, value: bool| async move {
        let thread = named(&visitor, task).await.id;
        let post = board::post_of(&visitor, thread, whose).await;
        board::like(&visitor, thread, post.id, value).await;
    };
    let (poster, other) = (task.text("poster"), task.own(["grooke62", "alderm"]));
    let liker = task.own(["skestrel64", "brandte"]);
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| set(stage.member(), poster, false)),
        AgentAttempt::miss("another member's like", async move |stage: AgentStage| {
            set(stage.other_member(liker).await, poster, false).await;
        }),
        AgentAttempt::miss("and another like besides", async move |stage: AgentStage| {
            set(stage.member(), poster, false).await;
            set(stage.member(), other, true).await;
        }),
        AgentAttempt::miss("taken back, and given again", async move |stage: AgentStage| {
            set(stage.member(), poster, false).await;
            set(stage.member(), poster, true).await;
        }),
    ]
}

fn edit(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (text, post) = (task.text("text"), task.number("post") as u64);
    let rewrite = move |stage: AgentStage, post: u64, text: &'static str| async move {
        let visitor = stage.member();
        board::edit(&visitor, named(&visitor, task).await.id, post, text).await;
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let visitor = stage.member();
            let thread = named(&visitor, task).await.id;
            let mine = board::post_of(&visitor, thread, ME).await;
            board::edit(&visitor, thread, mine.id, text).await;
        }),
        AgentAttempt::miss("with another text", move |stage| rewrite(stage, post, "I have changed my mind.")),
        AgentAttempt::miss("with something behind it", move |stage| {
            rewrite(stage, post, String::leak(format!("{text} And there is more to say.")))
        }),
        AgentAttempt::miss("as a new reply", async move |stage: AgentStage| {
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
        }),
        AgentAttempt::miss("and as a new reply", async move |stage: AgentStage| {
            rewrite(stage.clone(), post, text).await;
            let visitor = stage.member();
            board::reply(&visitor, named(&visitor, task).await.id, text).await;
        }),
    ]
}

fn rename(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (forum, title) = (task.text("forum"), task.text("new_title"));
    let rename = move |stage: AgentStage, place: usize, title: &'static str| async move {
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
        AgentAttempt::oracle(move |stage| rename(stage, 0, title)),
        AgentAttempt::miss("another thread", move |stage| rename(stage, 1, title)),
        AgentAttempt::miss("with another title", move |stage| rename(stage, 0, "Solved, thank you all")),
        AgentAttempt::miss("as a new thread", async move |stage: AgentStage| {
            board::start(&stage.member(), forum, title, title).await;
        }),
    ]
}

fn profile(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (location, bio) = (task.text("location"), task.text("bio"));
    let edit = |visitor: TaskVisitor, who: &'static str, fields: Vec<(&'static str, &'static str)>| async move {
        board::edit_profile(&visitor, who, &fields).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| {
            edit(stage.member(), ME, vec![("location", location), ("bio", bio)])
        }),
        AgentAttempt::miss("only one of both", move |stage: AgentStage| edit(stage.member(), ME, vec![("bio", bio)])),
        AgentAttempt::miss("both exchanged", move |stage: AgentStage| {
            edit(stage.member(), ME, vec![("location", bio), ("bio", location)])
        }),
        AgentAttempt::miss("as another member", async move |stage: AgentStage| {
            edit(stage.other_member(OTHER).await, OTHER, vec![("location", location), ("bio", bio)]).await;
        }),
        AgentAttempt::miss("and a name besides", move |stage: AgentStage| {
            edit(stage.member(), ME, vec![("location", location), ("bio", bio), ("real_name", "Grant Marvel")])
        }),
    ]
}

fn poll(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (question, days) = (task.text("question"), task.number("days") as u32);
    let choices = ["first", "second", "third"].map(|name| task.text(name));
    let open = move |stage: AgentStage, question: &'static str, days: u32, skip: usize, turn: bool| async move {
        let visitor = stage.member();
        let mut choices = choices[skip..].to_vec();
        if turn {
            choices.reverse();
        }
        board::start_poll(&visitor, named(&visitor, task).await.id, question, &choices, days).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, question, days, 0, false)),
        AgentAttempt::miss("without the first choice", move |stage| open(stage, question, days, 1, false)),
        AgentAttempt::miss("the choices the other way round", move |stage| open(stage, question, days, 0, true)),
        AgentAttempt::miss("for a day more", move |stage| open(stage, question, days + 1, 0, false)),
        AgentAttempt::miss("with another question", move |stage| open(stage, "What do you think?", days, 0, false)),
        AgentAttempt::miss("in words", async move |stage: AgentStage| {
            let visitor = stage.member();
            let text = format!("{question}\n\n{}", choices.join("\n\n"));
            board::reply(&visitor, named(&visitor, task).await.id, &text).await;
        }),
    ]
}

fn private(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (title, text) = (task.text("title"), task.text("text"));
    let names = move || task.text("to").split(" and ").collect::<Vec<_>>();
    let write = move |visitor: TaskVisitor, names: Vec<&'static str>, text: &'static str| async move {
        board::write_to(&visitor, &names, title, text).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| write(stage.member(), names(), text)),
        AgentAttempt::miss("to one more", move |stage: AgentStage| {
            write(stage.member(), names().into_iter().chain([OTHER]).collect(), text)
        }),
        AgentAttempt::miss("to another member", move |stage: AgentStage| write(stage.member(), vec![OTHER], text)),
        AgentAttempt::miss("with another text", move |stage: AgentStage| write(stage.member(), names(), title)),
        AgentAttempt::miss("as another member", async move |stage: AgentStage| {
            write(stage.other_member(OTHER).await, names(), text).await;
        }),
        AgentAttempt::miss("in public", async move |stage: AgentStage| {
            board::start(&stage.member(), "AskLarkmoor", title, text).await;
        }),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            write(stage.member(), names(), text).await;
            write(stage.member(), names(), text).await;
        }),
    ]
}

fn follow(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (member, other) = (task.text("member"), task.own(["smithf", "brandte"]));
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| board::follow(&stage.member(), member).await),
        AgentAttempt::miss("somebody else", async move |stage: AgentStage| board::follow(&stage.member(), other).await),
        AgentAttempt::miss("as another member", async move |stage: AgentStage| {
            board::follow(&stage.other_member(other).await, member).await;
        }),
        AgentAttempt::miss("and another member besides", async move |stage: AgentStage| {
            board::follow(&stage.member(), member).await;
            board::follow(&stage.member(), other).await;
        }),
    ]
}

fn close(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "is-closed", json!(true)).await;
        }),
        AgentAttempt::miss("another thread", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            board::change(&visitor, beside(&visitor, task).await.id, "is-closed", json!(true)).await;
        }),
        AgentAttempt::miss("by hiding it", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "is-hidden", json!(true)).await;
        }),
        AgentAttempt::miss("closed and hidden", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            let thread = named(&visitor, task).await.id;
            board::change(&visitor, thread, "is-closed", json!(true)).await;
            board::change(&visitor, thread, "is-hidden", json!(true)).await;
        }),
        AgentAttempt::miss("and another thread besides", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "is-closed", json!(true)).await;
            board::change(&visitor, beside(&visitor, task).await.id, "is-closed", json!(true)).await;
        }),
    ]
}

fn move_thread(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let move_to = move |stage: AgentStage, thread: Thread, forum: &'static str| async move {
        let visitor = stage.moderator();
        let forum = board::forum(&visitor, forum).await;
        board::change(&visitor, thread.id, "category", json!(forum)).await;
    };
    let target = task.text("target");
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let thread = named(&stage.moderator(), task).await;
            move_to(stage, thread, target).await;
        }),
        AgentAttempt::miss("another thread", async move |stage: AgentStage| {
            let thread = beside(&stage.moderator(), task).await;
            move_to(stage, thread, target).await;
        }),
        AgentAttempt::miss("to another forum", async move |stage: AgentStage| {
            let thread = named(&stage.moderator(), task).await;
            move_to(stage, thread, "larkmoor").await;
        }),
        AgentAttempt::miss("as a copy", async move |stage: AgentStage| {
            board::start(&stage.moderator(), target, task.text("title"), "Moved here.").await;
        }),
    ]
}

fn pin(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "weight", json!(1)).await;
        }),
        AgentAttempt::miss("in all forums", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "weight", json!(2)).await;
        }),
        AgentAttempt::miss("another thread", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            board::change(&visitor, beside(&visitor, task).await.id, "weight", json!(1)).await;
        }),
        AgentAttempt::miss("in place of the one that is pinned", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            let threads = board::threads(&visitor, task.text("forum")).await;
            let pinned = threads.iter().find(|thread| thread.is_pinned).expect("a thread is pinned").id;
            board::change(&visitor, named(&visitor, task).await.id, "weight", json!(1)).await;
            board::change(&visitor, pinned, "weight", json!(0)).await;
        }),
    ]
}

fn hide_post(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (poster, other) = (task.text("poster"), task.own(["mfairweather59", "orooke57"]));
    let hide = move |stage: AgentStage, whose: &'static str| async move {
        let visitor = stage.moderator();
        let thread = named(&visitor, task).await.id;
        let post = board::post_of(&visitor, thread, whose).await;
        board::hide_post(&visitor, thread, post.id).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| hide(stage, poster)),
        AgentAttempt::miss("another post", move |stage| hide(stage, other)),
        AgentAttempt::miss("two posts", async move |stage: AgentStage| {
            hide(stage.clone(), poster).await;
            hide(stage, other).await;
        }),
        AgentAttempt::miss("the whole thread", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            board::change(&visitor, named(&visitor, task).await.id, "is-hidden", json!(true)).await;
        }),
        AgentAttempt::miss("by emptying it", async move |stage: AgentStage| {
            let visitor = stage.moderator();
            let thread = named(&visitor, task).await.id;
            let post = board::post_of(&visitor, thread, poster).await;
            board::edit(&visitor, thread, post.id, "(removed)").await;
        }),
    ]
}
