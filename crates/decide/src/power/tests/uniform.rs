use super::*;

#[test]
fn the_uniform_speed_is_the_papers_sum_of_demands() {
    // Section 1: 300 and 50 million cycles a second on a processor of 1 GHz need 350 MHz.
    let tasks = [task(1, 9, 30), task(2, 5, 100)];
    let of = |best_effort| {
        let rule = uniform(best_effort, 1);
        rule.wants(&tasks, &LIMITS, mhz(1000), &six())
    };
    assert_eq!(of(0.0), Some(mhz(500)));
    assert_eq!(of(0.2), Some(mhz(600)), "350 and 200 MHz");
    assert_eq!(of(0.9), Some(mhz(1000)), "more than there is");
    let close = ladder(&[349, 351, 1000]);
    let rule = uniform(0.0, 1);
    let next = rule.wants(&tasks, &LIMITS, mhz(1000), &close);
    assert_eq!(next, Some(mhz(351)));
    assert_eq!(rule.wants(&[], &LIMITS, mhz(1000), &six()), None);
}

#[test]
fn no_single_task_is_slowed_down_beyond_its_own_period() {
    let rule = uniform(0.0, 2);
    let two_cpus = Limits {
        total: share(2.0),
        ..LIMITS
    };
    let heavy = [task(1, 70, 100)];
    let wanted = rule.wants(&heavy, &two_cpus, mhz(1000), &six());
    assert_eq!(wanted, Some(mhz(700)), "half of two CPUs is no help to it");
}
