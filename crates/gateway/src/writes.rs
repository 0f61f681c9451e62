//! Classification of requests that may write to a site, and the rule whether to refuse them.

use globset::GlobSet;
use http::{Method, Request};

/// The treatment of requests that may write on one route.
#[derive(Debug, Clone, Default)]
pub struct WriteRules {
    /// Whether requests that may write are answered 405 instead of being forwarded.
    pub is_refused: bool,
    /// Paths whose requests only read, whatever their method, such as searches sent by POST.
    pub reads: GlobSet,
}

impl WriteRules {
    /// Returns whether a request may write: every method except GET, HEAD and OPTIONS may, unless `reads` matches its
    /// path.
    pub(super) fn may_write<B>(&self, request: &Request<B>) -> bool {
        !is_safe(request.method()) && !self.is_read(request.uri().path())
    }

    fn is_read(&self, path: &str) -> bool {
        // A server may resolve such a path to another one.
        let is_plain = !path.contains("..") && !path.contains("//") && !path.contains(['%', '\\', ';']);
        is_plain && self.reads.is_match(path)
    }
}

/// Returns whether a request of the method only reads, according to the HTTP specification.
pub(super) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[cfg(test)]
mod tests {
    use globset::{Glob, GlobSetBuilder};

    use super::*;

    #[test]
    fn a_search_by_post_is_no_write_and_nothing_hides_behind_one() {
        let search = Glob::new("/geocoder/search*").expect("a pattern");
        let reads = GlobSetBuilder::new().add(search).build().expect("patterns");
        let rules = WriteRules { is_refused: true, reads };
        let may_write = |method: &str, path: &str| {
            rules.may_write(&Request::builder().method(method).uri(path).body(()).expect("a request"))
        };
        assert!(!may_write("POST", "/geocoder/search_osm_nominatim?query=town"));
        assert!(!may_write("GET", "/note/new") && !may_write("HEAD", "/") && !may_write("OPTIONS", "/"));
        for path in
            ["/note/new", "/geocoder/search/../../note/new", "/geocoder/search%2f..%2fnote", "/geocoder/search//"]
        {
            assert!(may_write("POST", path), "{path}");
        }
        assert!(may_write("DELETE", "/note/1") && may_write("PURGE", "/"));
    }
}
