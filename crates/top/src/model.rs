//! All that the screen shows: the last snapshot, and what the user wants to see of it.

use std::collections::{BTreeMap, HashMap};

use onbeat_model::{Bandwidth, Instant, TaskId};

use crate::application::ShownApplication;
use crate::columns::{self, Column, name};
use crate::feed::{News, Snapshot};
use crate::thread::ShownThread;

/// A row of the table: an application stands above its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadRow {
    Application(u32),
    Thread(TaskId),
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(crate) source: String,
    pub(crate) at: Instant,
    pub(crate) reserved: Bandwidth,
    pub(crate) total: Bandwidth,
    pub(crate) applications: BTreeMap<u32, ShownApplication>,
    pub(crate) threads: BTreeMap<TaskId, ShownThread>,
    /// Those that the filter lets through, as they are sorted, those of one application together.
    pub(crate) rows: Vec<TaskId>,
    pub(crate) trouble: Option<String>,
    pub(crate) view: ViewOptions,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ViewOptions {
    pub(crate) selected: Option<TaskId>,
    pub(crate) is_drilled: bool,
    pub(crate) sort: Column,
    pub(crate) is_reversed: bool,
    pub(crate) filter: String,
    pub(crate) is_typing: bool,
    pub(crate) has_help: bool,
    pub(crate) is_paused: bool,
}

impl Model {
    pub fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            ..Self::default()
        }
    }

    pub fn update(&mut self, news: News) {
        match news {
            _ if self.view.is_paused => {}
            News::Trouble(why) => self.trouble = Some(why),
            News::Snapshot(snapshot) => self.take_in(snapshot),
        }
    }

    fn take_in(&mut self, snapshot: Snapshot) {
        self.trouble = None;
        self.at = snapshot.now;
        self.reserved = snapshot.reserved;
        self.total = snapshot.total;
        let mut before = std::mem::take(&mut self.applications);
        for sums in snapshot.applications {
            let before = before.remove(&sums.pid);
            let application = ShownApplication::update(before, sums, snapshot.now);
            self.applications.insert(application.sums.pid, application);
        }
        let mut before = std::mem::take(&mut self.threads);
        for seen in snapshot.threads {
            let application = self.applications.get_mut(&seen.served.application);
            if let (Some(held), Some(application)) = (seen.present.reservation, application) {
                *application.reserved.get_or_insert_default() += held.bandwidth();
            }
            let id = seen.task.id;
            let thread = match before.remove(&id) {
                Some(mut thread) => {
                    thread.update(seen, snapshot.now);
                    thread
                }
                None => ShownThread::new(seen, snapshot.now),
            };
            self.threads.insert(id, thread);
        }
        for (id, jobs) in snapshot.jobs {
            if let Some(thread) = self.threads.get_mut(&id) {
                thread.did(jobs);
            }
        }
        self.arrange();
    }

    /// Filters and sorts anew, applications by the first of their threads. The selection stays with
    /// its thread, or, if that is gone, in its place.
    pub(crate) fn arrange(&mut self) {
        let place = self.place();
        let wanted = self.view.filter.to_lowercase();
        let passes = |thread: &ShownThread| {
            let seen = &thread.seen;
            let words = [
                name(seen).to_lowercase(),
                seen.task.id.tid.to_string(),
                seen.task.pid.to_string(),
                columns::state(seen.state).to_owned(),
            ];
            wanted.is_empty() || words.iter().any(|word| word.contains(&wanted))
        };
        let mut rows: Vec<(TaskId, &ShownThread)> = self
            .threads
            .iter()
            .filter(|(_, thread)| passes(thread))
            .map(|(id, thread)| (*id, thread))
            .collect();
        let (column, descends) = (
            self.view.sort,
            self.view.sort.descends() != self.view.is_reversed,
        );
        rows.sort_by(|(one, a), (other, b)| {
            let order = column.compare(a, b);
            let order = if descends { order.reverse() } else { order };
            order
                .then_with(|| name(&a.seen).cmp(&name(&b.seen)))
                .then_with(|| one.cmp(other))
        });
        let mut places = HashMap::new();
        for (place, (_, thread)) in rows.iter().enumerate() {
            places
                .entry(thread.seen.served.application)
                .or_insert(place);
        }
        rows.sort_by_key(|(_, thread)| places.get(&thread.seen.served.application));
        self.rows = rows.into_iter().map(|(id, _)| id).collect();
        if self
            .view
            .selected
            .is_some_and(|id| !self.rows.contains(&id))
        {
            let last = self.rows.len().checked_sub(1);
            let instead = last.and_then(|last| self.rows.get(place.unwrap_or(0).min(last)));
            self.view.selected = instead.copied();
            self.view.is_drilled = false;
        }
    }

    pub(crate) fn place(&self) -> Option<usize> {
        let selected = self.view.selected?;
        self.rows.iter().position(|&id| id == selected)
    }

    /// Selects the thread `steps` rows on; where none is selected, the first, or the last if that
    /// is wanted.
    pub(crate) fn step(&mut self, steps: isize) {
        let last = self.rows.len().saturating_sub(1);
        let to = match self.place() {
            Some(place) => place.saturating_add_signed(steps).min(last),
            None if steps == isize::MAX => last,
            None => 0,
        };
        self.view.selected = self.rows.get(to).copied();
    }

    pub(crate) fn chosen(&self) -> Option<&ShownThread> {
        self.threads.get(&self.view.selected?)
    }

    pub(crate) fn application(&self, id: TaskId) -> Option<&ShownApplication> {
        let thread = self.threads.get(&id)?;
        self.applications.get(&thread.seen.served.application)
    }

    /// The thread's name, below that of its application.
    pub(crate) fn indented(&self, thread: &ShownThread) -> String {
        let indent = match self.application(thread.seen.task.id) {
            Some(_) => "  ",
            None => "",
        };
        format!("{indent}{}", name(&thread.seen))
    }

    pub(crate) fn table(&self) -> Vec<ThreadRow> {
        let mut table = Vec::new();
        let mut last = None;
        for &id in &self.rows {
            let application = self.application(id).map(|of| of.sums.pid);
            if application != last {
                table.extend(application.map(ThreadRow::Application));
                last = application;
            }
            table.push(ThreadRow::Thread(id));
        }
        table
    }

    /// The rows that are seen where there is room for `height` of them: the selection amid them.
    pub(crate) fn visible(&self, height: usize) -> Vec<ThreadRow> {
        let mut table = self.table();
        let selected = self.view.selected.map(ThreadRow::Thread);
        let place = table.iter().position(|&row| Some(row) == selected);
        let last = table.len().saturating_sub(height);
        let from = place.unwrap_or(0).saturating_sub(height / 2).min(last);
        table.drain(..from);
        table.truncate(height);
        table
    }

    pub(crate) fn reserved_for(&self) -> usize {
        let threads = self.threads.values();
        threads.filter(|thread| thread.reserved().is_some()).count()
    }
}
