//! What a curve says between its points.

/// The value at bandwidth `x` of a curve through these points, in ascending order of the margin: on
/// the straight line between the two points beside it; none where the curve does not reach. A loop
/// that is given less than it asks for may ask for more, so that a bandwidth can belong to several
/// margins: the largest counts.
pub(super) fn at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let mut pairs = points.windows(2).rev();
    let pair = pairs.find(|pair| match pair {
        [low, high] => low.0 <= x && x <= high.0,
        _ => false,
    })?;
    let [(x0, y0), (x1, y1)] = *pair else {
        return None;
    };
    let share = if x1 > x0 { (x - x0) / (x1 - x0) } else { 0.0 };
    Some(y0 + (y1 - y0) * share).filter(|y| y.is_finite())
}
