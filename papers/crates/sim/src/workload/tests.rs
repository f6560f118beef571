use super::*;

fn drawn(mut workload: Workload, count: usize) -> Vec<JobSpec> {
    let mut ended = Instant::ZERO;
    (0..count)
        .map_while(|_| {
            let job = workload.next(ended)?;
            ended = job.ready + job.demand.as_span();
            Some(job)
        })
        .collect()
}

fn mean_ms(jobs: &[JobSpec]) -> f64 {
    let sum: Span = jobs.iter().map(|job| job.demand.as_span()).sum();
    sum.as_ms_f64() / jobs.len() as f64
}

#[test]
fn a_stream_is_the_same_each_time_and_different_from_others() {
    let demand = || Demand::Exponential(Span::from_ms(5));
    let arrival = || Arrival::periodic(Span::from_ms(20));
    let jobs = |seed, stream| drawn(Workload::new(arrival(), demand()).seeded(seed, stream), 100);
    assert_eq!(jobs(1, 2), jobs(1, 2));
    assert_ne!(jobs(1, 2), jobs(1, 3));
    assert_ne!(jobs(1, 2), jobs(2, 2));
}

#[test]
fn each_distribution_has_the_mean_it_promises() {
    let ms = Span::from_ms;
    let group = [ms(20), ms(10), ms(6), ms(4)];
    for (demand, mean) in [
        (Demand::constant(ms(5)), 5.0),
        (Demand::Uniform(ms(2), ms(8)), 5.0),
        (
            Demand::Normal {
                mean: ms(5),
                deviation: ms(1),
                most: ms(100),
            },
            5.0,
        ),
        (Demand::Exponential(ms(5)), 5.0),
        (
            Demand::Frames(Frames::new(Arc::from(group), 0.2, 0.2, 0.02)),
            10.0,
        ),
    ] {
        let name = format!("{demand:?}");
        let jobs = drawn(
            Workload::new(Arrival::periodic(ms(20)), demand).seeded(7, 0),
            40_000,
        );
        let drawn = mean_ms(&jobs);
        assert!((drawn / mean - 1.0).abs() < 0.03, "{name}: {drawn}");
    }
}

#[test]
fn beats_come_on_time_and_their_jitter_delays_the_task_only() {
    let arrival = Arrival::Periodic {
        period: Span::from_ms(10),
        next: Instant::from_ns(3),
        jitter: Span::from_us(100),
    };
    let jobs = drawn(
        Workload::new(arrival, Demand::constant(Span::from_ms(1))),
        50,
    );
    for (number, job) in jobs.iter().enumerate() {
        let beat = Instant::from_ns(3) + Span::from_ms(10) * number as u64;
        assert_eq!(job.release, beat);
        assert_eq!(job.deadline, beat + Span::from_ms(10));
        assert!(job.ready >= beat && job.ready <= beat + Span::from_us(100));
    }
    assert!(jobs.iter().any(|job| job.ready > job.release));
}

#[test]
fn a_sleeper_counts_from_the_end_and_a_recording_ends() {
    let after = Arrival::After {
        pause: Span::from_ms(7),
        first: None,
    };
    let jobs = drawn(Workload::new(after, Demand::constant(Span::from_ms(3))), 3);
    let releases: Vec<u64> = jobs.iter().map(|j| j.release.as_ns() / 1_000_000).collect();
    assert_eq!(releases, [7, 17, 27]);

    let demands = [1, 2].map(|ms| Work::at_full_speed(Span::from_ms(ms)));
    let recorded = |repeat| Demand::Recorded {
        demands: Arc::from(demands),
        over: 0,
        repeat,
    };
    let periodic = || Arrival::periodic(Span::from_ms(5));
    let once = drawn(Workload::new(periodic(), recorded(false)), 9);
    assert_eq!(once.len(), 2);
    let again = drawn(Workload::new(periodic(), recorded(true)), 9);
    assert_eq!(again.len(), 9);
    assert_eq!(again[2].demand, again[0].demand);
}

#[test]
fn a_paced_program_begins_anew_where_it_was_late() {
    let ms = |ms| Instant::ZERO + Span::from_ms(ms);
    let arrival = Arrival::paced(Span::from_ms(40));
    let mut workload = Workload::new(arrival, Demand::constant(Span::from_ms(1)));
    let mut next = |ended| {
        let job = workload.next(ms(ended))?;
        Some((job.release, job.deadline))
    };
    assert_eq!(next(0), Some((ms(0), ms(40))));
    assert_eq!(next(30), Some((ms(40), ms(80))), "in time");
    assert_eq!(next(95), Some((ms(95), ms(135))), "late");
    assert_eq!(next(100), Some((ms(135), ms(175))), "on the new beat");
}

#[test]
fn a_timer_with_a_tick_fires_late_but_the_deadline_stays() {
    let ms = |ms| Instant::ZERO + Span::from_ms(ms);
    let arrival = Arrival::Paced {
        period: Span::from_ms(33),
        next: ms(0),
        timer: Span::from_ms(10),
    };
    let mut workload = Workload::new(arrival, Demand::constant(Span::from_ms(1)));
    workload.next(ms(0));
    let job = workload.next(ms(5)).unwrap();
    assert_eq!(
        (job.release, job.ready, job.deadline),
        (ms(33), ms(40), ms(66))
    );
    let late = workload.next(ms(71)).unwrap();
    assert_eq!((late.release, late.ready), (ms(71), ms(71)));
}
