//! Mutations without knowledge of the format, except for the words of its language.

use crate::random::Random;
use crate::target::FuzzTarget;

/// The longest mutated input, in bytes.
const LONGEST: usize = 64 << 10;

/// Numbers at which lengths and counts often fail.
const NUMBERS: [u64; 17] =
    [0, 1, 2, 7, 8, 9, 127, 128, 255, 256, 511, 512, 65_535, 65_536, i32::MAX as u64, u32::MAX as u64, u64::MAX];

/// The same kind of numbers, as text.
const WRITTEN: [&str; 14] = [
    "0",
    "-1",
    "1",
    "00",
    "1e999",
    "-0.0",
    "4294967296",
    "2147483648",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999",
    "0x7fffffff",
    "0777777777777",
    "0.00000000000000001",
];

/// Pairs of brackets and similar delimiters; deep nesting breaks recursive parsers.
const PAIRS: [(&str, &str); 8] =
    [("(", ")"), ("[", "]"), ("{", "}"), ("{\"a\":", "}"), ("<p>", "</p>"), ("/*", "*/"), ("- ", ""), ("!(", ")")];

/// Makes an input from the known ones.
pub fn mutated(target: &FuzzTarget, pool: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.pick(pool).clone();
    // Usually one or two changes, occasionally many.
    let most = 1 << random.below(4);
    let count = 1 + random.below(most);
    for _ in 0..count {
        change(&mut input, target, pool, random);
        input.truncate(LONGEST);
    }
    // A few inputs keep wrong checksums: the code that refuses them is a parser too.
    if !random.percent(10) {
        (target.mend)(&mut input);
    }
    input
}

fn change(input: &mut Vec<u8>, target: &FuzzTarget, pool: &[Vec<u8>], random: &mut Random) {
    let at = place(input, random);
    match random.below(16) {
        0 => flip(input, at, random),
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        2 => drop(input.drain(range(input, random))),
        3 => {
            // The piece is repeated once, or as often as there is room.
            let piece = input[range(input, random)].to_vec();
            let most = (LONGEST / piece.len().max(1)) as u64;
            let times = if random.percent(80) { 1 } else { 1 + random.below(most.min(2000)) };
            insert(input, at, &piece.repeat(times as usize));
        }
        4 => {
            let piece = input[range(input, random)].to_vec();
            let at = place(input, random);
            overwrite(input, at, &piece);
        }
        5 => {
            // The piece comes from another input, or from the same.
            let other = random.pick(pool);
            let piece = other[range(other, random)].to_vec();
            if random.percent(50) { insert(input, at, &piece) } else { overwrite(input, at, &piece) }
        }
        6 => {
            // The beginning of one input and the end of another.
            let other = random.pick(pool);
            input.truncate(at);
            input.extend_from_slice(&other[place(other, random)..]);
        }
        7 => binary_number(input, at, random),
        8 | 9 => written_number(input, at, random),
        10 => input.truncate(at),
        11 => {
            let (open, close) = *random.pick(&PAIRS);
            let depth = 1_usize << random.below(13);
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            insert(input, at, format!("{open}{close}").as_bytes());
        }
        12 => {
            let begin = range(input, random);
            let piece = input.drain(begin).collect::<Vec<u8>>();
            let at = place(input, random);
            insert(input, at, &piece);
        }
        _ if target.words.is_empty() => flip(input, at, random),
        13 | 14 => insert(input, at, random.pick(target.words).as_bytes()),
        _ => {
            let word = random.pick(target.words).as_bytes();
            overwrite(input, at, word);
        }
    }
}

fn place(input: &[u8], random: &mut Random) -> usize {
    random.below(input.len() as u64 + 1) as usize
}

/// A part of the input, usually a short one.
fn range(input: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let begin = place(input, random);
    let most = 1_u64 << random.within(1..14);
    let length = random.below(most + 1) as usize;
    begin..(begin + length).min(input.len())
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let at = at.min(input.len());
    input.splice(at..at, piece.iter().copied().take(LONGEST));
}

fn overwrite(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let at = at.min(input.len());
    let end = (at + piece.len()).min(input.len());
    input.splice(at..end, piece.iter().copied());
}

fn flip(input: &mut [u8], at: usize, random: &mut Random) {
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn binary_number(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let number = random.pick(&NUMBERS).wrapping_sub(random.below(2));
    let width = 1_usize << random.below(4);
    let bytes = if random.percent(50) { number.to_le_bytes() } else { number.to_be_bytes().map(u8::to_be) };
    let bytes = if random.percent(50) { &bytes[..width] } else { &bytes[8 - width..] };
    overwrite(input, at, bytes);
}

/// Replaces the next number in a text.
fn written_number(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(begin) = input[at..].iter().position(u8::is_ascii_digit).map(|offset| at + offset) else { return };
    let length = input[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number =
        if random.percent(50) { (*random.pick(&WRITTEN)).to_owned() } else { random.pick(&NUMBERS).to_string() };
    input.splice(begin..begin + length, number.bytes());
}
