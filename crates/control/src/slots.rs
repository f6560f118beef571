//! Slots: the numbers by which the parts of the loop keep their states of one thread.
//!
//! `task/table.rs` gives each thread a slot, and uses it again after the thread's end. Each part
//! has a [`BySlot`] with its own state of each thread, which nothing outside the part can write.

pub(crate) type Slot = usize;

/// One part's state of each thread.
#[derive(Debug)]
pub(crate) struct BySlot<T> {
    states: Vec<T>,
    /// The state of a thread that the part knows nothing of.
    none: T,
}

impl<T: Default> Default for BySlot<T> {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            none: T::default(),
        }
    }
}

impl<T: Default> BySlot<T> {
    pub(crate) fn get(&self, slot: Slot) -> &T {
        self.states.get(slot).unwrap_or(&self.none)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.states.iter().enumerate()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut T {
        if slot >= self.states.len() {
            self.states.resize_with(slot + 1, T::default);
        }
        // The fallback is there for the compiler: the line above has made the slot.
        self.states.get_mut(slot).unwrap_or(&mut self.none)
    }

    /// Takes the state out, because the thread is gone.
    pub(crate) fn take(&mut self, slot: Slot) -> T {
        self.states
            .get_mut(slot)
            .map(std::mem::take)
            .unwrap_or_default()
    }
}
