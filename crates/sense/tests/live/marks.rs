use std::process::Command;

use onbeat_model::{Event, Follow, Mark, Said, Sensor, Span};
use onbeat_sense::bpf::{BpfOptions, MarkHook};

use crate::role::{Role, heard_to_the_end, program, sensor, sensor_or_skip, sensors};

const JOBS: usize = 1009;
const FLOOD: u64 = 200_003;

fn marks(events: &[Event]) -> Vec<Mark> {
    let mark = |event: &Event| match event {
        Event::Marked(mark) => Some(*mark),
        _ => None,
    };
    events.iter().filter_map(mark).collect()
}

fn suppressed(events: &[Event]) -> u64 {
    let count = |event: &Event| match event {
        Event::Suppressed { count, .. } => u64::from(*count),
        _ => 0,
    };
    events.iter().map(count).sum()
}

#[test]
fn each_mark_of_a_prime_number_of_jobs_is_heard_in_order_with_its_thread_and_cpu_time() {
    for (hooks, mut sensor) in sensors(BpfOptions::default()) {
        let mut role = Role::tracked_by(&mut sensor);
        let id = role.id();
        role.ask(b'j');
        let account = Span::from_ns(role.account_ns());
        role.dismiss();
        let events = heard_to_the_end(&mut sensor);

        let marks = marks(&events);
        let said: Vec<Said> = marks.iter().map(|mark| mark.said).collect();
        let mut expected = vec![Said::RealTimeStarted {
            period: Span::from_ms(40),
            permille: 950,
        }];
        expected.extend([Said::JobBegan, Said::JobEnded].repeat(JOBS));
        expected.push(Said::RealTimeExited);
        assert_eq!(said, expected, "{hooks:?}");
        assert_eq!(suppressed(&events), 0);
        assert!(marks.iter().all(|mark| mark.task == id));
        assert!(marks.iter().all(|mark| mark.woke <= mark.at));
        assert!(marks.is_sorted_by_key(|mark| mark.at));
        assert!(marks.is_sorted_by_key(|mark| mark.executed));
        let last = marks.last().map(|mark| mark.executed);
        assert!(
            last > Some(Span::ZERO) && account > Span::ZERO,
            "{last:?}, {account}"
        );
    }
}

#[test]
fn a_flood_of_marks_is_counted_and_costs_no_other_event() {
    let mut sensor = sensor_or_skip!();
    let mut role = Role::tracked_by(&mut sensor);
    role.dismiss_after(b'w');
    let events = heard_to_the_end(&mut sensor);
    let told = marks(&events);
    assert!(told.iter().all(|mark| mark.said == Said::MissedDeadline));
    assert_eq!(told.len() as u64 + suppressed(&events), FLOOD);
    assert!(!events.iter().any(|e| matches!(e, Event::Lost { .. })));
}

#[test]
fn nobody_hears_the_marks_of_a_process_that_is_not_tracked() {
    let mut sensor = sensor_or_skip!();
    let mut tracked = Role::tracked_by(&mut sensor);
    let mut other = Role::start();
    other.ask(b'j');
    tracked.dismiss();
    assert_eq!(marks(&heard_to_the_end(&mut sensor)), []);
}

/// The identities of the threads whose marks are heard if `command` executes a role that marks its
/// jobs.
fn marking(command: &mut Command) -> Option<(Role, Vec<Mark>)> {
    let mut sensor = sensor(BpfOptions::default())?;
    assert_ne!(sensor.mark_hook(), MarkHook::Unheard);
    let mut role = Role::of(command);
    sensor.track(role.pid(), Follow::Children).unwrap();
    for child in onbeat_sense::identity::children(role.pid()) {
        sensor.track(child, Follow::Children).unwrap();
    }
    role.tell(b'j');
    role.dismiss();
    let marks = marks(&heard_to_the_end(&mut sensor));
    assert_eq!(marks.len(), 2 * JOBS + 2);
    Some((role, marks))
}

#[test]
fn the_marks_of_a_static_program_are_heard() {
    if let Some((role, marks)) = marking(&mut Command::new(program(true))) {
        assert!(marks.iter().all(|mark| mark.task.tid == role.pid()));
    }
}

#[test]
fn marks_from_other_namespaces_have_the_threads_own_number() {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork"]);
    command.arg(program(false));
    if let Some((unshare, marks)) = marking(&mut command) {
        let task = marks[0].task;
        assert!(task.tid != unshare.pid() && task.tid > 1);
        assert!(marks.iter().all(|mark| mark.task == task));
    }
}
