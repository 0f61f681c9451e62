//! WebArena's evaluators: `string_match`, `url_match`, `program_html`.

pub mod strings;
pub mod urls;
