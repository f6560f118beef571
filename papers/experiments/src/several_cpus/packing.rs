//! Which CPU serves which program, where each CPU is a partition of its own: bin packing.
//!
//! Under global EDF a set of tasks with a total of little more than one CPU can miss deadlines on
//! any number of CPUs (Dhall and Liu 1978); on one CPU EDF meets all up to its whole capacity (Liu
//! and Layland 1973). So each program gets a CPU, and eq. 1 is tested on each by itself. The price
//! is that some do not fit although there is room in all: packing is NP-hard, and first-fit
//! decreasing needs at most 11/9 of the bins, and 6/9 of one (Dósa 2007).
//!
//! A program that has a CPU is moved only if something would not fit otherwise: a move empties its
//! caches.

use std::collections::BTreeMap;

use onbeat_model::Bandwidth;

/// Where a program is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Move {
    process: u32,
    /// The CPU, as an index into the room given.
    to: usize,
}

/// The processes on each CPU, and their bandwidth.
#[derive(Clone, Debug, Default)]
pub(super) struct Packing {
    room: Vec<Bandwidth>,
    placed: BTreeMap<u32, (usize, Bandwidth)>,
}

impl Packing {
    /// No process yet, on CPUs with this room each.
    pub(super) fn new(room: Vec<Bandwidth>) -> Self {
        Self {
            room,
            placed: BTreeMap::new(),
        }
    }

    /// The moves by which `process` can have `bandwidth`; none if it cannot be made to fit.
    ///
    /// It stays where it is if that has room, else goes to the first CPU that has, and only if
    /// there is none are all packed anew.
    fn plan(&self, process: u32, bandwidth: Bandwidth) -> Option<Vec<Move>> {
        let at = self.placed.get(&process).map(|&(at, _)| at);
        let fits = |cpu: &usize| {
            let room = self.room.get(*cpu).copied().unwrap_or_default();
            self.used(*cpu, process) + bandwidth <= room
        };
        if at.is_some_and(|at| fits(&at)) {
            return Some(Vec::new());
        }
        if let Some(to) = (0..self.room.len()).find(fits) {
            return Some(vec![Move { process, to }]);
        }
        let others = self.placed.iter().filter(|(other, _)| **other != process);
        let mut all: Vec<(u32, Bandwidth)> = others.map(|(&p, &(_, b))| (p, b)).collect();
        all.push((process, bandwidth));
        let packed = first_fit_decreasing(&mut all, &self.room)?;
        let moves = packed.into_iter().filter(|step| {
            let at = self.placed.get(&step.process).map(|&(at, _)| at);
            at != Some(step.to)
        });
        Some(moves.collect())
    }

    /// `process` begins: how many others moved for it; none if there is no room.
    pub(super) fn start(&mut self, process: u32, bandwidth: Bandwidth) -> Option<usize> {
        let mut moved = 0;
        for step in self.plan(process, bandwidth)? {
            let has = self.place_of(step.process);
            moved += usize::from(has.is_some());
            self.place(step.process, step.to, has.map_or(bandwidth, |(_, has)| has));
        }
        Some(moved)
    }

    fn place(&mut self, process: u32, at: usize, bandwidth: Bandwidth) {
        self.placed.insert(process, (at, bandwidth));
    }

    pub(super) fn place_of(&self, process: u32) -> Option<(usize, Bandwidth)> {
        self.placed.get(&process).copied()
    }

    fn used(&self, cpu: usize, but: u32) -> Bandwidth {
        let there = self.placed.iter().filter(|(_, (at, _))| *at == cpu);
        there
            .filter(|(process, _)| **process != but)
            .map(|(_, &(_, bandwidth))| bandwidth)
            .sum()
    }
}

/// The largest first, each onto the first CPU with room for it; none if one finds no room.
fn first_fit_decreasing(all: &mut [(u32, Bandwidth)], room: &[Bandwidth]) -> Option<Vec<Move>> {
    all.sort_by_key(|&(process, bandwidth)| (std::cmp::Reverse(bandwidth), process));
    let mut used = vec![Bandwidth::ZERO; room.len()];
    all.iter()
        .map(|&(process, bandwidth)| {
            let mut cpus = used.iter_mut().zip(room).enumerate();
            let (to, (used, _)) = cpus.find(|(_, (used, room))| **used + bandwidth <= **room)?;
            *used += bandwidth;
            Some(Move { process, to })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(percent: u64) -> Bandwidth {
        Bandwidth::from_cpus(percent as f64 / 100.0)
    }

    /// Whether the shares can be packed at all: every assignment is tried.
    fn can_be_packed(shares: &[u64], room: &mut [u64]) -> bool {
        let Some((&first, rest)) = shares.split_first() else {
            return true;
        };
        (0..room.len()).any(|cpu| {
            if room[cpu] < first {
                return false;
            }
            room[cpu] -= first;
            let fits = can_be_packed(rest, room);
            room[cpu] += first;
            fits
        })
    }

    fn first_fit(shares: &[u64], cpus: usize) -> Option<Vec<Move>> {
        let numbered = shares.iter().zip(0..).map(|(&s, n)| (n, percent(s)));
        first_fit_decreasing(&mut numbered.collect::<Vec<_>>(), &vec![percent(90); cpus])
    }

    fn random_shares(seed: &mut u64) -> Vec<u64> {
        let mut random = |below: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*seed >> 33) % below
        };
        (0..2 + random(6)).map(|_| 5 + random(60)).collect()
    }

    #[test]
    fn it_packs_whatever_can_be_packed_with_the_bins_that_its_bound_allows() {
        let (mut seed, mut as_good, mut worse) = (7, 0, 0);
        for _ in 0..3000 {
            let shares = random_shares(&mut seed);
            for cpus in 1..=4 {
                let possible = can_be_packed(&shares, &mut vec![90; cpus]);
                let packed = first_fit(&shares, cpus);
                assert!(possible || packed.is_none(), "{shares:?} on {cpus}");
                if possible {
                    let bins = (11 * cpus + 6) / 9;
                    assert!(first_fit(&shares, bins).is_some(), "{shares:?} on {cpus}");
                    *(if packed.is_some() {
                        &mut as_good
                    } else {
                        &mut worse
                    }) += 1;
                }
            }
        }
        assert!(worse * 50 < as_good, "{worse} of {as_good}");
    }

    #[test]
    fn no_cpu_is_given_more_than_its_room_whoever_comes_grows_and_moves() {
        let mut seed = 3;
        for _ in 0..200 {
            let room = vec![percent(90); 3];
            let mut packing = Packing::new(room.clone());
            for (n, share) in random_shares(&mut seed)
                .into_iter()
                .cycle()
                .take(30)
                .enumerate()
            {
                let process = n as u32 % 9;
                let Some(moves) = packing.plan(process, percent(share)) else {
                    continue;
                };
                for step in moves {
                    let (_, bandwidth) = packing.place_of(step.process).unwrap_or_default();
                    packing.place(step.process, step.to, bandwidth);
                }
                let (at, _) = packing.place_of(process).unwrap();
                packing.place(process, at, percent(share));
                for (cpu, &room) in room.iter().enumerate() {
                    assert!(packing.used(cpu, u32::MAX) <= room);
                }
            }
        }
    }

    #[test]
    fn a_program_stays_where_it_is_unless_something_would_not_fit_otherwise() {
        let mut packing = Packing::new(vec![percent(90); 2]);
        packing.place(1, 1, percent(31));
        assert_eq!(packing.plan(1, percent(80)), Some(vec![]));
        assert_eq!(
            packing.plan(2, percent(80)),
            Some(vec![Move { process: 2, to: 0 }])
        );
        packing.place(2, 0, percent(50));
        packing.place(3, 0, percent(30));
        // 10 are left on one CPU and 59 on the other: 60 fit only if another one moves.
        let moves = packing.plan(4, percent(60)).unwrap();
        assert!(moves.len() > 1, "{moves:?}");
        assert_eq!(packing.plan(4, percent(91)), None);
    }
}
