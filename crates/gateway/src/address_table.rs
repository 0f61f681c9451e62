//! The addresses of sites in text, and the addresses that take their places.
//!
//! An address is recognized where a URL begins: two slashes, then a host of the table and its port. A scheme before the
//! slashes must be `http` or `ws`; without a scheme, the address is one of a URL that is relative to its page's scheme.
//! Slashes and colons may be written in one of these forms, which HTML, CSS, JSON, JavaScript and URLs inside other URLs
//! have:
//!
//! | Form | Example |
//! |---|---|
//! | plain | `http://localhost:7770` |
//! | escaped in JSON | `http:\/\/localhost:7770` |
//! | escaped by number in JSON or JavaScript | `http:\u002F\u002Flocalhost:7770` |
//! | percent-encoded, once or twice | `http%3A%2F%2Flocalhost%3A7770`, `http%253A%252F%252Flocalhost%253A7770` |
//!
//! A host of the table with its port is recognized elsewhere as well, as in `http://user@localhost:7770/` or
//! `content="localhost:7770/project"`, unless the characters before it belong to a longer name or a path.
//!
//! An address keeps its form, and its path stays as it is. Text is taken as bytes of an encoding that contains ASCII, as
//! UTF-8 does. [`AddressMapper`] finds the same addresses however the text is divided.

use std::rc::Rc;

use super::authority::HostPort;

/// The port of `http` addresses that name none.
const HTTP_PORT: u16 = 80;
/// Maximum number of digits of a port.
const PORT_DIGITS: usize = 5;

/// A way to write the characters around a host.
struct UrlForm {
    slash: &'static [u8],
    colon: &'static [u8],
}

const FORMS: [UrlForm; 5] = [
    UrlForm { slash: b"/", colon: b":" },
    UrlForm { slash: b"\\/", colon: b":" },
    UrlForm { slash: b"\\u002F", colon: b"\\u003A" },
    UrlForm { slash: b"%2F", colon: b"%3A" },
    UrlForm { slash: b"%252F", colon: b"%253A" },
];

/// The ways to write an address without the slashes, which ends with a port.
const BARE_FORMS: [UrlForm; 4] = [
    UrlForm { slash: b"", colon: b":" },
    UrlForm { slash: b"", colon: b"\\u003A" },
    UrlForm { slash: b"", colon: b"%3A" },
    UrlForm { slash: b"", colon: b"%253A" },
];

/// Number of bytes before two slashes that decide on them: the longest form of `http:`.
const CONTEXT: usize = 10;

/// Number of bytes before an address without slashes that decide on it: a percent-encoded character.
const BARE_CONTEXT: usize = 3;

/// The address of a site, and the one that takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddressRow {
    /// The address that the site was made for.
    pub(super) canonical: HostPort,
    /// The address that the client uses.
    pub(super) used: HostPort,
}

/// The addresses of the sites of an episode, as one client knows them.
#[derive(Debug)]
pub(super) struct AddressTable {
    rows: Vec<AddressRow>,
    /// For each direction, how an address may begin.
    beginnings: [AddressBeginnings; 2],
}

/// The beginnings of addresses, by which almost all other text is passed over.
#[derive(Debug)]
struct AddressBeginnings {
    /// Whether an address may begin with a byte.
    bytes: [bool; 256],
    /// The different hosts, as they are written.
    hosts: Vec<Vec<u8>>,
}

/// The direction in which addresses are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressDirection {
    /// Canonical addresses become those that the client uses.
    ToClient,
    /// Addresses that the client uses become canonical.
    ToSite,
}

/// The result of looking at one place of a text.
enum AddressSight<'a> {
    /// No address begins here.
    Nothing,
    /// The text ends before that is certain.
    Unfinished,
    /// An address of a row begins here.
    Found(FoundAddress<'a>),
}

/// An address in a text that begins with it.
struct FoundAddress<'a> {
    row: &'a AddressRow,
    /// The length of the two slashes.
    slashes: usize,
    /// The colon, as it is written or would be written.
    colon: &'a [u8],
    /// The length of the whole address.
    length: usize,
}

impl AddressTable {
    pub(super) fn new(rows: Vec<AddressRow>) -> Self {
        let beginnings = [AddressDirection::ToClient, AddressDirection::ToSite]
            .map(|direction| AddressBeginnings::of(rows.iter().map(|row| direction.pair(row).0)));
        Self { rows, beginnings }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the address that takes the place of another one.
    pub(super) fn mapped(&self, place: &HostPort, direction: AddressDirection) -> Option<&HostPort> {
        self.rows.iter().map(|row| direction.pair(row)).find(|(from, _)| *from == place).map(|(_, to)| to)
    }

    /// Returns the text with its addresses replaced, or `None` if it has none.
    pub(super) fn map_text(self: &Rc<Self>, text: &[u8], direction: AddressDirection) -> Option<Vec<u8>> {
        let mut mapper = AddressMapper::new(Rc::clone(self), direction);
        let mapped = mapper.last(text);
        (mapped != text).then_some(mapped)
    }

    /// Returns a number that differs between tables with different addresses.
    pub(super) fn fingerprint(&self) -> u64 {
        // FNV-1a suffices, because a client that could find a collision would deceive itself alone.
        let text = self.rows.iter().map(|row| format!("{} {}\n", row.canonical, row.used)).collect::<String>();
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

impl AddressBeginnings {
    fn of<'a>(places: impl Iterator<Item = &'a HostPort>) -> Self {
        let mut hosts: Vec<Vec<u8>> = places.map(written_host).collect();
        hosts.sort();
        hosts.dedup();
        let mut bytes = [false; 256];
        // A slash begins with one of these in every form.
        for byte in [b'/', b'\\', b'%'].into_iter().chain(hosts.iter().filter_map(|host| host.first().copied())) {
            bytes[usize::from(byte.to_ascii_lowercase())] = true;
            bytes[usize::from(byte.to_ascii_uppercase())] = true;
        }
        Self { bytes, hosts }
    }

    /// Whether a text that begins with one of the bytes may begin with a host.
    fn may_be_host(&self, text: &[u8]) -> bool {
        let second = text.get(1);
        self.hosts.iter().any(|host| match (second, host.get(1)) {
            (Some(second), Some(expected)) => {
                second.eq_ignore_ascii_case(expected) && word_at(text, host) != WordMatch::Other
            }
            _ => true,
        })
    }
}

/// Returns a host as URLs have it.
fn written_host(place: &HostPort) -> Vec<u8> {
    match place.host.contains(':') {
        true => format!("[{}]", place.host).into_bytes(),
        false => place.host.clone().into_bytes(),
    }
}

impl AddressDirection {
    fn pair(self, row: &AddressRow) -> (&HostPort, &HostPort) {
        match self {
            Self::ToClient => (&row.canonical, &row.used),
            Self::ToSite => (&row.used, &row.canonical),
        }
    }
}

/// Replaces addresses in a text that arrives in chunks.
pub(super) struct AddressMapper {
    table: Rc<AddressTable>,
    direction: AddressDirection,
    /// The end of the text so far. Its first `decided` bytes have been returned, and are kept as the context of the
    /// rest, which may be the beginning of an address.
    tail: Vec<u8>,
    decided: usize,
    /// Where the last address in `tail` ends, which begins no scheme of a later one.
    scheme_from: usize,
}

impl AddressMapper {
    pub(super) fn new(table: Rc<AddressTable>, direction: AddressDirection) -> Self {
        Self { table, direction, tail: Vec::new(), decided: 0, scheme_from: 0 }
    }

    /// Takes a chunk, and returns all bytes that do not depend on the next one. Fewer than 300 bytes are held back.
    pub(super) fn next(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.tail.extend_from_slice(chunk);
        self.decide(false)
    }

    /// Takes the last chunk, and returns the rest of the text.
    pub(super) fn last(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.tail.extend_from_slice(chunk);
        self.decide(true)
    }

    fn decide(&mut self, is_end: bool) -> Vec<u8> {
        let text = self.tail.as_slice();
        let mut mapped = Vec::with_capacity(text.len() - self.decided);
        let (mut at, mut copied) = (self.decided, self.decided);
        let mut end = text.len();
        let beginnings = &self.table.beginnings[self.direction as usize];
        while let Some(offset) = text[at..].iter().position(|byte| beginnings.bytes[usize::from(*byte)]) {
            let start = at + offset;
            let sight = if !matches!(text[start], b'/' | b'\\' | b'%') {
                if !beginnings.may_be_host(&text[start..]) {
                    at = start + 1;
                    continue;
                }
                let context = &text[start.saturating_sub(BARE_CONTEXT)..start];
                self.table.look_bare(context, &text[start..], self.direction, is_end)
            } else if may_begin(&text[start..]) {
                let context = &text[start.saturating_sub(CONTEXT).max(self.scheme_from)..start];
                self.table.look(context, &text[start..], self.direction, is_end)
            } else {
                AddressSight::Nothing
            };
            match sight {
                AddressSight::Nothing => at = start + 1,
                AddressSight::Unfinished => {
                    end = start;
                    break;
                }
                AddressSight::Found(found) => {
                    mapped.extend_from_slice(&text[copied..start + found.slashes]);
                    found.write_used(self.direction, &mut mapped);
                    at = start + found.length;
                    copied = at;
                    self.scheme_from = at;
                }
            }
        }
        mapped.extend_from_slice(&text[copied..end]);
        self.decided = CONTEXT.min(end);
        let drained = end - self.decided;
        self.tail.drain(..drained);
        self.scheme_from = self.scheme_from.saturating_sub(drained);
        mapped
    }
}

impl FoundAddress<'_> {
    fn write_used(&self, direction: AddressDirection, text: &mut Vec<u8>) {
        let (_, used) = direction.pair(self.row);
        text.extend_from_slice(&written_host(used));
        if used.port != HTTP_PORT {
            text.extend_from_slice(self.colon);
            text.extend_from_slice(used.port.to_string().as_bytes());
        }
    }
}

/// The result of comparing a text with a word, without regard to case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordMatch {
    Whole,
    /// The text ends within the word.
    Begun,
    Other,
}

fn word_at(text: &[u8], word: &[u8]) -> WordMatch {
    let shared = text.len().min(word.len());
    match text[..shared].eq_ignore_ascii_case(&word[..shared]) {
        true if shared == word.len() => WordMatch::Whole,
        true => WordMatch::Begun,
        false => WordMatch::Other,
    }
}

impl AddressTable {
    /// Looks at the start of `text`, which `context` precedes. `is_end` is whether nothing follows the text.
    fn look<'a>(
        &'a self,
        context: &[u8],
        text: &'a [u8],
        direction: AddressDirection,
        is_end: bool,
    ) -> AddressSight<'a> {
        let mut is_unfinished = false;
        for form in &FORMS {
            let second = match word_at(text, form.slash) {
                WordMatch::Whole => word_at(&text[form.slash.len()..], form.slash),
                other => other,
            };
            match second {
                WordMatch::Whole if may_precede(context) => {
                    for row in &self.rows {
                        match row_at(row, form, text, direction, is_end) {
                            AddressSight::Nothing => {}
                            AddressSight::Unfinished => is_unfinished = true,
                            found @ AddressSight::Found(_) => return found,
                        }
                    }
                }
                WordMatch::Begun => is_unfinished |= !is_end,
                WordMatch::Whole | WordMatch::Other => {}
            }
        }
        if is_unfinished { AddressSight::Unfinished } else { AddressSight::Nothing }
    }

    /// Looks for a host with its port at the start of `text`, which `context` precedes.
    fn look_bare<'a>(
        &'a self,
        context: &[u8],
        text: &'a [u8],
        direction: AddressDirection,
        is_end: bool,
    ) -> AddressSight<'a> {
        let mut is_unfinished = false;
        if begins_name(context) {
            for (row, form) in self.rows.iter().flat_map(|row| BARE_FORMS.iter().map(move |form| (row, form))) {
                match row_at(row, form, text, direction, is_end) {
                    AddressSight::Nothing => {}
                    AddressSight::Unfinished => is_unfinished = true,
                    found @ AddressSight::Found(_) => return found,
                }
            }
        }
        if is_unfinished { AddressSight::Unfinished } else { AddressSight::Nothing }
    }
}

/// Whether a host may begin behind these bytes. Behind slashes, they and the scheme before them decide (`look`).
fn begins_name(context: &[u8]) -> bool {
    let continues = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/' | b'\\');
    match context {
        [b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default();
            u8::try_from(value(*high) * 16 + value(*low)).is_ok_and(|byte| !continues(byte) && byte != b'%')
        }
        // The escape of white space in JSON and JavaScript.
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., last] => !continues(*last),
        [] => true,
    }
}

/// Whether a text may begin with two slashes in some form. Almost no slash of a page does.
fn may_begin(text: &[u8]) -> bool {
    match text {
        [b'/', next, ..] => *next == b'/',
        [b'\\', next, ..] => matches!(next, b'/' | b'u' | b'U'),
        [b'%', next, ..] => *next == b'2',
        _ => true,
    }
}

/// Whether the bytes before two slashes are the end of a scheme that sites have, or no scheme.
fn may_precede(context: &[u8]) -> bool {
    let ends_with =
        |text: &[u8], end: &[u8]| text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end);
    let colons = [&b":"[..], b"%3A", b"%253A", b"\\u003A"];
    match colons.into_iter().find(|colon| ends_with(context, colon)) {
        Some(colon) => {
            let scheme = &context[..context.len() - colon.len()];
            ends_with(scheme, b"http") || ends_with(scheme, b"ws")
        }
        None => true,
    }
}

/// Looks for the address of a row behind two slashes.
fn row_at<'a>(
    row: &'a AddressRow,
    form: &UrlForm,
    text: &'a [u8],
    direction: AddressDirection,
    is_end: bool,
) -> AddressSight<'a> {
    let (known, _) = direction.pair(row);
    let slashes = 2 * form.slash.len();
    let is_bare = slashes == 0;
    let bracketed;
    let host = match known.host.contains(':') {
        true => {
            bracketed = written_host(known);
            bracketed.as_slice()
        }
        false => known.host.as_bytes(),
    };
    let unfinished = || if is_end { AddressSight::Nothing } else { AddressSight::Unfinished };
    match word_at(&text[slashes..], host) {
        WordMatch::Whole => {}
        WordMatch::Begun => return unfinished(),
        WordMatch::Other => return AddressSight::Nothing,
    }
    let after_host = slashes + host.len();
    let rest = &text[after_host..];
    let written = [&b":"[..], form.colon].into_iter().find(|colon| word_at(rest, colon) == WordMatch::Whole);
    let is_begun = [&b":"[..], form.colon].into_iter().any(|colon| word_at(rest, colon) == WordMatch::Begun);
    let Some(colon) = written else {
        if is_begun && !is_end {
            return AddressSight::Unfinished;
        }
        // A name without a port may be a word.
        return match (known.port == HTTP_PORT && !is_bare, ends_host(rest, is_end)) {
            (true, Some(true)) => {
                AddressSight::Found(FoundAddress { row, slashes, colon: form.colon, length: after_host })
            }
            (true, None) => AddressSight::Unfinished,
            (true, Some(false)) | (false, _) => AddressSight::Nothing,
        };
    };
    let digits = &rest[colon.len()..];
    let count = digits.iter().take(PORT_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    if count > PORT_DIGITS {
        return AddressSight::Nothing;
    }
    let port = std::str::from_utf8(&digits[..count]).ok().and_then(|digits| digits.parse::<u16>().ok());
    // An empty port is the default one (RFC 3986 section 3.2.3).
    let port = if count == 0 && !is_bare { Some(HTTP_PORT) } else { port };
    match digits.get(count) {
        None if !is_end => AddressSight::Unfinished,
        Some(next) if next.is_ascii_alphanumeric() || matches!(next, b'@' | b'_') => AddressSight::Nothing,
        _ if port == Some(known.port) => {
            let length = after_host + colon.len() + count;
            let colon = &text[after_host..after_host + colon.len()];
            AddressSight::Found(FoundAddress { row, slashes, colon, length })
        }
        _ => AddressSight::Nothing,
    }
}

/// Whether a host name ends before the text. `None` means that the text is too short to tell.
fn ends_host(text: &[u8], is_end: bool) -> Option<bool> {
    let continues = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~');
    match text {
        [] => is_end.then_some(true),
        // The dot ends a sentence, or separates the labels of a longer host name.
        [b'.'] => is_end.then_some(true),
        [b'.', next, ..] => Some(!continues(next)),
        [b'@', ..] => Some(false),
        [next, ..] => Some(!continues(next)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn place(text: &str) -> HostPort {
        HostPort::of(text).expect("a host")
    }

    fn table() -> Rc<AddressTable> {
        let row = |canonical: &str, used: &str| AddressRow { canonical: place(canonical), used: place(used) };
        Rc::new(AddressTable::new(vec![
            row("localhost:7770", "127.0.0.1:17780"),
            row("localhost:777", "127.0.0.1:1778"),
            row("localhost:9999", "forum.arena.test"),
            row("shop.test", "127.0.0.1:18080"),
        ]))
    }

    fn to_client(text: &str) -> String {
        let mapped = table().map_text(text.as_bytes(), AddressDirection::ToClient);
        mapped.map_or_else(|| text.to_owned(), |mapped| String::from_utf8(mapped).expect("UTF-8"))
    }

    #[test]
    fn addresses_are_replaced_in_every_form() {
        for (text, mapped) in [
            ("<a href=\"http://localhost:7770/x?y#z\">", "<a href=\"http://127.0.0.1:17780/x?y#z\">"),
            ("HTTP://LocalHost:7770", "HTTP://127.0.0.1:17780"),
            ("url(//localhost:7770/a.png)", "url(//127.0.0.1:17780/a.png)"),
            ("ws://localhost:7770/live", "ws://127.0.0.1:17780/live"),
            ("\"http:\\/\\/localhost:7770\\/x\"", "\"http:\\/\\/127.0.0.1:17780\\/x\""),
            ("'http:\\u002f\\u002Flocalhost:7770'", "'http:\\u002f\\u002F127.0.0.1:17780'"),
            ("next=http%3A%2F%2Flocalhost%3A7770%2Fx", "next=http%3A%2F%2F127.0.0.1%3A17780%2Fx"),
            ("next=http%3a//localhost:7770/", "next=http%3a//127.0.0.1:17780/"),
            ("http%253A%252F%252Flocalhost%253A7770%252F", "http%253A%252F%252F127.0.0.1%253A17780%252F"),
            ("http://localhost:777/ http://localhost:7770/", "http://127.0.0.1:1778/ http://127.0.0.1:17780/"),
            ("see http://localhost:7770.", "see http://127.0.0.1:17780."),
            ("http://localhost:07770/", "http://127.0.0.1:17780/"),
            // Port 80 is written in some addresses and left out in others.
            ("http://localhost:9999/f", "http://forum.arena.test/f"),
            (
                "http://shop.test/ http://shop.test:80/ http://shop.test",
                "http://127.0.0.1:18080/ http://127.0.0.1:18080/ http://127.0.0.1:18080",
            ),
            ("http%3A%2F%2Fshop.test%2Fx", "http%3A%2F%2F127.0.0.1%3A18080%2Fx"),
            ("in http://shop.test.", "in http://127.0.0.1:18080."),
            ("http://archive.test/http://localhost:7770/", "http://archive.test/http://127.0.0.1:17780/"),
            // Without slashes, or not directly behind them.
            ("http://user:secret@localhost:7770/x", "http://user:secret@127.0.0.1:17780/x"),
            ("content=\"localhost:7770/project git\"", "content=\"127.0.0.1:17780/project git\""),
            ("localhost:7770", "127.0.0.1:17780"),
            ("{\"host\":\"LOCALHOST:7770\"}", "{\"host\":\"127.0.0.1:17780\"}"),
            ("\\nlocalhost:7770, shop.test:80", "\\n127.0.0.1:17780, 127.0.0.1:18080"),
            ("host=%22localhost%3A7770%22", "host=%22127.0.0.1%3A17780%22"),
        ] {
            assert_eq!(to_client(text), mapped);
        }
    }

    #[test]
    fn other_addresses_stay() {
        for text in [
            "https://localhost:7770/",
            "https%3A%2F%2Flocalhost%3A7770",
            "wss://localhost:7770/",
            "ftp://localhost:7770/",
            "http://localhost:77701/",
            "http://localhost:7771/",
            "http://localhost/",
            "http://localhost:7770@evil.test/",
            "http://notlocalhost:7770/",
            "http://localhost.evil.test:7770/",
            "http://shop.test.evil.test/",
            "http://shop.test-2/",
            "http://shop.test:8080/",
            "http://shop.test@evil.test/",
            "http:/localhost:7770/",
            "http:\\/\\localhost:7770",
            "/localhost:7770",
            "my-localhost:7770 my.localhost:7770 7localhost:7770",
            "%2Flocalhost%3A7770",
            "%61localhost:7770",
            "localhost:77701 localhost:7771 localhost:7770x localhost:7770@evil.test",
            "localhost shop.test shop.test: a shop",
        ] {
            assert_eq!(to_client(text), text);
        }
    }

    #[test]
    fn the_way_back_leads_to_the_canonical_addresses() {
        let text = "next=http%3A%2F%2F127.0.0.1%3A17780%2Fcart&to=http://forum.arena.test/&x=http://127.0.0.1:1778";
        let mapped = table().map_text(text.as_bytes(), AddressDirection::ToSite).expect("addresses");
        let canonical = "next=http%3A%2F%2Flocalhost%3A7770%2Fcart&to=http://localhost:9999/&x=http://localhost:777";
        assert_eq!(String::from_utf8_lossy(&mapped), canonical);
    }

    #[test]
    fn a_short_piece_is_held_back_until_it_is_certain() {
        let mut mapper = AddressMapper::new(table(), AddressDirection::ToClient);
        assert_eq!(mapper.next(b"data: x\n\n"), b"data: x\n\n", "nothing to wait for");
        assert_eq!(mapper.next(b"a http://localhost:777"), b"a http:");
        assert_eq!(mapper.next(b"0"), b"");
        assert_eq!(mapper.next(b"/b"), b"//127.0.0.1:17780/b");
        assert_eq!(mapper.next(b" //local"), b" ");
        assert_eq!(mapper.last(b""), b"//local");
    }

    #[test]
    fn the_colon_of_an_address_without_a_port_is_no_scheme_of_the_next_one() {
        let text = b"http://shop.test://shop.test:80";
        let expected = AddressMapper::new(table(), AddressDirection::ToClient).last(text);
        assert!(
            table().map_text(&expected, AddressDirection::ToClient).is_none(),
            "{}",
            String::from_utf8_lossy(&expected)
        );
        for middle in 1..text.len() {
            let mut mapper = AddressMapper::new(table(), AddressDirection::ToClient);
            let mapped = [mapper.next(&text[..middle]), mapper.last(&text[middle..])].concat();
            assert_eq!(String::from_utf8_lossy(&mapped), String::from_utf8_lossy(&expected), "{middle}");
        }
    }

    /// Pieces of text of which many combinations are addresses, or nearly so.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        const PIECES: [&str; 33] = [
            "http",
            "https",
            "ws",
            ":",
            "/",
            "//",
            "\\/",
            "\\/\\/",
            "%2F",
            "%2f%2F",
            "%3A",
            "%252F",
            "%253A",
            "\\u002F",
            "\\u003a",
            "localhost",
            "LOCALHOST",
            "shop.test",
            "127.0.0.1",
            "7770",
            "777",
            "0",
            "9999",
            "80",
            ".",
            "@",
            "-",
            "x",
            " ",
            "\"",
            "%",
            "\\",
            "é",
        ];
        vec(proptest::sample::select(&PIECES[..]), 0..24).prop_map(|pieces| pieces.concat().into_bytes())
    }

    fn address() -> impl Strategy<Value = Vec<u8>> {
        let scheme = proptest::sample::select(&["http:", "https:", "ws:", "", "http%3A", "http%253A"][..]);
        let slash = proptest::sample::select(&["//", "\\/\\/", "%2F%2F", "%252F%252F", "\\u002F\\u002F"][..]);
        let hosts = &["localhost", "shop.test", "localhos", "127.0.0.1", "forum.arena.test"][..];
        let host = proptest::sample::select(hosts);
        let colon = proptest::sample::select(&[":", "%3A", "%253A", "\\u003A", ""][..]);
        let port = proptest::sample::select(&["7770", "777", "80", "", "77700", "17780", "1778", "18080"][..]);
        (scheme, slash, host, colon, port).prop_map(|parts| {
            let (scheme, slash, host, colon, port) = parts;
            format!("{scheme}{slash}{host}{colon}{port}").into_bytes()
        })
    }

    proptest! {
        #[test]
        fn any_division_into_chunks_gives_the_same_text(
            parts in vec(prop_oneof![text(), address()], 0..6),
            sizes in vec(1_usize..9, 1..40),
            is_request in any::<bool>(),
        ) {
            let text = parts.concat();
            let direction = if is_request { AddressDirection::ToSite } else { AddressDirection::ToClient };
            let whole = AddressMapper::new(table(), direction).last(&text);
            let mut mapper = AddressMapper::new(table(), direction);
            let (mut rest, mut mapped, mut given) = (text.as_slice(), Vec::new(), 0);
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                mapped.extend(mapper.next(chunk));
                given += chunk.len();
                rest = after;
                prop_assert!(mapper.tail.len() - mapper.decided < 300, "held back after {given} bytes");
            }
            mapped.extend(mapper.last(b""));
            prop_assert_eq!(String::from_utf8_lossy(&mapped), String::from_utf8_lossy(&whole));
        }

        #[test]
        fn text_that_has_been_mapped_has_no_address_left(parts in vec(prop_oneof![text(), address()], 0..6)) {
            let mapped = AddressMapper::new(table(), AddressDirection::ToClient).last(&parts.concat());
            let again = table().map_text(&mapped, AddressDirection::ToClient);
            prop_assert!(again.is_none(), "{}", String::from_utf8_lossy(&mapped));
        }
    }
}
