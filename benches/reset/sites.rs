//! The sites that are measured.

/// A site and the page by which a client without arenad would recognize that it is ready.
pub struct BenchedSite {
    /// Its name in the definition.
    pub name: &'static str,
    /// The path of the page that is requested.
    pub path: &'static str,
    /// The text of the page once the site is ready.
    pub marker: &'static str,
}

/// The sites to which clients write. The map's two containers and the encyclopaedia are read-only.
pub const SITES: [BenchedSite; 6] = [
    BenchedSite { name: "shopping", path: "/healthz", marker: "\"ok\": true" },
    BenchedSite { name: "shopping_admin", path: "/healthz", marker: "\"ok\": true" },
    BenchedSite { name: "reddit", path: "/healthz", marker: "\"ok\": true" },
    BenchedSite { name: "turkle", path: "/healthz", marker: "\"ok\": true" },
    BenchedSite { name: "homepage", path: "/healthz", marker: "\"ok\": true" },
    BenchedSite { name: "gitlab", path: "/healthz", marker: "\"ok\":true" },
];
