//! Parses a statement word by word, as its server would, and accepts only statements that read.
//!
//! Input that servers, their versions or their settings parse in different ways is refused rather than interpreted:
//! control characters, a carriage return that does not end a line, spaces beyond ASCII, two string literals in a row,
//! two minus signs without a space.
//!
//! The guard is the second of three layers. The first is the account's rights; the third is the transaction, which the
//! server keeps read-only and ends in time. The guard looks for what those two permit: functions that sleep, lock, run
//! other statements, or reach the server's files and network for an account that has the right.

use arenad_model::locator::Arguments;
use arenad_model::site::DatabaseEngine;

/// A part of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementPiece<'a> {
    /// Text that is sent unchanged.
    Text(&'a str),
    /// The place at which the argument with this index is bound.
    Argument(usize),
}

/// The words with which a statement may begin.
const BEGINNINGS: [&str; 8] = ["select", "with", "values", "table", "show", "explain", "describe", "desc"];

/// Words that write, wherever they occur.
const WRITERS: [&str; 6] = ["into", "update", "insert", "delete", "create", "merge"];

/// The words among [`WRITERS`] that are also functions, and only read if a parenthesis follows.
const WRITERS_AND_FUNCTIONS: [&str; 2] = ["insert", "delete"];

/// PostgreSQL views that read files of the server, wherever their names occur.
const FILES: [&str; 3] = ["pg_file_settings", "pg_hba_file_rules", "pg_ident_file_mappings"];

/// Functions that do more than read.
const FUNCTIONS: [&str; 46] = [
    "benchmark",
    "connectby",
    "currval",
    "edit",
    "exec",
    "flush_rewrite_rules",
    "fts3_tokenizer",
    "get_lock",
    "gin_clean_pending_list",
    "load_rewrite_rules",
    "lastval",
    "load_extension",
    "load_file",
    "loread",
    "lowrite",
    "master_gtid_wait",
    "master_pos_wait",
    "nextval",
    "pg_cancel_backend",
    "pg_export_snapshot",
    "pg_extension_config_dump",
    "pg_get_process_memory_contexts",
    "pg_nextoid",
    "pg_notify",
    "pg_promote",
    "pg_reload_conf",
    "pg_show_all_file_settings",
    "pg_stat_file",
    "pg_stop_making_pinned_objects",
    "pg_terminate_backend",
    "randomblob",
    "readfile",
    "release_all_locks",
    "release_lock",
    "set_config",
    "setseed",
    "setval",
    "sleep",
    "source_pos_wait",
    "ts_rewrite",
    "ts_stat",
    "writefile",
    "xpath_table",
    "zeroblob",
    "wait_for_executed_gtid_set",
    "wait_until_sql_thread_after_gtids",
];

/// Prefixes of whole families of such functions.
const FAMILIES: [&str; 44] = [
    "asynchronous_connection_",
    "audit_log_",
    "binary_upgrade_",
    "brin_desummarize_",
    "brin_summarize_",
    "crosstab",
    "cursor_to_",
    "database_to_",
    "dblink",
    "group_replication_",
    "keyring_",
    "lo_",
    "pg_advisory_",
    "pg_backup_",
    "pg_clear_",
    "pg_copy_",
    "pg_create_",
    "pg_current_logfile",
    "pg_drop_",
    "pg_file_",
    "pg_hba_",
    "pg_ident_",
    "pg_import_",
    "pg_log_",
    "pg_logdir_",
    "pg_logical_",
    "pg_ls_",
    "pg_read_",
    "pg_replication_",
    "pg_restore_",
    "pg_rotate_",
    "pg_sleep",
    "pg_start_backup",
    "pg_stat_reset",
    "pg_stop_backup",
    "pg_switch_",
    "pg_sync_",
    "pg_try_advisory_",
    "pg_wal_",
    "query_to_",
    "service_get_",
    "service_release_",
    "spider_",
    "sys_",
];

/// Splits a statement into its pieces, by the quoting rules of `dialect`:
///
/// - MySQL and MariaDB, without `ANSI_QUOTES` and `NO_BACKSLASH_ESCAPES`;
/// - PostgreSQL with `standard_conforming_strings`, where only `E'…'` has backslash escapes;
/// - SQLite, which also quotes names in square brackets and has no backslash escapes.
///
/// Errors: the column, and the reason for the refusal.
pub fn guard<'a>(
    dialect: DatabaseEngine,
    statement: &'a str,
    arguments: &Arguments,
) -> Result<Vec<StatementPiece<'a>>, (usize, StatementRefusal)> {
    let mut reader = StatementReader { dialect, text: statement, at: 0, arguments, pieces: Vec::new(), sent: 0 };
    let read = reader.check_characters().and_then(|()| reader.read());
    let column = statement.get(..reader.at).unwrap_or(statement).chars().count() + 1;
    read.map_err(|reason| (column, reason))?;
    Ok(reader.pieces)
}

arenad_model::text_error! {
    /// The reason why a statement is not sent.
    pub struct StatementRefusal;
}

struct StatementReader<'a, 'b> {
    dialect: DatabaseEngine,
    text: &'a str,
    at: usize,
    arguments: &'b Arguments,
    pieces: Vec<StatementPiece<'a>>,
    /// Position up to which the text is in `pieces`.
    sent: usize,
}

impl<'a> StatementReader<'a, '_> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn starts(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Refuses control characters: PostgreSQL ends comments at any carriage return, MySQL accepts control characters
    /// where a comment needs a space, SQLite stops at a null.
    fn check_characters(&mut self) -> Result<(), StatementRefusal> {
        let ends_a_line = |at: usize| self.text[at..].starts_with("\r\n");
        let is_refused = |(at, c): &(usize, char)| match c {
            '\n' | '\t' => false,
            '\r' => !ends_a_line(*at),
            c => c.is_control() || *c == '\u{feff}',
        };
        match self.text.char_indices().find(is_refused) {
            Some((at, c)) => {
                self.at = at;
                Err(format!("the character U+{:04X} is refused: servers differ on what it means", u32::from(c)).into())
            }
            None => Ok(()),
        }
    }

    fn read(&mut self) -> Result<(), StatementRefusal> {
        let mut before = String::new();
        let mut is_first = true;
        let mut is_after_text = false;
        loop {
            self.skip_blank()?;
            let Some(c) = self.rest().chars().next() else { break };
            let start = self.at;
            let is_text = self.begins_text();
            if is_text && is_after_text {
                return Err("a text follows a text, which some servers read as one; join them by an operator".into());
            }
            is_after_text = is_text;
            if self.begins_escaped() && !is_first {
                self.at += 2;
                self.skip_text('\'', true)?;
                before.clear();
                continue;
            }
            if is_word_start(c) {
                let word = self.word().to_ascii_lowercase();
                let result = self.judge(&before, &word, is_first);
                if result.is_err() {
                    self.at = start;
                }
                result?;
                before = word;
                is_first = false;
                continue;
            }
            before.clear();
            if c.is_ascii_digit() {
                self.number()?;
                continue;
            }
            match c {
                '`' if self.dialect == DatabaseEngine::Postgres => return Err("names are quoted by `\"` here".into()),
                '\'' | '"' | '`' => self.quoted(c)?,
                '[' if self.dialect == DatabaseEngine::Sqlite => self.quoted(']')?,
                '$' if self.dialect == DatabaseEngine::Postgres => self.dollar()?,
                '{' => self.place()?,
                ';' => return self.end(),
                '\\' => return Err("a backslash stands outside of a text".into()),
                '?' if self.dialect != DatabaseEngine::Postgres => return Err(unnamed()),
                '@' | ':' | '$' if self.dialect == DatabaseEngine::Sqlite => return Err(unnamed()),
                '(' => self.at += 1,
                c if !c.is_ascii() => return Err(format!("`{}` stands outside of quotes", c.escape_debug()).into()),
                c if is_first => {
                    return Err(format!("`{c}` begins no query; it may begin with `SELECT` or `WITH`").into());
                }
                c => self.at += c.len_utf8(),
            }
        }
        if is_first {
            return Err("nothing is asked".into());
        }
        self.send(self.text.len());
        Ok(())
    }

    /// Returns an error if a word may not occur at its position.
    fn judge(&mut self, before: &str, word: &str, is_first: bool) -> Result<(), StatementRefusal> {
        if is_first && !BEGINNINGS.contains(&word) {
            let word = word.to_uppercase();
            return Err(format!(
                "a locator only reads: `{word}` begins no query; it may begin with `SELECT` or `WITH`"
            )
            .into());
        }
        if self.dialect == DatabaseEngine::Postgres && word == "u" && (self.starts("&\"") || self.starts("&'")) {
            return Err("names and texts with Unicode escapes are not understood".into());
        }
        self.refuse_file(word)?;
        // `SHOW CREATE` is the only use of `create` that reads.
        if (before, word) == ("show", "create") {
            return Ok(());
        }
        let is_called = self.is_called();
        if WRITERS.contains(&word) && !(is_called && WRITERS_AND_FUNCTIONS.contains(&word)) {
            return Err(format!("a locator only reads: `{}` writes or locks", word.to_uppercase()).into());
        }
        if matches!((before, word), ("for", "share" | "no" | "key") | ("lock", "in") | ("next", "value")) {
            return Err(format!(
                "a locator only reads: `{} {}` locks or counts on",
                before.to_uppercase(),
                word.to_uppercase()
            )
            .into());
        }
        if is_called { refuse_function(word) } else { Ok(()) }
    }

    /// Refuses views through which PostgreSQL reads its own files.
    fn refuse_file(&self, name: &str) -> Result<(), StatementRefusal> {
        if self.dialect == DatabaseEngine::Postgres && FILES.contains(&name) {
            return Err(format!("a locator only reads tables: `{name}` reads a file of the server's").into());
        }
        Ok(())
    }

    /// Returns whether a parenthesis follows, so that the name before it is a function's.
    fn is_called(&self) -> bool {
        let mut ahead = StatementReader {
            dialect: self.dialect,
            text: self.text,
            at: self.at,
            arguments: self.arguments,
            pieces: Vec::new(),
            sent: 0,
        };
        // A comment that must be refused is refused when the reader reaches it.
        ahead.skip_blank().is_err() || ahead.starts("(")
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let is_part =
            |c: char| is_word_start(c) || c.is_ascii_digit() || (c == '$' && self.dialect != DatabaseEngine::Sqlite);
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Returns whether a PostgreSQL string literal with backslash escapes begins here.
    fn begins_escaped(&self) -> bool {
        self.dialect == DatabaseEngine::Postgres && (self.starts("e'") || self.starts("E'"))
    }

    /// Returns whether a string literal begins here, except one that a word introduces.
    fn begins_text(&self) -> bool {
        let is_dollar = || self.dialect == DatabaseEngine::Postgres && self.starts("$");
        self.starts("'")
            || (self.dialect == DatabaseEngine::Mysql && self.starts("\""))
            || self.begins_escaped()
            || is_dollar()
    }

    /// Reads a number. Some servers read a number that runs into a word as two tokens, others as one.
    fn number(&mut self) -> Result<(), StatementRefusal> {
        let bytes = self.rest().as_bytes();
        let digits =
            |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        if bytes.first() == Some(&b'0') && matches!(bytes.get(1), Some(b'x' | b'X')) {
            end = 2 + bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        } else {
            if bytes.get(end) == Some(&b'.') {
                end += 1 + digits(end + 1);
            }
            if matches!(bytes.get(end), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
                let exponent = digits(end + 1 + sign);
                end += if exponent > 0 { 1 + sign + exponent } else { 0 };
            }
        }
        self.at += end;
        match self.rest().chars().next() {
            Some(c) if is_word_start(c) || c == '$' => Err("a number runs into a word; put a space or quotes".into()),
            _ => Ok(()),
        }
    }

    /// Reads a string literal or a quoted name, which may be a function's.
    fn quoted(&mut self, close: char) -> Result<(), StatementRefusal> {
        let start = self.at;
        self.at += 1;
        let is_text = close == '\'' || (close == '"' && self.dialect == DatabaseEngine::Mysql);
        let inner = self.skip_text(close, is_text && self.dialect == DatabaseEngine::Mysql)?;
        let name = inner.to_ascii_lowercase();
        let mut read = if is_text { Ok(()) } else { self.refuse_file(&name) };
        if read.is_ok() && self.is_called() {
            read = refuse_function(&name);
        }
        if read.is_err() {
            self.at = start;
        }
        read
    }

    /// Skips to the end of quoted text whose opening quote has been read, and returns its content. A doubled quote
    /// stands for one.
    fn skip_text(&mut self, close: char, has_escapes: bool) -> Result<&'a str, StatementRefusal> {
        let start = self.at;
        let mut chars = self.rest().char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            if c == '\\' && has_escapes {
                chars.next();
            } else if c == close {
                if close != ']' && chars.next_if(|(_, next)| *next == close).is_some() {
                    continue;
                }
                let inner = &self.text[start..start + offset];
                self.at = start + offset + c.len_utf8();
                return self.without_places(inner);
            }
        }
        Err("a quote is not closed".into())
    }

    fn without_places(&self, inner: &'a str) -> Result<&'a str, StatementRefusal> {
        match self.arguments.0.iter().find(|(name, _)| inner.contains(&format!("{{{name}}}"))) {
            Some((name, _)) => {
                Err(format!("`{{{name}}}` stands inside of quotes; arguments are bound, so write it bare").into())
            }
            None => Ok(inner),
        }
    }

    /// Reads a dollar-quoted string of PostgreSQL: `$tag$ text $tag$`.
    fn dollar(&mut self) -> Result<(), StatementRefusal> {
        let rest = &self.rest()[1..];
        let end = rest.find(|c: char| !is_word_start(c) && !c.is_ascii_digit()).unwrap_or(rest.len());
        if !rest[end..].starts_with('$') || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(unnamed());
        }
        let tag = &self.rest()[..end + 2];
        let inner = &self.rest()[tag.len()..];
        let close = inner.find(tag).ok_or("a dollar quote is not closed")?;
        self.without_places(&inner[..close])?;
        self.at += tag.len() + close + tag.len();
        Ok(())
    }

    /// Returns the reason why a `{` does not begin a known argument.
    fn unbound(&self) -> String {
        let name = self.rest()[1..].split_once('}').map(|(name, _)| name).unwrap_or_default();
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if is_name { format!("no argument was given for `{{{name}}}`") } else { "`{` begins no argument".to_owned() }
    }

    /// Reads the `{name}` of an argument.
    fn place(&mut self) -> Result<(), StatementRefusal> {
        let index = self.arguments.0.iter().position(|(name, _)| self.starts(&format!("{{{name}}}")));
        let index = index.ok_or_else(|| self.unbound())?;
        self.send(self.at);
        self.pieces.push(StatementPiece::Argument(index));
        self.at += self.arguments.0[index].0.len() + 2;
        self.sent = self.at;
        Ok(())
    }

    /// Reads the end of the statement: nothing may follow a semicolon.
    fn end(&mut self) -> Result<(), StatementRefusal> {
        self.send(self.at);
        self.at += 1;
        self.skip_blank()?;
        if self.rest().is_empty() { Ok(()) } else { Err("a second statement follows; a locator is one".into()) }
    }

    fn send(&mut self, end: usize) {
        if end > self.sent {
            self.pieces.push(StatementPiece::Text(&self.text[self.sent..end]));
        }
        self.sent = end;
    }

    /// Skips whitespace and comments.
    fn skip_blank(&mut self) -> Result<(), StatementRefusal> {
        loop {
            let rest = self.rest();
            self.at = self.text.len() - rest.trim_start_matches(is_blank).len();
            let rest = self.rest();
            let is_mysql = self.dialect == DatabaseEngine::Mysql;
            if is_mysql && rest.strip_prefix("--").is_some_and(|rest| rest.starts_with(|c| !is_blank(c))) {
                // Some clients read a comment here, the server two signs.
                return Err("two minus signs without a space; put one between or behind them".into());
            }
            let end = if rest.starts_with("--") || (is_mysql && rest.starts_with('#')) {
                rest.find('\n').map_or(rest.len(), |end| end + 1)
            } else if let Some(inner) = rest.strip_prefix("/*") {
                if inner.starts_with(['!', 'M', '+']) {
                    return Err("this comment is code or a hint to the server".into());
                }
                self.comment_end(rest)?
            } else {
                return Ok(());
            };
            let comment = &rest[..end];
            if comment.contains('\\') {
                return Err("a comment has a backslash".into());
            }
            self.without_places(comment)?;
            self.at += end;
        }
    }

    /// Finds the end of a comment; in PostgreSQL, comments may be nested.
    fn comment_end(&self, rest: &str) -> Result<usize, StatementRefusal> {
        let mut depth = 0_usize;
        let mut at = 0;
        while at < rest.len() {
            let here = &rest[at..];
            if here.starts_with("/*") {
                if depth > 0 && self.dialect != DatabaseEngine::Postgres {
                    return Err("a comment begins within a comment".into());
                }
                depth += 1;
                at += 2;
            } else if here.starts_with("*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Ok(at);
                }
            } else {
                at += here.chars().next().map_or(1, char::len_utf8);
            }
        }
        Err("a comment is not closed".into())
    }
}

/// Returns whether every server reads the character as whitespace. No other whitespace occurs, because control
/// characters have been refused.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Letters beyond ASCII are parts of words for every server. Most servers, but not all, treat all other characters
/// beyond ASCII the same.
fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || (!c.is_ascii() && c.is_alphanumeric())
}

fn unnamed() -> StatementRefusal {
    "parameters have names here: write `{name}` and give the argument".into()
}

fn refuse_function(name: &str) -> Result<(), StatementRefusal> {
    if FUNCTIONS.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family)) {
        return Err(format!("a locator only reads: `{name}` may do more than that").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::DatabaseEngine::{Mysql, Postgres, Sqlite};
    use super::*;

    fn arguments() -> Arguments {
        Arguments(vec![("sku".to_owned(), "x".to_owned())])
    }

    fn passes(dialect: DatabaseEngine, statement: &str) {
        let pieces = guard(dialect, statement, &arguments());
        assert!(pieces.is_ok(), "{dialect:?} {statement}: {pieces:?}");
    }

    fn refused(dialect: DatabaseEngine, statement: &str) -> String {
        guard(dialect, statement, &arguments())
            .map(|pieces| panic!("{dialect:?} {statement}: {pieces:?}"))
            .unwrap_or_else(|(_, reason)| reason.to_string())
    }

    #[test]
    fn queries_pass() {
        for dialect in [Mysql, Postgres, Sqlite] {
            for statement in [
                "SELECT 1",
                " (select a from t) union (select 'into; outfile') ; -- the end",
                "with x as (select 1.5e3 as n, 0x1f) select replace(n, 'a', 'b'), \"x\" from x where d >= '2023-01-01 10:00:00'",
                "select /* a comment; of no harm */ sleep, lo_total, updated from t for_x",
                "values (1), (2)",
                "explain select 'it''s'",
            ] {
                passes(dialect, statement);
            }
        }
        passes(Postgres, "select a::text, b ->> 'x', c ? 'k', $q$ it's ; $q$, E'\\'; x' from t /* a /* b */ ; */");
        passes(Mysql, "select `a`, \"it\\\"s; x\", @x := 1, 2 - -1 from t # into");
        passes(Sqlite, "select [a;b], `c` from t");
        passes(Mysql, "show create table t");
        passes(Postgres, "select 'pg_file_settings', created, merged from t");
    }

    #[test]
    fn places_become_arguments_outside_of_quotes_only() {
        let pieces = guard(Mysql, "select * from t where sku = {sku} limit 1;", &arguments()).expect("a query");
        assert_eq!(
            pieces,
            [
                StatementPiece::Text("select * from t where sku = "),
                StatementPiece::Argument(0),
                StatementPiece::Text(" limit 1")
            ]
        );
        for statement in ["select '{sku}'", "select 1 -- {sku}", "select $${sku}$$", "select \"{sku}\""] {
            assert!(refused(Postgres, statement).contains("inside of quotes"), "{statement}");
        }
        assert!(refused(Mysql, "select {other}").contains("no argument was given for `{other}`"));
        assert!(refused(Mysql, "select {fn sleep(5)}").contains("begins no argument"));
        assert!(refused(Mysql, "select ?").contains("parameters have names"));
        assert!(refused(Postgres, "select $1").contains("parameters have names"));
        assert!(refused(Sqlite, "select :a").contains("parameters have names"));
    }

    #[test]
    fn what_writes_waits_or_reaches_out_is_refused() {
        for dialect in [Mysql, Postgres, Sqlite] {
            for statement in [
                "",
                "; select 1",
                "delete from t",
                "SET x = 1",
                "copy t to program 'id'",
                "do $$ begin end $$",
                "call p()",
                "attach '/etc/passwd' as x",
                "vacuum into '/tmp/x'",
                "pragma writable_schema = 1",
                "begin",
                "commit",
                "load data infile 'x' into table t",
                "select 1; drop table t",
                "select 1;;",
                "select 1 into outfile '/tmp/x'",
                "select 1 INTO/**/DUMPFILE '/tmp/x'",
                "select 1.into outfile '/tmp/x'",
                "select 1into outfile '/tmp/x'",
                "select 1e5into outfile '/tmp/x'",
                "select * from t for update",
                "select * from t for share",
                "select * from t lock in share mode",
                "with x as (delete from t returning *) select * from x",
                "select sleep (5)",
                "select SLEEP/* */(5)",
                "select load_file('/etc/passwd')",
                "select pg_sleep_for('1 h')",
                "select pg_catalog.pg_sleep(1)",
                "select pg_read_file('/etc/passwd')",
                "select lo_import('/etc/passwd')",
                "select dblink_connect('host=x')",
                "select nextval('s')",
                "select next value for s",
                "select query_to_xml('select 1', true, true, '')",
                "select set_config('a', 'b', true)",
                "select load_extension('x')",
                "select zeroblob(1000000000)",
                "select \\! id",
                "select 1 -- \\! id",
                "select 'open",
                "select 1 /* open",
            ] {
                refused(dialect, statement);
            }
        }
        refused(Mysql, "select /*!50000 sleep(5) */");
        refused(Mysql, "select /*M!100000 1 into outfile '/x' */");
        refused(Mysql, "select /*+ MAX_EXECUTION_TIME(0) */ 1");
        refused(Mysql, "select `sleep`(5)");
        refused(Mysql, "select 'a\\' into outfile ' from t into outfile 'x'");
        refused(Postgres, "select \"pg_sleep\" (5)");
        refused(Postgres, "explain analyze create table u as select 1");
        refused(Postgres, "explain (analyze) create materialized view v as select 1");
        refused(Postgres, "select * from pg_file_settings");
        refused(Postgres, "select * from pg_catalog.\"pg_hba_file_rules\"");
        refused(Postgres, "table pg_ident_file_mappings");
        refused(Postgres, "select brin_summarize_new_values('t')");
        refused(Postgres, "select gin_clean_pending_list('t')");
        refused(Postgres, "select u&\"pg\\005fsleep\"(5)");
        refused(Postgres, "select E'\\'' ; drop table t --'");
        refused(Sqlite, "select 'a\\'; attach 'x' as y --'");
    }

    #[test]
    fn a_refusal_has_its_column() {
        assert_eq!(guard(Mysql, "select é, sleep(1)", &arguments()).map_err(|(column, _)| column), Err(11));
        assert_eq!(guard(Mysql, "drop table t", &arguments()).map_err(|(column, _)| column), Err(1));
    }

    #[test]
    fn what_servers_read_in_different_ways_is_refused() {
        for dialect in [Mysql, Postgres, Sqlite] {
            for statement in [
                "select 1 --\x01'\n + sleep(2) -- '",
                "select 1 --\r, pg_sleep(2)",
                "select 1 -- a\r\r\n, 2",
                "select 'a'\n'b'",
                "select 'a' -- b\n 'c'",
                "select 'a' /* b */ 'c'",
                "select 1\u{b}",
                "select 1\u{c}",
                "select 1\u{a0}",
                "select 1 \u{3000}",
                "select \u{feff}load_extension('x')",
                "select '\u{feff}'",
                "select 'a\0b'",
                "select 1 /* \0 */",
                "select \u{85}1",
                "select 1 /*! , sleep(1) */",
                "select 1 /*+ x */",
                "with x as (select 1) update (t) set a = 1",
                "select 1 into ('/tmp/x')",
            ] {
                refused(dialect, statement);
            }
            passes(dialect, "select 'a\tb\n',\r\n 1 -- \r\n, 2");
            passes(dialect, "select größe, 'größe\u{a0}–' from t");
        }
        refused(Postgres, "SELECT E'a'\n'\\' || ' , pg_sleep(2)::text --'");
        refused(Postgres, "select $$a$$ 'b'");
        refused(Postgres, "select 1 ` pg_sleep(2) `");
        refused(Postgres, "select e'{sku}'");
        passes(Postgres, "select date '2020-01-01', x'1f', E'a\\'b', insert_at, $a$ ' $a$");
        for statement in ["select 1 --1", "select 1 --x\n", "select 2--1", "select 1 --'", "select \"a\" 'b'"] {
            refused(Mysql, statement);
        }
        passes(Mysql, "select 1 --\n, _utf8mb4'x', n'y', insert('a', 1, 1, 'b') -- x");
        passes(Mysql, "select 1 --");
        refused(Sqlite, "select 1 /* /* */");
    }

    /// Reads a statement by the rules of the servers' own sources (`sql_lex.cc`, `scan.l`, `tokenize.c`), and refuses
    /// nothing. Returns its code: literals and comments become a space, and quotes around names are removed.
    fn code(dialect: DatabaseEngine, statement: &str) -> String {
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
    fn calls(code: &str, name: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
        code.match_indices(name).any(|(at, _)| {
            let is_whole = !code[..at].ends_with(is_part);
            is_whole && code[at + name.len()..].trim_ascii_start().starts_with('(')
        })
    }

    /// Fragments that servers may interpret differently.
    const FRAGMENTS: [&str; 44] = [
        "'", "''", "\"", "`", "[", "]", "\\", "\\'", "\\\\", "e'", "E'", "U&'", "n'", "x'", "$$", "$a$", "$", "--",
        "-- ", "--\x01", "-", "#", "/*", "*/", "/*!", "/*M!", "/*+", "\n", "\r", "\r\n", "\t", " ", "\u{a0}", "\u{b}",
        "\u{feff}", "a", "é", "1", "1e5", "0x", ",", ";", "{sku}", "(",
    ];

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

        #[test]
        fn what_passes_sleeps_to_no_server(
            dialect in proptest::sample::select(vec![Mysql, Postgres, Sqlite]),
            fragments in proptest::collection::vec(0..FRAGMENTS.len() + 6, 0..14),
        ) {
            let name = if dialect == Postgres { "pg_sleep" } else { "sleep" };
            let call = format!("{name}(2)");
            let parts = fragments.iter().map(|index| FRAGMENTS.get(*index).copied().unwrap_or(&call));
            let statement = format!("select 1 {}", parts.collect::<String>());
            if guard(dialect, &statement, &arguments()).is_ok() {
                proptest::prop_assert!(!calls(&code(dialect, &statement), name), "{dialect:?} {statement:?}");
            }
        }

        #[test]
        fn pieces_are_the_statement(
            dialect in proptest::sample::select(vec![Mysql, Postgres, Sqlite]),
            statement in "(select|SELECT 1|with|)[ -~\n\u{e9}']{0,40}(\\{sku\\})?[ -~\n]{0,10}",
        ) {
            if let Ok(pieces) = guard(dialect, &statement, &arguments()) {
                let joined: String = pieces.iter().map(|piece| match piece {
                    StatementPiece::Text(text) => text,
                    StatementPiece::Argument(_) => "{sku}",
                }).collect();
                proptest::prop_assert!(statement.starts_with(&joined), "{joined:?} of {statement:?}");
                let rest = statement.strip_prefix(&joined).unwrap_or_default();
                proptest::prop_assert!(rest.is_empty() || rest.starts_with(';'), "{rest:?}");
            }
        }

        #[test]
        fn what_is_in_texts_is_no_code(
            dialect in proptest::sample::select(vec![Mysql, Postgres, Sqlite]),
            text in "[a-z(), \"`$#*/;-]{0,30}",
            comment in "[a-z(), '\"$#-]{0,30}",
        ) {
            let text = format!("{text}sleep(1), pg_sleep(1)");
            let statement = format!("select '{text}', 1 /* {comment} sleep(1) */ -- {text}\n, 2");
            proptest::prop_assert!(guard(dialect, &statement, &arguments()).is_ok(), "{dialect:?} {statement:?}");
        }

        #[test]
        fn what_is_code_is_judged(
            dialect in proptest::sample::select(vec![Mysql, Postgres, Sqlite]),
            before in proptest::collection::vec(0..7_usize, 0..6),
            after in proptest::collection::vec(0..7_usize, 0..6),
            space in "[ \t\n]{0,2}(/\\*[a-z]{0,3}\\*/)?",
        ) {
            let whole = ["'a''b'", "\"n\"", "1.5e3", "/* ' */", "-- '\n", "(a)", "x"];
            let list = |indices: &[usize]| indices.iter().map(|index| whole[*index]).collect::<Vec<_>>().join(" , ");
            let call = if dialect == Postgres { "pg_sleep" } else { "sleep" };
            let statement = format!("select {} , {call}{space}(2) , {}", list(&before), list(&after));
            proptest::prop_assert!(guard(dialect, &statement, &arguments()).is_err(), "{dialect:?} {statement:?}");
        }
    }
}
