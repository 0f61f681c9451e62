//! `arenad images pull` from mirrors that cut, stall, send wrong data, change and refuse.

use std::fs;

use rustix::process::{Signal, kill_process};

use super::archive::Saved;
use super::mirror::{BodyEnd, MirrorReply, MirrorRequest, TestMirror};
use super::project::ImageProject;
use crate::support::wait::{PATIENCE, within};

const CONTENT: u64 = 3 << 20;

/// A project and its archive's bytes; the archive itself is no longer on the disk.
fn project(label: &str, seed: u64) -> (ImageProject, Saved, Vec<u8>) {
    let project = ImageProject::new(label, "");
    let saved = project.save("shop.tar", seed, CONTENT);
    let content = fs::read(project.path("shop.tar")).unwrap();
    fs::remove_file(project.path("shop.tar")).unwrap();
    (project, saved, content)
}

fn declare(project: &ImageProject, mirrors: &[&TestMirror]) {
    let urls: Vec<String> = mirrors.iter().map(|mirror| mirror.url()).collect();
    project.declare(&format!("    mirrors: [ \"{}\" ]\n", urls.join("\", \"")), "");
}

const QUICK: [&str; 4] = ["--tries", "3", "--stall-timeout", "1s"];

#[test]
fn a_connection_that_is_cut_again_and_again_is_taken_up_where_it_broke() {
    let (project, saved, content) = project("cut", 31);
    let size = content.len() as u64;
    let mirror = TestMirror::start(move |asked| {
        let validator = "ETag: \"one\"\r\n";
        match asked.if_range.as_deref() {
            Some(other) if other != "\"one\"" => MirrorReply::whole(&content, validator),
            _ => MirrorReply::asked(&content, asked, validator).cut(500_000, BodyEnd::Close),
        }
    });
    declare(&project, &[&mirror]);
    project.images("pull", &QUICK).code(0).says("fetching shop.tar").prints(&saved.id);
    project.assert_present(&saved);
    assert!(mirror.asked().len() >= 6, "{:#?}", mirror.asked());
    assert!(mirror.sent() < size + 10 * (64 << 10), "only the overlap is fetched twice: {}", mirror.sent());
    assert!(mirror.asked()[1..].iter().all(|asked| asked.if_range.as_deref() == Some("\"one\"")));
    assert_eq!(fs::metadata(project.shelved("shop.tar")).unwrap().len(), size);
    assert!(!project.shelved("shop.tar.part").exists() && !project.shelved("shop.tar.part.json").exists());
    // An existing file is not fetched again, and `--discard` removes the archive after use.
    let asked = mirror.asked().len();
    project.images("pull", &["--discard"]).code(0).prints("already present");
    assert_eq!(mirror.asked().len(), asked);
    assert!(!project.shelved("shop.tar").exists());
    project.assert_present(&saved);
}

#[test]
fn a_mirror_that_stalls_or_ignores_ranges_is_asked_again() {
    let (project, saved, content) = project("stall", 32);
    let mirror = TestMirror::start(move |asked| {
        let whole = MirrorReply::whole(&content, "");
        match asked.number {
            0 => whole.cut(1_000_000, BodyEnd::Stall),
            1 => whole.cut(2_000_000, BodyEnd::Close),
            _ => whole,
        }
    });
    declare(&project, &[&mirror]);
    project.images("pull", &QUICK).code(0);
    project.assert_present(&saved);
    assert_eq!(mirror.asked().len(), 3);
}

#[test]
fn errors_send_to_the_next_mirror_and_back() {
    let (project, saved, content) = project("turns", 33);
    let first = TestMirror::start(|asked| match asked.number {
        0 => MirrorReply::status("503 Service Unavailable"),
        _ => MirrorReply::status("404 Not Found"),
    });
    let rest = content.clone();
    let second = TestMirror::start(move |asked| match asked.number {
        0 => MirrorReply::asked(&rest, asked, "").cut(1_000_000, BodyEnd::Close),
        1 => MirrorReply::status("500 Internal Server Error"),
        _ => MirrorReply::asked(&rest, asked, ""),
    });
    let page =
        TestMirror::start(|_| MirrorReply::whole(b"<html>Log in to the network</html>", "Content-Type: text/html\r\n"));
    declare(&project, &[&page, &first, &second]);
    project.images("pull", &QUICK).code(0);
    project.assert_present(&saved);
    assert_eq!(page.asked().len(), 1, "what answers with a page has no file");
    // If every mirror fails, the reason of each is reported, and the received bytes are kept.
    let (project, _, _) = self::project("nobody", 34);
    let broken = TestMirror::start(move |asked| match asked.number {
        0 => MirrorReply::asked(&content, asked, "").cut(1_000_000, BodyEnd::Close),
        _ => MirrorReply::status("502 Bad Gateway"),
    });
    let gone = TestMirror::start(|_| MirrorReply::status("410 Gone"));
    declare(&project, &[&broken, &gone]);
    let failed = project.images("pull", &QUICK).code(1).says("fetch shop.tar: ").says("it answered 502 Bad Gateway");
    failed.says("it answered 410 Gone").says("hint: the same command goes on from what is there");
    assert_eq!(project.state(), "partial");
    assert_eq!(project.item(&project.image)["archive"]["here_bytes"], 1_000_000);
    project.images("ls", &[]).code(0).prints("partial 31 %");
    project.assert_absent();
}

#[test]
fn a_file_that_changes_on_the_way_is_fetched_anew() {
    for (label, has_etag, keeps_length) in [("etag", true, true), ("overlap", false, true), ("length", false, false)] {
        let (project, saved, content) = project(label, 35);
        let mut old = content.clone();
        old.iter_mut().for_each(|byte| *byte ^= 0x55);
        if !keeps_length {
            old.truncate(2_500_000);
        }
        let mirror = TestMirror::start(move |asked: &MirrorRequest| {
            let (now, etag) = if asked.number == 0 { (&old, "old") } else { (&content, "new") };
            let header = if has_etag { format!("ETag: \"{etag}\"\r\n") } else { String::new() };
            let is_same = asked.if_range.as_ref().is_none_or(|wanted| *wanted == format!("\"{etag}\""));
            let reply =
                if is_same { MirrorReply::asked(now, asked, &header) } else { MirrorReply::whole(now, &header) };
            if asked.number == 0 { reply.cut(1_500_000, BodyEnd::Close) } else { reply }
        });
        declare(&project, &[&mirror]);
        project.images("pull", &QUICK).code(0);
        project.assert_present(&saved);
    }
    // A mirror whose file changes with every request is abandoned.
    let (project, _, content) = project("restless", 36);
    let mirror = TestMirror::start(move |asked| {
        let mut now = content.clone();
        now.iter_mut().for_each(|byte| *byte ^= asked.number as u8);
        MirrorReply::asked(&now, asked, "").cut(1_500_000, BodyEnd::Close)
    });
    declare(&project, &[&mirror]);
    project.images("pull", &QUICK).code(1).says("the file changed while it was being fetched");
    project.assert_absent();
}

#[test]
fn lies_about_the_length_are_found_out() {
    let (project, _, content) = project("lies", 37);
    let (short, long, plain) = (content.clone(), content.clone(), content.clone());
    let claim = |size: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n");
    let too_short =
        TestMirror::start(move |_| MirrorReply { head: claim(1_000_000), body: short.clone(), end: BodyEnd::Close });
    declare(&project, &[&too_short]);
    project.images("pull", &QUICK).code(1).says("the file is truncated: it ends after 1000000 bytes");
    project.assert_absent();
    assert_eq!(project.state(), "missing", "what is known to be wrong is not kept");
    let too_long =
        TestMirror::start(move |_| MirrorReply { head: claim(9_000_000), body: long.clone(), end: BodyEnd::Close });
    declare(&project, &[&too_long]);
    project.images("pull", &QUICK).code(1).says("the connection broke off");
    project.assert_absent();
    let endless = TestMirror::start(move |_| MirrorReply {
        head: "HTTP/1.1 200 OK\r\n".to_owned(),
        body: plain.clone(),
        end: BodyEnd::Close,
    });
    declare(&project, &[&endless]);
    project.images("pull", &QUICK).code(1).says("it does not say where the file ends");
    let elsewhere = TestMirror::start(move |asked| match asked.range {
        None => MirrorReply::asked(&content, asked, "").cut(1_000_000, BodyEnd::Close),
        Some(_) => MirrorReply::asked(&content, &MirrorRequest { range: Some(5), ..asked.clone() }, ""),
    });
    declare(&project, &[&elsewhere]);
    project.images("pull", &QUICK).code(1).says("and answered with the range `bytes 5-");
    project.assert_absent();
    let size = "    size: 80g\n";
    project.declare(&format!("{size}    mirrors: [ \"{}\" ]\n", too_short.url()), "");
    project.images("pull", &QUICK).code(1).says("where about 85.9 GB are expected");
}

#[test]
fn mirrors_with_different_files_are_not_mixed() {
    let (project, saved, content) = project("mix", 38);
    let mut other = content.clone();
    other.iter_mut().for_each(|byte| *byte ^= 0x0f);
    let first = TestMirror::start(move |asked| match asked.number {
        1 | 2 => MirrorReply::status("503 Service Unavailable"),
        0 => MirrorReply::asked(&content, asked, "").cut(1_500_000, BodyEnd::Close),
        _ => MirrorReply::asked(&content, asked, ""),
    });
    let second = TestMirror::good(other);
    declare(&project, &[&first, &second]);
    project.images("pull", &QUICK).code(0);
    project.assert_present(&saved);
    assert!(!second.asked().is_empty());
}

#[test]
fn the_first_copy_pins_what_mirrors_may_serve_later() {
    let (project, saved, content) = project("repin", 39);
    let mirror = TestMirror::good(content);
    declare(&project, &[&mirror]);
    project.images("pull", &["--discard"]).code(0);
    project.engine().docker(&["rmi", &project.image]);
    let other = ImageProject::new("repin2", "");
    let changed = super::archive::save(
        &other.path("shop.tar"),
        &project.image,
        super::archive::ArchiveLayout::Classic,
        40,
        CONTENT,
    );
    let exchanged = TestMirror::good(fs::read(other.path("shop.tar")).unwrap());
    declare(&project, &[&exchanged]);
    let refused = project.images("pull", &QUICK).code(1).says(&exchanged.url());
    refused.says(&format!("its SHA-256 is {}, that of the first copy is {}", changed.sha256, saved.sha256));
    project.assert_absent();
    declare(&project, &[&exchanged, &mirror]);
    project.images("pull", &QUICK).code(0);
    project.assert_present(&saved);
}

#[test]
fn a_pull_that_is_killed_or_interrupted_goes_on_and_two_do_not_meet() {
    let (project, saved, content) = project("kill", 41);
    let size = content.len() as u64;
    // Each connection delivers a part and then stalls.
    let mirror = TestMirror::start(move |asked| {
        MirrorReply::asked(&content, asked, "ETag: \"x\"\r\n").cut(800_000, BodyEnd::Stall)
    });
    declare(&project, &[&mirror]);
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let before = mirror.sent();
        let running = project.world.start(&project.words("pull", &[]));
        within("a part", PATIENCE, || (mirror.sent() >= before + 700_000).then_some(()));
        within("it is on disk", PATIENCE, || {
            let part = fs::metadata(project.shelved("shop.tar.part")).ok()?.len();
            (part >= before.min(size) * 9 / 10 && part > 0).then_some(())
        });
        project.images("pull", &[]).code(4).says("another arenad does that already");
        kill_process(running.pid(), signal).unwrap();
        let ended = running.ended();
        if signal == Signal::INT {
            ended.code(130).says("the same command goes on from here");
        }
        project.assert_absent();
    }
    project.images("pull", &QUICK).code(0);
    project.assert_present(&saved);
    assert!(mirror.sent() < size + 12 * (64 << 10) + 800_000, "{} of {size}", mirror.sent());
}
