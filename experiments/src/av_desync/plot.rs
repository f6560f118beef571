//! The plot like LFS++'s Fig. 5: desynchronisation over playing time, one line per run.

use std::path::Path;

use anyhow::{Context, anyhow};
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use super::Run;

/// Fonts that Debian and Ubuntu install with what the demo needs; the first there is gets used.
const FONTS: [&str; 3] = [
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
    "/usr/share/fonts/truetype/freefont/FreeSans.ttf",
];

const COLOURS: [RGBColor; 4] = [
    RGBColor(0x33, 0x66, 0xcc),
    RGBColor(0xcc, 0x33, 0x22),
    RGBColor(0xdd, 0x99, 0x22),
    RGBColor(0x22, 0x88, 0x44),
];

/// Draws `runs`, each watched for `seconds`, into a PNG.
pub(super) fn draw(path: &Path, runs: &[Run], seconds: f64) -> anyhow::Result<()> {
    let font = FONTS
        .iter()
        .find_map(|path| std::fs::read(path).ok())
        .context("no font is installed: apt-get install fonts-dejavu-core")?;
    register_font("sans-serif", FontStyle::Normal, font.leak())
        .map_err(|_| anyhow!("the font cannot be read"))?;
    let (low, high) = range(runs);
    let area = BitMapBackend::new(path, (1000, 600)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("A/V desynchronisation of mplayer", ("sans-serif", 24))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..seconds, low..high)?;
    chart
        .configure_mesh()
        .x_desc("playing time (s)")
        .y_desc("A/V desynchronisation (s)")
        .label_style(("sans-serif", 16))
        .light_line_style(WHITE)
        .draw()?;
    for (run, colour) in runs.iter().zip(COLOURS) {
        let line = run.played.frames.iter().map(|f| (f.at_s, f.desync_s));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
            .label(run.run)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .legend_area_size(32)
        .label_font(("sans-serif", 16))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// The desynchronisations that occur, with some room around, and never a range of nothing.
fn range(runs: &[Run]) -> (f64, f64) {
    let all = || runs.iter().flat_map(|run| &run.played.frames);
    let low = all().map(|frame| frame.desync_s).fold(-0.1, f64::min);
    let high = all().map(|frame| frame.desync_s).fold(0.5, f64::max);
    (low * 1.05, high * 1.05)
}
