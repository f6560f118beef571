//! Shares of a limited number of places: a limit for each payer, and one for all together. When all
//! places are taken, the payer with the most gives one up for a payer with less.

use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, Debug)]
pub(super) struct ShareLimits {
    pub(super) each: usize,
    pub(super) all: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// If this payer gives one up.
    InPlaceOf(u32),
    None,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    of: BTreeMap<u32, usize>,
    all: usize,
}

impl Counts {
    pub(super) fn add(&mut self, payer: u32) {
        *self.of.entry(payer).or_default() += 1;
        self.all += 1;
    }

    pub(super) fn take(&mut self, payer: u32) {
        if let Some(count) = self.of.get_mut(&payer) {
            *count -= 1;
            self.all -= 1;
            if *count == 0 {
                self.of.remove(&payer);
            }
        }
    }

    pub(super) fn room(&self, payer: u32, limits: ShareLimits) -> Room {
        let own = self.of.get(&payer).copied().unwrap_or(0);
        if own >= limits.each {
            return Room::None;
        }
        if self.all < limits.all {
            return Room::Free;
        }
        let most = self.of.iter().max_by_key(|(_, count)| **count);
        match most {
            Some((&other, &count)) if count > own + 1 => Room::InPlaceOf(other),
            _ => Room::None,
        }
    }
}

impl FromIterator<u32> for Counts {
    fn from_iter<I: IntoIterator<Item = u32>>(payers: I) -> Self {
        let mut counts = Self::default();
        payers.into_iter().for_each(|payer| counts.add(payer));
        counts
    }
}

/// Threads that payers have to do with, by payer and number: two may have to do with the same one,
/// and what the one may do does not keep the other from anything.
#[derive(Debug)]
pub(super) struct SharedThreads<V> {
    limits: ShareLimits,
    entries: HashMap<(u32, u32), V>,
    counts: Counts,
}

impl<V> SharedThreads<V> {
    pub(super) fn new(limits: ShareLimits) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            counts: Counts::default(),
        }
    }

    pub(super) fn get(&self, key: (u32, u32)) -> Option<&V> {
        self.entries.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: (u32, u32)) -> Option<&mut V> {
        self.entries.get_mut(&key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ((u32, u32), &V)> {
        self.entries.iter().map(|(key, value)| (*key, value))
    }

    pub(super) fn has_room(&self, payer: u32) -> bool {
        self.counts.room(payer, self.limits) != Room::None
    }

    pub(super) fn crowded(&self) -> Vec<u32> {
        let payers = self.counts.of.keys().copied();
        payers.filter(|payer| !self.has_room(*payer)).collect()
    }

    /// Puts a new one in; false if there is no room. A payer that gives a place up for it loses the
    /// one that is worth least.
    pub(super) fn insert(&mut self, key: (u32, u32), value: V, worth: impl Fn(&V) -> f64) -> bool {
        match self.counts.room(key.0, self.limits) {
            Room::None => return false,
            Room::Free => {}
            Room::InPlaceOf(other) => {
                let theirs = self
                    .entries
                    .iter()
                    .filter(|((payer, _), _)| *payer == other);
                let least = theirs.min_by(|(_, a), (_, b)| worth(a).total_cmp(&worth(b)));
                if let Some(least) = least.map(|(key, _)| *key) {
                    self.remove(least);
                }
            }
        }
        if self.entries.insert(key, value).is_none() {
            self.counts.add(key.0);
        }
        true
    }

    pub(super) fn remove(&mut self, key: (u32, u32)) {
        if self.entries.remove(&key).is_some() {
            self.counts.take(key.0);
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(u32, &mut V) -> bool) {
        let Self {
            entries, counts, ..
        } = self;
        entries.retain(|(payer, _), value| {
            let stays = keep(*payer, value);
            if !stays {
                counts.take(*payer);
            }
            stays
        });
    }
}
