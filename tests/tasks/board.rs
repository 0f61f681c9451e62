//! Actions of forum members, sent as the same requests that the forum's pages send.

use reqwest::Method;
use serde_json::{Value, json};

use super::visitor::TaskVisitor;

/// The cookie that holds the forum's CSRF token.
const TOKEN: &str = "forum_csrf";

/// A thread as the thread list of its forum shows it.
#[derive(Debug, Clone)]
pub struct Thread {
    pub id: u64,
    pub title: String,
    pub path: String,
    /// The name of the member who started the thread.
    pub starter: String,
    /// The number of replies; the first post is not counted.
    pub replies: u64,
    /// Whether the thread is closed to new replies.
    pub is_closed: bool,
    /// Whether the thread stays at the top of the list.
    pub is_pinned: bool,
}

/// A post of a thread.
#[derive(Debug, Clone)]
pub struct Post {
    pub id: u64,
    /// The name of the member who wrote the post.
    pub poster: String,
    /// The number of likes.
    pub likes: u64,
}

/// Follows a link and returns the number in the path of the final page: the id of a forum or of a member.
async fn number_of(visitor: &TaskVisitor, link: &str) -> u64 {
    let page = visitor.open(link).await;
    let mut parts = page.url.path().trim_end_matches('/').rsplit('/');
    parts.find_map(|part| part.parse().ok()).unwrap_or_else(|| panic!("no number in {}", page.url))
}

pub async fn forum(visitor: &TaskVisitor, name: &str) -> u64 {
    number_of(visitor, &format!("/f/{name}")).await
}

pub async fn member(visitor: &TaskVisitor, name: &str) -> u64 {
    number_of(visitor, &format!("/user/{name}")).await
}

/// Returns all threads of a forum: pinned threads first, then the others by their latest posts.
pub async fn threads(visitor: &TaskVisitor, name: &str) -> Vec<Thread> {
    let forum = forum(visitor, name).await;
    let (mut all, mut start) = (Vec::new(), 0);
    loop {
        let page = visitor.json(&format!("/api/threads/?category={forum}&start={start}")).await;
        all.extend(page["results"].as_array().expect("threads").iter().map(listed));
        match page["next"].as_u64() {
            Some(next) => start = next,
            None => return all,
        }
    }
}

fn listed(thread: &Value) -> Thread {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    Thread {
        id: thread["id"].as_u64().expect("a number"),
        title: text(&thread["title"]),
        path: text(&thread["url"]["index"]),
        starter: text(&thread["starter"]["username"]),
        replies: thread["replies"].as_u64().expect("a number"),
        is_closed: thread["is_closed"].as_bool().expect("yes or no"),
        is_pinned: thread["weight"] != 0,
    }
}

/// Returns the thread with this title.
pub async fn thread(visitor: &TaskVisitor, forum: &str, title: &str) -> Thread {
    let threads = threads(visitor, forum).await;
    threads.into_iter().find(|thread| thread.title == title).unwrap_or_else(|| panic!("no thread {title:?} in {forum}"))
}

/// Returns all posts of a thread, oldest first.
pub async fn posts(visitor: &TaskVisitor, thread: u64) -> Vec<Post> {
    let (mut all, mut number) = (Vec::new(), 1);
    loop {
        let answer = visitor.json(&format!("/api/threads/{thread}/posts/?page={number}")).await;
        let page = &answer["post_set"];
        all.extend(page["results"].as_array().expect("posts").iter().map(shown));
        match page["next"].as_u64() {
            Some(next) => number = next,
            None => return all,
        }
    }
}

fn shown(post: &Value) -> Post {
    Post {
        id: post["id"].as_u64().expect("a number"),
        poster: post["poster_name"].as_str().expect("a name").to_owned(),
        likes: post["likes"].as_u64().unwrap_or_default(),
    }
}

/// Returns the first post of a member in a thread.
pub async fn post_of(visitor: &TaskVisitor, thread: u64, poster: &str) -> Post {
    let posts = posts(visitor, thread).await;
    posts.into_iter().find(|post| post.poster == poster).unwrap_or_else(|| panic!("no post of {poster} in {thread}"))
}

/// Starts a thread and returns its number.
pub async fn start(visitor: &TaskVisitor, forum: &str, title: &str, text: &str) -> u64 {
    let forum = self::forum(visitor, forum).await;
    let body = json!({ "category": forum, "title": title, "post": text });
    visitor.call(Method::POST, "/api/threads/", TOKEN, &body).await["id"].as_u64().expect("a number")
}

pub async fn reply(visitor: &TaskVisitor, thread: u64, text: &str) {
    visitor.call(Method::POST, &format!("/api/threads/{thread}/posts/"), TOKEN, &json!({ "post": text })).await;
}

/// Replaces the text of a post.
pub async fn edit(visitor: &TaskVisitor, thread: u64, post: u64, text: &str) {
    let path = format!("/api/threads/{thread}/posts/{post}/");
    visitor.call(Method::PUT, &path, TOKEN, &json!({ "post": text })).await;
}

/// Likes a post or removes the like.
pub async fn like(visitor: &TaskVisitor, thread: u64, post: u64, value: bool) {
    let path = format!("/api/threads/{thread}/posts/{post}/");
    let body = json!([{ "op": "replace", "path": "is-liked", "value": value }]);
    visitor.call(Method::PATCH, &path, TOKEN, &body).await;
}

pub async fn hide_post(visitor: &TaskVisitor, thread: u64, post: u64) {
    let path = format!("/api/threads/{thread}/posts/{post}/");
    let body = json!([{ "op": "replace", "path": "is-hidden", "value": true }]);
    visitor.call(Method::PATCH, &path, TOKEN, &body).await;
}

/// Changes one property of a thread: `title`, `weight`, `category`, `is-closed` or `is-hidden`.
pub async fn change(visitor: &TaskVisitor, thread: u64, what: &str, value: Value) {
    let body = json!([{ "op": "replace", "path": what, "value": value }]);
    visitor.call(Method::PATCH, &format!("/api/threads/{thread}/"), TOKEN, &body).await;
}

/// Opens a poll in a thread for `days` days (0: no end). Each voter has one choice.
pub async fn start_poll(visitor: &TaskVisitor, thread: u64, question: &str, choices: &[&str], days: u32) {
    let choices: Vec<Value> = choices.iter().map(|choice| json!({ "label": choice })).collect();
    let body = json!({
        "question": question, "choices": choices, "length": days, "allowed_choices": 1,
        "allow_revotes": false, "is_public": false,
    });
    visitor.call(Method::POST, &format!("/api/threads/{thread}/poll/"), TOKEN, &body).await;
}

/// Starts a private conversation.
pub async fn write_to(visitor: &TaskVisitor, names: &[&str], title: &str, text: &str) {
    let body = json!({ "to": names, "title": title, "post": text });
    visitor.call(Method::POST, "/api/private-threads/", TOKEN, &body).await;
}

/// Follows a member, or stops following.
pub async fn follow(visitor: &TaskVisitor, name: &str) {
    let member = member(visitor, name).await;
    visitor.call(Method::POST, &format!("/api/users/{member}/follow/"), TOKEN, &json!({})).await;
}

/// Changes fields of a member's profile and sends the other fields unchanged.
pub async fn edit_profile(visitor: &TaskVisitor, name: &str, changes: &[(&str, &str)]) {
    let path = format!("/api/users/{}/edit-details/", member(visitor, name).await);
    let mut fields = serde_json::Map::new();
    for group in visitor.json(&path).await.as_array().expect("groups of fields") {
        for field in group["fields"].as_array().expect("fields") {
            fields.insert(field["fieldname"].as_str().expect("a name").to_owned(), field["initial"].clone());
        }
    }
    for (field, value) in changes {
        assert!(fields.insert((*field).to_owned(), json!(value)).is_some(), "there is a field {field}");
    }
    visitor.call(Method::POST, &path, TOKEN, &Value::Object(fields)).await;
}
