//! The scripts behind `make up`, in a bare Debian 12: the packages that they install, their output, and the absence of
//! repeated output.

#![allow(clippy::unwrap_used)]

mod bare;
mod packages;

use std::path::Path;

use bare::Bare;

/// Phrases that the output of `make up` must not contain.
const NOISE: [&str; 9] =
    ["cannot open", "debconf", "rehash", "warning", "invoke-rc.d", "not found", "Setting up", "Get:", "E: "];

/// The programs that `make up` needs on the host.
const WANTED: [&str; 8] = ["cc", "docker", "dockerd", "iptables", "mkfs.xfs", "losetup", "mount", "umount"];

#[test]
fn a_bare_machine_is_prepared_cleanly_and_once() {
    let bare = Bare::start();
    let missing: Vec<&str> = WANTED.into_iter().filter(|program| !bare.has(program)).collect();
    for program in ["cc", "docker", "dockerd", "iptables", "mkfs.xfs"] {
        assert!(missing.contains(&program), "the machine is not bare: {program} exists");
    }

    // The parts of `make prepare`, up to the one that needs images.
    for (script, says) in [
        ("toolchain.sh", "toolchain: installing from Debian: gcc libc6-dev"),
        ("host-tools.sh", "host tools: installing from Debian: xfsprogs"),
        ("engine.sh", "engine: installing from Debian: docker.io iptables ca-certificates"),
    ] {
        let ran = bare.run(&format!("scripts/{script}"));
        assert_eq!(ran.code, 0, "{script}: {}", ran.said);
        assert!(ran.said.contains(says), "{script}: {}", ran.said);
        for line in ran.said.lines() {
            assert!(!NOISE.iter().any(|noise| line.contains(noise)), "{script} says: {line}");
            let who = ["toolchain: ", "host tools: ", "engine: "];
            assert!(who.iter().any(|who| line.starts_with(who)), "{script} says: {line}");
        }
    }
    for program in WANTED {
        assert!(bare.has(program), "{program} is still missing");
    }
    bare.succeeds("docker version");

    // The base images of the sites, as if a registry had provided them; only the base image script builds them.
    for suite in ["bookworm", "trixie"] {
        bare.succeeds(&format!("tar -cf - -T /dev/null | docker import - debian:{suite}-slim"));
    }
    for time in ["first", "second"] {
        let ran = bare.run("make prepare");
        assert_eq!((ran.code, ran.said.as_str()), (0, ""), "the {time} time");
    }

    // `make up` does the same with ARENAD_STORAGE=auto: it creates a file system with copies that share blocks.
    bare.install(Path::new(env!("CARGO_BIN_EXE_arenad")));
    bare.succeeds("arenad storage init --size 1G");
    let status = bare.succeeds("arenad storage status");
    assert!(status.contains("share blocks"), "{status}");
    bare.succeeds("umount /var/lib/arenad/stores");
    bare.end();
}

#[test]
fn a_pid_file_that_is_missing_or_stale_makes_no_noise() {
    // Only the functions, without an engine.
    let script = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/engine.sh")).unwrap();
    let functions: String = ["lives()", "drop_stale_pid()"]
        .into_iter()
        .map(|name| {
            let start = script.find(&format!("\n{name}")).expect("the function") + 1;
            let end = start + script[start..].find("\n}\n").expect("its end") + 3;
            script[start..end].to_owned()
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let stale = folder.path().join("stale");
    std::fs::write(&stale, "999999999\n").unwrap();
    let text = format!(
        "set -eu\nsay() {{ echo \"$*\"; }}\n{functions}\nlives {0}/none dockerd && echo alive\ndrop_stale_pid {0}/none dockerd\n\
         drop_stale_pid {0}/stale dockerd\nlives {0}/folder dockerd && echo alive\nexit 0\n",
        folder.path().display()
    );
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let output = std::process::Command::new("sh").args(["-c", &text]).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("left behind by a dockerd that is gone") && !said.contains("alive"), "{said}");
    assert!(!stale.exists());
}
