//! Judges where a soak falls short.

use super::Figures;
use crate::results::quantile;

/// From the start until it serves, at the median.
const START_UP_MS: f64 = 200.0;
/// The most by which a service may grow from the second quarter of an hour to the last one, as a
/// share and in KiB: fragments, and names on the bus.
const GROWTH: (f64, f64) = (0.05, 512.0);
/// Fewer looks at the memory, one a minute, tell nothing of its growth.
const FEW: usize = 8;

pub(super) fn shortcomings(figures: &Figures) -> Vec<String> {
    let mut all = Vec::new();
    let mut wanted = |is_so: bool, what: String| {
        if !is_so {
            all.push(what);
        }
    };
    let Figures {
        warm,
        end,
        entries_before,
        ..
    } = figures;
    let start_up = quantile(&figures.start_up_ms, 0.5);
    wanted(
        figures.lost == 0,
        format!("{} reservations were lost", figures.lost),
    );
    wanted(
        figures.threads_reserved > 0,
        "no thread got a reservation".to_owned(),
    );
    wanted(
        figures.tracked_at_end == 0.0 && figures.reserved_at_end == 0.0,
        "threads were still tracked at the end".to_owned(),
    );
    wanted(
        start_up < START_UP_MS,
        format!("it served after {start_up:.0} ms only"),
    );
    // At the end there are no programs any more.
    wanted(
        end.files <= warm.files && end.threads <= warm.threads,
        "files were open at the end, or threads ran, that were not before".to_owned(),
    );
    wanted(
        warm.map_entries > *entries_before && end.map_entries <= *entries_before,
        format!(
            "its BPF maps had {entries_before} entries before the first program, {} when it was \
             warm and {} at the end, without a program",
            warm.map_entries, end.map_entries
        ),
    );
    let (before, after) = quarters(&figures.memory_kb);
    wanted(
        after <= before * (1.0 + GROWTH.0) + GROWTH.1,
        format!("its memory grew from {before:.0} to {after:.0} KiB"),
    );
    all
}

fn quarters(memory_kb: &[u64]) -> (f64, f64) {
    let quarter = memory_kb.len() / 4;
    if memory_kb.len() < FEW {
        return (0.0, 0.0);
    }
    let median = |from: usize| {
        let part = memory_kb.iter().skip(from).take(quarter);
        let part: Vec<f64> = part.map(|kb| *kb as f64).collect();
        quantile(&part, 0.5)
    };
    (median(quarter), median(memory_kb.len() - quarter))
}

#[cfg(test)]
mod tests {
    use super::super::service::Taken;
    use super::*;

    fn taken(memory_kb: u64) -> Taken {
        Taken {
            memory_kb,
            files: 20,
            threads: 7,
            map_entries: 18,
        }
    }

    fn clean() -> Figures {
        Figures {
            minutes: 60,
            hogs: 4,
            start_up_ms: vec![80.0; 10],
            programs: 1700,
            threads: 3400,
            threads_reserved: 3300,
            looks: 3600,
            lost: 0,
            entries_before: 1,
            warm: taken(14_000),
            end: Taken {
                map_entries: 1,
                ..taken(15_000)
            },
            memory_kb: (0..60).map(|minute| 15_000 + minute % 7).collect(),
            tracked_at_end: 0.0,
            reserved_at_end: 0.0,
            own_cpu: 0.02,
            jobs: 1e6,
            missed: 0.0,
            events_lost: 0.0,
        }
    }

    #[test]
    fn a_clean_soak_falls_short_of_nothing() {
        assert_eq!(shortcomings(&clean()), Vec::<String>::new());
    }

    #[test]
    fn memory_that_grows_all_the_time_is_a_leak_and_so_is_a_file_or_an_entry() {
        let mut figures = clean();
        figures.memory_kb = (0..60).map(|minute| 15_000 + 60 * minute).collect();
        figures.end.files += 1;
        figures.end.map_entries += 1;
        assert_eq!(shortcomings(&figures).len(), 3);
    }

    #[test]
    fn whatever_is_lost_stays_or_comes_late_is_told() {
        let mut figures = clean();
        figures.lost = 1;
        figures.threads_reserved = 0;
        figures.reserved_at_end = 1.0;
        figures.start_up_ms = vec![250.0; 10];
        assert_eq!(shortcomings(&figures).len(), 4);
    }
}
