//! The variables by which the command of `arenad run` finds the episode proxy.

use arenad_api::episodes::EpisodeProxy;

/// The names of this host, on which model servers and debuggers listen. They are not sent through the proxy, which
/// would refuse them.
const THIS_HOST: &str = "localhost,127.0.0.1,::1";

/// Returns the variables that every command gets. Clients read them only on purpose, so a command's requests to other
/// services, such as those to a model, do not go through the proxy.
pub(super) fn variables(proxy: &EpisodeProxy) -> [(String, String); 4] {
    [
        ("ARENAD_PROXY_SERVER".to_owned(), proxy.server.clone()),
        ("ARENAD_PROXY_USERNAME".to_owned(), proxy.username.clone()),
        ("ARENAD_PROXY_PASSWORD".to_owned(), proxy.password.clone()),
        ("ARENAD_PROXY_URL".to_owned(), proxy.url()),
    ]
}

/// Returns the variables by which HTTP clients use the proxy without being told. `earlier` returns the value that a
/// variable has so far.
///
/// Addresses with `https://` are not sent through the proxy, because no site has one.
pub(super) fn client_variables(
    proxy: &EpisodeProxy,
    earlier: &dyn Fn(&str) -> Option<String>,
) -> [(String, String); 4] {
    let no_proxy = |name: &str| match earlier(name).filter(|hosts| !hosts.trim().is_empty()) {
        Some(hosts) => format!("{hosts},{THIS_HOST}"),
        None => THIS_HOST.to_owned(),
    };
    [
        ("HTTP_PROXY".to_owned(), proxy.url()),
        ("http_proxy".to_owned(), proxy.url()),
        ("NO_PROXY".to_owned(), no_proxy("NO_PROXY")),
        ("no_proxy".to_owned(), no_proxy("no_proxy")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_used_no_proxy_before_use_none_now() {
        let proxy = EpisodeProxy {
            server: "http://127.0.0.1:7500".to_owned(),
            username: "ep-1".to_owned(),
            password: "t".to_owned(),
        };
        let earlier = |name: &str| (name == "NO_PROXY").then(|| "models.internal".to_owned());
        let found = client_variables(&proxy, &earlier);
        let value = |wanted: &str| found.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        assert_eq!(value("HTTP_PROXY"), Some("http://ep-1:t@127.0.0.1:7500"));
        assert_eq!(value("http_proxy"), value("HTTP_PROXY"));
        assert_eq!(value("NO_PROXY"), Some("models.internal,localhost,127.0.0.1,::1"));
        assert_eq!(value("no_proxy"), Some("localhost,127.0.0.1,::1"));
        assert!(variables(&proxy).iter().all(|(name, _)| name.starts_with("ARENAD_PROXY_")));
    }
}
