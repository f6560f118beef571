//! The answers to observers.

use onbeat_control::{Settings, What};
use onbeat_model::{Instant, TaskId};

use crate::kernel::Kernel;
use crate::world::{Script, at_ms, ms, play_asking};

#[test]
fn who_looks_on_is_told_what_was_done_last_and_the_jobs_since_he_looked() {
    let mut script = Script::default();
    script.tracked(7, "player", Instant::ZERO);
    script.periodic(7, ms(40), (Instant::ZERO, at_ms(6000)), |_| ms(16));
    let task = TaskId::recorded(7);
    let (mut looked, mut seen, mut executed) = (Instant::ZERO, 0, ms(0));
    let mut last = None;
    play_asking(
        script,
        Kernel::with_cpus(1),
        Settings::default(),
        |loop_, now| {
            if now.since(looked) >= ms(250) {
                for job in loop_.recent_jobs(task, looked) {
                    assert!(job.ended > looked && job.executed <= ms(16) && !job.missed);
                    seen += 1;
                }
                looked = now;
            }
            let Some(view) = loop_.view().find(|view| view.task.id == task) else {
                return;
            };
            assert!(view.executed >= executed);
            executed = view.executed;
            assert_eq!(view.held.is_some(), view.last.is_some());
            assert_eq!(loop_.wakeups(task).count() as u64, view.bursts);
            assert!(view.counted.jobs >= seen);
            last = view.last;
        },
    );
    assert!(seen > 100, "only {seen} jobs");
    assert_eq!(executed, ms(150 * 16));
    assert!(matches!(last, Some((What::Reserved | What::Changed, _))));
}
