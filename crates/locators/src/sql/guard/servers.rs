//! The servers' own rules of reading a statement, for comparison: they refuse nothing.

use arenad_model::site::DatabaseEngine::{self, Mysql, Postgres, Sqlite};

/// Reads a statement by the rules of the servers' own sources (`sql_lex.cc`, `scan.l`, `tokenize.c`), and refuses
/// nothing. Returns its code: literals and comments become a space, and quotes around names are removed.
pub(super) fn code(dialect: DatabaseEngine, statement: &str) -> String {
    let all: Vec<char> = statement.chars().collect();
    let at = |index: usize| all.get(index).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    let mut code = String::new();
    let mut i = 0;
    while i < all.len() {
        let (c, next) = (at(i), at(i + 1));
        let is_mysql_comment = c == '-'
            && next == '-'
            && (i + 2 >= all.len() || at(i + 2).is_ascii_whitespace() || at(i + 2).is_ascii_control());
        let is_line = match dialect {
            Mysql => c == '#' || is_mysql_comment,
            Postgres | Sqlite => c == '-' && next == '-',
        };
        let is_word_before = i > 0 && (is_word(at(i - 1)) || at(i - 1) == '$');
        if is_line {
            while i < all.len() && at(i) != '\n' && !(dialect == Postgres && at(i) == '\r') {
                i += 1;
            }
        } else if c == '/' && next == '*' && dialect == Mysql && (at(i + 2) == '!' || at(i + 2) == 'M') {
            i += 3;
        } else if c == '/' && next == '*' {
            let mut depth = 1;
            i += 2;
            while i < all.len() && depth > 0 {
                match (at(i), at(i + 1)) {
                    ('*', '/') => (depth, i) = (depth - 1, i + 2),
                    ('/', '*') if dialect == Postgres => (depth, i) = (depth + 1, i + 2),
                    _ => i += 1,
                }
            }
            code.push(' ');
        } else if c == '$' && dialect == Postgres && !is_word_before {
            let tag = all[i + 1..].iter().position(|c| *c == '$').map(|end| &all[i..=i + 1 + end]);
            let tag =
                tag.filter(|tag| tag[1..tag.len() - 1].iter().all(|c| is_word(*c)) && !at(i + 1).is_ascii_digit());
            let Some(tag) = tag else {
                i += 1;
                continue;
            };
            i += tag.len();
            while i < all.len() && !all[i..].starts_with(tag) {
                i += 1;
            }
            i = (i + tag.len()).min(all.len());
            code.push(' ');
        } else if c == '\'' || (c == '"' && dialect == Mysql) {
            let is_escaped = match dialect {
                Mysql => true,
                Postgres => matches!(at(i.wrapping_sub(1)), 'e' | 'E') && !(i > 1 && is_word(at(i - 2))),
                Sqlite => false,
            };
            i = text_end(dialect, &all, i, is_escaped);
            code.push(' ');
        } else if c == '"' || (c == '`' && dialect != Postgres) || (c == '[' && dialect == Sqlite) {
            let close = if c == '[' { ']' } else { c };
            code.push(' ');
            i += 1;
            while i < all.len() && at(i) != close {
                // A parenthesis inside a name calls no function.
                code.push(if at(i) == '(' { '_' } else { at(i) });
                i += 1;
            }
            code.push(' ');
            i += 1;
        } else {
            code.push(c);
            i += 1;
        }
    }
    code
}

/// Returns the end of the literal that begins at `start`. PostgreSQL continues it with a literal on a later line,
/// by the rules of the first.
fn text_end(dialect: DatabaseEngine, all: &[char], start: usize, is_escaped: bool) -> usize {
    let at = |index: usize| all.get(index).copied().unwrap_or('\0');
    let quote = at(start);
    let mut i = start + 1;
    while i < all.len() {
        let is_pair = (at(i) == '\\' && is_escaped) || (at(i) == quote && at(i + 1) == quote);
        if is_pair {
            i += 2;
        } else if at(i) == quote {
            i += 1;
            let blank = all[i.min(all.len())..].iter().take_while(|c| c.is_ascii_whitespace()).count();
            let gap = &all[i..i + blank];
            if dialect == Postgres && gap.contains(&'\n') && at(i + blank) == quote {
                i += blank + 1;
                continue;
            }
            return i;
        } else {
            i += 1;
        }
    }
    all.len()
}

/// Returns whether the code calls a function of that name.
pub(super) fn calls(code: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
    code.match_indices(name).any(|(at, _)| {
        let is_whole = !code[..at].ends_with(is_part);
        is_whole && code[at + name.len()..].trim_ascii_start().starts_with('(')
    })
}
