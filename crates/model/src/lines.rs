//! Splitting of a byte stream into lines. The buffer is bounded, because a site may log a line that never ends.

/// A line, or the beginning of a line that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The bytes of the line, without the line end.
    pub bytes: &'a [u8],
    /// Whether the rest of the line was left out.
    pub is_cut: bool,
}

/// Splits chunks of a stream into lines.
#[derive(Debug, Clone)]
pub struct LineSplitter {
    rest: Vec<u8>,
    most: usize,
    /// Whether the current line was already passed on in part, so that its remaining bytes are skipped.
    is_skipping: bool,
}

impl LineSplitter {
    /// Creates a splitter for lines of at most `most` bytes. The rest of a longer line is left out.
    pub fn new(most: usize) -> Self {
        Self { rest: Vec::new(), most, is_skipping: false }
    }

    /// Adds a chunk, and passes on each line that ends in it or exceeds the maximum length.
    pub fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        while !chunk.is_empty() {
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let (part, next) = match end {
                Some(end) => (&chunk[..end], &chunk[end + 1..]),
                None => (chunk, &chunk[chunk.len()..]),
            };
            chunk = next;
            if !self.is_skipping {
                let room = self.most - self.rest.len();
                self.rest.extend_from_slice(&part[..part.len().min(room)]);
                if part.len() > room {
                    each(Line { bytes: &self.rest, is_cut: true });
                    self.rest.clear();
                    self.is_skipping = true;
                } else if end.is_some() {
                    each(Line { bytes: &self.rest, is_cut: false });
                    self.rest.clear();
                }
            }
            if end.is_some() {
                self.is_skipping = false;
            }
        }
    }

    /// Passes on the bytes after the last line end.
    pub fn end(&mut self, mut each: impl FnMut(Line<'_>)) {
        if !self.rest.is_empty() {
            each(Line { bytes: &self.rest, is_cut: false });
            self.rest.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(most: usize, chunks: &[&[u8]]) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        let mut lines = LineSplitter::new(most);
        let mut note = |line: Line<'_>| found.push((String::from_utf8_lossy(line.bytes).into_owned(), line.is_cut));
        for chunk in chunks {
            lines.push(chunk, &mut note);
        }
        lines.end(&mut note);
        found
    }

    #[test]
    fn a_line_without_end_is_cut_once_and_the_next_one_is_whole() {
        let found = cut(4, &[b"ab", b"cdefgh", b"ijkl", b"mn\nxy\n\nz"]);
        let expected = [("abcd", true), ("xy", false), ("", false), ("z", false)];
        assert_eq!(found, expected.map(|(text, is_cut)| (text.to_owned(), is_cut)));
    }

    #[test]
    fn a_line_of_the_greatest_length_is_whole() {
        assert_eq!(cut(4, &[b"abcd", b"\nabcd\n"]), [("abcd".to_owned(), false), ("abcd".to_owned(), false)]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut lines = LineSplitter::new(1 << 10);
        for _ in 0..100 {
            lines.push(&[b'y'; 1 << 16], |_| {});
            assert!(lines.rest.capacity() <= 2 << 10, "{}", lines.rest.capacity());
        }
    }

    proptest! {
        #[test]
        fn where_chunks_are_divided_does_not_matter(text in "[ab\n]{0,40}", places in prop::collection::vec(0..40_usize, 0..5)) {
            let mut places: Vec<usize> = places.into_iter().map(|place| place.min(text.len())).collect();
            places.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for place in places {
                chunks.push(&text.as_bytes()[from..place]);
                from = place;
            }
            chunks.push(&text.as_bytes()[from..]);
            let expected: Vec<(String, bool)> = text
                .split_inclusive('\n')
                .map(|line| line.trim_end_matches('\n'))
                .map(|line| (line.chars().take(5).collect(), line.len() > 5))
                .collect();
            prop_assert_eq!(cut(5, &chunks), expected);
        }
    }
}
