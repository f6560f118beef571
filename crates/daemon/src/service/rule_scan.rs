//! Looks for programs that a rule names: at the processes that the sensor tells of when they
//! execute one, and through all of the machine's now and then. These also show other managers of
//! scheduling.
//!
//! A new process is looked at for 30 s, because it may execute the program only later. An old one
//! is not looked at again.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use onbeat_act::task;
use onbeat_model::{Actuator, Cgroup, Follow, Instant, Sensor, Span, TaskId};

use super::processes::Processes;
use super::tracking;
use super::turn::Turn;
use crate::account::Account;
use crate::config::Config;
use crate::directory;
use crate::line_limit::LineLimit;
use crate::managers::Managers;
use crate::registry::{Holder, SharedRegistry};
use crate::rules::{ProcessFacts, Rule};
use crate::target::{Status, Target};

/// The lines about processes of one user's that rules name. `THREADED` processes, each with one.
const RULED: u32 = 64;
/// The time between two looks for processes, if there is no rule. Only other managers of scheduling
/// are looked for then, and they stay.
const SELDOM: Span = Span::from_secs(10);
/// The processes that are looked at in one turn of the loop. Of each, up to four files are read,
/// some 40 us, and the loop is to turn again after 10 ms.
const FILES_OF: usize = 256;
/// The processes of one user's that are looked at again and again, because a rule names some of
/// their threads, which start and are named at any time. A browser has one for each page.
const THREADED: usize = 64;
/// The threads of such a process that are looked at, the oldest ones. A rule names threads that a
/// program begins early; later ones of a process with more are workers.
const THREADS: usize = 512;
/// The most processes that wait for their users to be looked up. The others are found by the next
/// scan. The next scan is seconds later.
const OF_UNKNOWN: usize = 64;

/// The rules to look for, and the processes seen.
pub(super) struct RuleScan {
    rules: Vec<Rule>,
    every: Span,
    next: Instant,
    /// Processes that are yet to be looked at.
    due: Vec<u32>,
    /// Processes of which a rule names some threads, with their owners.
    threaded: HashMap<u32, u32>,
    /// All processes.
    processes: Processes,
    /// Processes that rules name, with owners that are not known yet.
    of_unknown: Vec<(u32, u32)>,
    /// The lines written about each user's.
    lines: LineLimit,
    /// Other programs that change the scheduling of tasks.
    managers: Managers,
}

impl RuleScan {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            every: if config.rules.list.is_empty() {
                SELDOM
            } else {
                config.rules.scan
            },
            rules: config.rules.list.clone(),
            next: Instant::ZERO,
            due: Vec::new(),
            threaded: HashMap::new(),
            processes: Processes::default(),
            of_unknown: Vec::new(),
            lines: LineLimit::new(RULED),
            managers: Managers::default(),
        }
    }

    /// From the next time on, the threads of the process are looked at, unless its user has too
    /// many such processes.
    fn look_again(&mut self, pid: u32, status: &Status) {
        let uid = status.uid.unwrap_or(0);
        let own = self.threaded.values().filter(|other| **other == uid);
        if own.count() < THREADED {
            self.threaded.insert(pid, uid);
        }
    }

    /// Puts `config` in force: what none of its rules names is untracked, unless a client wants it,
    /// too. The rest stays as it was.
    pub(super) fn configure<S: Sensor, A: Actuator>(
        &mut self,
        config: &Config,
        turn: &mut Turn<'_, S, A>,
    ) {
        *self = Self {
            managers: std::mem::take(&mut self.managers),
            ..Self::new(config)
        };
        self.have_programs_told(turn);
        self.apply_again(turn);
    }

    /// Has the sensor tell who executes the programs that rules name. Where it does not, they are
    /// found by the next scan.
    pub(super) fn have_programs_told<S: Sensor, A: Actuator>(&self, turn: &mut Turn<'_, S, A>) {
        let programs = self.rules.iter().filter_map(|rule| rule.program.as_deref());
        let names = programs.filter_map(|program| program.rsplit('/').next());
        let names = names.map(str::to_owned).collect();
        if let Err(error) = turn.sensor.tell_programs(&names) {
            tracing::warn!("programs are found late, within {:?}: {error}", self.every);
        }
    }

    /// Looks at processes that are new, if it is time to.
    pub(super) fn scan<S: Sensor, A: Actuator>(&mut self, turn: &mut Turn<'_, S, A>) {
        let of_unknown = std::mem::take(&mut self.of_unknown);
        let (known, unknown): (Vec<_>, Vec<_>) = of_unknown
            .into_iter()
            .partition(|&(_, uid)| directory::has(uid));
        self.of_unknown = unknown;
        let known = known.into_iter().map(|(pid, _)| pid);
        for pid in known.chain(turn.sensor.take_begun()) {
            self.look_at(pid, turn);
        }
        if self.due.is_empty() {
            if !self.processes.is_listing() {
                if turn.now < self.next {
                    return;
                }
                self.next = turn.now + self.every;
                // All of these are among the young ones.
                self.of_unknown.clear();
                let all = task::numbers(Path::new("/proc"));
                self.processes.begin(Box::new(all));
            }
            self.list_some(turn.now);
        }
        let next = self.due.last();
        let is_threaded = next.is_some_and(|pid| self.threaded.contains_key(pid));
        let at_a_time = if is_threaded { 1 } else { FILES_OF };
        let rest = self.due.len().saturating_sub(at_a_time);
        for pid in self.due.split_off(rest) {
            self.look_at(pid, turn);
        }
        turn.publisher.others = self.managers.names();
    }

    fn look_at<S: Sensor, A: Actuator>(&mut self, pid: u32, turn: &mut Turn<'_, S, A>) {
        let Some(status) = Status::read(pid) else {
            return;
        };
        self.managers.notice(pid, &status, directory::rtkit());
        match self.rule_for(pid, &status) {
            Some(rule) if rule.threads.is_empty() => self.track_by(&rule, pid, turn),
            Some(rule) if self.threaded.contains_key(&pid) => {
                for thread in named_threads(&rule, pid) {
                    self.track_by(&rule, thread, turn);
                }
            }
            Some(_) => self.look_again(pid, &status),
            None => {}
        }
    }

    /// Has the young ones among some processes looked at, and at the end of a listing those with
    /// named threads.
    fn list_some(&mut self, now: Instant) {
        let young = self.processes.list_some(now).into_iter();
        let young = young.filter(|pid| !self.threaded.contains_key(pid));
        self.due.extend(young);
        if !self.processes.is_listing() {
            let is_there = |pid: u32| self.processes.has(pid);
            self.threaded.retain(|pid, _| is_there(*pid));
            self.managers.forget_all_but(is_there);
            self.due.extend(self.threaded.keys());
        }
    }

    /// How many lines were not written about whose processes.
    pub(super) fn log_left_out(&mut self, now: Instant) {
        for (uid, count) in self.lines.left_out(now) {
            tracing::info!(
                uid,
                "{count} more lines about processes of user {uid} that rules name are not written: more than {RULED} in a \
                 minute"
            );
        }
    }

    fn rule_for(&self, pid: u32, status: &Status) -> Option<Rule> {
        if self.rules.is_empty() || pid == std::process::id() {
            return None;
        }
        let facts = facts(pid, status, &self.rules)?;
        let rule = self.rules.iter().find(|rule| rule.holds_for(&facts));
        rule.cloned()
    }

    /// Tracks the process `tid`, or that thread of one alone.
    fn track_by<S: Sensor, A: Actuator>(
        &mut self,
        rule: &Rule,
        tid: u32,
        turn: &mut Turn<'_, S, A>,
    ) {
        let Ok(target) = Target::find(tid, None) else {
            if let Some(why) = task::off_limits(tid).filter(|_| self.processes.refuse(tid)) {
                tracing::warn!(
                    rule = &*rule.name,
                    "not tracked by rule {}: {why}",
                    rule.name
                );
            }
            return;
        };
        let holder = Holder::Rule(Arc::clone(&rule.name));
        let (process, pid) = (target.task.id, target.task.pid);
        let known = turn
            .registry
            .borrow()
            .processes
            .get(&process)
            .map(|process| process.holders().any(|own| *own == holder));
        if known == Some(true) {
            return;
        }
        // Another one may have had the number. What is read now is of what is held.
        let named = Status::read(pid).and_then(|now| self.rule_for(pid, &now));
        if named.is_none_or(|named| named.name != rule.name) {
            return;
        }
        let Some(known) = directory::known(target.uid) else {
            if self.of_unknown.len() < OF_UNKNOWN {
                self.of_unknown.push((pid, target.uid));
            }
            return;
        };
        let account = payer(rule, &known);
        if !account.can_pay() {
            return;
        }
        let uid = account.uid;
        let is_tracked = tracking::track_for(holder, &account, &target, followed(rule), turn);
        if is_tracked.is_ok()
            && let Some(process) = turn.registry.borrow_mut().processes.get_mut(&process)
        {
            process.treatment = rule.treatment;
            process.adopts = rule.adopt;
        }
        // One that cannot be tracked is tried again as long as it is new, and said of once.
        let is_said = is_tracked.is_err() && !self.processes.refuse(pid);
        if is_said || (uid != 0 && !self.lines.admits(uid, turn.now)) {
            return;
        }
        match is_tracked {
            Ok(()) => {
                tracing::info!(
                    pid,
                    rule = &*rule.name,
                    "{} ({pid}): tracked by rule {}",
                    target.task.comm,
                    rule.name
                );
            }
            Err(fault) => tracing::warn!(
                pid,
                rule = &*rule.name,
                "{} ({pid}) cannot be tracked by rule {}: {fault}",
                target.task.comm,
                rule.name
            ),
        }
    }

    /// Has each process that a rule wanted wanted by the rule that names it now. A process that is
    /// tracked because another one started it comes after that one.
    fn apply_again<S: Sensor, A: Actuator>(&mut self, turn: &mut Turn<'_, S, A>) {
        let registry = turn.registry.borrow();
        let by_rule = registry.processes.values().filter_map(|process| {
            let mut names = process.holders().filter_map(Holder::rule);
            let name = names.next().cloned()?;
            Some((
                process.origin,
                process.task,
                (process.pid, process.whole),
                name,
            ))
        });
        let mut by_rule: Vec<_> = by_rule.collect();
        drop(registry);
        by_rule.sort_unstable();
        let mut unnamed = BTreeSet::new();
        for (origin, id, (pid, is_whole), former) in by_rule {
            let status = Status::read(pid);
            let own = status.and_then(|status| self.rule_for(pid, &status));
            let own = own.filter(|rule| means(rule, id, is_whole));
            let origin = origin.filter(|origin| !unnamed.contains(origin));
            let rule = own.or_else(|| self.rule_of_origin(origin?, &former, turn.registry));
            if rule.is_none() {
                unnamed.insert(id);
            }
            let mut registry = turn.registry.borrow_mut();
            let Some(process) = registry.processes.get_mut(&id) else {
                continue;
            };
            let heard = process.wants_children();
            process
                .leases
                .retain(|lease, _| lease.holder.rule().is_none());
            if let Some(rule) = rule {
                let owner = process.owner.and_then(directory::known);
                let payer =
                    owner.map_or_else(|| Arc::clone(&process.account), |one| payer(&rule, &one));
                process.treatment = rule.treatment;
                process.adopts = rule.adopt;
                let follow = followed(&rule);
                process.want(Holder::Rule(rule.name), &payer, follow);
            }
            let unwanted = process.leases.is_empty();
            let unheard = process.wants_children() && !heard;
            drop(registry);
            if unheard && let Err(error) = turn.sensor.track(pid, Follow::Children) {
                tracing::warn!(pid, "what process {pid} starts cannot be tracked: {error}");
            }
            if unwanted {
                tracking::untrack_processes(&[id], turn);
            }
        }
        tracking::settle_payers(turn);
    }

    /// The rule that means what `origin` started, too: the one that names it now, or, if it has
    /// ended, the one of the `former` name.
    fn rule_of_origin(
        &self,
        origin: TaskId,
        former: &str,
        registry: &SharedRegistry,
    ) -> Option<Rule> {
        let registry = registry.borrow();
        let name = match registry.processes.get(&origin) {
            Some(process) => process.holders().find_map(Holder::rule)?,
            None => former,
        };
        let mut rules = self.rules.iter();
        rules
            .find(|rule| rule.children && *rule.name == *name)
            .cloned()
    }
}

/// The tasks followed beside those that `rule` names.
fn followed(rule: &Rule) -> Follow {
    if rule.threads.is_empty() {
        Follow::with(rule.children)
    } else {
        Follow::Alone
    }
}

/// Whether `rule`, which holds for its process, means the thread alone, or the whole process.
fn means(rule: &Rule, thread: TaskId, is_whole: bool) -> bool {
    let is_named =
        || Status::read(thread.tid).is_some_and(|now| rule.means_thread(&now.name.to_text()));
    rule.threads.is_empty() == is_whole && (is_whole || is_named())
}

/// The threads of the process that `rule` names, among its oldest ones.
fn named_threads(rule: &Rule, pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let entries = entries.into_iter().flatten().flatten().take(THREADS);
    let tids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_named = |tid: &u32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
        comm.is_ok_and(|comm| rule.means_thread(comm.trim_end_matches('\n')))
    };
    tids.filter(is_named).collect()
}

/// To whom it is charged what `rule` names of `owner`'s. Where the rule names the user, too, an
/// administrator answers for it. Any program can be made to look like another one by the user who
/// runs it (a library that is loaded before others, a mount of his own): one that is named by its
/// path alone is under his quotas. A rule with a bandwidth pays for itself.
fn payer(rule: &Rule, owner: &Arc<Account>) -> Arc<Account> {
    if let Some(bandwidth) = rule.bandwidth {
        Arc::new(Account::under_a_rule(owner.uid, &rule.name, bandwidth))
    } else if rule.user.is_some() {
        Arc::new(Account::named_by_a_rule(owner.uid))
    } else {
        Arc::clone(owner)
    }
}

/// Whether root made all groups that this file of /proc tells, below `mounted`: each hierarchy is
/// there by its controllers' name, or the unified one itself.
fn has_roots_groups(mounted: &Path, told: &str) -> bool {
    told.lines().all(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            return false;
        };
        let name = match controllers {
            "" => "unified",
            other => other.trim_start_matches("name="),
        };
        let below = Some(mounted.join(name)).filter(|below| below.is_dir());
        let below = below.unwrap_or_else(|| mounted.to_owned());
        let group = below.join(path.trim_start_matches('/'));
        let mut down = group.ancestors().take_while(|part| *part != below);
        down.all(|part| fs::metadata(part).is_ok_and(|group| group.uid() == 0))
    })
}

/// The facts about a process that a rule may name; none of one that runs with the rights of two
/// users.
fn facts(pid: u32, status: &Status, rules: &[Rule]) -> Option<ProcessFacts> {
    let names_groups = rules.iter().any(Rule::names_groups);
    let pays = names_groups && rules.iter().any(|rule| rule.bandwidth.is_some());
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let program = program.map(|path| {
        let path = path.to_string_lossy().into_owned();
        path.trim_end_matches(" (deleted)").to_owned()
    });
    // Whoever may make groups can have a reader wait, before Linux 6.8.
    let cgroups = names_groups.then(|| fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
    let cgroups = cgroups.flatten().unwrap_or_default();
    let uid = status.uid?;
    Some(ProcessFacts {
        program,
        comm: status.name.to_text(),
        has_roots_groups: pays && has_roots_groups(Path::new("/sys/fs/cgroup"), &cgroups),
        container: Cgroup::of_process(&cgroups).container,
        cgroups: cgroups
            .lines()
            .filter_map(|line| line.splitn(3, ':').nth(2).map(str::to_owned))
            .collect(),
        uid,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    #[test]
    fn a_group_below_one_of_a_users_is_not_roots() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let own = fs::metadata(at).unwrap().uid() == 0;
        fs::create_dir_all(at.join("pids/pods/pod")).unwrap();
        fs::create_dir_all(at.join("users/his/pod")).unwrap();
        assert_eq!(
            has_roots_groups(at, "1:pids:/pods/pod\n0::/users/his/pod\n"),
            own
        );
        assert!(!has_roots_groups(at, "0::/users/gone\n"));
        if own {
            chown(at.join("users/his"), Some(5), None).unwrap();
            assert!(!has_roots_groups(
                at,
                "1:pids:/pods/pod\n0::/users/his/pod\n"
            ));
            assert!(has_roots_groups(at, "0::/\n"));
        }
    }
}
