//! Requests, files, commands, and expressions in a browser.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{is_environment_fault, locate, locate_with, refused, value};
use crate::arena::Arena;
use crate::family::family;

const PROFILE: &str = "/accounts/profile/";

pub fn requests_take_what_they_ask_for(arena: &Arena) {
    let is = |locator: &str, expected: Value| assert_eq!(value(arena, "shopping", locator), expected, "{locator}");
    is("http: /api/products/ | jq: length", json!(200));
    is(
        "http: /api/products/ | jsonpath(all): $[0,1].id",
        value(arena, "shopping", "http: /api/products/ | jq(all): .[0,1].id"),
    );
    is("http: / | css: title", json!("One Stop Market"));
    is("http(stay): /accounts/profile/ | status", json!(302));
    is("http(stay): /accounts/profile/ | header: location", json!(format!("/customer/account/login/?next={PROFILE}")));
    let cells = value(arena, "shopping", "http: /accounts/profile/ as customer | css(all): td");
    assert_eq!(cells[1], "emma.lopez@gmail.com");
    assert!(refused(arena, "shopping", "http: /nothing-here/").contains("404"));
    assert!(refused(arena, "shopping", "http: / as stranger").contains("has no account `stranger`"));
    assert!(refused(arena, "shopping", "http: / | jsonpath: $.x").contains("not JSON"));
    let located = locate(arena, "shopping", "http: /healthz");
    assert_eq!((&located["type"], &located["value"]["ok"]), (&json!("json"), &json!(true)));
    assert_eq!(located["evidence"]["notes"]["status"], "200");
}

pub fn files_and_commands_are_read(arena: &Arena) {
    let text = value(arena, "shopping", "file: /etc/os-release");
    assert!(text.as_str().is_some_and(|text| text.contains("Debian")), "{text}");
    assert_eq!(value(arena, "shopping", "exec: shopping: sh -c 'echo \"$0\"' 'a  b'"), json!("a  b"));
    assert!(refused(arena, "shopping", "file: /nothing").contains("has no file /nothing"));
    assert!(refused(arena, "shopping", "file: /etc").contains("is not a file"));
    assert!(refused(arena, "shopping", "exec: shopping: sh -c 'echo no >&2; exit 3'").contains("code 3: no"));
    assert!(refused(arena, "shopping", "exec: nobody: ls").contains("has no service `nobody`"));
    assert!(refused(arena, "shopping", "exec(timeout=500ms): sleep 5").contains("no value within 500ms"));
}

pub fn expressions_see_what_the_account_sees(arena: &Arena) {
    let is = |locator: &str, expected: Value| assert_eq!(value(arena, "shopping", locator), expected, "{locator}");
    is("js: document.title @ /", json!("One Stop Market"));
    is("js: document.title", json!("One Stop Market"));
    is(
        &format!("js: document.querySelectorAll('td')[1].outerText @ {PROFILE} as customer"),
        json!("emma.lopez@gmail.com"),
    );
    // The page has a context of its own, in which no account is signed in.
    is(&format!("js: location.pathname @ {PROFILE}"), json!("/customer/account/login/"));
    is("js: () => [1, 2.5, null, { a: 'b' }] @ /", json!([1, 2.5, null, { "a": "b" }]));
    is("js: Promise.resolve(undefined) @ /", Value::Null);
    is("js: 10 / 4 @ /", json!(2.5));
    is("js(wait='h1, h2'): document.readyState @ /", json!("complete"));
    assert!(refused(arena, "shopping", "js(wait='#never', timeout=3s): 1 @ /").contains("no value within 3s"));
}

pub fn the_browser_comes_back_and_leaves_nothing(arena: &Arena) {
    let found = browsers(arena);
    assert!(!found.is_empty(), "a browser runs");
    for process in found {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
    assert_eq!(value(arena, "shopping", "js: 1 + 1 @ /"), json!(2));
}

/// The processes of the arena's browser: the sandbox, recognized by its profile, and all its descendants.
fn browsers(arena: &Arena) -> Vec<rustix::process::Pid> {
    let profile = arena.state_dir().join("locators/browser/profile").display().to_string();
    let all = procfs::process::all_processes().expect("processes").flatten();
    let is_cage = |process: &procfs::process::Process| {
        process.cmdline().is_ok_and(|words| words.iter().any(|word| word.contains(&profile)))
    };
    let cages = all.filter(is_cage).map(|process| process.pid).collect();
    family(cages).into_iter().filter_map(rustix::process::Pid::from_raw).collect()
}

/// Checks that the browser lacks the rights that a compromised page would use.
pub fn the_browser_is_nobody(arena: &Arena) {
    assert_eq!(value(arena, "shopping", "js: 1 + 1 @ /"), json!(2));
    let inside: Vec<_> = browsers(arena)
        .into_iter()
        .filter_map(|pid| procfs::process::Process::new(pid.as_raw_nonzero().get()).ok())
        .filter(|process| process.cmdline().is_ok_and(|words| words.first().is_some_and(|word| word.contains("chrom"))))
        .collect();
    assert!(inside.len() >= 3, "a browser, its zygotes and pages");
    for process in &inside {
        let status = process.status().expect("a status");
        assert!(status.euid > 1_000_000_000 && status.ruid > 1_000_000_000, "uid {}", status.euid);
        let words = process.cmdline().expect("words");
        assert!(
            words.iter().all(|word| word != "--no-sandbox" && !word.starts_with("--remote-debugging-port")),
            "{words:?}"
        );
        // The browser sees only the profile among arenad's files, no home folders, and its own /tmp.
        let root = std::path::PathBuf::from(format!("/proc/{}/root", process.pid));
        for hidden in [
            arena.state_dir().to_owned(),
            "/root".into(),
            "/home".into(),
            "/etc/shadow".into(),
            "/var/run/docker.sock".into(),
        ] {
            let seen = root.join(hidden.strip_prefix("/").expect("an absolute path"));
            assert!(!seen.exists(), "{} is seen", seen.display());
        }
    }
    let first = &inside[0];
    // It can enter the folders with the configuration of fonts and certificates: its user is not arenad's.
    let root = std::path::PathBuf::from(format!("/proc/{}/root", first.pid));
    for entered in ["etc", "etc/fonts", "etc/ssl", "var", "var/cache"] {
        let mode = std::fs::metadata(root.join(entered)).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o005, 0o005, "{entered}: {mode:o}");
    }
    // The other processes have rights in the namespaces of the browser's own sandbox, and none outside.
    let status = first.status().expect("a status");
    assert_eq!((status.capprm, status.capeff, status.nonewprivs), (0, 0, Some(1)));
    // The browser does not listen on any port.
    let ours: Vec<_> = inside.iter().flat_map(listening).collect();
    assert!(ours.is_empty(), "the browser listens on {ours:?}");
    // Its memory and the number of its processes are limited.
    let groups = first.cgroups().expect("groups").0;
    assert!(groups.iter().any(|group| group.pathname.contains("arenad-browser-")), "{groups:?}");
}

/// The proxies of pages have open ports, and accept connections from the browser only.
pub fn the_pages_proxies_know_the_browser(arena: &Arena) {
    assert_eq!(value(arena, "shopping", "js: 1 + 1 @ /"), json!(2));
    let daemon = procfs::process::Process::new(arena.daemon().as_raw_nonzero().get()).expect("its process");
    // The sites' public ports, the own ports of their first slots and the reset server's port are open, and so are the
    // proxies of two pages that are kept for the next locators; the proxy of the last page closes.
    let (others, pages) = (2 * super::PAGED.len() + 1, 2);
    let deadline = Instant::now() + Duration::from_secs(60);
    let answers = loop {
        let open = listening(&daemon);
        let answers: Option<Vec<bool>> = open.iter().map(|address| answers_a_stranger(*address)).collect();
        match answers {
            Some(answers) if open.len() == others + pages && listening(&daemon) == open => break answers,
            _ => assert!(Instant::now() < deadline, "it listens on {open:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(answers.iter().filter(|answers| **answers).count(), others, "{answers:?} on {:?}", listening(&daemon));
}

/// Sends a request that a page would send to its proxy, and returns whether the port answers; the ports of sites and of
/// the reset server do, with an error. `None` means that the port is closed.
fn answers_a_stranger(address: std::net::SocketAddr) -> Option<bool> {
    let mut client = std::net::TcpStream::connect(address).ok()?;
    client.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    // A proxy that refuses a connection does not read from it.
    let _ = client.write_all(b"GET http://elsewhere/ HTTP/1.1\r\nHost: elsewhere\r\n\r\n");
    let mut answer = [0; 1];
    Some(matches!(client.read(&mut answer), Ok(1)))
}

/// The addresses on which a process listens.
fn listening(process: &procfs::process::Process) -> Vec<std::net::SocketAddr> {
    let files = process.fd().into_iter().flatten().flatten();
    let sockets: std::collections::BTreeSet<u64> = files
        .filter_map(|fd| match fd.target {
            procfs::process::FDTarget::Socket(inode) => Some(inode),
            _ => None,
        })
        .collect();
    let all = procfs::net::tcp().expect("sockets").into_iter();
    all.filter(|socket| socket.state == procfs::net::TcpState::Listen && sockets.contains(&socket.inode))
        .map(|socket| socket.local_address)
        .collect()
}

/// Repeats `holds` on the number of processes until it is true.
fn until(arena: &Arena, what: &str, holds: impl Fn(usize) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds(browsers(arena).len()) {
        assert!(Instant::now() < deadline, "{what}: {} processes", browsers(arena).len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The browser ends with its daemon, however the daemon ends.
pub fn the_browser_ends_with_its_daemon(arena: &Arena) {
    assert_eq!(value(arena, "shopping", "js: 1 + 1 @ /"), json!(2));
    until(arena, "it runs", |count| count > 3);
    arena.signal_daemon(rustix::process::Signal::KILL);
    until(arena, "it is gone", |count| count == 0);
}

/// Pages cannot forge the value of an expression, because the expression runs in a JavaScript world of its own.
pub fn a_page_forges_nothing(arena: &Arena) {
    let forged = "Object.defineProperty(Array.prototype, 'then', { configurable: true, get() { return yes => yes(['tforged', 'http://forged/']); } }); \
        JSON.stringify = () => '\"forged\"'; String.prototype.concat = () => 'forged'; document.title = 'so what';";
    let script = format!(
        "(() => {{ const s = document.createElement('script'); s.textContent = {}; document.head.append(s); return document.title; }})()",
        json!(forged)
    );
    // One expression lets the page's own world modify itself, and the value of the same expression is still right.
    let located = locate(arena, "shopping", &format!("js: [{script}, 1 + 1] @ /customer/account/login/"));
    assert_eq!(located["value"], json!(["so what", 2]));
    let url = located["evidence"]["notes"]["url"].as_str();
    assert!(url.is_some_and(|url| url.ends_with("/customer/account/login/")), "{located}");
}

pub async fn the_agents_page_is_looked_at_and_left_alone(arena: &Arena) {
    let profile = tempfile::tempdir().expect("a folder");
    let mut agent = tokio::process::Command::new("/usr/bin/chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("{}/customer/account/login/", arena.url("shopping")))
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("chromium starts");
    let port_file = profile.path().join("DevToolsActivePort");
    let deadline = Instant::now() + Duration::from_secs(30);
    let port = loop {
        let text = std::fs::read_to_string(&port_file).unwrap_or_default();
        match text.lines().next() {
            Some(port) if text.lines().count() > 1 => break port.to_owned(),
            _ => assert!(Instant::now() < deadline, "the agent's browser listens"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let cdp = format!("http://127.0.0.1:{port}");
    let look = |expression: &str| {
        locate_with(arena, "shopping", &format!("js: {expression} @ live"), &["--cdp", &cdp])["value"].clone()
    };
    while look("document.readyState + location.pathname") != json!("complete/customer/account/login/") {
        assert!(Instant::now() < deadline, "the agent's page loads");
    }
    // Typed text that was not sent is visible and stays in the page.
    look("(document.querySelector('[name=login-username]').value = 'typed', window.mark = 7)");
    assert_eq!(look("[document.querySelector('[name=login-username]').value, window.mark]"), json!(["typed", 7]));
    assert_eq!(look("[innerWidth, navigator.webdriver]"), look("[innerWidth, navigator.webdriver]"));
    agent.kill().await.expect("the agent ends");
    let said = {
        let output = arena.arenad(&["locate", "shopping", "js: 1 @ live", "--cdp", &cdp, "--json"]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said.contains("reach the site"), "{said}");
    assert!(refused(arena, "shopping", "js: 1 @ live").contains("CDP address"));
}

pub fn sixty_looks_leave_no_more_than_ten(arena: &Arena) {
    let look = |count: usize| {
        for _ in 0..count {
            assert_eq!(value(arena, "shopping", "js: 6 * 7 @ /robots.txt"), json!(42));
        }
    };
    look(10);
    let before = settled(arena, usize::MAX);
    look(50);
    let after = settled(arena, before);
    assert!(after <= before + 2, "{before} processes became {after}");
}

/// Runs locators of several kinds by several clients at the same time.
pub fn a_thousand_locators_leave_nothing(arena: &Arena) {
    const CLIENTS: usize = 4;
    // The database of turkle is a SQLite file.
    let kinds = [
        ("shopping", "sql: SELECT 6 * 7", json!(42)),
        ("shopping", "js: 6 * 7 @ /robots.txt", json!(42)),
        ("turkle", "sql: SELECT 6 * 7", json!(42)),
        ("shopping", "http: /healthz | jq: .ok", json!(true)),
        ("shopping", "http: / | css: title", json!("One Stop Market")),
        ("turkle", "sql: SELECT count(*) FROM auth_user WHERE username = 'no-one'", json!(0)),
    ];
    // The browser does not count, and neither does a worker of each kind that waits for its next use.
    for (site, locator, expected) in &kinds {
        assert_eq!(value(arena, site, locator), *expected, "{locator}");
    }
    let before = settled(arena, usize::MAX);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for (site, locator, expected) in kinds.iter().cycle().take(1000 / CLIENTS) {
                    assert_eq!(value(arena, site, locator), *expected, "{locator}");
                }
            });
        }
    });
    // Each of the concurrent clients may have had pages of its own.
    let after = settled(arena, before);
    assert!(after <= before + 2, "{before} processes of the browser became {after}");
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (workers, files) = (workers(arena), remains(arena));
        // A worker of each kind waits for its next use.
        let is_one_each = workers.iter().collect::<std::collections::BTreeSet<_>>().len() == workers.len();
        if is_one_each && files.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left: {workers:?}, {files:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The commands of the daemon's confined workers; an unreaped one counts as `zombie`.
fn workers(arena: &Arena) -> Vec<String> {
    let daemon = arena.daemon().as_raw_nonzero().get();
    let all = procfs::process::all_processes().expect("processes").flatten();
    all.filter(|process| process.stat().is_ok_and(|stat| stat.ppid == daemon))
        .filter_map(|process| {
            let words = process.cmdline().ok()?;
            match words.into_iter().find(|word| word.starts_with("confined-")) {
                None if process.stat().is_ok_and(|stat| stat.state == 'Z') => Some("zombie".to_owned()),
                found => found,
            }
        })
        .collect()
}

/// Temporary files of workers, and copies of databases. Files that are older than the arena are those of killed tests.
fn remains(arena: &Arena) -> Vec<std::path::PathBuf> {
    use std::os::unix::fs::MetadataExt;
    /// The value is the one in `confined/child.rs`.
    const WORKER_USER: u32 = 1_893_000_002;
    let entries = |folder: std::path::PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    // The folder has changed once, when the first daemon made its own.
    let folder = arena.state_dir().parent().expect("a folder").metadata().expect("the arena's folder");
    let is_new =
        |found: &std::fs::Metadata| (found.mtime(), found.mtime_nsec()) >= (folder.mtime(), folder.mtime_nsec());
    let temporary = entries("/tmp".into())
        .filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == WORKER_USER && is_new(&found)));
    let copies = entries(arena.state_dir().join("locators/databases"));
    temporary.chain(copies).map(|entry| entry.path()).collect()
}

/// The number of the browser's processes once those of closed pages have ended.
fn settled(arena: &Arena, wanted: usize) -> usize {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let count = browsers(arena).len();
        if count <= wanted.saturating_add(2) || Instant::now() > deadline {
            return count;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub fn a_site_that_dies_in_the_middle_is_unavailable(arena: &Arena) {
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            refused(
                arena,
                "shopping",
                "js(timeout=8s): new Promise(end => setTimeout(() => fetch('/').then(a => end(a.status)), 1500)) @ /",
            )
        });
        let waiting = scope.spawn(|| refused(arena, "shopping", "sql(timeout=3s): SELECT count(*) FROM order_order a, order_order b, order_order c, order_order d WHERE a.number > b.number"));
        std::thread::sleep(Duration::from_millis(700));
        arena.kill("shopping");
        for said in [slow.join().expect("it ends"), waiting.join().expect("it ends")] {
            println!("{said}");
        }
    });
    for locator in [
        "http(timeout=3s): /",
        "js(timeout=6s): document.title @ /",
        "sql(timeout=3s): SELECT 1",
        "exec(timeout=3s): ls",
    ] {
        let said = refused(arena, "shopping", locator);
        assert!(is_environment_fault(&said), "{locator}: {said}");
    }
}
