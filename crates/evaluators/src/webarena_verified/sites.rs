//! The addresses of the sites, and the placeholders that stand for them.

use super::failure::ReadingFailure;
use arenad_verdict::Profile;

/// The benchmark's sites, spelt as in its task file.
const SITES: [&str; 7] = ["gitlab", "map", "reddit", "shopping_admin", "shopping", "wikipedia", "homepage"];

/// The addresses of one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteUrls {
    /// The placeholder, such as `__GITLAB__`.
    placeholder: String,
    /// All addresses under which the site may appear.
    urls: Vec<String>,
    /// The index of the address that replaces the placeholder.
    active: usize,
}

/// The sites of a task, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environments(Vec<SiteUrls>);

/// Returns the placeholder of a site, such as `__SHOPPING_ADMIN__` for `shopping_admin`, or `None` for a site that the
/// benchmark does not have.
#[must_use]
pub fn placeholder(site: &str) -> Option<String> {
    let name = site.trim_matches('_');
    SITES
        .iter()
        .find(|known| **known == name || known.to_ascii_uppercase() == name)
        .map(|known| format!("__{}__", known.to_ascii_uppercase()))
}

impl SiteUrls {
    /// Creates a site from its placeholder and its addresses. The first address replaces the placeholder.
    #[must_use]
    pub(crate) fn new(placeholder: &str, urls: Vec<String>) -> Self {
        Self { placeholder: placeholder.to_owned(), urls, active: 0 }
    }
}

impl Environments {
    /// Creates the sites of a task.
    #[must_use]
    pub(crate) fn new(sites: Vec<SiteUrls>) -> Self {
        Self(sites)
    }

    /// Whether the addresses of all sites are known.
    pub(super) fn is_complete(&self) -> bool {
        self.0.iter().all(|site| !site.urls.is_empty())
    }

    pub(super) fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|site| site.placeholder.as_str())
    }

    /// Returns the URL for a template: replaces the placeholder at its start and all others of the same site.
    ///
    /// # Errors
    ///
    /// Returns an error if the template begins with no placeholder and `is_strict` is set.
    pub(super) fn render(&self, template: &str, is_strict: bool) -> Result<String, ReadingFailure> {
        let site = self.0.iter().find(|site| template.starts_with(&site.placeholder));
        match site.and_then(|site| Some((site, site.urls.get(site.active)?))) {
            Some((site, url)) if *url != site.placeholder => Ok(template.replace(&site.placeholder, url)),
            _ if is_strict => Err(ReadingFailure::raised(format!("{template:?} begins with no site of the task"))),
            _ => Ok(template.to_owned()),
        }
    }

    /// Returns the template for a URL. Sites with longer addresses are tried first, because an address may be part of
    /// another.
    ///
    /// The benchmark replaces an address wherever it occurs in the text. [`Profile::Strict`] replaces it only if the
    /// address ends there, so that port 7770 is not found in 77701.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL contains no site's address and `is_strict` is set.
    pub(super) fn derender(&self, url: &str, is_strict: bool, profile: Profile) -> Result<String, ReadingFailure> {
        let length = |site: &&SiteUrls| site.urls.iter().map(|url| url.chars().count()).max().unwrap_or_default();
        let mut sites: Vec<&SiteUrls> = self.0.iter().collect();
        sites.sort_by_key(|site| std::cmp::Reverse(length(site)));
        for site in sites {
            for address in &site.urls {
                let bare = address.trim_end_matches('/');
                match profile {
                    Profile::Compat if url.contains(address.as_str()) => {
                        return Ok(if bare.is_empty() { url.to_owned() } else { url.replace(bare, &site.placeholder) });
                    }
                    Profile::Strict if !bare.is_empty() => {
                        let (replaced, is_found) = replace_whole(url, bare, &site.placeholder);
                        if is_found {
                            return Ok(replaced);
                        }
                    }
                    _ => {}
                }
            }
        }
        if is_strict {
            return Err(ReadingFailure::raised(format!("no site of the task is at {url:?}")));
        }
        Ok(url.to_owned())
    }
}

/// Replaces an address unless a character follows that could belong to its host or to the same path segment.
fn replace_whole(text: &str, address: &str, with: &str) -> (String, bool) {
    let (mut out, mut rest, mut is_found) = (String::new(), text, false);
    while let Some(at) = rest.find(address) {
        let after = &rest[at + address.len()..];
        out.push_str(&rest[..at]);
        let is_end = !after.starts_with(|c: char| c.is_alphanumeric() || "-._~:@%".contains(c));
        out.push_str(if is_end { with } else { address });
        is_found |= is_end;
        rest = after;
    }
    out.push_str(rest);
    (out, is_found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites() -> Environments {
        let site = |name: &str, url: &str| SiteUrls::new(name, vec![url.to_owned()]);
        Environments::new(vec![
            site("__SHOPPING__", "http://h:7770/"),
            site("__SHOPPING_ADMIN__", "http://h:7780/admin"),
            site("__MAP__", "http://h:3000"),
        ])
    }

    #[test]
    fn addresses_and_placeholders_stand_for_each_other() {
        assert_eq!(sites().render("__MAP__/a", true), Ok("http://h:3000/a".to_owned()));
        assert!(sites().render("__GITLAB__/a", true).is_err());
        assert_eq!(sites().render("a", false), Ok("a".to_owned()));
        for profile in [Profile::Compat, Profile::Strict] {
            let derendered = sites().derender("http://h:7780/admin/x?from=http://h:7780/admin", true, profile);
            assert_eq!(derendered, Ok("__SHOPPING_ADMIN__/x?from=__SHOPPING_ADMIN__".to_owned()));
        }
        assert_eq!(placeholder("__SHOPPING_ADMIN__").as_deref(), Some("__SHOPPING_ADMIN__"));
        assert_eq!(placeholder("ebay"), None);
    }

    #[test]
    fn a_longer_port_is_another_host() {
        let elsewhere = "http://h:30001/a";
        assert_eq!(sites().derender(elsewhere, true, Profile::Compat), Ok("__MAP__1/a".to_owned()));
        assert!(sites().derender(elsewhere, true, Profile::Strict).is_err());
    }
}
