//! Plots as SVG and PNG files, drawn without any other program: one size, one font, one set of
//! colours.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;
use std::sync::Once;

use anyhow::anyhow;
pub use plotters;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;

/// Width and height in pixels.
const SIZE: (u32, u32) = (1200, 700);
/// Name of the font of all text.
pub const FONT: &str = "sans-serif";

/// Colours that can be told apart on white, also by most people with a colour vision deficiency
/// (Okabe and Ito's palette, without yellow).
pub const COLORS: [RGBColor; 7] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// A picture that can be painted on any backend of plotters.
pub trait Picture {
    /// Paints it on a white area.
    ///
    /// # Errors
    /// The backend cannot draw.
    fn paint<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static;
}

/// Writes `picture` as `directory/NAME.svg` and `directory/NAME.png`.
///
/// # Errors
/// A file cannot be written.
pub fn write(picture: &impl Picture, directory: &Path, name: &str) -> anyhow::Result<()> {
    static FONTS: Once = Once::new();
    // Only the bitmap needs the letters: an SVG names the font, and the viewer provides it. It
    // cannot fail, since the bytes are a font.
    FONTS.call_once(|| {
        drop(register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT))
    });
    let path = |extension: &str| directory.join(format!("{name}.{extension}"));
    let (svg, png) = (path("svg"), path("png"));
    let failed =
        |path: &Path, error: Box<dyn Error>| anyhow!("cannot write {}: {error}", path.display());
    on_white(picture, &SVGBackend::new(&svg, SIZE).into_drawing_area())
        .map_err(|error| failed(&svg, error))?;
    on_white(picture, &BitMapBackend::new(&png, SIZE).into_drawing_area())
        .map_err(|error| failed(&png, error))
}

fn on_white<B: DrawingBackend>(
    picture: &impl Picture,
    area: &DrawingArea<B, Shift>,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    area.fill(&WHITE)?;
    picture.paint(area)
}
