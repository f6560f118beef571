//! In which order Reserve and Release take effect: those of one connection for one task, in the
//! order in which it sent them.
//!
//! Each call is looked at on its own (who calls, may he), so a later one can be ready first; and a
//! reservation may be waited for. A client that gives back what it no longer waits for relies on
//! its earlier call coming to nothing then.

use std::collections::HashMap;
use std::sync::Arc;

use onbeat_model::{Instant, TaskId};

/// How long a call may take to come here. Longer than anybody takes to be asked for a password.
const REMEMBERED: onbeat_model::Span = onbeat_model::Span::from_secs(300);

#[derive(Debug, Default)]
pub(super) struct CallOrder(HashMap<(Arc<str>, TaskId), (u32, Instant)>);

impl CallOrder {
    /// Whether the call with the number `serial` of the connection `name` may take effect yet: no
    /// later one about the task has. From now on, no earlier one may.
    pub(super) fn admits(
        &mut self,
        name: &Arc<str>,
        task: TaskId,
        serial: u32,
        now: Instant,
    ) -> bool {
        let last = self.0.entry((Arc::clone(name), task));
        let (last, at) = last.or_insert((serial, now));
        // The numbers begin again after 2^32 calls.
        let in_order = serial.wrapping_sub(*last) <= u32::MAX / 2;
        if in_order {
            (*last, *at) = (serial, now);
        }
        in_order
    }

    /// An entry that no call can come before any more is forgotten.
    pub(super) fn forget_old(&mut self, now: Instant) {
        self.0.retain(|_, (_, at)| now.since(*at) < REMEMBERED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tid: u32) -> TaskId {
        TaskId {
            tid,
            started_ticks: 7,
        }
    }

    #[test]
    fn a_call_that_was_overtaken_by_a_later_one_about_the_task_comes_to_nothing() {
        let mut order = CallOrder::default();
        let [one, other]: [Arc<str>; 2] = [":1.1".into(), ":1.2".into()];
        let now = Instant::from_ns(1);
        assert!(order.admits(&one, task(1), 5, now));
        assert!(!order.admits(&one, task(1), 4, now));
        assert!(order.admits(&one, task(1), 5, now), "it is looked at again");
        assert!(order.admits(&one, task(2), 4, now), "another task");
        assert!(order.admits(&other, task(1), 1, now), "another connection");
        assert!(order.admits(&one, task(1), 9, now));
        assert!(!order.admits(&one, task(1), 5, now));
    }
}
