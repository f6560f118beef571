//! How much of the reserved bandwidth of a domain is in use, for GRUB: a task's share is in use
//! from its wakeup until its zero-lag time, the rest may be reclaimed.
//!
//! The kernel keeps these sums for each CPU and moves a task's share with it; here they are kept
//! for the domain and divided by its CPUs, which on one CPU is the same.

use onbeat_model::{Bandwidth, Instant};

use super::DeadlineClass;
use super::deadline::{DeadlineEntity, WHOLE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Active {
    No,
    /// It is ready or runs.
    Contending,
    /// It has blocked, before this zero-lag time.
    Until(Instant),
}

const MOST: u64 = 950_000_000;

#[derive(Debug, Default)]
pub(super) struct Contention {
    cpus: u64,
    reclaiming: u32,
    sets_speed: bool,
    reserved: Bandwidth,
    in_use: Bandwidth,
}

impl Contention {
    /// The bandwidth of `cpus` CPUs, on each of which the kernel keeps `fair_server` for fair
    /// tasks.
    pub(super) fn of(cpus: usize, fair_server: Bandwidth) -> Self {
        let cpus = cpus.max(1);
        let servers = std::iter::repeat_n(fair_server, cpus).sum();
        Self {
            cpus: cpus as u64,
            reserved: servers,
            in_use: servers,
            ..Self::default()
        }
    }

    /// The same, whose bandwidth in use also sets the speed, if `sets_speed`.
    pub(super) fn and_speed(self, sets_speed: bool) -> Self {
        Self { sets_speed, ..self }
    }

    pub(super) const fn matters(&self) -> bool {
        self.reclaiming > 0 || self.sets_speed
    }

    pub(super) fn in_use_of_one(&self) -> f64 {
        self.in_use.as_cpus() / self.cpus as f64
    }

    pub(super) fn enters(&mut self, deadline: &DeadlineClass) {
        self.reserved += deadline.reservation.bandwidth();
        self.reclaiming += u32::from(deadline.reclaim);
    }

    pub(super) fn leaves(&mut self, entity: &DeadlineEntity) {
        let bandwidth = entity.deadline.reservation.bandwidth();
        self.reserved = self.reserved - bandwidth;
        self.reclaiming -= u32::from(entity.deadline.reclaim);
        if entity.active != Active::No {
            self.in_use = self.in_use - bandwidth;
        }
    }

    pub(super) fn changes(&mut self, entity: &mut DeadlineEntity, new: DeadlineClass) {
        self.leaves(entity);
        entity.deadline = new;
        self.enters(&new);
        if entity.active != Active::No {
            self.in_use += new.reservation.bandwidth();
        }
    }

    pub(super) fn begins(&mut self, entity: &mut DeadlineEntity) {
        if entity.active == Active::No {
            self.in_use += entity.deadline.reservation.bandwidth();
        }
        entity.active = Active::Contending;
    }

    pub(super) fn ends(&mut self, entity: &mut DeadlineEntity, now: Instant) -> Option<Instant> {
        let free_at = entity.server.zero_lag(&entity.deadline.reservation);
        if free_at <= now {
            self.free(entity);
            return None;
        }
        entity.active = Active::Until(free_at);
        Some(free_at)
    }

    /// Zero-lag time. Answers whether the share was still in use.
    pub(super) fn timer(&mut self, entity: &mut DeadlineEntity, now: Instant) -> bool {
        let mine = entity.active == Active::Until(now);
        if mine {
            self.free(entity);
        }
        mine
    }

    fn free(&mut self, entity: &mut DeadlineEntity) {
        self.in_use = self.in_use - entity.deadline.reservation.bandwidth();
        entity.active = Active::No;
    }

    /// The cost of a nanosecond of execution to a reclaiming task, in parts per billion: at most
    /// one nanosecond, at least its own share of what may be reserved (the kernel's
    /// `grub_reclaim`).
    pub(super) fn reclaimed_ppb(&self, deadline: &DeadlineClass) -> u64 {
        let ppb = |bandwidth: Bandwidth| (bandwidth.as_cpus() * WHOLE as f64) as u64;
        let inactive = ppb(self.reserved - self.in_use) / self.cpus;
        let extra = MOST.saturating_sub(ppb(self.reserved) / self.cpus);
        let active = MOST.saturating_sub(inactive).saturating_sub(extra);
        let active = active.max(ppb(deadline.reservation.bandwidth()));
        (active * WHOLE / MOST).clamp(1, WHOLE)
    }
}
