use onbeat_decide::supervisor::{GrantReason, Limits, Request, SupervisorOutcome, arbitrate};
use onbeat_model::{Bandwidth, Reservation, Span, TaskId};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

fn config() -> Config {
    Config {
        rng_seed: RngSeed::Fixed(0x6f6e_6265_6174),
        failure_persistence: None,
        cases: 512,
        ..Config::default()
    }
}

fn request(tid: u32, runtime_us: u64, period_us: u64, least: f64, weight: f64) -> Request {
    Request {
        task: TaskId::recorded(tid),
        wanted: Reservation::implicit(Span::from_us(runtime_us), Span::from_us(period_us)).unwrap(),
        least: Bandwidth::from_cpus(least),
        weight,
    }
}

fn limits(total: f64, per_task: f64) -> Limits {
    Limits {
        total: Bandwidth::from_cpus(total),
        per_task: Bandwidth::from_cpus(per_task),
        shortest_runtime: Span::from_ns(1024),
    }
}

fn given(outcome: &SupervisorOutcome, index: usize) -> Bandwidth {
    outcome.grants[index]
        .reservation
        .map_or(Bandwidth::ZERO, |reservation| reservation.bandwidth())
}

fn sum(outcome: &SupervisorOutcome) -> Bandwidth {
    (0..outcome.grants.len()).map(|i| given(outcome, i)).sum()
}

prop_compose! {
    fn any_request()(
        period_us in 500u64..200_000,
        used in 0.01f64..1.0,
        least in 0.0f64..0.5,
        weight in 0.1f64..10.0,
    ) -> Request {
        let runtime_us = ((period_us as f64 * used) as u64).max(2);
        request(0, runtime_us, period_us, least, weight)
    }
}

fn any_requests() -> impl Strategy<Value = Vec<Request>> {
    prop::collection::vec(any_request(), 1..12).prop_map(|mut requests| {
        for (tid, request) in (1..).zip(&mut requests) {
            request.task = TaskId::recorded(tid);
        }
        requests
    })
}

fn any_limits() -> impl Strategy<Value = Limits> {
    (0.05f64..4.0, 0.1f64..1.0).prop_map(|(total, per_task)| limits(total, per_task))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_sum_is_never_over_the_total_nor_a_grant_over_its_cap_or_its_wish(
        requests in any_requests(), limits in any_limits(),
    ) {
        let outcome = arbitrate(&requests, &limits);
        prop_assert!(sum(&outcome) <= limits.total, "{:?}", outcome);
        for (i, request) in requests.iter().enumerate() {
            prop_assert_eq!(outcome.grants[i].task, request.task);
            prop_assert!(given(&outcome, i) <= limits.per_task);
            prop_assert!(given(&outcome, i) <= request.wanted.bandwidth());
        }
    }

    #[test]
    fn every_minimum_is_respected_if_the_minima_fit(
        requests in any_requests(), limits in any_limits(),
    ) {
        let least = |r: &Request| r.least.min(limits.per_task).min(r.wanted.bandwidth());
        prop_assume!(requests.iter().map(least).sum::<Bandwidth>() <= limits.total);
        let outcome = arbitrate(&requests, &limits);
        for (i, request) in requests.iter().enumerate() {
            let period = request.wanted.period();
            let runtime = least(request).runtime_in(period);
            if runtime >= limits.shortest_runtime {
                prop_assert!(given(&outcome, i) >= Bandwidth::of(runtime, period));
            }
        }
    }

    #[test]
    fn more_weight_never_gets_a_task_less(
        requests in any_requests(), limits in any_limits(), which in 0usize..12, factor in 1.0f64..20.0,
    ) {
        let which = which % requests.len();
        let mut heavier = requests.clone();
        heavier[which].weight *= factor;
        let before = given(&arbitrate(&requests, &limits), which);
        let after = given(&arbitrate(&heavier, &limits), which);
        prop_assert!(after + Bandwidth::from_cpus(5e-9) >= before, "{before} {after}");
    }

    #[test]
    fn asking_for_what_was_granted_grants_it_again(
        requests in any_requests(), limits in any_limits(),
    ) {
        let first = arbitrate(&requests, &limits);
        let again: Vec<Request> = requests
            .iter()
            .zip(&first.grants)
            .filter_map(|(request, grant)| {
                grant.reservation.map(|wanted| Request { wanted, ..*request })
            })
            .collect();
        let second = arbitrate(&again, &limits);
        for (request, grant) in again.iter().zip(&second.grants) {
            prop_assert_eq!(grant.reservation, Some(request.wanted));
        }
        prop_assert!(second.gave_way.is_empty());
    }

    #[test]
    fn the_level_is_the_one_that_a_slow_search_finds(
        requests in any_requests(), limits in any_limits(),
    ) {
        let outcome = arbitrate(&requests, &limits);
        for (i, slow) in shares_by_bisection(&requests, &limits).into_iter().enumerate() {
            let shortest = limits.shortest_runtime.ratio(requests[i].wanted.period());
            let near = (given(&outcome, i).as_cpus() - slow).abs() < 1e-5;
            prop_assert!(near || slow <= shortest, "task {i}: {slow}, {:?}", outcome);
        }
    }
}

/// The slow twin: halves the interval of levels until it is narrower than anything that counts.
fn shares_by_bisection(requests: &[Request], limits: &Limits) -> Vec<f64> {
    let total = limits.total.as_cpus();
    let bounds: Vec<(f64, f64, f64)> = requests
        .iter()
        .map(|r| {
            let most = r.wanted.bandwidth().min(limits.per_task);
            (r.least.min(most).as_cpus(), most.as_cpus(), r.weight)
        })
        .collect();
    let minima: f64 = bounds.iter().map(|b| b.0).sum();
    let bounds: Vec<_> = if minima <= total {
        bounds
    } else {
        bounds.iter().map(|b| (0.0, b.0, b.2)).collect()
    };
    let at = |level: f64| -> Vec<f64> {
        bounds
            .iter()
            .map(|&(least, most, weight)| (level * weight).clamp(least, most))
            .collect()
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if at(middle).iter().sum::<f64>() <= total {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(low)
}

#[test]
fn those_who_want_most_for_their_weight_give_way_first() {
    let requests = [
        request(1, 200, 1000, 0.0, 1.0),
        request(2, 600, 1000, 0.0, 1.0),
        request(3, 500, 1000, 0.0, 2.0),
    ];
    let outcome = arbitrate(&requests, &limits(1.0, 0.9));
    assert_eq!(given(&outcome, 0), Bandwidth::from_cpus(0.2));
    assert_eq!(given(&outcome, 2), Bandwidth::from_cpus(0.5));
    assert_eq!(given(&outcome, 1).to_string(), "30.0%");
    let told: Vec<String> = outcome.gave_way.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["task 2 gives way from 60.0% to 30.0%: it is the largest, for its weight (1)"]
    );
}

#[test]
fn each_kind_of_giving_way_is_told_with_its_reason() {
    let requests = [
        request(1, 950, 1000, 0.0, 1.0),
        request(2, 500, 1000, 0.4, 1.0),
        request(3, 500, 1000, 0.1, 1.0),
    ];
    let why = |total| {
        let grants = arbitrate(&requests, &limits(total, 0.9)).grants;
        grants.iter().map(|grant| grant.why).collect::<Vec<_>>()
    };
    let (wanted, capped) = (GrantReason::Wanted, GrantReason::TaskCap);
    let (less, least, below) = (
        GrantReason::Compressed,
        GrantReason::Minimum,
        GrantReason::BelowMinimum,
    );
    assert_eq!(why(2.0), [capped, wanted, wanted]);
    assert_eq!(why(0.9), [less, least, less]);
    // 0.4 and 0.1 do not fit into 0.3: the common level is 0.2.
    assert_eq!(why(0.3), [least, below, least]);
    let order: Vec<u32> = arbitrate(&requests, &limits(0.9, 0.9))
        .gave_way
        .iter()
        .map(|gave_way| gave_way.task.tid)
        .collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn a_share_too_short_for_any_reservation_is_none_and_nothing_at_all_is_fine() {
    let requests = [request(1, 500, 1000, 0.0, 1.0)];
    let outcome = arbitrate(&requests, &limits(0.0005, 0.9));
    assert_eq!(outcome.grants[0].reservation, None);
    assert_eq!(outcome.gave_way[0].granted, Bandwidth::ZERO);
    assert!(arbitrate(&[], &limits(1.0, 0.9)).grants.is_empty());
}

#[test]
fn senseless_weights_neither_panic_nor_break_the_sum() {
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let requests = [
            request(1, 800, 1000, 0.1, weight),
            request(2, 800, 1000, 0.1, 1.0),
        ];
        let outcome = arbitrate(&requests, &limits(1.0, 0.9));
        assert!(sum(&outcome) <= Bandwidth::from_cpus(1.0));
        assert_eq!(given(&outcome, 1).to_string(), "80.0%", "weight {weight}");
    }
}
