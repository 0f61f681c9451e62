//! Oracles and near misses of `gitlab.yaml`, one function for each template.

use super::attempt::AgentAttempt;
use super::files::TemplateTask;
use super::forge;
use super::shopping::unachievable;
use super::stage::AgentStage;
use super::turkle::near_numbers;
use super::visitor::{PageForm, TaskVisitor};

/// The developer account that the tasks use.
const ME: &str = "byteblaze";

/// Returns the attempts at a task of the forge, or `None` if its template is unknown here.
pub fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
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
async fn issues(visitor: &TaskVisitor, project: &str) -> Vec<serde_json::Value> {
    let answer = visitor.json(&format!("/api/0/{project}/issues?status=all&per_page=100")).await;
    answer["issues"].as_array().expect("issues").clone()
}

/// Returns the number of an open issue of the same project that is not the task's issue.
async fn other_issue(visitor: &TaskVisitor, task: &'static TemplateTask) -> u64 {
    let issues = issues(visitor, task.text("project")).await;
    let is_other = |issue: &&serde_json::Value| issue["title"] != task.text("title") && issue["status"] == "Open";
    issues.iter().find(is_other).expect("another open issue")["id"].as_u64().expect("a number")
}

/// Returns the number of the task's issue.
async fn the_issue(visitor: &TaskVisitor, task: &'static TemplateTask) -> u64 {
    forge::issue(visitor, task.text("project"), task.text("title")).await
}

fn open_issues(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, label) = (task.text("project"), task.text("label"));
    let count = move |stage: AgentStage, status: &'static str, label: &'static str| async move {
        let issues = issues(&stage.developer(), project).await.into_iter();
        let is_meant = |issue: &serde_json::Value| {
            let labels = issue["tags"].as_array().expect("labels");
            (status.is_empty() || issue["status"] == status)
                && (label.is_empty() || labels.iter().any(|tag| tag == label))
        };
        issues.filter(is_meant).count().to_string()
    };
    let mut attempts = vec![
        AgentAttempt::oracle(move |stage| count(stage, "Open", label)),
        AgentAttempt::miss("closed ones too", move |stage| count(stage, "", label)),
        AgentAttempt::miss("with any label", move |stage| count(stage, "Open", "")),
    ];
    attempts.extend(near_numbers(task.number("open")));
    attempts
}

fn issue_author(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, title) = (task.text("project"), task.text("title"));
    let author = move |stage: AgentStage, is_meant: bool| async move {
        let issues = issues(&stage.developer(), project).await;
        let authors = issues.iter().filter(|issue| (issue["title"] == title) == is_meant);
        let mut names = authors.map(|issue| issue["user"]["name"].as_str().expect("a name").to_owned());
        names.find(|name| is_meant || name != task.text("author")).expect("an author")
    };
    vec![
        AgentAttempt::oracle(move |stage| author(stage, true)),
        AgentAttempt::miss("another issue's", move |stage| author(stage, false)),
        AgentAttempt::answers("the agent's own name", ME),
        AgentAttempt::answers("two names to choose from", format!("{} or {ME}", task.text("author"))),
    ]
}

fn last_commit(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, branch) = (task.text("project"), task.text("branch"));
    let commit = move |stage: AgentStage, branch: &'static str, place: usize| async move {
        let page = stage.developer().open(&format!("/{project}/commits/{branch}")).await;
        page.texts("a.notblue > strong")[place].clone()
    };
    vec![
        AgentAttempt::oracle(move |stage| commit(stage, branch, 0)),
        AgentAttempt::miss("the one before", move |stage| commit(stage, branch, 1)),
        AgentAttempt::miss("of another branch", move |stage| {
            commit(stage, if branch == "main" { "next" } else { "main" }, 0)
        }),
        AgentAttempt::answers("the project's name", project),
    ]
}

fn latest_release(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, version) = (task.text("project"), task.text("version"));
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let answer = stage.developer().json(&format!("/api/0/{project}/git/tags")).await;
            let tags =
                answer["tags"].as_array().expect("tags").iter().map(|tag| tag.as_str().expect("a tag").to_owned());
            let key = |tag: &String| -> Vec<u32> {
                tag.trim_start_matches('v').split('.').map(|part| part.parse().expect("a number")).collect()
            };
            tags.max_by_key(key).expect("there are releases")
        }),
        AgentAttempt::miss("the first one", async move |stage: AgentStage| {
            let answer = stage.developer().json(&format!("/api/0/{project}/git/tags")).await;
            let mut tags = answer["tags"].as_array().expect("tags").iter().map(|tag| tag.as_str().expect("a tag"));
            tags.find(|tag| *tag != version).expect("an earlier one").to_owned()
        }),
        AgentAttempt::answers("with a number more", format!("{version}.0")),
        AgentAttempt::answers("the next one", task.own(["v1.9.0", "v1.0.7"])),
    ]
}

fn committer(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let project = task.text("project");
    let with = move |stage: AgentStage, roles: &'static [&'static str]| async move {
        let answer = stage.developer().json(&format!("/api/0/{project}")).await;
        let names = roles.iter().flat_map(|role| answer["access_users"][role].as_array().expect("names").clone());
        names.map(|name| name.as_str().expect("a name").to_owned()).collect::<Vec<_>>().join(", ")
    };
    vec![
        AgentAttempt::oracle(move |stage| with(stage, &["commit"])),
        AgentAttempt::miss("the owner", move |stage| with(stage, &["owner"])),
        AgentAttempt::miss("and the owner", move |stage| with(stage, &["commit", "owner"])),
        AgentAttempt::miss("the administrators", move |stage| with(stage, &["admin"])),
    ]
}

fn open_issue(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let project = task.text("project");
    let open = move |stage: AgentStage, path: String| async move {
        stage.developer().open(&format!("/{project}{path}")).await
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            open(stage, format!("/issue/{number}")).await
        }),
        AgentAttempt::miss("another issue", async move |stage: AgentStage| {
            let number = other_issue(&stage.developer(), task).await;
            open(stage, format!("/issue/{number}")).await
        }),
        AgentAttempt::miss("the list of issues", move |stage| open(stage, "/issues".to_owned())),
        AgentAttempt::miss("the project", move |stage| open(stage, String::new())),
    ]
}

fn open_file(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, file, branch) = (task.text("project"), task.text("file"), task.text("branch"));
    let open = move |stage: AgentStage, path: String| async move {
        stage.developer().open(&format!("/{project}/{path}")).await
    };
    vec![
        AgentAttempt::oracle(move |stage| open(stage, format!("blob/{branch}/f/{file}"))),
        AgentAttempt::miss("on another branch", move |stage| {
            open(stage, format!("blob/{}/f/{file}", if branch == "main" { "next" } else { "main" }))
        }),
        AgentAttempt::miss("another file", move |stage| open(stage, format!("blob/{branch}/f/.gitignore"))),
        AgentAttempt::miss("the list of files", move |stage| open(stage, format!("tree/{branch}"))),
    ]
}

fn filter_issues(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, label) = (task.text("project"), task.text("label"));
    let list = move |stage: AgentStage, fields: Vec<(&'static str, &'static str)>| async move {
        let query = reqwest::Url::parse_with_params("http://forge/", fields).expect("a URL");
        let query = query.query().unwrap_or_default().to_owned();
        stage.developer().open(&format!("/{project}/issues?{query}")).await
    };
    vec![
        AgentAttempt::oracle(move |stage| list(stage, vec![("status", "Open"), ("tags", label)])),
        AgentAttempt::miss("with another label", move |stage| {
            list(stage, vec![("status", "Open"), ("tags", task.own(["feature", "security"]))])
        }),
        AgentAttempt::miss("with any label", move |stage| list(stage, vec![("status", "Open")])),
        AgentAttempt::miss("the closed ones", move |stage| list(stage, vec![("status", "Closed"), ("tags", label)])),
    ]
}

fn new_issue(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, title, text) = (task.text("project"), task.text("title"), task.text("text"));
    let open = |visitor: TaskVisitor, project: &'static str, title: &'static str, text: &'static str| async move {
        forge::open_issue(&visitor, project, title, text).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| open(stage.developer(), project, title, text)),
        AgentAttempt::miss("in another project", move |stage: AgentStage| {
            open(stage.developer(), "byteblaze/larkmap", title, text)
        }),
        AgentAttempt::miss("with another title", move |stage: AgentStage| {
            open(stage.developer(), project, "It does not work", text)
        }),
        AgentAttempt::miss("without the text", move |stage: AgentStage| open(stage.developer(), project, title, title)),
        AgentAttempt::miss("as another developer", async move |stage: AgentStage| {
            open(stage.other_developer("elopez55").await, project, title, text).await;
        }),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            open(stage.developer(), project, title, text).await;
            open(stage.developer(), project, title, text).await;
        }),
        AgentAttempt::miss("in two projects", async move |stage: AgentStage| {
            open(stage.developer(), project, title, text).await;
            open(stage.developer(), "byteblaze/larkmap", title, text).await;
        }),
    ]
}

fn comment(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, text) = (task.text("project"), task.text("text"));
    let say = move |visitor: TaskVisitor, text: &'static str| async move {
        let number = the_issue(&visitor, task).await;
        forge::update_issue(&visitor, project, number, |form| form.set("comment", text)).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| say(stage.developer(), text)),
        AgentAttempt::miss("with another text", move |stage: AgentStage| {
            say(stage.developer(), "I have seen this, too.")
        }),
        AgentAttempt::miss("on another issue", async move |stage: AgentStage| {
            let number = other_issue(&stage.developer(), task).await;
            forge::update_issue(&stage.developer(), project, number, |form| form.set("comment", text)).await;
        }),
        AgentAttempt::miss("as another developer", async move |stage: AgentStage| {
            say(stage.other_developer("elopez55").await, text).await;
        }),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            say(stage.developer(), text).await;
            say(stage.developer(), text).await;
        }),
        AgentAttempt::miss("and closed", async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            let change =
                |form: PageForm| form.set("comment", text).set("status", "Closed").set("close_status", "Fixed");
            forge::update_issue(&stage.developer(), project, number, change).await;
        }),
    ]
}

fn close_issue(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, reason) = (task.text("project"), task.text("reason"));
    let close = move |stage: AgentStage, number: u64, reason: &'static str| async move {
        let change = |form: PageForm| form.set("status", "Closed").set("close_status", reason);
        forge::update_issue(&stage.developer(), project, number, change).await;
    };
    let other_reason = if reason == "Fixed" { "Duplicate" } else { "Fixed" };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            close(stage, number, reason).await;
        }),
        AgentAttempt::miss("for another reason", async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            close(stage, number, other_reason).await;
        }),
        AgentAttempt::miss("another issue", async move |stage: AgentStage| {
            let number = other_issue(&stage.developer(), task).await;
            close(stage, number, reason).await;
        }),
        AgentAttempt::miss("two issues", async move |stage: AgentStage| {
            let (number, other) =
                (the_issue(&stage.developer(), task).await, other_issue(&stage.developer(), task).await);
            close(stage.clone(), number, reason).await;
            close(stage, other, reason).await;
        }),
        AgentAttempt::miss("in words", async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            forge::update_issue(&stage.developer(), project, number, |form| form.set("comment", reason)).await;
        }),
    ]
}

fn label(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, label) = (task.text("project"), task.text("label"));
    let set = move |stage: AgentStage, number: u64, labels: &'static [&'static str], keep: bool| async move {
        let change = |form: PageForm| {
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
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, one, true).await;
        }),
        AgentAttempt::miss("instead of the one that it has", async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, one, false).await;
        }),
        AgentAttempt::miss("two labels", async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, two, true).await;
        }),
        AgentAttempt::miss("another issue", async move |stage: AgentStage| {
            let number = other_issue(&stage.developer(), task).await;
            set(stage, number, one, true).await;
        }),
        AgentAttempt::miss("and another issue besides", async move |stage: AgentStage| {
            let (number, other) =
                (the_issue(&stage.developer(), task).await, other_issue(&stage.developer(), task).await);
            set(stage.clone(), number, one, true).await;
            set(stage, other, two, true).await;
        }),
    ]
}

/// Attempts at setting one field of an issue.
fn field(
    task: &'static TemplateTask,
    field: &'static str,
    value: &'static str,
    other: &'static str,
) -> Vec<AgentAttempt> {
    let project = task.text("project");
    let set = move |stage: AgentStage, number: u64, value: &'static str| async move {
        forge::update_issue(&stage.developer(), project, number, |form| form.set(field, value)).await;
    };
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, value).await;
        }),
        AgentAttempt::miss("another value", async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage, number, other).await;
        }),
        AgentAttempt::miss("another issue", async move |stage: AgentStage| {
            let number = other_issue(&stage.developer(), task).await;
            set(stage, number, value).await;
        }),
        AgentAttempt::miss("closed besides", async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            set(stage.clone(), number, value).await;
            let change = |form: PageForm| form.set("status", "Closed").set("close_status", "Fixed");
            forge::update_issue(&stage.developer(), project, number, change).await;
        }),
        AgentAttempt::miss("in words", async move |stage: AgentStage| {
            let number = the_issue(&stage.developer(), task).await;
            forge::update_issue(&stage.developer(), project, number, |form| form.set("comment", value)).await;
        }),
    ]
}

fn assign(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    field(task, "assignee", task.text("assignee"), task.own(["lhartley73", "rooker"]))
}

fn milestone(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    field(task, "milestone", task.text("milestone"), task.own(["1.9", "2.0"]))
}

fn new_project(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (name, description) = (task.text("name"), task.text("description"));
    let make = |visitor: TaskVisitor, name: &'static str, description: &'static str, readme: bool| async move {
        forge::new_project(&visitor, name, description, readme).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| make(stage.developer(), name, description, true)),
        AgentAttempt::miss("with another description", move |stage: AgentStage| {
            make(stage.developer(), name, "A new project", true)
        }),
        AgentAttempt::miss("with another name", move |stage: AgentStage| {
            make(stage.developer(), "workbench", description, true)
        }),
        AgentAttempt::miss("without a README", move |stage: AgentStage| {
            make(stage.developer(), name, description, false)
        }),
        AgentAttempt::miss("as another developer", async move |stage: AgentStage| {
            make(stage.other_developer("elopez55").await, name, description, true).await;
        }),
    ]
}

fn fork(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, other) = (task.text("project"), "gridlark/mooring");
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| forge::fork(&stage.developer(), project).await),
        AgentAttempt::miss("another project", async move |stage: AgentStage| {
            forge::fork(&stage.developer(), other).await
        }),
        AgentAttempt::miss("as another developer", async move |stage: AgentStage| {
            forge::fork(&stage.other_developer("elopez55").await, project).await;
        }),
        AgentAttempt::miss("and another project besides", async move |stage: AgentStage| {
            forge::fork(&stage.developer(), project).await;
            forge::fork(&stage.developer(), other).await;
        }),
        AgentAttempt::miss("as a new project of that name", async move |stage: AgentStage| {
            let name = project.split('/').next_back().expect("a name");
            forge::new_project(&stage.developer(), name, "A fork", true).await;
        }),
    ]
}

fn star(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, other) = (task.text("project"), "smithf/saltpan");
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| forge::star(&stage.developer(), project).await),
        AgentAttempt::miss("another project", async move |stage: AgentStage| {
            forge::star(&stage.developer(), other).await
        }),
        AgentAttempt::miss("as another developer", async move |stage: AgentStage| {
            forge::star(&stage.other_developer("elopez55").await, project).await;
        }),
        AgentAttempt::miss("and another project besides", async move |stage: AgentStage| {
            forge::star(&stage.developer(), project).await;
            forge::star(&stage.developer(), other).await;
        }),
    ]
}

fn add_member(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, member, access) = (task.text("project"), task.text("member"), task.text("access"));
    let (other, other_project) = task.own([("rossis", "byteblaze/larkmap"), ("grooke62", "byteblaze/ropewalk")]);
    let add = |stage: AgentStage, project: &'static str, member: &'static str, access: &'static str| async move {
        forge::add_user(&stage.developer(), project, member, access).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| add(stage, project, member, access)),
        AgentAttempt::miss("with more rights", move |stage| add(stage, project, member, "admin")),
        AgentAttempt::miss("somebody else", move |stage| add(stage, project, other, access)),
        AgentAttempt::miss("to another project", move |stage| add(stage, other_project, member, access)),
        AgentAttempt::miss("and another user besides", async move |stage: AgentStage| {
            add(stage.clone(), project, member, access).await;
            add(stage, project, other, access).await;
        }),
    ]
}

fn edit_file(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, line, message) = (task.text("project"), task.text("line"), task.text("message"));
    let file = task.text("file");
    let append = |text: &str, line: &str| format!("{}\n\n{line}\n", text.trim_end());
    let edit = move |stage: AgentStage,
                     file: &'static str,
                     line: &'static str,
                     message: &'static str,
                     to: Option<&'static str>| async move {
        forge::edit_file(&stage.developer(), project, file, message, to, |text| append(text, line)).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| edit(stage, file, line, message, None)),
        AgentAttempt::miss("with another message", move |stage| edit(stage, file, line, "Update a file", None)),
        AgentAttempt::miss("another line", move |stage| edit(stage, file, "To be continued.", message, None)),
        AgentAttempt::miss("on a new branch", move |stage| edit(stage, file, line, message, Some("my-change"))),
        AgentAttempt::miss("instead of the text", async move |stage: AgentStage| {
            forge::edit_file(&stage.developer(), project, file, message, None, |_| format!("{line}\n")).await;
        }),
    ]
}

fn branch(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, name, line) = (task.text("project"), task.text("branch"), task.text("line"));
    let file = task.text("file");
    let edit = move |stage: AgentStage, line: &'static str, to: Option<&'static str>| async move {
        let change = |text: &str| format!("{}\n\n{line}\n", text.trim_end());
        forge::edit_file(&stage.developer(), project, file, "Say more", to, change).await;
    };
    vec![
        AgentAttempt::oracle(move |stage| edit(stage, line, Some(name))),
        AgentAttempt::miss("on main", move |stage| edit(stage, line, None)),
        AgentAttempt::miss("on a branch of another name", move |stage| edit(stage, line, Some("topic"))),
        AgentAttempt::miss("with another line", move |stage| edit(stage, "More will follow.", Some(name))),
        AgentAttempt::miss("on main as well", async move |stage: AgentStage| {
            edit(stage.clone(), line, Some(name)).await;
            edit(stage, line, None).await;
        }),
    ]
}

/// Returns the number of the task's pull request.
async fn the_request(visitor: &TaskVisitor, task: &'static TemplateTask) -> u64 {
    forge::request(visitor, task.text("project"), task.text("title")).await
}

fn merge(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let project = task.text("project");
    let (other, other_title) = task.own([
        ("slate-signal/courier-cms", "Add middle to the edition"),
        ("mooring-software/beacon", "Add distance to the dimmer"),
    ]);
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let number = the_request(&stage.developer(), task).await;
            forge::merge(&stage.developer(), project, number).await;
        }),
        AgentAttempt::miss("closed without merging", async move |stage: AgentStage| {
            let number = the_request(&stage.developer(), task).await;
            forge::close_request(&stage.developer(), project, number).await;
        }),
        AgentAttempt::miss("another project's", async move |stage: AgentStage| {
            let number = forge::request(&stage.developer(), other, other_title).await;
            forge::merge(&stage.developer(), other, number).await;
        }),
        AgentAttempt::miss("in words", async move |stage: AgentStage| {
            let number = the_request(&stage.developer(), task).await;
            forge::comment_request(&stage.developer(), project, number, "Merged, thank you.").await;
        }),
    ]
}

fn close_request(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let project = task.text("project");
    let (other, other_title) = task.own([
        ("byteblaze/heronry", "Settings for Stonebridge"),
        ("mooring-software/beacon", "Add distance to the dimmer"),
    ]);
    vec![
        AgentAttempt::oracle(async move |stage: AgentStage| {
            let number = the_request(&stage.developer(), task).await;
            forge::close_request(&stage.developer(), project, number).await;
        }),
        AgentAttempt::miss("merged", async move |stage: AgentStage| {
            let number = the_request(&stage.developer(), task).await;
            forge::merge(&stage.developer(), project, number).await;
        }),
        AgentAttempt::miss("another project's", async move |stage: AgentStage| {
            let number = forge::request(&stage.developer(), other, other_title).await;
            forge::close_request(&stage.developer(), other, number).await;
        }),
        AgentAttempt::miss("in words", async move |stage: AgentStage| {
            let number = the_request(&stage.developer(), task).await;
            forge::comment_request(&stage.developer(), project, number, "Closing this.").await;
        }),
    ]
}

fn comment_request(task: &'static TemplateTask) -> Vec<AgentAttempt> {
    let (project, text) = (task.text("project"), task.text("text"));
    let say = move |visitor: TaskVisitor, text: &'static str| async move {
        let number = the_request(&visitor, task).await;
        forge::comment_request(&visitor, project, number, text).await;
    };
    vec![
        AgentAttempt::oracle(move |stage: AgentStage| say(stage.developer(), text)),
        AgentAttempt::miss("with another text", move |stage: AgentStage| say(stage.developer(), "Looks good to me.")),
        AgentAttempt::miss("as another developer", async move |stage: AgentStage| {
            say(stage.other_developer("elopez55").await, text).await;
        }),
        AgentAttempt::miss("twice", async move |stage: AgentStage| {
            say(stage.developer(), text).await;
            say(stage.developer(), text).await;
        }),
        AgentAttempt::miss("on an issue", async move |stage: AgentStage| {
            let visitor = stage.developer();
            let issues = issues(&visitor, project).await;
            let number = issues[0]["id"].as_u64().expect("a number");
            forge::update_issue(&visitor, project, number, |form| form.set("comment", text)).await;
        }),
    ]
}
