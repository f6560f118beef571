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
            let Some(thread) = loop_.thread(task, now) else {
                return;
            };
            assert!(thread.executed >= executed);
            executed = thread.executed;
            let present = thread.present;
            assert_eq!(present.reservation.is_some(), present.last.is_some());
            assert!(thread.counted.jobs >= seen);
            last = present.last;
        },
    );
    assert!(seen > 100, "only {seen} jobs");
    assert_eq!(executed, ms(150 * 16));
    assert!(matches!(last, Some(What::Reserved | What::Changed)));
}
