//! The screenshot with its marks.
//!
//! Rectangles are where Pillow draws them: their edges are rounded towards zero, and the right and the lower edge are parts
//! of them. The digits are a few pixels of our own, in the place of those of Source Code Pro.

use std::io::Cursor;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ImageFormat, Rgb, RgbImage};

use super::digits;
use super::{DIGIT_WIDTH, Edges, MarkBox, PADDING};

/// The width of the line of a box, in pixels.
const LINE: i64 = 2;

/// The distance of a digit from the left edge of its place, and from the upper one, in pixels.
const DIGIT_OFFSET: (i64, i64) = (1, 5);

const WHITE: Rgb<u8> = Rgb([0xff; 3]);

/// The screenshot cannot be read, or not be written again.
#[derive(Debug, thiserror::Error)]
#[error("draw marks on a screenshot")]
pub struct PictureError(#[from] image::ImageError);

/// Returns a screenshot with boxes, as PNG.
///
/// All boxes are below all labels, as in the source.
pub fn drawn(png: &[u8], boxes: &[MarkBox]) -> Result<Vec<u8>, PictureError> {
    let mut picture = image::load_from_memory_with_format(png, ImageFormat::Png)?.into_rgb8();
    for mark in boxes {
        outline(&mut picture, Rect::of(&mark.frame), Rgb(mark.color));
    }
    for mark in boxes {
        fill(&mut picture, Rect::of(&mark.label), Rgb(mark.color));
        number(&mut picture, mark);
    }
    let mut out = Cursor::new(Vec::new());
    // A larger picture is made sooner.
    picture.write_with_encoder(PngEncoder::new_with_quality(&mut out, CompressionType::Fast, FilterType::Adaptive))?;
    Ok(out.into_inner())
}

/// A rectangle of pixels, with all of its edges.
#[derive(Clone, Copy)]
struct Rect {
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
}

impl Rect {
    fn of(edges: &Edges) -> Self {
        // `as` rounds towards zero, as Pillow does.
        let Edges { left, top, right, bottom } = *edges;
        Self { left: left as i64, top: top as i64, right: right as i64, bottom: bottom as i64 }
    }
}

fn outline(picture: &mut RgbImage, rect: Rect, color: Rgb<u8>) {
    let Rect { left, top, right, bottom } = rect;
    fill(picture, Rect { bottom: top + LINE - 1, ..rect }, color);
    fill(picture, Rect { top: bottom - LINE + 1, ..rect }, color);
    fill(picture, Rect { right: left + LINE - 1, ..rect }, color);
    fill(picture, Rect { left: right - LINE + 1, ..rect }, color);
}

fn fill(picture: &mut RgbImage, rect: Rect, color: Rgb<u8>) {
    let (width, height) = (i64::from(picture.width()), i64::from(picture.height()));
    for y in rect.top.max(0)..=rect.bottom.min(height - 1) {
        for x in rect.left.max(0)..=rect.right.min(width - 1) {
            dot(picture, x, y, color);
        }
    }
}

fn number(picture: &mut RgbImage, mark: &MarkBox) {
    let (left, top) = (mark.label.left + PADDING, mark.label.top + PADDING);
    for (place, digit) in mark.id.to_string().bytes().enumerate() {
        let x = (left + DIGIT_WIDTH * place as f64).round() as i64 + DIGIT_OFFSET.0;
        let y = top.round() as i64 + DIGIT_OFFSET.1;
        for (column, row) in digits::pixels(digit - b'0') {
            dot(picture, x + column, y + row, WHITE);
        }
    }
}

/// Colors a pixel, if the picture has it.
fn dot(picture: &mut RgbImage, x: i64, y: i64, color: Rgb<u8>) {
    let Ok((x, y)) = u32::try_from(x).and_then(|x| Ok((x, u32::try_from(y)?))) else { return };
    if let Some(pixel) = picture.get_pixel_mut_checked(x, y) {
        *pixel = color;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: [u8; 3] = [0xff, 0, 0];

    fn shown(boxes: &[MarkBox]) -> RgbImage {
        let mut png = Cursor::new(Vec::new());
        RgbImage::new(60, 40).write_to(&mut png, ImageFormat::Png).expect("a picture");
        let png = drawn(&png.into_inner(), boxes).expect("marks");
        image::load_from_memory(&png).expect("a picture").into_rgb8()
    }

    fn edges([left, top, right, bottom]: [f64; 4]) -> Edges {
        Edges { left, top, right, bottom }
    }

    #[test]
    fn a_box_has_two_pixels_of_line_and_a_label_with_its_number() {
        let mark = MarkBox {
            id: 10,
            color: RED,
            frame: edges([30.9, 10.2, 50.5, 30.5]),
            label: edges([2.0, 2.0, 25.1875, 22.0]),
        };
        let picture = shown(&[mark]);
        let at = |x, y| picture.get_pixel(x, y).0;
        for (x, y) in [(30, 10), (31, 20), (50, 30), (49, 20), (40, 11), (40, 29)] {
            assert_eq!(at(x, y), RED, "{x} {y}");
        }
        for (x, y) in [(29, 10), (32, 20), (51, 30), (48, 20), (40, 12), (40, 28), (40, 31)] {
            assert_eq!(at(x, y), [0; 3], "{x} {y}");
        }
        assert_eq!((at(2, 2), at(25, 22), at(26, 22)), (RED, RED, [0; 3]));
        let white = picture.pixels().filter(|pixel| **pixel == WHITE).count();
        assert_eq!(white, digits::pixels(1).count() + digits::pixels(0).count());
        // The upper left pixel of the 1 is in its fourth column.
        assert_eq!((at(5 + 3, 9), at(5 + 2, 9)), (WHITE.0, RED));
    }

    #[test]
    fn marks_beyond_the_edge_are_cut_off_and_other_data_is_refused() {
        let mark = MarkBox {
            id: 7,
            color: RED,
            frame: edges([-20.0, -20.0, 80.0, 5.0]),
            label: edges([-12.0, -30.0, 100.0, -10.0]),
        };
        let picture = shown(&[mark]);
        assert_eq!((picture.get_pixel(0, 5).0, picture.get_pixel(0, 3).0), (RED, [0; 3]));
        let error = drawn(b"no picture", &[]).expect_err("no picture").to_string();
        assert_eq!(error, "draw marks on a screenshot");
    }
}
