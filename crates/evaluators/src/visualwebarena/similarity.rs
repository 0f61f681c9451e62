//! How similar two pictures are: both brought to one size, made grey, and compared by their structure (SSIM).
//!
//! Source: web-arena-x/visualwebarena `evaluation_harness/image_utils.py`, `get_image_ssim`, which leaves the work to Pillow
//! (`resize` with `LANCZOS`, `convert("L")`) and scikit-image (`structural_similarity` as it is). Both are followed to the
//! last bit, so that a threshold decides the same way.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, ImageReader, Limits};

/// The longest side of a picture that is read, in pixels.
const SIDE_MAX: u32 = 10_000;

/// The memory that reading a picture may take, in bytes.
const MEMORY_MAX: u64 = 512 << 20;

/// The side of the squares that are compared, in pixels.
const WINDOW: usize = 7;

/// A picture that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be read")]
pub struct Unreadable(#[source] image::ImageError);

/// A decoded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    width: usize,
    height: usize,
    /// Values row by row, those of one pixel beside each other.
    values: Vec<u8>,
    /// The values of [`Kind::Grey16`], which has no others.
    wide: Vec<u16>,
    kind: Kind,
}

/// What a pixel is made of, as Pillow sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Grey,
    /// Of 16 bits, which are resized as such and then cut off at 255.
    Grey16,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Grey of a palette's colours: these pictures are resized without mixing neighbours.
    Palette,
}

impl Kind {
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
    /// Reads a PNG, JPEG, GIF, WebP or BMP file; the first frame, if it has several.
    ///
    /// # Errors
    ///
    /// When it is none of these, damaged, or too large.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut reader =
            ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| Unreadable(e.into()))?;
        let mut limits = Limits::default();
        (limits.max_image_width, limits.max_image_height) = (Some(SIDE_MAX), Some(SIDE_MAX));
        limits.max_alloc = Some(MEMORY_MAX);
        reader.limits(limits);
        let format = reader.format();
        let image = reader.decode().map_err(Unreadable)?;
        Ok(Self::new(&image, kind(format, bytes, &image)))
    }

    fn new(image: &DynamicImage, kind: Kind) -> Self {
        // Pillow keeps the upper byte of a value of 16 bits.
        let upper = |values: Vec<u16>| values.into_iter().map(|value| (value >> 8) as u8).collect();
        let is_wide = image.color().bytes_per_pixel() == 2 * image.color().channel_count();
        let mut wide = Vec::new();
        let values = match kind {
            Kind::Grey => image.to_luma8().into_raw(),
            Kind::Grey16 => {
                wide = image.to_luma16().into_raw();
                Vec::new()
            }
            Kind::GreyAlpha if is_wide => upper(image.to_luma_alpha16().into_raw()),
            Kind::GreyAlpha => image.to_luma_alpha8().into_raw(),
            Kind::Rgb if is_wide => upper(image.to_rgb16().into_raw()),
            Kind::Rgb => image.to_rgb8().into_raw(),
            Kind::Rgba if is_wide => upper(image.to_rgba16().into_raw()),
            Kind::Rgba => image.to_rgba8().into_raw(),
            Kind::Palette => image.to_rgb8().pixels().map(|pixel| luma(pixel.0)).collect(),
        };
        Self { width: image.width() as usize, height: image.height() as usize, values, wide, kind }
    }
}

/// What Pillow would make of a file's pixels.
fn kind(format: Option<ImageFormat>, bytes: &[u8], image: &DynamicImage) -> Kind {
    // The header of a PNG file says how many bits a value has and what a pixel is made of.
    let header = match format {
        Some(ImageFormat::Gif) => return Kind::Palette,
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
        Some((_, 3) | (1, 0)) => Kind::Palette,
        Some((16, 0)) => Kind::Grey16,
        // One colour may stand for "transparent"; Pillow keeps that apart.
        Some((_, 0)) => Kind::Grey,
        Some((_, 2)) => Kind::Rgb,
        _ => match (image.color().has_color(), image.color().has_alpha()) {
            (false, false) => Kind::Grey,
            (false, true) => Kind::GreyAlpha,
            (true, false) => Kind::Rgb,
            (true, true) => Kind::Rgba,
        },
    }
}

/// What Pillow would make of a BMP file with a palette; nothing if it has none. A palette that is a scale of grey does not count.
fn kind_of_bmp(bytes: &[u8]) -> Option<Kind> {
    let number = |at: usize, length: usize| {
        let bytes = bytes.get(at..at + length)?;
        Some(bytes.iter().rev().fold(0usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let header = number(14, 4)?;
    // The oldest header is shorter, and so are the colours behind it.
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
    Some(if is_scale && colours > 2 { Kind::Grey } else { Kind::Palette })
}

/// How similar two pictures are: 1 if equal, around 0 if they have nothing in common. Nothing if even the larger of them is
/// smaller than a window in one direction: there the benchmark's code fails.
#[must_use]
pub fn similarity(one: &Pixels, other: &Pixels) -> Option<f64> {
    let (width, height) = (one.width.max(other.width), one.height.max(other.height));
    if width < WINDOW || height < WINDOW {
        return None;
    }
    Some(structural_similarity(&grey(one, width, height), &grey(other, width, height), width, height))
}

/// The picture at a size that is not smaller than its own, in grey.
fn grey(pixels: &Pixels, width: usize, height: usize) -> Vec<u8> {
    let is_as_it_is = (pixels.width, pixels.height) == (width, height);
    let values = match pixels.kind {
        Kind::Grey16 => narrow(&if is_as_it_is { pixels.wide.clone() } else { resize_wide(pixels, width, height) }),
        _ if is_as_it_is => pixels.values.clone(),
        Kind::Palette => nearest(pixels, width, height),
        kind if kind.has_alpha() => unmultiply(resize(multiply(pixels), pixels, width, height), kind.bands()),
        _ => resize(pixels.values.clone(), pixels, width, height),
    };
    match pixels.kind {
        Kind::Grey | Kind::Grey16 | Kind::Palette => values,
        Kind::GreyAlpha => values.chunks_exact(2).map(|pixel| pixel[0]).collect(),
        kind => values.chunks_exact(kind.bands()).map(|pixel| luma([pixel[0], pixel[1], pixel[2]])).collect(),
    }
}

/// ITU-R 601-2, in Pillow's fixed-point arithmetic.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    ((u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471 + 0x8000) >> 16) as u8
}

/// Colours multiplied by their opacity, so that what cannot be seen does not bleed into what can.
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

/// The colours again.
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

/// Each pixel is the one that lies nearest.
fn nearest(pixels: &Pixels, width: usize, height: usize) -> Vec<u8> {
    // Sums, not products: rounding decides between two neighbours.
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

/// Pillow's resampling: first along the rows, then along the columns, rounded to whole values in between.
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

/// Values of 16 bits in 8: what is brighter than 255 is white.
fn narrow(values: &[u16]) -> Vec<u8> {
    values.iter().map(|value| u8::try_from(*value).unwrap_or(u8::MAX)).collect()
}

/// The same for values of 16 bits, which Pillow mixes in floating point.
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

/// How many bits of a weight are behind the point.
const PRECISION: u32 = 22;

fn mix(values: impl Iterator<Item = (u8, i32)>) -> u8 {
    let sum = values.fold(1i64 << (PRECISION - 1), |sum, (value, weight)| sum + i64::from(value) * i64::from(weight));
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// For each place of the larger line: where on the smaller one its sources begin, and how much each of them counts.
fn shares(from: usize, to: usize) -> Vec<(usize, Vec<f64>)> {
    /// How far Lanczos's filter reaches when nothing is made smaller.
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

/// The same in fixed-point arithmetic.
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

/// scikit-image's `structural_similarity` for pictures of bytes: the mean over all windows that lie within the picture.
///
/// Source: Wang, Bovik, Sheikh, Simoncelli: "Image quality assessment: from error visibility to structural similarity", 2004.
fn structural_similarity(one: &[u8], other: &[u8], width: usize, height: usize) -> f64 {
    const COUNT: f64 = (WINDOW * WINDOW) as f64;
    const C1: f64 = (0.01 * 255.0) * (0.01 * 255.0);
    const C2: f64 = (0.03 * 255.0) * (0.03 * 255.0);
    let mut total = 0.0;
    // The sums of the last rows, column by column; a row comes in, another goes.
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
        // The sample's covariance, not the population's.
        let normalized = count / (count - 1.0);
        let (vx, vy, vxy) = (normalized * (uxx - ux * ux), normalized * (uyy - uy * uy), normalized * (uxy - ux * uy));
        ((2.0 * ux * uy + c1) * (2.0 * vxy + c2)) / ((ux * ux + uy * uy + c1) * (vx + vy + c2))
    }
}
