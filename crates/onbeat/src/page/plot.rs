//! A plot as SVG, whose colours the page's style gives.

use std::fmt::Write;

use super::escaped;

pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    pub(super) x_label: &'a str,
    pub(super) y_label: &'a str,
    /// Its marks, the first ones behind the others.
    pub(super) marks: Vec<ChartMark<'a>>,
    /// The y axis begins at zero and ends here, if nothing is higher.
    pub(super) y_at_least: f64,
}

/// The class of its colour, its legend, and what is drawn.
pub(super) type ChartMark<'a> = (&'a str, &'a str, Shape);

pub(super) enum Shape {
    Dots(Vec<(f64, f64)>),
    Line(Vec<(f64, f64)>),
    /// Each height holds until the next point; NaN: nothing.
    Steps(Vec<(f64, f64)>),
    Level(f64),
    Upright(f64),
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// More points could not be told apart: of more, each so many-th is drawn.
const MOST_POINTS: usize = 4000;
const TICKS: f64 = 6.0;

impl Shape {
    fn points(&self) -> &[(f64, f64)] {
        match self {
            Self::Dots(points) | Self::Line(points) | Self::Steps(points) => points,
            Self::Level(_) | Self::Upright(_) => &[],
        }
    }

    fn is_seen(&self, x: &ChartAxis) -> bool {
        match self {
            Self::Level(_) => true,
            Self::Upright(place) => (x.from..=x.to).contains(place),
            _ => !self.points().is_empty(),
        }
    }
}

/// One axis: its range, and where that is on the picture.
struct ChartAxis {
    from: f64,
    to: f64,
    at: (f64, f64),
}

impl ChartAxis {
    fn place(&self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        self.at.0 + share.clamp(-0.1, 1.1) * (self.at.1 - self.at.0)
    }

    fn ticks(&self) -> (Vec<f64>, usize) {
        let rough = (self.to - self.from) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step
            .into_iter()
            .find(|&step| step >= rough)
            .unwrap_or(rough);
        let first = (self.from / step).ceil();
        let count = ((self.to / step).floor() - first).clamp(0.0, 100.0) as usize;
        let decimals = (-(step.log10().floor())).clamp(0.0, 6.0) as usize;
        (
            (0..=count).map(|n| (first + n as f64) * step).collect(),
            decimals,
        )
    }
}

impl Plot<'_> {
    pub(super) fn figure(&self) -> String {
        let points = || {
            self.marks
                .iter()
                .flat_map(|(_, _, shape)| shape.points())
                .filter(|point| !point.1.is_nan())
        };
        let (from, to) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), point| {
            (from.min(point.0), to.max(point.0))
        });
        if from > to {
            return String::new();
        }
        let highest = points().fold(self.y_at_least, |highest, point| highest.max(point.1));
        let x = ChartAxis {
            from,
            to: if to > from { to } else { from + 1.0 },
            at: (LEFT, WIDTH - RIGHT),
        };
        let y = ChartAxis {
            from: 0.0,
            to: if highest > 0.0 { highest * 1.05 } else { 1.0 },
            at: (HEIGHT - BOTTOM, TOP),
        };
        let mut text = format!(
            "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n",
            title = escaped(self.title)
        );
        self.axes(&mut text, &x, &y);
        for mark in &self.marks {
            draw(mark, &mut text, &x, &y);
        }
        let _ = write!(text, "</svg>\n<figcaption><b>{}</b>", escaped(self.title));
        for (class, legend, shape) in &self.marks {
            if shape.is_seen(&x) {
                let legend = escaped(legend);
                let _ = write!(text, " <span class=\"key {class}\">{legend}</span>");
            }
        }
        text + "</figcaption>\n</figure>\n"
    }

    fn axes(&self, text: &mut String, x: &ChartAxis, y: &ChartAxis) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let (ticks, decimals) = y.ticks();
        for tick in ticks {
            let at = y.place(tick);
            let _ = writeln!(
                text,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{tick:.decimals$}</text>",
                LEFT - 6.0,
                at + 4.0
            );
        }
        let (ticks, decimals) = x.ticks();
        for tick in ticks {
            let at = x.place(tick);
            let _ = writeln!(
                text,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{tick:.decimals$}</text>",
                bottom + 16.0
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <text transform=\"translate(14 {TOP}) rotate(-90)\" text-anchor=\"end\">{}</text>",
            HEIGHT - 6.0,
            escaped(self.x_label),
            escaped(self.y_label)
        );
    }
}

fn draw((class, _, shape): &ChartMark<'_>, text: &mut String, x: &ChartAxis, y: &ChartAxis) {
    let points = shape.points();
    let each = points.len().div_ceil(MOST_POINTS).max(1);
    match shape {
        Shape::Dots(points) => {
            // One path of dots is a tenth of as many circles.
            let mut path = String::new();
            for point in points.iter().step_by(each) {
                let _ = write!(path, "M{:.1} {:.1}h0", x.place(point.0), y.place(point.1));
            }
            let _ = writeln!(text, "<path class=\"dots {class}\" d=\"{path}\"/>");
        }
        Shape::Line(points) => {
            let mut path = String::new();
            for (n, point) in points.iter().step_by(each).enumerate() {
                let letter = if n == 0 { 'M' } else { 'L' };
                let _ = write!(
                    path,
                    "{letter}{:.1} {:.1}",
                    x.place(point.0),
                    y.place(point.1)
                );
            }
            let _ = writeln!(text, "<path class=\"line {class}\" d=\"{path}\"/>");
        }
        Shape::Steps(points) => {
            let mut path = String::new();
            let ends = points.iter().skip(1).map(|point| point.0).chain([x.to]);
            for (point, end) in points
                .iter()
                .zip(ends)
                .filter(|(point, _)| !point.1.is_nan())
            {
                let _ = write!(
                    path,
                    "M{:.1} {:.1}H{:.1}",
                    x.place(point.0),
                    y.place(point.1),
                    x.place(end)
                );
            }
            let _ = writeln!(text, "<path class=\"line {class}\" d=\"{path}\"/>");
        }
        Shape::Level(height) => {
            let at = y.place(*height);
            let _ = writeln!(
                text,
                "<path class=\"level {class}\" d=\"M{LEFT} {at:.1}H{}\"/>",
                WIDTH - RIGHT
            );
        }
        Shape::Upright(place) if shape.is_seen(x) => {
            let at = x.place(*place);
            let _ = writeln!(
                text,
                "<path class=\"level {class}\" d=\"M{at:.1} {TOP}V{}\"/>",
                HEIGHT - BOTTOM
            );
        }
        Shape::Upright(_) => {}
    }
}
