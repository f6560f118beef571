//! Where CPUs are partitions: each process gets one that has room for all its threads, before one of them
//! gets more.

use onbeat_model::{Actuator, Bandwidth, Refusal, Reservation, TaskId};

use crate::controller::Controller;
use crate::roster::Slot;

impl<A: Actuator> Controller<A> {
    /// Reserves `target` for `task`, on a CPU that has room for its process.
    pub(crate) fn put_in_force(
        &mut self,
        slot: Slot,
        task: TaskId,
        target: Reservation,
    ) -> Result<(), Refusal> {
        let counted = self.as_counted(target);
        if self.packing.is_in_use() {
            self.make_room(slot, counted.bandwidth())?;
        }
        self.actuator.reserve(task, counted)
    }

    fn make_room(&mut self, slot: Slot, wanted: Bandwidth) -> Result<(), Refusal> {
        let Some(process) = self.thread(slot).map(|thread| thread.task.pid) else {
            return Err(Refusal::Gone);
        };
        self.recount();
        let needed = self.held_by(process, Some(slot)) + wanted;
        let Some(mut moves) = self.packing.plan(process, needed) else {
            return Err(Refusal::Other(format!(
                "no CPU has room for process {process}, which needs {needed} of one: end another program, \
                 or leave --partition away"
            )));
        };
        // Who moves may have to wait until another one has left.
        let mut refused = None;
        while !moves.is_empty() {
            let before = moves.len();
            moves.retain(|step| match self.actuator.place(step.process, step.to) {
                Ok(()) => {
                    let has = self.packing.place_of(step.process);
                    let bandwidth = has.map_or(Bandwidth::ZERO, |(_, bandwidth)| bandwidth);
                    self.packing.place(step.process, step.to, bandwidth);
                    false
                }
                Err(refusal) => {
                    refused = Some(refusal);
                    true
                }
            });
            if moves.len() == before {
                return Err(refused.unwrap_or(Refusal::Gone));
            }
        }
        Ok(())
    }

    /// What every process holds now: threads have let go, and ended, since.
    fn recount(&mut self) {
        for process in self.packing.processes() {
            let held = self.held_by(process, None);
            self.packing.resize(process, held);
        }
    }

    /// What the threads of `process` hold together, `but` one.
    fn held_by(&self, process: u32, but: Option<Slot>) -> Bandwidth {
        let threads = self.threads.iter().enumerate();
        let others = threads.filter(|&(slot, _)| Some(slot) != but);
        others
            .filter_map(|(_, thread)| thread.as_ref())
            .filter(|thread| thread.task.pid == process)
            .filter_map(|thread| thread.held())
            .map(|held| self.as_counted(held).bandwidth())
            .sum()
    }
}
