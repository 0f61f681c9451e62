//! The digits of labels, as pixels.

/// The height of a digit, in pixels.
const HEIGHT: usize = 11;

/// The width of a digit, in pixels.
const WIDTH: usize = 7;

/// The digits from 0 to 9 beside each other, a column apart.
const PIXELS: [&str; HEIGHT] = [
    "..###.. ...##.. .####.. #####.. ....##. ######. ..####. ####### .#####. ..###..",
    ".#####. ..###.. ######. ######. ...###. ######. .#####. ####### ####### .#####.",
    "##...## .####.. #...##. ....##. ..####. ##..... ##..... .....## ##...## ##...##",
    "##...## ...##.. ....##. ....##. .##.##. ##..... ##..... ....##. ##...## ##...##",
    "##...## ...##.. ....##. .####.. .##.##. #####.. ######. ....##. .#####. ##...##",
    "##...## ...##.. ...##.. .####.. ##..##. ######. ####### ...##.. .#####. #######",
    "##...## ...##.. ..##... ....##. ####### ....##. ##...## ...##.. ##...## .######",
    "##...## ...##.. .##.... ....##. ####### ....##. ##...## ..##... ##...## .....##",
    "##...## ...##.. ##..... ....##. ....##. ....##. ##...## ..##... ##...## .....##",
    ".#####. .###### ######. ######. ....##. ######. .#####. ..##... ####### .#####.",
    "..###.. .###### ######. #####.. ....##. #####.. ..###.. ..##... .#####. .####..",
];

/// Returns the places of a digit's pixels: columns from the left, and rows from above.
pub(super) fn pixels(digit: u8) -> impl Iterator<Item = (i64, i64)> {
    let from = usize::from(digit) * (WIDTH + 1);
    let rows = PIXELS.iter().zip(0..);
    rows.flat_map(move |(row, y)| {
        let columns = row.as_bytes()[from..from + WIDTH].iter().zip(0..);
        columns.filter(|(pixel, _)| **pixel == b'#').map(move |(_, x)| (x, y))
    })
}
