use onbeat_model::{Actuator, Refusal, Reservation, Span, Standing, TaskId};

use crate::common::{
    Bandwidth, Live, Process, eventually, give_up, live, release, reserve, scheduling, small,
};

#[test]
fn more_than_there_is_is_refused_with_what_is_free() {
    let mut actuator = Live::with(Bandwidth::all());
    let whole_cpu = Reservation::implicit(Span::from_ms(100), Span::from_ms(100)).unwrap();
    let held = Process::asleep();
    reserve(&mut actuator, held.task(), small());

    let cpus = actuator.capacity().cpus;
    let processes: Vec<Process> = (0..cpus).map(|_| Process::asleep()).collect();
    let refused = processes.iter().find_map(|process| {
        let before = scheduling(process.task());
        let refusal = eventually("an answer", || {
            match actuator.reserve(process.task(), whole_cpu) {
                Err(Refusal::Settling { .. }) => None,
                Ok(()) => Some(None),
                Err(refusal) => Some(Some(refusal)),
            }
        })?;
        assert_eq!(scheduling(process.task()), before);
        Some(refusal)
    });
    let Some(Refusal::NoRoom { wanted, advice }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(wanted, whole_cpu.bandwidth());
    assert!(advice.contains("other tasks of onbeat hold"), "{advice}");
    assert!(advice.contains("ask for less"), "{advice}");
    for process in &processes {
        give_up(&mut actuator, process.task());
    }
}

#[test]
fn room_that_is_about_to_be_free_is_waited_for_and_not_called_missing() {
    let mut actuator = Live::with(Bandwidth::all());
    let most = Reservation::implicit(Span::from_ms(400), Span::from_ms(500)).unwrap();
    let cpus = actuator.capacity().cpus;
    // A task that leaves while it runs is counted until its 0-lag time.
    let holders: Vec<Process> = (0..cpus).map(|_| Process::busy()).collect();
    for holder in &holders {
        reserve(&mut actuator, holder.task(), most);
    }
    let next = Process::asleep();
    release(&mut actuator, holders.first().unwrap().task());
    eventually("the room that was given back", || {
        match actuator.reserve(next.task(), most) {
            Ok(()) => Some(()),
            Err(Refusal::Settling { .. }) => None,
            Err(refusal) => {
                // Other programs may have reservations for a while.
                let alone = refusal.to_string().contains("others' reservations 0.0%");
                assert!(!alone, "{refusal}");
                None
            }
        }
    });
    give_up(&mut actuator, next.task());
    for holder in &holders {
        give_up(&mut actuator, holder.task());
    }
}

#[test]
fn a_task_that_ended_is_gone_and_its_number_is_not_touched() {
    let mut actuator = live();
    let mut ended = Process::asleep();
    let task = ended.task();
    reserve(&mut actuator, task, small());
    ended.kill();
    assert_eq!(actuator.standing(task), Standing::Gone);
    assert_eq!(actuator.reserve(task, small()), Err(Refusal::Gone));
    assert_eq!(actuator.release(task), Ok(()));
    let mut ended = Process::asleep();
    let task = ended.task();
    reserve(&mut actuator, task, small());
    ended.kill();
    assert_eq!(actuator.release(task), Err(Refusal::Gone));
    assert_eq!(actuator.release(task), Ok(()));

    let alive = Process::busy();
    let other = TaskId {
        started_ticks: alive.task().started_ticks - 1,
        ..alive.task()
    };
    let before = scheduling(alive.task());
    assert_eq!(actuator.reserve(other, small()), Err(Refusal::Gone));
    assert_eq!(scheduling(alive.task()), before);
    reserve(&mut actuator, alive.task(), small());
    actuator.ended(other);
    release(&mut actuator, other);
    assert_eq!(actuator.standing(alive.task()), Standing::Held(small()));
}
