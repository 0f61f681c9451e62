//! Which requests may write to a site, and whether they may pass.

use globset::GlobSet;
use http::{Method, Request};

/// What a route does about requests that may write.
#[derive(Debug, Clone, Default)]
pub struct WriteRules {
    /// Whether they are answered 405 instead of being passed on.
    pub is_refused: bool,
    /// Paths whose requests only read, whatever their method: searches that are sent by POST.
    pub reads: GlobSet,
}

impl WriteRules {
    /// Whether a request may write: every method but GET, HEAD and OPTIONS does, unless its path is known to be read.
    pub(super) fn may_write<B>(&self, request: &Request<B>) -> bool {
        !is_safe(request.method()) && !self.is_read(request.uri().path())
    }

    fn is_read(&self, path: &str) -> bool {
        // A server may take these for another path than the one that is written.
        let is_plain = !path.contains("..") && !path.contains("//") && !path.contains(['%', '\\', ';']);
        is_plain && self.reads.is_match(path)
    }
}

/// Whether a request of the method only reads, by what HTTP says of it.
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
