//! The way from a policy's C functions to [`Rules`].

use std::fmt::Debug;

use onbeat_model::{Instant, Span};

/// A policy's C functions, and the sizes of its structures as C has them: `shims/shim.h`.
#[repr(C)]
pub struct Operations<P, M, T> {
    pub(crate) sizes: [u64; 3],
    default_params: P,
    join: unsafe extern "C" fn(*const P, *mut M, *mut T, i32, u64),
    fork: unsafe extern "C" fn(*const P, *mut M, *mut T, *mut T),
    exit: unsafe extern "C" fn(*const P, *mut M, *mut T, *mut T),
    leave: unsafe extern "C" fn(*const P, *mut M, *mut T),
    renice: unsafe extern "C" fn(*const P, *mut M, *mut T, i32),
    wakeup: unsafe extern "C" fn(*const P, *mut M, *mut T, u64),
    block: unsafe extern "C" fn(*const P, *mut M, *mut T, u64),
    pick: unsafe extern "C" fn(*const P, *mut M, *mut T, u64),
    charge: unsafe extern "C" fn(*const P, *mut M, *mut T, u64, u64),
    tick: unsafe extern "C" fn(*const P, *mut M, *mut T, u64) -> bool,
    put_back: unsafe extern "C" fn(*const P, *mut M, *mut T, u64, u64),
    key: unsafe extern "C" fn(*const P, *const M, *const T, u64) -> u64,
    slice: unsafe extern "C" fn(*const P, *const M, *const T, u64) -> u64,
    mdn: unsafe extern "C" fn(*const P, *mut M, *mut T, u64) -> bool,
}

/// A policy's structures as C has them, and its functions.
pub trait Structures: Sized {
    type Params: Copy + Debug + 'static;
    type Machine: Copy + Debug + Default + 'static;
    type Task: Copy + Debug + Default + 'static;

    #[doc(hidden)]
    fn operations() -> &'static OperationsOf<Self>;
}

pub(crate) type OperationsOf<S> =
    Operations<<S as Structures>::Params, <S as Structures>::Machine, <S as Structures>::Task>;

/// The rules of a scheduling policy, as its C header has them.
///
/// A task joins, wakes, is picked, and then is put back or blocks; what it ran is charged before
/// either. A ready task's key holds from [`wakeup`](Self::wakeup) or [`put_back`](Self::put_back)
/// until it is picked. A task that wakes takes the CPU from one that runs if its key is less.
#[derive(Clone, Debug)]
pub struct Rules<S: Structures> {
    pub params: S::Params,
    pub machine: S::Machine,
}

impl<S: Structures> Default for Rules<S> {
    fn default() -> Self {
        Self {
            params: S::operations().default_params,
            machine: S::Machine::default(),
        }
    }
}

// SAFETY of every call below: the functions are the policy's own, compiled with the structures that
// `S` names (a test compares their sizes); they read and write what they are given and nothing
// else, keep no pointer, and return. The references are valid and, where a function writes,
// exclusive.
macro_rules! call {
    ($self:ident.$name:ident($($argument:expr),*)) => {{
        let Self { params, machine } = $self;
        // SAFETY: as above.
        unsafe { (S::operations().$name)(params, machine, $($argument),*) }
    }};
}

impl<S: Structures> Rules<S> {
    /// A task of this niceness, not ready yet.
    pub fn join(&mut self, nice: i8, now: Instant) -> S::Task {
        let mut task = S::Task::default();
        call!(self.join(&mut task, nice.into(), now.as_ns()));
        task
    }

    pub fn fork(&mut self, parent: &mut S::Task, child: &mut S::Task) {
        call!(self.fork(parent, child));
    }

    /// `child`, which runs, ends.
    pub fn exit(&mut self, child: &mut S::Task, parent: &mut S::Task) {
        call!(self.exit(child, parent));
    }

    pub fn leave(&mut self, task: &mut S::Task) {
        call!(self.leave(task));
    }

    pub fn renice(&mut self, task: &mut S::Task, nice: i8) {
        call!(self.renice(task, nice.into()));
    }

    pub fn wakeup(&mut self, task: &mut S::Task, now: Instant) {
        call!(self.wakeup(task, now.as_ns()));
    }

    pub fn block(&mut self, task: &mut S::Task, now: Instant) {
        call!(self.block(task, now.as_ns()));
    }

    pub fn pick(&mut self, task: &mut S::Task, now: Instant) {
        call!(self.pick(task, now.as_ns()));
    }

    pub fn charge(&mut self, task: &mut S::Task, ran: Span, now: Instant) {
        call!(self.charge(task, ran.as_ns(), now.as_ns()));
    }

    /// Whether `task`, which was just charged, has to stand in line again.
    pub fn tick(&mut self, task: &mut S::Task, now: Instant) -> bool {
        call!(self.tick(task, now.as_ns()))
    }

    /// `task` ran and still wants to, but has to stand in line again. `behind` is the least key in
    /// line that is greater than its own, if there is one.
    pub fn put_back(&mut self, task: &mut S::Task, behind: Option<u64>, now: Instant) {
        call!(self.put_back(task, behind.unwrap_or(u64::MAX), now.as_ns()));
    }

    /// Where `task` stands in line, ready or running: the least runs first, and of equals who came
    /// first.
    pub fn key(&self, task: &S::Task, now: Instant) -> u64 {
        call!(self.key(task, now.as_ns()))
    }

    /// How long `task` may run from now on until it has to stand in line again.
    pub fn slice(&self, task: &S::Task, now: Instant) -> Span {
        Span::from_ns(call!(self.slice(task, now.as_ns())))
    }

    /// `task`, which runs, says that it has missed a deadline. False if that changes nothing.
    pub fn mdn(&mut self, task: &mut S::Task, now: Instant) -> bool {
        call!(self.mdn(task, now.as_ns()))
    }
}

/// The policy of this name: its type, its structures `Params`, `Machine` and `Task`, and the table
/// of its functions.
macro_rules! policy {
    ($policy:ident, $table:ident) => {
        pub type $policy = crate::Rules<Named>;

        #[derive(Clone, Copy, Debug)]
        pub enum Named {}

        unsafe extern "C" {
            static $table: crate::shim::OperationsOf<Named>;
        }

        impl crate::Structures for Named {
            type Params = Params;
            type Machine = Machine;
            type Task = Task;

            fn operations() -> &'static crate::shim::OperationsOf<Self> {
                // SAFETY: the table is constant, and laid out as the type says.
                unsafe { &$table }
            }
        }
    };
}
pub(crate) use policy;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{berate, best, linux24};

    fn the_sizes_agree<S: Structures>() {
        let ours = [
            size_of::<S::Params>(),
            size_of::<S::Machine>(),
            size_of::<S::Task>(),
        ];
        assert_eq!(
            S::operations().sizes,
            ours.map(|size| size as u64),
            "{}",
            std::any::type_name::<S>()
        );
    }

    #[test]
    fn the_structures_are_as_long_here_as_in_c() {
        the_sizes_agree::<linux24::Named>();
        the_sizes_agree::<best::Named>();
        the_sizes_agree::<berate::Named>();
    }
}
