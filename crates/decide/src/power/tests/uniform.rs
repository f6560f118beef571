use super::*;

/// Under GRACE-OS's uniform speed on the paper's laptop.
fn uniform(best_effort: f64, present: u64) -> PowerManager {
    let uniform = Uniform {
        best_effort,
        cpus: 1,
    };
    PowerManager::new(ProtocolRule::Uniform(uniform), six(), mhz(present))
}

#[test]
fn the_uniform_speed_is_the_papers_sum_of_demands() {
    // Section 1: 300 and 50 million cycles a second on a processor of 1 GHz need 350 MHz.
    let tasks = [task(1, 9, 30), task(2, 5, 100)];
    let of = |best_effort| {
        let rule = Uniform {
            best_effort,
            cpus: 1,
        };
        rule.wants(&tasks, &LIMITS, mhz(1000), &six())
    };
    assert_eq!(of(0.0), Some(mhz(500)));
    assert_eq!(of(0.2), Some(mhz(600)), "350 and 200 MHz");
    assert_eq!(of(0.9), Some(mhz(1000)), "more than there is");
    let close = ladder(&[349, 351, 1000]);
    let rule = Uniform {
        best_effort: 0.0,
        cpus: 1,
    };
    let next = rule.wants(&tasks, &LIMITS, mhz(1000), &close);
    assert_eq!(next, Some(mhz(351)));
    assert_eq!(rule.wants(&[], &LIMITS, mhz(1000), &six()), None);
}

#[test]
fn no_single_task_is_slowed_down_beyond_its_own_period() {
    let rule = Uniform {
        best_effort: 0.0,
        cpus: 2,
    };
    let two_cpus = Limits {
        total: share(2.0),
        ..LIMITS
    };
    let heavy = [task(1, 70, 100)];
    let wanted = rule.wants(&heavy, &two_cpus, mhz(1000), &six());
    assert_eq!(wanted, Some(mhz(700)), "half of two CPUs is no help to it");
}

#[test]
fn a_fall_to_the_uniform_speed_ends_higher_when_more_is_wanted_meanwhile() {
    let mut manager = uniform(0.1, 1000);
    let tasks = [task(1, 25, 100)];
    let fall = manager.sampled(share(0.3), &tasks, &LIMITS);
    assert_eq!(fall, Some(SpeedStep::RaiseBudgets(mhz(500))));
    let more = [task(1, 50, 100), task(2, 60, 100)];
    let other = manager.sampled(share(0.3), &more, &LIMITS);
    assert_eq!(other, Some(SpeedStep::RaiseBudgets(mhz(700))));
    let too_much = [task(1, 70, 100), task(2, 75, 100)];
    assert_eq!(manager.sampled(share(0.3), &too_much, &LIMITS), None);
    assert_eq!(manager.budgets_for(), mhz(1000));
}
