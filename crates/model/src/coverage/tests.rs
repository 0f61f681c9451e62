use super::*;

fn service(name: &str) -> ServiceName {
    ServiceName::parse(name).expect("valid")
}

fn traces(entries: &[(&str, &str)], commands: &[&str]) -> Traces {
    let entries = entries.iter().map(|(path, entry)| ((*path).to_owned(), (*entry).to_owned())).collect();
    let commands = commands.iter().map(|command| (*command).to_owned()).collect();
    Traces::from([(service("web"), ServiceTraces { places: BTreeMap::new(), entries, commands })])
}

fn scratch(place: ScratchPlace) -> Vec<Scratch> {
    vec![Scratch { service: service("web"), place, reason: "a test".to_owned() }]
}

fn differs(pattern: &str) -> Vec<Scratch> {
    scratch(ScratchPlace::Differs(pattern.to_owned()))
}

#[test]
fn what_is_as_before_the_first_client_is_covered() {
    let before = traces(&[("/run/web.pid", "file 644 0:0 2 ab")], &[]);
    assert_eq!(gaps(&[], &before, &before), []);
    assert_eq!(gaps(&[], &traces(&[], &[]), &traces(&[], &[])), []);
}

#[test]
fn every_difference_is_named_by_path() {
    let before = traces(&[("/etc/a", "file 644 0:0 1 aa"), ("/tmp/gone", "file 644 0:0 1 aa")], &[]);
    let now =
        traces(&[("/etc/a", "file 644 0:0 1 bb"), ("/root", "folder 700 0:0"), ("/root/y", "file 644 0:0 0 cc")], &[]);
    let found = gaps(&[], &before, &now);
    assert_eq!(
        told(&found),
        "/etc/a of web was changed outside of the stores; /root/y of web was written outside of the stores; \
         /tmp/gone of web was removed outside of the stores; and 1 more",
        "files come before folders"
    );
}

#[test]
fn what_is_gone_from_the_image_is_named() {
    let now = traces(&[("/srv/a", REMOVED)], &[]);
    assert_eq!(told(&gaps(&[], &traces(&[], &[]), &now)), "/srv/a of web was removed outside of the stores");
    assert_eq!(gaps(&[], &now, &now), [], "the site removes it itself");
}

#[test]
fn a_file_that_was_written_at_boot_does_not_hide_a_later_change() {
    let before = traces(&[("/var/log/boot", "file 644 0:0 10 aa")], &[]);
    let now = traces(&[("/var/log/boot", "file 644 0:0 10 bb")], &[]);
    assert_eq!(gaps(&[], &before, &now).len(), 1);
}

#[test]
fn scratch_may_differ_and_nothing_beside_it() {
    let before = traces(&[("/run/s6/web/status", "file 644 0:0 35 aa")], &[]);
    let status = ("/run/s6/web/status", "file 644 0:0 35 bb");
    assert_eq!(gaps(&differs("/run/s6/*/status"), &before, &traces(&[status], &[])), []);
    assert_eq!(gaps(&differs("/run/s6"), &before, &traces(&[status, ("/run/s6/x", "file")], &[])), []);
    let beside = traces(&[status, ("/run/s6/web/run", "file 755 0:0 9 cc")], &[]);
    assert_eq!(gaps(&differs("/run/s6/*/status"), &before, &beside).len(), 1);
    // Scratch of another service does not apply.
    let mut other = differs("/run/**");
    other[0].service = service("db");
    assert_eq!(gaps(&other, &before, &traces(&[status], &[])).len(), 1);
}

#[test]
fn an_emptied_folder_must_stay_what_it_is() {
    let rules = scratch(ScratchPlace::Emptied("/tmp".to_owned()));
    let before = traces(&[("/tmp", "folder 1777 0:0")], &[]);
    let now = traces(&[("/tmp", "folder 1777 0:0"), ("/tmp/x", "file 644 0:0 1 aa")], &[]);
    assert_eq!(gaps(&rules, &before, &now), []);
    assert_eq!(gaps(&rules, &before, &traces(&[("/tmp", "folder 777 0:0")], &[])).len(), 1);
    assert_eq!(gaps(&rules, &before, &traces(&[("/tmpx", "file")], &[])).len(), 2, "a longer name is another one");
}

#[test]
fn a_volume_is_a_gap_unless_it_is_scratch() {
    let mut now = traces(&[], &[]);
    now.get_mut(&service("web")).expect("there").places.insert("/srv/extra".to_owned(), "volume".to_owned());
    let found = gaps(&[], &traces(&[], &[]), &now);
    assert_eq!(told(&found), "/srv/extra of web is a writable volume outside of the stores");
    assert_eq!(gaps(&differs("/srv/extra"), &traces(&[], &[]), &now), []);
    assert_eq!(gaps(&differs("/srv/extra/cache"), &traces(&[], &[]), &now), found);
}

#[test]
fn a_process_that_did_not_run_before_the_first_client_is_named() {
    let before = traces(&[], &["httpd -f", "/bin/sh /srv/boot"]);
    let now = |commands: &[&str]| commands.iter().map(|command| (*command).to_owned()).collect::<BTreeSet<_>>();
    let web = service("web");
    assert_eq!(strangers(&web, &before, &now(&["httpd -f"])), []);
    let found = strangers(&web, &before, &now(&["httpd -f", "sh"]));
    assert_eq!(told(&found), "`sh` of web still runs, and did not before the first client");
    assert_eq!(strangers(&service("db"), &before, &now(&["sh"])).len(), 1, "nothing is known of that service");
    let long = strangers(&web, &before, &now(&["x".repeat(200).as_str()]));
    assert!(told(&long).len() < 200);
}
