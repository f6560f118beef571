//! Plots like the papers': one [`Figure`], drawn as NAME.svg.

use std::ops::Range;
use std::path::Path;

use anyhow::Context;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

pub(crate) use plotters::chart::SeriesLabelPosition as Corner;

const COLOURS: [RGBColor; 8] = [
    RGBColor(0x33, 0x66, 0xcc),
    RGBColor(0xcc, 0x33, 0x22),
    RGBColor(0xdd, 0x99, 0x22),
    RGBColor(0x22, 0x88, 0x44),
    RGBColor(0x88, 0x44, 0xaa),
    RGBColor(0x22, 0xaa, 0xbb),
    RGBColor(0x77, 0x77, 0x77),
    RGBColor(0x99, 0x55, 0x33),
];

const SIZE: (u32, u32) = (800, 480);

/// More points than that cannot be told apart in a picture: a longer line is thinned out.
const MOST_POINTS: usize = 2000;

pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The lines, each in a colour of its own.
    pub(crate) lines: Vec<Line>,
    pub(crate) names: Corner,
}

pub(crate) struct Axis {
    description: String,
    range: Range<f64>,
    logarithmic: bool,
}

impl Axis {
    /// An axis over `range`; what lies outside is not drawn.
    pub(crate) fn linear(description: &str, range: Range<f64>) -> Self {
        Self {
            description: description.to_owned(),
            range,
            logarithmic: false,
        }
    }

    /// An axis with a decade as long as the next. The range is above zero.
    pub(crate) fn logarithmic(description: &str, range: Range<f64>) -> Self {
        Self {
            description: description.to_owned(),
            range,
            logarithmic: true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Look {
    Straight,
    /// Level until the next point, as a distribution is.
    Steps,
    Points,
    Marked,
}

pub(crate) struct Line {
    name: String,
    look: Look,
    points: Vec<(f64, f64)>,
}

impl Line {
    /// A line through these points, in the order of x. Without a name it is left out of the list of
    /// names.
    pub(crate) fn new(name: &str, look: Look, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            look,
            points,
        }
    }

    /// Its points to draw: with the corners of its steps, and without points too close to be seen.
    fn corners(&self) -> Vec<(f64, f64)> {
        let points = match self.look {
            Look::Straight | Look::Steps => thinned(&self.points),
            _ => self.points.clone(),
        };
        if self.look != Look::Steps {
            return points;
        }
        let mut corners = Vec::with_capacity(points.len() * 2);
        for point in points {
            if let Some((_, level)) = corners.last().copied() {
                corners.push((point.0, level));
            }
            corners.push(point);
        }
        corners
    }
}

/// The empirical distribution of `values`: at each value, the share of them that is not greater.
pub(crate) fn distribution(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let shares = (1..).map(|n| f64::from(n) / count);
    let mut points: Vec<(f64, f64)> = sorted
        .first()
        .map(|least| (*least, 0.0))
        .into_iter()
        .collect();
    points.extend(sorted.iter().copied().zip(shares));
    points
}

/// At most `MOST_POINTS` of the points, evenly chosen, and the last.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate();
    kept.filter(|(n, _)| n % every == 0 || *n == last)
        .map(|(_, point)| *point)
        .collect()
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Figure {
    /// Draws NAME.svg into the folder `out`, and tells where.
    pub(crate) fn draw(&self, out: &Path, name: &str) -> anyhow::Result<()> {
        let path = out.join(format!("{name}.svg"));
        let area = SVGBackend::new(&path, SIZE).into_drawing_area();
        let (x, y) = (self.x.range.clone(), self.y.range.clone());
        match (self.x.logarithmic, self.y.logarithmic) {
            (false, false) => self.draw_in(&area, x, y),
            (false, true) => self.draw_in(&area, x, y.log_scale()),
            (true, false) => self.draw_in(&area, x.log_scale(), y),
            (true, true) => self.draw_in(&area, x.log_scale(), y.log_scale()),
        }
        .with_context(|| format!("cannot draw {}", path.display()))?;
        println!("plot: {}", path.display());
        Ok(())
    }

    fn draw_in<X, Y>(&self, area: &Area, x: X, y: Y) -> anyhow::Result<()>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(&self.x.description)
            .y_desc(&self.y.description)
            .x_label_formatter(&|value| label(*value))
            .y_label_formatter(&|value| label(*value))
            .label_style(("sans-serif", 15))
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .draw()?;
        for (line, colour) in self.lines.iter().zip(COLOURS.into_iter().cycle()) {
            draw_line(&mut chart, line, colour)?;
        }
        if self.lines.iter().any(|line| !line.name.is_empty()) {
            chart
                .configure_series_labels()
                .position(self.names.clone())
                .legend_area_size(32)
                .label_font(("sans-serif", 15))
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.4))
                .draw()?;
        }
        area.present()?;
        Ok(())
    }
}

fn draw_line<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    line: &Line,
    colour: RGBColor,
) -> anyhow::Result<()>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let corners = line.corners();
    let dot = |at| Circle::new(at, 3, colour.filled());
    let drawn = match line.look {
        Look::Straight | Look::Steps => {
            chart.draw_series(LineSeries::new(corners, colour.stroke_width(2)))?
        }
        Look::Points => chart.draw_series(corners.into_iter().map(dot))?,
        Look::Marked => {
            chart.draw_series(corners.iter().copied().map(dot))?;
            chart.draw_series(LineSeries::new(corners, colour.stroke_width(2)))?
        }
    };
    if !line.name.is_empty() {
        drawn
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(3)));
    }
    Ok(())
}

/// As few digits as tell ticks apart: `0.25`, `40`, `1e-6`.
fn label(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if value != 0.0 && (value.abs() < 1e-3 || value.abs() >= 1e6) {
        format!("{value:e}")
    } else {
        rounded.to_string()
    }
}
