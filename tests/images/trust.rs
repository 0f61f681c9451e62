//! Connections to mirrors: certificates of a private authority, and proxies.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::archive::Saved;
use super::mirror::{MirrorReply, MirrorRequest, TestMirror};
use super::project::ImageProject;
use crate::support::world::CommandOutput;

/// An authority's certificate, and a server with a certificate that it issued.
fn authority(host: &str) -> (String, Arc<ServerConfig>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let pem = certificate.pem();
    let issuer = Issuer::new(params, key);
    let own_key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&own_key, &issuer).unwrap();
    let private = PrivateKeyDer::try_from(own_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], private)
        .unwrap();
    (pem, Arc::new(config))
}

fn project(label: &str, seed: u64) -> (ImageProject, Saved, Vec<u8>) {
    let project = ImageProject::new(label, "");
    let saved = project.save("shop.tar", seed, 500_000);
    let content = fs::read(project.path("shop.tar")).unwrap();
    (project, saved, content)
}

fn pull(project: &ImageProject, variables: &[(&str, &str)]) -> CommandOutput {
    let mut command = project.world.command(&project.words("pull", &["--tries", "1"]));
    without_proxies(&mut command).envs(variables.iter().copied());
    project.world.start_command(command).ended()
}

fn without_proxies(command: &mut Command) -> &mut Command {
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command
}

#[test]
fn an_authority_of_ones_own_is_trusted_when_the_system_trusts_it() {
    let (project, saved, content) = project("tls", 61);
    let (pem, tls) = authority("localhost");
    fs::write(project.path("authority.pem"), pem).unwrap();
    let mirror = TestMirror::secure(tls, move |asked| MirrorReply::asked(&content, asked, ""));
    project.declare(&format!("    mirrors: [ \"https://localhost:{}/shop.tar\" ]\n", mirror.port()), "");
    pull(&project, &[]).code(1).says("it cannot be reached: invalid peer certificate");
    project.assert_absent();
    let authority = project.path("authority.pem");
    pull(&project, &[("SSL_CERT_FILE", authority.to_str().unwrap())]).code(0);
    project.assert_present(&saved);
}

#[test]
fn a_secure_mirror_does_not_send_into_the_open() {
    let (project, _, content) = project("downgrade", 62);
    let (pem, tls) = authority("localhost");
    fs::write(project.path("authority.pem"), pem).unwrap();
    let open = TestMirror::good(content);
    let target = open.url();
    let head = format!("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {target}\r\n");
    let mirror =
        TestMirror::secure(tls, move |_| MirrorReply { head: head.clone(), ..MirrorReply::status("302 Found") });
    project.declare(&format!("    mirrors: [ \"https://localhost:{}/shop.tar\" ]\n", mirror.port()), "");
    let authority = project.path("authority.pem");
    pull(&project, &[("SSL_CERT_FILE", authority.to_str().unwrap())]).code(1).says("it redirects from https to http:");
    assert!(open.asked().is_empty());
}

#[test]
fn redirects_are_followed_for_as_long_as_they_lead_somewhere() {
    let (project, saved, content) = project("redirect", 63);
    let there = TestMirror::good(content);
    let target = there.url();
    let redirect = |to: &str| MirrorReply {
        head: format!("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {to}\r\n"),
        ..MirrorReply::status("302 Found")
    };
    let mirror = TestMirror::start(move |asked: &MirrorRequest| match asked.target.as_str() {
        "/shop.tar" => redirect("/elsewhere/shop.tar?x=1"),
        "/circle.tar" => redirect("/circle.tar"),
        _ => redirect(&target),
    });
    let circle = mirror.url().replace("shop.tar", "circle.tar");
    project.declare(&format!("    mirrors: [ \"{circle}\", \"{}\" ]\n", mirror.url()), "");
    pull(&project, &[]).code(0);
    project.assert_present(&saved);
    assert!(mirror.asked().iter().any(|asked| asked.target == "/elsewhere/shop.tar?x=1"));
}

#[test]
fn a_proxy_carries_what_is_in_the_clear() {
    let (project, saved, content) = project("proxy", 64);
    let proxy = TestMirror::good(content);
    project.declare("    mirrors: [ \"http://mirror.test/images/shop.tar\" ]\n", "");
    let address = format!("http://127.0.0.1:{}", proxy.port());
    pull(&project, &[("HTTP_PROXY", &address), ("NO_PROXY", "mirror.test")]).code(1).says("it cannot be reached");
    assert!(proxy.asked().is_empty());
    pull(&project, &[("HTTP_PROXY", &address)]).code(0);
    project.assert_present(&saved);
    assert_eq!(proxy.asked()[0].target, "http://mirror.test/images/shop.tar");
}

#[test]
fn a_proxy_tunnels_what_is_secure() {
    let (project, saved, content) = project("tunnel", 65);
    let (pem, tls) = authority("mirror.test");
    fs::write(project.path("authority.pem"), pem).unwrap();
    let mirror = TestMirror::secure(tls, move |asked| MirrorReply::asked(&content, asked, ""));
    let tunnels = Arc::new(AtomicUsize::new(0));
    let proxy = tunnel_to(mirror.port(), tunnels.clone());
    project.declare("    mirrors: [ \"https://mirror.test/shop.tar\" ]\n", "");
    let authority = project.path("authority.pem");
    let variables = [("SSL_CERT_FILE", authority.to_str().unwrap()), ("HTTPS_PROXY", proxy.as_str())];
    pull(&project, &variables).code(0);
    project.assert_present(&saved);
    assert_eq!(tunnels.load(Ordering::Relaxed), 1);
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    project.engine().docker(&["rmi", &project.image]);
    fs::remove_dir_all(project.world.state_dir()).unwrap();
    let address = format!("http://{closed}");
    let refused = pull(&project, &[("HTTPS_PROXY", &address)]).code(1);
    refused.says("it cannot be reached: the proxy 127.0.0.1");
}

/// A proxy that connects every request for `mirror.test:443` to a port of this machine.
fn tunnel_to(port: u16, count: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            assert_eq!(first, "CONNECT mirror.test:443 HTTP/1.1");
            for line in lines.map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
            }
            count.fetch_add(1, Ordering::Relaxed);
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
            let mut mirror = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut back, mut to) = (mirror.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut back, &mut to));
            std::thread::spawn(move || std::io::copy(&mut client, &mut mirror));
        }
    });
    address
}
