//! A timeline for ui.perfetto.dev: one track for each CPU shows which task it ran, at which speed;
//! one for each task shows its jobs from release to end, the missed ones by name, and where a
//! budget ran out.

use std::io::{self, Write};

use onbeat_model::Instant;
use onbeat_timeline::{Detail, Lanes, Track};

use crate::observe::{Completion, Stretch};
use crate::{CpuIndex, Observer, TaskIndex};

/// Writes the timeline. The first error ends the writing; [`finish`](Self::finish) returns it.
pub struct ScenarioTimeline<W> {
    timeline: onbeat_timeline::Timeline<W>,
    cpus: Vec<Track>,
    tasks: Vec<TaskLane>,
}

struct TaskLane {
    name: String,
    jobs: Lanes,
    budget: Track,
}

impl<W: Write> ScenarioTimeline<W> {
    pub fn new(output: W, cpus: CpuIndex, names: Vec<String>) -> Self {
        let mut timeline = onbeat_timeline::Timeline::new(output);
        let group = timeline.group("CPUs");
        let cpus = (0..cpus)
            .map(|cpu| timeline.track(group, &format!("CPU {cpu}")))
            .collect();
        let tasks = names
            .into_iter()
            .map(|name| {
                let group = timeline.group(&name);
                TaskLane {
                    name,
                    jobs: Lanes::new(group, "jobs"),
                    budget: timeline.track(group, "budget"),
                }
            })
            .collect();
        Self {
            timeline,
            cpus,
            tasks,
        }
    }

    pub fn finish(self) -> io::Result<()> {
        self.timeline.finish()
    }
}

impl<W: Write> Observer for ScenarioTimeline<W> {
    fn ran(&mut self, stretch: &Stretch) {
        if let (Some(&cpu), Some(task)) = (self.cpus.get(stretch.cpu), self.tasks.get(stretch.task))
        {
            let details = [("khz", Detail::Number(stretch.speed.as_khz()))];
            let span = (stretch.from, stretch.to);
            self.timeline.slice(cpu, &task.name, span, &details);
        }
    }

    fn job(&mut self, job: &Completion) {
        let name = if job.missed() { "missed" } else { "job" };
        let details = [
            ("job", Detail::Number(job.number)),
            ("deadline_ns", Detail::Number(job.deadline.as_ns())),
            ("demand_ns", Detail::ns(job.demand.as_span())),
            ("executed_ns", Detail::ns(job.executed)),
        ];
        if let Some(task) = self.tasks.get_mut(job.task) {
            let span = (job.release, job.ended);
            task.jobs.slice(&mut self.timeline, name, span, &details);
        }
    }

    fn exhausted(&mut self, task: TaskIndex, at: Instant) {
        if let Some(task) = self.tasks.get(task) {
            self.timeline
                .instant(task.budget, "budget ran out", at, &[]);
        }
    }
}
