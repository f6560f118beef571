//! Where CPUs are partitions: each process gets one that has room for all its threads, before one
//! of them gets more.

use onbeat_decide::supervisor::packing::Packing;
use onbeat_model::{Bandwidth, Refusal, Reservation};

use crate::slots::Slot;
use crate::task::table::TaskTable;

/// Which process is in which partition, if there are any.
pub(super) struct Partitions(Packing);

impl Partitions {
    pub(super) fn new(rooms: Vec<Bandwidth>) -> Self {
        Self(Packing::new(rooms))
    }

    /// Makes room for what the thread in `slot` is to have, beside what its process has otherwise.
    /// `held` tells what a thread has, as the scheduler counts it; `place` puts a process into a
    /// partition.
    pub(super) fn make_room(
        &mut self,
        tasks: &TaskTable,
        (slot, wanted): (Slot, Reservation),
        held: impl Fn(Slot) -> Option<Reservation>,
        mut place: impl FnMut(u32, usize) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Self(packing) = self;
        if !packing.is_in_use() {
            return Ok(());
        }
        let Some(thread) = tasks.get(slot) else {
            return Err(Refusal::Gone);
        };
        let process = thread.task.pid;
        let held_by = |process: u32, but: Option<Slot>| -> Bandwidth {
            let threads = tasks.of_process(process).map(|(slot, _)| slot);
            let others = threads.filter(|&slot| Some(slot) != but);
            others.filter_map(&held).map(|held| held.bandwidth()).sum()
        };
        // Threads have let go, and ended, since.
        for process in packing.processes() {
            packing.resize(process, held_by(process, None));
        }
        let needed = held_by(process, Some(slot)) + wanted.bandwidth();
        let Some(mut moves) = packing.plan(process, needed) else {
            return Err(Refusal::Other(format!(
                "no CPU has room for process {process}, which needs {needed} of one: end another program, \
                 or leave enforcement.partition out"
            )));
        };
        // A process that moves may have to wait until another one has left.
        let mut refused = None;
        while !moves.is_empty() {
            let before = moves.len();
            moves.retain(|step| match place(step.process, step.to) {
                Ok(()) => {
                    let has = packing.place_of(step.process);
                    let bandwidth = has.map_or(Bandwidth::ZERO, |(_, bandwidth)| bandwidth);
                    packing.place(step.process, step.to, bandwidth);
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
}
