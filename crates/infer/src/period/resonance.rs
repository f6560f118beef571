//! Whether a beat found is only a part of a longer one.
//!
//! A thread that wakes at 0 and 10 ms of every 40 ms meets the beats of 10 ms half of the time, but
//! always the same ones; one that wakes at 0 and 19 ms of every 40 meets all beats of 20 ms, each
//! other one early. The period is that of the pattern. And the other way round: a thread that often
//! skips beats may be found by every second or third of them; if those between are met far more
//! often than by chance, they are beats too.

use super::evidence::divergence;
use super::fit::Line;
use super::view::Train;

/// The longest pattern looked for, in beats.
const LONGEST: i64 = 6;
/// A pattern must have come so often.
const FEWEST: i64 = 4;
/// Beats between are looked for only where beats are met within this share of the period: there
/// chance has little room.
const EXACT: f64 = 0.02;
/// Beats between are met in this share of the turns, or they are none.
const SOMETIMES: f64 = 0.2;
/// And by chance with a probability of one in a thousand at most.
const SURELY: f64 = 7.0;
/// Beats that are late by less than this share of the period are alike.
const UNLIKE: f64 = 0.04;

/// After how many beats of `line` the train repeats itself: 1 if the beats do not differ.
///
/// `met` are the beats met, ascending, with their times; `first..=last` all the beats judged.
pub(super) fn pattern(line: &Line, met: &[(i64, f64)], first: i64, last: i64) -> i64 {
    for length in 2..=LONGEST {
        if (last - first + 1) < length * FEWEST {
            break;
        }
        if occupied_in_turn(met, first, last, length) || late_in_turn(line, met, length) {
            return length;
        }
    }
    1
}

/// Into how many beats each of `line` parts, if points of `train` lie between them within `reach`.
pub(super) fn parts(train: &Train, line: &Line, reach: f64, first: i64, last: i64) -> i64 {
    if reach > EXACT * line.period {
        return 1;
    }
    let chance = train.coverage(2.0 * reach);
    let turns = (last - first) as f64;
    let between = |part: i64, parts: i64| -> f64 {
        (first..last)
            .filter(|&beat| {
                let due = line.time(beat) + line.period * part as f64 / parts as f64;
                let i = train.at.partition_point(|&t| t < due - reach);
                train.at.get(i).is_some_and(|&t| t <= due + reach)
            })
            .count() as f64
    };
    for parts in [2, 3] {
        let mut all = 0.0;
        let mut everywhere = true;
        for part in 1..parts {
            let met = between(part, parts);
            all += met;
            everywhere &= met > SOMETIMES * turns;
        }
        if everywhere && divergence((parts - 1) as f64 * turns, all, chance) > SURELY {
            return parts;
        }
    }
    1
}

/// Some places of the pattern are met nearly always and all the others nearly never.
fn occupied_in_turn(met: &[(i64, f64)], first: i64, last: i64, length: i64) -> bool {
    let mut count = [0_u32; LONGEST as usize];
    for &(beat, _) in met {
        count[beat.rem_euclid(length) as usize] += 1;
    }
    let turns = (last - first + 1) as f64 / length as f64;
    let shares = || {
        count[..length as usize]
            .iter()
            .map(|&c| f64::from(c) / turns)
    };
    shares().all(|s| !(0.1..=0.8).contains(&s)) && shares().any(|s| s < 0.1)
}

/// The lateness of a beat is a matter of its place: places explain nine tenths of its variance.
fn late_in_turn(line: &Line, met: &[(i64, f64)], length: i64) -> bool {
    let mut count = [0.0; LONGEST as usize];
    let mut sum = [0.0; LONGEST as usize];
    let (mut all, mut squares) = (0.0, 0.0);
    for &beat in met {
        let late = line.late(beat);
        let place = beat.0.rem_euclid(length) as usize;
        count[place] += 1.0;
        sum[place] += late;
        all += late;
        squares += late * late;
    }
    let n = met.len() as f64;
    let places = || count.iter().zip(&sum).take(length as usize);
    if places().any(|(&c, _)| c < FEWEST as f64) {
        return false;
    }
    let between: f64 = places().map(|(c, s)| s * s / c).sum::<f64>() - all * all / n;
    let total = squares - all * all / n;
    between > 0.9 * total && between / n > (UNLIKE * line.period).powi(2)
}
