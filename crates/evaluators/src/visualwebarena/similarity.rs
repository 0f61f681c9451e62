//! Similarity of two pictures: both are resized to one size, converted to grey, and compared by structure (SSIM).
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/image_utils.py`, `get_image_ssim`, which uses Pillow
//! (`resize` with `LANCZOS`, `convert("L")`) and scikit-image (`structural_similarity` with its defaults). Both are
//! reproduced to the last bit, so that comparisons with a threshold have the same result.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, ImageReader, Limits};

/// The longest side of a readable picture, in pixels.
const SIDE_MAX: u32 = 10_000;

/// The memory that decoding a picture may use, in bytes.
const MEMORY_MAX: u64 = 512 << 20;

/// The side of the compared squares, in pixels.
const WINDOW: usize = 7;

/// A picture that cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be read")]
pub struct UndecodablePicture(#[source] image::ImageError);

/// A decoded picture with the kind of its pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    width: usize,
    height: usize,
    /// Values row by row; the values of one pixel are adjacent.
    values: Vec<u8>,
    /// The values of [`PixelFormat::Grey16`], which leaves `values` empty.
    wide: Vec<u16>,
    kind: PixelFormat,
}

/// The components of a pixel, as Pillow sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PixelFormat {
    Grey,
    /// Grey of 16 bits. It is resized with 16 bits and then clipped at 255.
    Grey16,
    GreyAlpha,
    Rgb,
    Rgba,
    /// The grey of a palette's colours. These pictures are resized without mixing neighbours.
    Palette,
}

impl PixelFormat {
    fn bands(self) -> usize {
        match self {
            Self::Grey | Self::Grey16 | Self::Palette => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }

    fn has_alpha(self) -> bool {
        matches!(self, Self::GreyAlpha | Self::Rgba)
    }
}

impl Pixels {
    /// Decodes a PNG, JPEG, GIF, WebP or BMP file; the first frame if it has several.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has another format, is damaged, or is too large.
    pub fn decode(bytes: &[u8]) -> Result<Self, UndecodablePicture> {
        let mut reader =
            ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| UndecodablePicture(e.into()))?;
        let mut limits = Limits::default();
        (limits.max_image_width, limits.max_image_height) = (Some(SIDE_MAX), Some(SIDE_MAX));
        limits.max_alloc = Some(MEMORY_MAX);
        reader.limits(limits);
        let format = reader.format();
        let image = reader.decode().map_err(UndecodablePicture)?;
        Ok(Self::new(&image, kind(format, bytes, &image)))
    }

    fn new(image: &DynamicImage, kind: PixelFormat) -> Self {
        // Pillow keeps the upper byte of a value of 16 bits.
        let upper = |values: Vec<u16>| values.into_iter().map(|value| (value >> 8) as u8).collect();
        let is_wide = image.color().bytes_per_pixel() == 2 * image.color().channel_count();
        let mut wide = Vec::new();
        let values = match kind {
            PixelFormat::Grey => image.to_luma8().into_raw(),
            PixelFormat::Grey16 => {
                wide = image.to_luma16().into_raw();
                Vec::new()
            }
            PixelFormat::GreyAlpha if is_wide => upper(image.to_luma_alpha16().into_raw()),
            PixelFormat::GreyAlpha => image.to_luma_alpha8().into_raw(),
            PixelFormat::Rgb if is_wide => upper(image.to_rgb16().into_raw()),
            PixelFormat::Rgb => image.to_rgb8().into_raw(),
            PixelFormat::Rgba if is_wide => upper(image.to_rgba16().into_raw()),
            PixelFormat::Rgba => image.to_rgba8().into_raw(),
            PixelFormat::Palette => image.to_rgb8().pixels().map(|pixel| luma(pixel.0)).collect(),
        };
        Self { width: image.width() as usize, height: image.height() as usize, values, wide, kind }
    }
}

/// Returns the kind of pixels that Pillow uses for a file.
fn kind(format: Option<ImageFormat>, bytes: &[u8], image: &DynamicImage) -> PixelFormat {
    // The header of a PNG file states the bits of a value and the components of a pixel.
    let header = match format {
        Some(ImageFormat::Gif) => return PixelFormat::Palette,
        Some(ImageFormat::Bmp) => {
            if let Some(kind) = kind_of_bmp(bytes) {
                return kind;
            }
            None
        }
        Some(ImageFormat::Png) => bytes.get(24).copied().zip(bytes.get(25).copied()),
        _ => None,
    };
    match header {
        Some((_, 3) | (1, 0)) => PixelFormat::Palette,
        Some((16, 0)) => PixelFormat::Grey16,
        // One colour may mean "transparent"; Pillow does not make an alpha channel of it.
        Some((_, 0)) => PixelFormat::Grey,
        Some((_, 2)) => PixelFormat::Rgb,
        _ => match (image.color().has_color(), image.color().has_alpha()) {
            (false, false) => PixelFormat::Grey,
            (false, true) => PixelFormat::GreyAlpha,
            (true, false) => PixelFormat::Rgb,
            (true, true) => PixelFormat::Rgba,
        },
    }
}

/// Returns the kind of pixels that Pillow uses for a BMP file with a palette, or `None` without a palette. A palette
/// that is a scale of grey does not count as one.
fn kind_of_bmp(bytes: &[u8]) -> Option<PixelFormat> {
    let number = |at: usize, length: usize| {
        let bytes = bytes.get(at..at + length)?;
        Some(bytes.iter().rev().fold(0usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let header = number(14, 4)?;
    // The oldest header is shorter, and so are its palette entries.
    let (bits, colours, size) = if header == 12 { (number(24, 2)?, 0, 3) } else { (number(28, 2)?, number(46, 4)?, 4) };
    if bits > 8 {
        return None;
    }
    let colours = if colours == 0 { 1 << bits } else { colours };
    let palette = bytes.get(14 + header..)?;
    let is_scale = (0..colours).all(|index| {
        let grey = if colours == 2 { index * 255 } else { index };
        palette
            .get(index * size..index * size + 3)
            .is_some_and(|colour| colour.iter().all(|part| usize::from(*part) == grey))
    });
    Some(if is_scale && colours > 2 { PixelFormat::Grey } else { PixelFormat::Palette })
}

/// Returns the similarity of two pictures: 1 if they are equal, about 0 if they have nothing in common. Returns `None`
/// if the common size is smaller than a window in one direction, where the benchmark's code fails.
#[must_use]
pub fn similarity(one: &Pixels, other: &Pixels) -> Option<f64> {
    let (width, height) = (one.width.max(other.width), one.height.max(other.height));
    if width < WINDOW || height < WINDOW {
        return None;
    }
    Some(structural_similarity(&grey(one, width, height), &grey(other, width, height), width, height))
}

/// Enlarges the picture to the given size and converts it to grey.
fn grey(pixels: &Pixels, width: usize, height: usize) -> Vec<u8> {
    let is_as_it_is = (pixels.width, pixels.height) == (width, height);
    let values = match pixels.kind {
        PixelFormat::Grey16 => {
            narrow(&if is_as_it_is { pixels.wide.clone() } else { resize_wide(pixels, width, height) })
        }
        _ if is_as_it_is => pixels.values.clone(),
        PixelFormat::Palette => nearest(pixels, width, height),
        kind if kind.has_alpha() => unmultiply(resize(multiply(pixels), pixels, width, height), kind.bands()),
        _ => resize(pixels.values.clone(), pixels, width, height),
    };
    match pixels.kind {
        PixelFormat::Grey | PixelFormat::Grey16 | PixelFormat::Palette => values,
        PixelFormat::GreyAlpha => values.chunks_exact(2).map(|pixel| pixel[0]).collect(),
        kind => values.chunks_exact(kind.bands()).map(|pixel| luma([pixel[0], pixel[1], pixel[2]])).collect(),
    }
}

/// ITU-R 601-2, in Pillow's fixed-point arithmetic.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    ((u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471 + 0x8000) >> 16) as u8
}

/// Multiplies colours by their opacity, so that transparent pixels do not affect visible ones.
fn multiply(pixels: &Pixels) -> Vec<u8> {
    let mut values = pixels.values.clone();
    for pixel in values.chunks_exact_mut(pixels.kind.bands()) {
        let Some((alpha, colours)) = pixel.split_last_mut() else { continue };
        for colour in colours {
            let product = u32::from(*colour) * u32::from(*alpha) + 128;
            *colour = (((product >> 8) + product) >> 8) as u8;
        }
    }
    values
}

/// Divides the colours by their opacity again.
fn unmultiply(mut values: Vec<u8>, bands: usize) -> Vec<u8> {
    for pixel in values.chunks_exact_mut(bands) {
        let Some((alpha, colours)) = pixel.split_last_mut() else { continue };
        if ![0, 255].contains(alpha) {
            for colour in colours {
                *colour = (255 * u32::from(*colour) / u32::from(*alpha)).min(255) as u8;
            }
        }
    }
    values
}

/// Resizes by nearest neighbour.
fn nearest(pixels: &Pixels, width: usize, height: usize) -> Vec<u8> {
    // Pillow adds the step repeatedly. A product would round differently and select another neighbour.
    let positions = |from: usize, to: usize| {
        let step = from as f64 / to as f64;
        let places = std::iter::successors(Some(step * 0.5), move |place| Some(place + step));
        places.take(to).map(move |place| (place as usize).min(from - 1)).collect::<Vec<_>>()
    };
    let columns = positions(pixels.width, width);
    let rows = positions(pixels.height, height);
    rows.into_iter()
        .flat_map(|row| columns.iter().map(move |column| pixels.values[row * pixels.width + column]))
        .collect()
}

/// Pillow's resampling: first along the rows, then along the columns, rounded to integers in between.
fn resize(mut values: Vec<u8>, pixels: &Pixels, width: usize, height: usize) -> Vec<u8> {
    let bands = pixels.kind.bands();
    if width != pixels.width {
        let weights = weights(pixels.width, width);
        let rows = values.chunks_exact(pixels.width * bands);
        values = rows.flat_map(|row| mixed_row(row, &weights, bands)).collect();
    }
    if height != pixels.height {
        let weights = weights(pixels.height, height);
        let row = width * bands;
        let mut mixed = Vec::with_capacity(row * height);
        for (first, weights) in &weights {
            mixed.extend((0..row).map(|column| {
                mix(weights.iter().enumerate().map(|(at, weight)| (values[(first + at) * row + column], *weight)))
            }));
        }
        values = mixed;
    }
    values
}

/// Converts values of 16 bits to 8 bits; values above 255 become 255.
fn narrow(values: &[u16]) -> Vec<u8> {
    values.iter().map(|value| u8::try_from(*value).unwrap_or(u8::MAX)).collect()
}

/// Pillow's resampling of values of 16 bits, in floating point.
fn resize_wide(pixels: &Pixels, width: usize, height: usize) -> Vec<u16> {
    let mix = |values: &mut dyn Iterator<Item = (u16, f64)>| {
        let sum = values.fold(0.0, |sum, (value, weight)| sum + f64::from(value) * weight);
        (sum + 0.5).clamp(0.0, f64::from(u16::MAX)) as u16
    };
    let mut values = pixels.wide.clone();
    if width != pixels.width {
        let shares = shares(pixels.width, width);
        let of = |row: &[u16], (first, weights): &(usize, Vec<f64>)| {
            mix(&mut weights.iter().enumerate().map(|(at, weight)| (row[first + at], *weight)))
        };
        let rows = values.chunks_exact(pixels.width);
        values = rows.flat_map(|row| shares.iter().map(|share| of(row, share)).collect::<Vec<_>>()).collect();
    }
    if height != pixels.height {
        let mut mixed = Vec::with_capacity(width * height);
        for (first, weights) in &shares(pixels.height, height) {
            mixed.extend((0..width).map(|column| {
                let line = weights.iter().enumerate();
                mix(&mut line.map(|(at, weight)| (values[(first + at) * width + column], *weight)))
            }));
        }
        values = mixed;
    }
    values
}

fn mixed_row(row: &[u8], weights: &[(usize, Vec<i32>)], bands: usize) -> Vec<u8> {
    let pixel = |(first, weights): &(usize, Vec<i32>), band: usize| {
        mix(weights.iter().enumerate().map(|(at, weight)| (row[(first + at) * bands + band], *weight)))
    };
    weights.iter().flat_map(|weights| (0..bands).map(move |band| pixel(weights, band))).collect()
}

/// The number of fraction bits of a weight.
const PRECISION: u32 = 22;

fn mix(values: impl Iterator<Item = (u8, i32)>) -> u8 {
    let sum = values.fold(1i64 << (PRECISION - 1), |sum, (value, weight)| sum + i64::from(value) * i64::from(weight));
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// Returns, for each position of the larger line, the first source position on the smaller one and the weights of the
/// sources.
fn shares(from: usize, to: usize) -> Vec<(usize, Vec<f64>)> {
    /// The radius of Lanczos's filter when it enlarges.
    const SUPPORT: f64 = 3.0;
    let scale = from as f64 / to as f64;
    (0..to)
        .map(|place| {
            let centre = (place as f64 + 0.5) * scale;
            let first = (centre - SUPPORT + 0.5).max(0.0) as usize;
            let last = ((centre + SUPPORT + 0.5) as usize).min(from);
            let weights: Vec<f64> = (first..last).map(|at| lanczos(at as f64 - centre + 0.5)).collect();
            let sum: f64 = weights.iter().sum();
            (first, weights.iter().map(|weight| weight / sum).collect())
        })
        .collect()
}

/// Converts the weights to fixed-point arithmetic.
fn weights(from: usize, to: usize) -> Vec<(usize, Vec<i32>)> {
    let one = f64::from(1u32 << PRECISION);
    let fixed = |weight: &f64| {
        let weight = weight * one;
        (if weight < 0.0 { weight - 0.5 } else { weight + 0.5 }) as i32
    };
    shares(from, to).into_iter().map(|(first, shares)| (first, shares.iter().map(fixed).collect())).collect()
}

fn lanczos(at: f64) -> f64 {
    let sinc = |at: f64| if at == 0.0 { 1.0 } else { (at * std::f64::consts::PI).sin() / (at * std::f64::consts::PI) };
    if (-3.0..3.0).contains(&at) { sinc(at) * sinc(at / 3.0) } else { 0.0 }
}

/// scikit-image's `structural_similarity` for pictures of bytes: the mean over all windows inside the picture.
///
/// Source: Wang, Bovik, Sheikh, Simoncelli: "Image quality assessment: from error visibility to structural similarity",
/// 2004.
fn structural_similarity(one: &[u8], other: &[u8], width: usize, height: usize) -> f64 {
    const COUNT: f64 = (WINDOW * WINDOW) as f64;
    const C1: f64 = (0.01 * 255.0) * (0.01 * 255.0);
    const C2: f64 = (0.03 * 255.0) * (0.03 * 255.0);
    let mut total = 0.0;
    // The sums over the last rows, one for each column. Each new row is added, and the oldest one is subtracted.
    let mut columns = vec![Sums::default(); width];
    for row in 0..height {
        for (column, sums) in columns.iter_mut().enumerate() {
            sums.add(one[row * width + column], other[row * width + column]);
            if row >= WINDOW {
                let gone = (row - WINDOW) * width + column;
                sums.remove(one[gone], other[gone]);
            }
        }
        if row + 1 < WINDOW {
            continue;
        }
        let mut window = Sums::default();
        for column in 0..width {
            window.join(&columns[column]);
            if column >= WINDOW {
                window.part(&columns[column - WINDOW]);
            }
            if column + 1 >= WINDOW {
                total += window.similarity(COUNT, C1, C2);
            }
        }
    }
    total / ((width - WINDOW + 1) * (height - WINDOW + 1)) as f64
}

/// Sums of values, of their squares and of their products.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    x: u32,
    y: u32,
    xx: u32,
    yy: u32,
    xy: u32,
}

impl Sums {
    fn of(x: u8, y: u8) -> Self {
        let (x, y) = (u32::from(x), u32::from(y));
        Self { x, y, xx: x * x, yy: y * y, xy: x * y }
    }

    fn add(&mut self, x: u8, y: u8) {
        self.join(&Self::of(x, y));
    }

    fn remove(&mut self, x: u8, y: u8) {
        self.part(&Self::of(x, y));
    }

    fn join(&mut self, other: &Self) {
        self.x += other.x;
        self.y += other.y;
        self.xx += other.xx;
        self.yy += other.yy;
        self.xy += other.xy;
    }

    fn part(&mut self, other: &Self) {
        self.x -= other.x;
        self.y -= other.y;
        self.xx -= other.xx;
        self.yy -= other.yy;
        self.xy -= other.xy;
    }

    fn similarity(&self, count: f64, c1: f64, c2: f64) -> f64 {
        let [ux, uy, uxx, uyy, uxy] = [self.x, self.y, self.xx, self.yy, self.xy].map(|sum| f64::from(sum) / count);
        // The covariance of a sample, not of a population.
        let normalized = count / (count - 1.0);
        let (vx, vy, vxy) = (normalized * (uxx - ux * ux), normalized * (uyy - uy * uy), normalized * (uxy - ux * uy));
        ((2.0 * ux * uy + c1) * (2.0 * vxy + c2)) / ((ux * ux + uy * uy + c1) * (vx + vy + c2))
    }
}
