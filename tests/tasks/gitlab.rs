//! Oracles and near misses of `gitlab.yaml`, one function for each template.

use crate::attempt::Attempt;
use crate::files::Task;
use crate::forge;
use crate::shopping::unachievable;
use crate::stage::Stage;
use crate::turkle::near_numbers;
use crate::visitor::{Form, Visitor};

/// The developer account that the tasks use.
const ME: &str = "byteblaze";

/// Returns the attempts at a task of the forge, or `None` if its template is unknown here.
pub fn attempts(task: &'static Task) -> Option<Vec<Attempt>> {
    Some(match task.template.as_str() {
        "gitlab.open-issues" => open_issues(task),
        "gitlab.issue-author" => issue_author(task),
        "gitlab.last-commit" => last_commit(task),
        "gitlab.latest-release" => latest_release(task),
        "gitlab.committer" => committer(task),
        "gitlab.open-issue" => open_issue(task),
        "gitlab.open-file" => open_file(task),
        "gitlab.filter-issues" => filter_issues(task),
        "gitlab.new-issue" => new_issue(task),
        "gitlab.comment" => comment(task),
        "gitlab.close-issue" => close_issue(task),
        "gitlab.label" => label(task),
        "gitlab.assign" => assign(task),
        "gitlab.milestone" => milestone(task),
        "gitlab.new-project" => new_project(task),
        "gitlab.fork" => fork(task),
        "gitlab.star" => star(task),
        "gitlab.add-member" => add_member(task),
        "gitlab.edit-file" => edit_file(task),
        "gitlab.branch" => branch(task),
        "gitlab.merge" => merge(task),
        "gitlab.close-request" => close_request(task),
        "gitlab.comment-request" => comment_request(task),
        "gitlab.unachievable" => unachievable(),
        _ => return None,
    })
}

/// Returns all issues of a project, in the form in which the forge's API lists them.
async fn issues(visitor: &Visitor, project: &str) -> Vec<serde_json::Value> {
    let answer = visitor.json(&format!("/api/0/{project}/issues?status=all&per_page=100")).await;
    answer["issues"].as_array().expect("issues").clone()
}

/// Returns the number of an open issue of the same project that is not the task's issue.
async fn other_issue(visitor: &Visitor, task: &'static Task) -> u64 {
    let issues = issues(visitor, task.text("project")).await;
    let is_other = |issue: &&serde_json::Value| issue["title"] != task.text("title") && issue["status"] == "Open";
    issues.iter().find(is_other).expect("another open issue")["id"].as_u64().expect("a number")
}

/// Returns the number of the task's issue.
async fn the_issue(visitor: &Visitor, task: &'static Task) -> u64 {
    forge::issue(visitor, task.text("project"), task.text("title")).await
}

fn open_issues(task: &'static Task) -> Vec<Attempt> {
    let (project, label) = (task.text("project"), task.text("label"));
    let count = move |stage: Stage, status: &'static str, label: &'static str| async move {
        let issues = issues(&stage.developer(), project).await.into_iter();
        let is_meant = |issue: &serde_json::Value| {
            let labels = issue["tags"].as_array().expect("labels");
            (status.is_empty() || issue["status"] == status)
                && (label.is_empty() || labels.iter().any(|tag| tag == label))
        };
        issues.filter(is_meant).count().to_string()
    };
    let mut attempts = vec![
        Attempt::oracle(move |stage| count(stage, "Open", label)),
        Attempt::miss("closed ones too", move |stage| count(stage, "", label)),
        Attempt::miss("with any label", move |stage| count(stage, "Open", "")),
    ];
    attempts.extend(near_numbers(task.number("open")));
    attempts
}

fn issue_author(task: &'static Task) -> Vec<Attempt> {
    let (project, title) = (task.text("project"), task.text("title"));
    let author = move |stage: Stage, is_meant: bool| async move {
        let issues = issues(&stage.developer(), project).await;
        let authors = issues.iter().filter(|issue| (issue["title"] == title) == is_meant);
        let mut names = authors.map(|issue| issue["user"]["name"].as_str().expect("a name").to_owned());
        names.find(|name| is_meant || name != task.text("author")).expect("an author")
    };
    vec![
        Attempt::oracle(move |stage| author(stage, true)),
        Attempt::miss("another issue's", move |stage| author(stage, false)),
        Attempt::answers("the agent's own name", ME),
        Attempt::answers("two names to choose from", format!("{} or {ME}", task.text("author"))),
    ]
}

fn last_commit(task: &'static Task) -> Vec<Attempt> {
    let (project, branch) = (task.text("project"), task.text("branch"));
    let commit = move |stage: Stage, branch: &'static str, place: usize| async move {
        let page = stage.developer().open(&format!("/{project}/commits/{branch}")).await;
        page.texts("a.notblue > strong")[place].clone()
    };
    vec![
        Attempt::oracle(move |stage| commit(stage, branch, 0)),
        Attempt::miss("the one before", move |stage| commit(stage, branch, 1)),
        Attempt::miss("of another branch", move |stage| {
            commit(stage, if branch == "main" { "next" } else { "main" }, 0)
        }),
        Attempt::answers("the project's name", project),
    ]
}

fn latest_release(task: &'static Task) -> Vec<Attempt> {
    let (project, version) = (task.text("project"), task.text("version"));
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let answer = stage.developer().json(&format!("/api/0/{project}/git/tags")).await;
            let tags =
                answer["tags"].as_array().expect("tags").iter().map(|tag| tag.as_str().expect("a tag").to_owned());
            let key = |tag: &String| -> Vec<u32> {
                tag.trim_start_matches('v').split('.').map(|part| part.parse().expect("a number")).collect()
            };
            tags.max_by_key(key).expect("there are releases")
        }),
        Attempt::miss("the first one", async move |stage: Stage| {
            let answer = stage.developer().json(&format!("/api/0/{project}/git/tags")).await;
            let mut tags = answer["tags"].as_array().expect("tags").iter().map(|tag| tag.as_str().expect("a tag"));
            tags.find(|tag| *tag != version).expect("an earlier one").to_owned()
        }),
        Attempt::answers("with a number more", format!("{version}.0")),
        Attempt::answers("the next one", task.own(["v1.9.0", "v1.0.7"])),
    ]
}

fn committer(task: &'static Task) -> Vec<Attempt> {
    let project = task.text("project");
    let with = move |stage: Stage, roles: &'static [&'static str]| async move {
        let answer = stage.developer().json(&format!("/api/0/{project}")).await;
        let names = roles.iter().flat_map(|role| answer["access_users"][role].as_array().expect("names").clone());
        names.map(|name| name.as_str().expect("a name").to_owned()).collect::<Vec<_>>().join(", ")
    };
    vec![
        Attempt::oracle(move |stage| with(stage, &["commit"])),
        Attempt::miss("the owner", move |stage| with(stage, &["owner"])),
        Attempt::miss("and the owner", move |stage| with(stage, &["commit", "owner"])),
        Attempt::miss("the administrators", move |stage| with(stage, &["admin"])),
    ]
}

fn open_issue(task: &'static Task) -> Vec<Attempt> {
    let project = task.text("project");
    let open =
        move |stage: Stage, path: String| async move { stage.developer().open(&format!("/{project}{path}")).await };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            open(stage, format!("/issue/{number}")).await
        }),
        Attempt::miss("another issue", async move |stage: Stage| {
            let number = other_issue(&stage.developer(), task).await;
            open(stage, format!("/issue/{number}")).await
        }),
        Attempt::miss("the list of issues", move |stage| open(stage, "/issues".to_owned())),
        Attempt::miss("the project", move |stage| open(stage, String::new())),
    ]
}

fn open_file(task: &'static Task) -> Vec<Attempt> {
    let (project, file, branch) = (task.text("project"), task.text("file"), task.text("branch"));
    let open =
        move |stage: Stage, path: String| async move { stage.developer().open(&format!("/{project}/{path}")).await };
    vec![
        Attempt::oracle(move |stage| open(stage, format!("blob/{branch}/f/{file}"))),
        Attempt::miss("on another branch", move |stage| {
            open(stage, format!("blob/{}/f/{file}", if branch == "main" { "next" } else { "main" }))
        }),
        Attempt::miss("another file", move |stage| open(stage, format!("blob/{branch}/f/.gitignore"))),
        Attempt::miss("the list of files", move |stage| open(stage, format!("tree/{branch}"))),
    ]
}

fn filter_issues(task: &'static Task) -> Vec<Attempt> {
    let (project, label) = (task.text("project"), task.text("label"));
    let list = move |stage: Stage, fields: Vec<(&'static str, &'static str)>| async move {
        let query = reqwest::Url::parse_with_params("http://forge/", fields).expect("a URL");
        let query = query.query().unwrap_or_default().to_owned();
        stage.developer().open(&format!("/{project}/issues?{query}")).await
    };
    vec![
        Attempt::oracle(move |stage| list(stage, vec![("status", "Open"), ("tags", label)])),
        Attempt::miss("with another label", move |stage| {
            list(stage, vec![("status", "Open"), ("tags", task.own(["feature", "security"]))])
        }),
        Attempt::miss("with any label", move |stage| list(stage, vec![("status", "Open")])),
        Attempt::miss("the closed ones", move |stage| list(stage, vec![("status", "Closed"), ("tags", label)])),
    ]
}

fn new_issue(task: &'static Task) -> Vec<Attempt> {
    let (project, title, text) = (task.text("project"), task.text("title"), task.text("text"));
    let open = |visitor: Visitor, project: &'static str, title: &'static str, text: &'static str| async move {
        forge::open_issue(&visitor, project, title, text).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| open(stage.developer(), project, title, text)),
        Attempt::miss("in another project", move |stage: Stage| {
            open(stage.developer(), "byteblaze/larkmap", title, text)
        }),
        Attempt::miss("with another title", move |stage: Stage| {
            open(stage.developer(), project, "It does not work", text)
        }),
        Attempt::miss("without the text", move |stage: Stage| open(stage.developer(), project, title, title)),
        Attempt::miss("as another developer", async move |stage: Stage| {
            open(stage.other_developer("elopez55").await, project, title, text).await;
        }),
        Attempt::miss("twice", async move |stage: Stage| {
            open(stage.developer(), project, title, text).await;
            open(stage.developer(), project, title, text).await;
        }),
        Attempt::miss("in two projects", async move |stage: Stage| {
            open(stage.developer(), project, title, text).await;
            open(stage.developer(), "byteblaze/larkmap", title, text).await;
        }),
    ]
}

fn comment(task: &'static Task) -> Vec<Attempt> {
    let (project, text) = (task.text("project"), task.text("text"));
    let say = move |visitor: Visitor, text: &'static str| async move {
        let number = the_issue(&visitor, task).await;
        forge::update_issue(&visitor, project, number, |form| form.set("comment", text)).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| say(stage.developer(), text)),
        Attempt::miss("with another text", move |stage: Stage| say(stage.developer(), "I have seen this, too.")),
        Attempt::miss("on another issue", async move |stage: Stage| {
            let number = other_issue(&stage.developer(), task).await;
            forge::update_issue(&stage.developer(), project, number, |form| form.set("comment", text)).await;
        }),
        Attempt::miss("as another developer", async move |stage: Stage| {
            say(stage.other_developer("elopez55").await, text).await;
        }),
        Attempt::miss("twice", async move |stage: Stage| {
            say(stage.developer(), text).await;
            say(stage.developer(), text).await;
        }),
        Attempt::miss("and closed", async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            let change = |form: Form| form.set("comment", text).set("status", "Closed").set("close_status", "Fixed");
            forge::update_issue(&stage.developer(), project, number, change).await;
        }),
    ]
}

fn close_issue(task: &'static Task) -> Vec<Attempt> {
    let (project, reason) = (task.text("project"), task.text("reason"));
    let close = move |stage: Stage, number: u64, reason: &'static str| async move {
        let change = |form: Form| form.set("status", "Closed").set("close_status", reason);
        forge::update_issue(&stage.developer(), project, number, change).await;
    };
    let other_reason = if reason == "Fixed" { "Duplicate" } else { "Fixed" };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            close(stage, number, reason).await;
        }),
        Attempt::miss("for another reason", async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            close(stage, number, other_reason).await;
        }),
        Attempt::miss("another issue", async move |stage: Stage| {
            let number = other_issue(&stage.developer(), task).await;
            close(stage, number, reason).await;
        }),
        Attempt::miss("two issues", async move |stage: Stage| {
            let (number, other) =
                (the_issue(&stage.developer(), task).await, other_issue(&stage.developer(), task).await);
            close(stage.clone(), number, reason).await;
            close(stage, other, reason).await;
        }),
        Attempt::miss("in words", async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            forge::update_issue(&stage.developer(), project, number, |form| form.set("comment", reason)).await;
        }),
    ]
}

fn label(task: &'static Task) -> Vec<Attempt> {
    let (project, label) = (task.text("project"), task.text("label"));
    let set = move |stage: Stage, number: u64, labels: &'static [&'static str], keep: bool| async move {
        let change = |form: Form| {
            let old = if keep { form.value("tag").to_owned() } else { String::new() };
            let all: Vec<&str> = old.split(',').filter(|tag| !tag.is_empty()).chain(labels.iter().copied()).collect();
            let all = all.join(",");
            form.set("tag", &all)
        };
        forge::update_issue(&stage.developer(), project, number, change).await;
    };
    let one: &'static [&'static str] = Vec::leak(vec![label]);
    let two: &'static [&'static str] = Vec::leak(vec![label, task.own(["security", "bug"])]);
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, one, true).await;
        }),
        Attempt::miss("instead of the one that it has", async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, one, false).await;
        }),
        Attempt::miss("two labels", async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, two, true).await;
        }),
        Attempt::miss("another issue", async move |stage: Stage| {
            let number = other_issue(&stage.developer(), task).await;
            set(stage, number, one, true).await;
        }),
        Attempt::miss("and another issue besides", async move |stage: Stage| {
            let (number, other) =
                (the_issue(&stage.developer(), task).await, other_issue(&stage.developer(), task).await);
            set(stage.clone(), number, one, true).await;
            set(stage, other, two, true).await;
        }),
    ]
}

/// Attempts at setting one field of an issue.
fn field(task: &'static Task, field: &'static str, value: &'static str, other: &'static str) -> Vec<Attempt> {
    let project = task.text("project");
    let set = move |stage: Stage, number: u64, value: &'static str| async move {
        forge::update_issue(&stage.developer(), project, number, |form| form.set(field, value)).await;
    };
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, value).await;
        }),
        Attempt::miss("another value", async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, other).await;
        }),
        Attempt::miss("another issue", async move |stage: Stage| {
            let number = other_issue(&stage.developer(), task).await;
            set(stage, number, value).await;
        }),
        Attempt::miss("closed besides", async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage.clone(), number, value).await;
            let change = |form: Form| form.set("status", "Closed").set("close_status", "Fixed");
            forge::update_issue(&stage.developer(), project, number, change).await;
        }),
        Attempt::miss("in words", async move |stage: Stage| {
            let number = the_issue(&stage.developer(), task).await;
            forge::update_issue(&stage.developer(), project, number, |form| form.set("comment", value)).await;
        }),
    ]
}

fn assign(task: &'static Task) -> Vec<Attempt> {
    field(task, "assignee", task.text("assignee"), task.own(["lhartley73", "rooker"]))
}

fn milestone(task: &'static Task) -> Vec<Attempt> {
    field(task, "milestone", task.text("milestone"), task.own(["1.9", "2.0"]))
}

fn new_project(task: &'static Task) -> Vec<Attempt> {
    let (name, description) = (task.text("name"), task.text("description"));
    let make = |visitor: Visitor, name: &'static str, description: &'static str, readme: bool| async move {
        forge::new_project(&visitor, name, description, readme).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| make(stage.developer(), name, description, true)),
        Attempt::miss("with another description", move |stage: Stage| {
            make(stage.developer(), name, "A new project", true)
        }),
        Attempt::miss("with another name", move |stage: Stage| make(stage.developer(), "workbench", description, true)),
        Attempt::miss("without a README", move |stage: Stage| make(stage.developer(), name, description, false)),
        Attempt::miss("as another developer", async move |stage: Stage| {
            make(stage.other_developer("elopez55").await, name, description, true).await;
        }),
    ]
}

fn fork(task: &'static Task) -> Vec<Attempt> {
    let (project, other) = (task.text("project"), "gridlark/mooring");
    vec![
        Attempt::oracle(async move |stage: Stage| forge::fork(&stage.developer(), project).await),
        Attempt::miss("another project", async move |stage: Stage| forge::fork(&stage.developer(), other).await),
        Attempt::miss("as another developer", async move |stage: Stage| {
            forge::fork(&stage.other_developer("elopez55").await, project).await;
        }),
        Attempt::miss("and another project besides", async move |stage: Stage| {
            forge::fork(&stage.developer(), project).await;
            forge::fork(&stage.developer(), other).await;
        }),
        Attempt::miss("as a new project of that name", async move |stage: Stage| {
            let name = project.split('/').next_back().expect("a name");
            forge::new_project(&stage.developer(), name, "A fork", true).await;
        }),
    ]
}

fn star(task: &'static Task) -> Vec<Attempt> {
    let (project, other) = (task.text("project"), "smithf/saltpan");
    vec![
        Attempt::oracle(async move |stage: Stage| forge::star(&stage.developer(), project).await),
        Attempt::miss("another project", async move |stage: Stage| forge::star(&stage.developer(), other).await),
        Attempt::miss("as another developer", async move |stage: Stage| {
            forge::star(&stage.other_developer("elopez55").await, project).await;
        }),
        Attempt::miss("and another project besides", async move |stage: Stage| {
            forge::star(&stage.developer(), project).await;
            forge::star(&stage.developer(), other).await;
        }),
    ]
}

fn add_member(task: &'static Task) -> Vec<Attempt> {
    let (project, member, access) = (task.text("project"), task.text("member"), task.text("access"));
    let (other, other_project) = task.own([("rossis", "byteblaze/larkmap"), ("grooke62", "byteblaze/ropewalk")]);
    let add = |stage: Stage, project: &'static str, member: &'static str, access: &'static str| async move {
        forge::add_user(&stage.developer(), project, member, access).await;
    };
    vec![
        Attempt::oracle(move |stage| add(stage, project, member, access)),
        Attempt::miss("with more rights", move |stage| add(stage, project, member, "admin")),
        Attempt::miss("somebody else", move |stage| add(stage, project, other, access)),
        Attempt::miss("to another project", move |stage| add(stage, other_project, member, access)),
        Attempt::miss("and another user besides", async move |stage: Stage| {
            add(stage.clone(), project, member, access).await;
            add(stage, project, other, access).await;
        }),
    ]
}

fn edit_file(task: &'static Task) -> Vec<Attempt> {
    let (project, line, message) = (task.text("project"), task.text("line"), task.text("message"));
    let file = task.text("file");
    let append = |text: &str, line: &str| format!("{}\n\n{line}\n", text.trim_end());
    let edit = move |stage: Stage,
                     file: &'static str,
                     line: &'static str,
                     message: &'static str,
                     to: Option<&'static str>| async move {
        forge::edit_file(&stage.developer(), project, file, message, to, |text| append(text, line)).await;
    };
    vec![
        Attempt::oracle(move |stage| edit(stage, file, line, message, None)),
        Attempt::miss("with another message", move |stage| edit(stage, file, line, "Update a file", None)),
        Attempt::miss("another line", move |stage| edit(stage, file, "To be continued.", message, None)),
        Attempt::miss("on a new branch", move |stage| edit(stage, file, line, message, Some("my-change"))),
        Attempt::miss("instead of the text", async move |stage: Stage| {
            forge::edit_file(&stage.developer(), project, file, message, None, |_| format!("{line}\n")).await;
        }),
    ]
}

fn branch(task: &'static Task) -> Vec<Attempt> {
    let (project, name, line) = (task.text("project"), task.text("branch"), task.text("line"));
    let file = task.text("file");
    let edit = move |stage: Stage, line: &'static str, to: Option<&'static str>| async move {
        let change = |text: &str| format!("{}\n\n{line}\n", text.trim_end());
        forge::edit_file(&stage.developer(), project, file, "Say more", to, change).await;
    };
    vec![
        Attempt::oracle(move |stage| edit(stage, line, Some(name))),
        Attempt::miss("on main", move |stage| edit(stage, line, None)),
        Attempt::miss("on a branch of another name", move |stage| edit(stage, line, Some("topic"))),
        Attempt::miss("with another line", move |stage| edit(stage, "More will follow.", Some(name))),
        Attempt::miss("on main as well", async move |stage: Stage| {
            edit(stage.clone(), line, Some(name)).await;
            edit(stage, line, None).await;
        }),
    ]
}

/// Returns the number of the task's pull request.
async fn the_request(visitor: &Visitor, task: &'static Task) -> u64 {
    forge::request(visitor, task.text("project"), task.text("title")).await
}

fn merge(task: &'static Task) -> Vec<Attempt> {
    let project = task.text("project");
    let (other, other_title) = task.own([
        ("slate-signal/courier-cms", "Add middle to the edition"),
        ("mooring-software/beacon", "Add distance to the dimmer"),
    ]);
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let number = the_request(&stage.developer(), task).await;
            forge::merge(&stage.developer(), project, number).await;
        }),
        Attempt::miss("closed without merging", async move |stage: Stage| {
            let number = the_request(&stage.developer(), task).await;
            forge::close_request(&stage.developer(), project, number).await;
        }),
        Attempt::miss("another project's", async move |stage: Stage| {
            let number = forge::request(&stage.developer(), other, other_title).await;
            forge::merge(&stage.developer(), other, number).await;
        }),
        Attempt::miss("in words", async move |stage: Stage| {
            let number = the_request(&stage.developer(), task).await;
            forge::comment_request(&stage.developer(), project, number, "Merged, thank you.").await;
        }),
    ]
}

fn close_request(task: &'static Task) -> Vec<Attempt> {
    let project = task.text("project");
    let (other, other_title) = task.own([
        ("byteblaze/heronry", "Settings for Stonebridge"),
        ("mooring-software/beacon", "Add distance to the dimmer"),
    ]);
    vec![
        Attempt::oracle(async move |stage: Stage| {
            let number = the_request(&stage.developer(), task).await;
            forge::close_request(&stage.developer(), project, number).await;
        }),
        Attempt::miss("merged", async move |stage: Stage| {
            let number = the_request(&stage.developer(), task).await;
            forge::merge(&stage.developer(), project, number).await;
        }),
        Attempt::miss("another project's", async move |stage: Stage| {
            let number = forge::request(&stage.developer(), other, other_title).await;
            forge::close_request(&stage.developer(), other, number).await;
        }),
        Attempt::miss("in words", async move |stage: Stage| {
            let number = the_request(&stage.developer(), task).await;
            forge::comment_request(&stage.developer(), project, number, "Closing this.").await;
        }),
    ]
}

fn comment_request(task: &'static Task) -> Vec<Attempt> {
    let (project, text) = (task.text("project"), task.text("text"));
    let say = move |visitor: Visitor, text: &'static str| async move {
        let number = the_request(&visitor, task).await;
        forge::comment_request(&visitor, project, number, text).await;
    };
    vec![
        Attempt::oracle(move |stage: Stage| say(stage.developer(), text)),
        Attempt::miss("with another text", move |stage: Stage| say(stage.developer(), "Looks good to me.")),
        Attempt::miss("as another developer", async move |stage: Stage| {
            say(stage.other_developer("elopez55").await, text).await;
        }),
        Attempt::miss("twice", async move |stage: Stage| {
            say(stage.developer(), text).await;
            say(stage.developer(), text).await;
        }),
        Attempt::miss("on an issue", async move |stage: Stage| {
            let visitor = stage.developer();
            let issues = issues(&visitor, project).await;
            let number = issues[0]["id"].as_u64().expect("a number");
            forge::update_issue(&visitor, project, number, |form| form.set("comment", text)).await;
        }),
    ]
}
