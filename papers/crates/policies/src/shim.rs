//! The way from a policy's C functions to [`Rules`].

use std::fmt::Debug;

use onbeat_model::{Instant, Span};

use crate::Rules;

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

/// The operations of a policy with these names.
pub(crate) type OperationsOf<N> =
    Operations<<N as Named>::Params, <N as Named>::Machine, <N as Named>::Task>;

/// A policy's structures as C has them.
pub trait Named {
    type Params: Copy + Debug + 'static;
    type Machine: Copy + Debug + Default + 'static;
    type Task: Copy + Debug + Default + 'static;

    #[doc(hidden)]
    fn operations() -> &'static OperationsOf<Self>
    where
        Self: Sized;
}

/// A policy as its C header has it.
#[derive(Clone, Debug)]
pub struct Compiled<N: Named> {
    pub params: N::Params,
    pub machine: N::Machine,
}

impl<N: Named> Default for Compiled<N> {
    fn default() -> Self {
        Self {
            params: N::operations().default_params,
            machine: N::Machine::default(),
        }
    }
}

// SAFETY of every call below: the functions are the policy's own, compiled with the structures that
// `N` names (a test compares their sizes); they read and write what they are given and nothing
// else, keep no pointer, and return. The references are valid and, where a function writes,
// exclusive.
macro_rules! call {
    ($self:ident.$name:ident($($argument:expr),*)) => {{
        let Self { params, machine } = $self;
        // SAFETY: as above.
        unsafe { (N::operations().$name)(params, machine, $($argument),*) }
    }};
}

impl<N: Named> Rules for Compiled<N> {
    type Task = N::Task;

    fn join(&mut self, nice: i8, now: Instant) -> N::Task {
        let mut task = N::Task::default();
        call!(self.join(&mut task, nice.into(), now.as_ns()));
        task
    }

    fn fork(&mut self, parent: &mut N::Task, child: &mut N::Task) {
        call!(self.fork(parent, child));
    }

    fn exit(&mut self, child: &mut N::Task, parent: &mut N::Task) {
        call!(self.exit(child, parent));
    }

    fn leave(&mut self, task: &mut N::Task) {
        call!(self.leave(task));
    }

    fn renice(&mut self, task: &mut N::Task, nice: i8) {
        call!(self.renice(task, nice.into()));
    }

    fn wakeup(&mut self, task: &mut N::Task, now: Instant) {
        call!(self.wakeup(task, now.as_ns()));
    }

    fn block(&mut self, task: &mut N::Task, now: Instant) {
        call!(self.block(task, now.as_ns()));
    }

    fn pick(&mut self, task: &mut N::Task, now: Instant) {
        call!(self.pick(task, now.as_ns()));
    }

    fn charge(&mut self, task: &mut N::Task, ran: Span, now: Instant) {
        call!(self.charge(task, ran.as_ns(), now.as_ns()));
    }

    fn tick(&mut self, task: &mut N::Task, now: Instant) -> bool {
        call!(self.tick(task, now.as_ns()))
    }

    fn put_back(&mut self, task: &mut N::Task, behind: Option<u64>, now: Instant) {
        call!(self.put_back(task, behind.unwrap_or(u64::MAX), now.as_ns()));
    }

    fn key(&self, task: &N::Task, now: Instant) -> u64 {
        call!(self.key(task, now.as_ns()))
    }

    fn slice(&self, task: &N::Task, now: Instant) -> Span {
        Span::from_ns(call!(self.slice(task, now.as_ns())))
    }

    fn mdn(&mut self, task: &mut N::Task, now: Instant) -> bool {
        call!(self.mdn(task, now.as_ns()))
    }
}

/// The policy of this name: its type, its structures `Params`, `Machine` and `Task`, and the table
/// of its functions.
macro_rules! policy {
    ($policy:ident, $table:ident) => {
        pub type $policy = crate::shim::Compiled<Named>;

        #[derive(Clone, Copy, Debug)]
        pub enum Named {}

        unsafe extern "C" {
            static $table: crate::shim::OperationsOf<Named>;
        }

        impl crate::shim::Named for Named {
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

    fn the_sizes_agree<N: Named>() {
        let ours = [
            size_of::<N::Params>(),
            size_of::<N::Machine>(),
            size_of::<N::Task>(),
        ];
        assert_eq!(
            N::operations().sizes,
            ours.map(|size| size as u64),
            "{}",
            std::any::type_name::<N>()
        );
    }

    #[test]
    fn the_structures_are_as_long_here_as_in_c() {
        the_sizes_agree::<linux24::Named>();
        the_sizes_agree::<best::Named>();
        the_sizes_agree::<berate::Named>();
    }
}
