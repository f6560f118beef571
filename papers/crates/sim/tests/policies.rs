//! The policies of `schedulers/` on the simulated machine: what their rules come to.

use onbeat_model::{Instant, Mark, Span, TaskId};
use onbeat_policies::{Berate, Best, Linux24, Rules, Structures};
use onbeat_sim::observe::{Completion, Stretch};
use onbeat_sim::policy::linux::{Class, Config, Fair, Linux};
use onbeat_sim::policy::ruled::Ruled;
use onbeat_sim::workload::{Arrival, Demand, Notifies};
use onbeat_sim::{Cpus, Machine, Observer, Policy, Work, Workload};

/// Everything that happened.
#[derive(Debug, Default)]
struct Everything {
    ran: Vec<Stretch>,
    jobs: Vec<Completion>,
    marks: Vec<Mark>,
}

impl Observer for Everything {
    fn ran(&mut self, stretch: &Stretch) {
        self.ran.push(*stretch);
    }
    fn job(&mut self, job: &Completion) {
        self.jobs.push(*job);
    }
    fn marked(&mut self, mark: &Mark) {
        self.marks.push(*mark);
    }
}

fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

fn machine<P: Policy>(cpus: usize, policy: P, workloads: &[Workload]) -> Machine<P, Everything> {
    let cpus = Cpus::of_one_speed(cpus);
    let mut machine = Machine::new(&cpus, policy, Everything::default());
    for (tid, workload) in (1..).zip(workloads) {
        machine.add(TaskId::recorded(tid), workload.clone());
    }
    machine
}

fn after<S: Structures>(
    rules: Rules<S>,
    cpus: usize,
    workloads: &[Workload],
    span: Span,
) -> Machine<Ruled<S>, Everything> {
    let policy = Ruled::new(rules, cpus, vec![0; workloads.len()]);
    let mut machine = machine(cpus, policy, workloads);
    machine.run_until(Instant::ZERO + span);
    machine
}

fn hog() -> Workload {
    Workload::new(Arrival::Always, Demand::Constant(Work::ENDLESS))
}

fn periodic(period: u64, demand: u64) -> Workload {
    Workload::new(Arrival::paced(ms(period)), Demand::constant(ms(demand)))
}

/// Each policy's shares of the CPU, in permille.
fn shares(workloads: &[Workload]) -> [Vec<u64>; 3] {
    fn of<S: Structures>(rules: Rules<S>, workloads: &[Workload]) -> Vec<u64> {
        let machine = after(rules, 1, workloads, ms(60_000));
        let tasks = 0..workloads.len();
        tasks
            .map(|task| machine.executed(task).as_ns() / 60_000_000)
            .collect()
    }
    [
        of(Linux24::default(), workloads),
        of(Best::default(), workloads),
        of(Berate::default(), workloads),
    ]
}

#[test]
fn cpu_bound_programs_share_alike_in_turns_of_a_quantum_under_each_policy() {
    for shares in shares(&[hog(), hog(), hog()]) {
        assert!(
            shares.iter().all(|share| share.abs_diff(333) <= 2),
            "{shares:?}"
        );
    }
    let machine = after(Linux24::default(), 1, &[hog(), hog()], ms(1000));
    let (_, seen) = machine.finish();
    assert!(
        seen.ran[..16]
            .iter()
            .all(|stretch| stretch.to.since(stretch.from) == ms(60))
    );
}

#[test]
fn a_periodic_program_with_less_than_its_share_gets_all_that_it_needs_under_each_policy() {
    for shares in shares(&[periodic(40, 8), hog(), hog()]) {
        assert!((199..=200).contains(&shares[0]), "{shares:?}");
        assert_eq!(shares.iter().sum::<u64>().div_ceil(10), 100);
    }
}

#[test]
fn on_two_cpus_two_programs_run_all_the_time_and_three_are_all_served() {
    // Not quite alike: a task that runs while another CPU recomputes gets half of what it has left
    // on top.
    for (programs, least, most) in [(2, 60_000, 60_000), (3, 35_000, 46_000)] {
        let machine = after(Linux24::default(), 2, &vec![hog(); programs], ms(60_000));
        for task in 0..programs {
            let executed = machine.executed(task);
            assert!((ms(least)..=ms(most)).contains(&executed), "{executed}");
        }
    }
}

#[test]
fn a_program_notifies_once_for_each_job_that_is_late_if_it_cares() {
    let late = Notifies::WhenLate;
    for (demand, notifies, marks) in [(12, late, 100), (8, late, 0), (12, Notifies::Never, 0)] {
        let workload = periodic(10, demand).notifying(notifies);
        let machine = after(Linux24::default(), 1, &[workload], ms(1200));
        let (_, seen) = machine.finish();
        assert!(seen.jobs.len() >= 100);
        assert!(seen.jobs.iter().all(|job| job.missed() == (demand > 10)));
        let ends = seen.jobs.iter().map(|job| job.ended).take(marks);
        let said: Vec<Instant> = seen.marks.iter().map(|mark| mark.at).collect();
        assert_eq!(said, ends.collect::<Vec<_>>());
    }
}

#[test]
fn a_flood_of_notifications_moves_nothing_by_itself() {
    let fair = || {
        let config = Config::global(1);
        Linux::new(config, vec![(Class::Fair(Fair::nice(0)), 0); 2])
    };
    let flood = hog().notifying(Notifies::Every(Work::at_full_speed(Span::from_us(1))));
    let mut calm = machine(1, fair(), &[hog(), hog()]);
    let mut noisy = machine(1, fair(), &[flood, hog()]);
    for machine in [&mut calm, &mut noisy] {
        machine.run_until(Instant::ZERO + ms(100));
    }
    let (executed, (_, calm), (_, noisy)) = (noisy.executed(0), calm.finish(), noisy.finish());
    assert_eq!(noisy.marks.len() as u64, executed.as_ns() / 1000);
    assert_eq!(noisy.ran, calm.ran);
}

#[test]
fn a_fair_task_that_goes_on_with_its_next_job_keeps_its_slice() {
    let always = |demand| Workload::new(Arrival::Always, Demand::Constant(demand));
    let workloads = [
        always(Work::at_full_speed(Span::from_us(100))),
        always(Work::ENDLESS),
    ];
    let fair = [(Class::Fair(Fair::nice(0)), 0); 2];
    let policy = Linux::new(Config::global(1), fair);
    let mut machine = machine(1, policy, &workloads);
    machine.run_until(Instant::ZERO + ms(1000));
    let (_, seen) = machine.finish();
    let of_short_jobs = seen.ran.iter().filter(|stretch| stretch.task == 0);
    for stretch in of_short_jobs.clone().skip(1) {
        assert!(stretch.to.since(stretch.from) >= Fair::SLICE, "{stretch:?}");
    }
    assert!(of_short_jobs.count() > 100);
    assert!(seen.jobs.len() > 4900, "{}", seen.jobs.len());
}
