//! Looks for programs that a rule names: the sensor tells which processes run them, and when one
//! begins to. Now and then all of them are gone through.
//!
//! A process is looked at again when it runs another program or is in another cgroup, and for 30 s
//! if it cannot be tracked at once.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use onbeat_act::task;
use onbeat_model::{Cgroup, Follow, Instant, RunningProgram, Sensor, Span, TaskId};

use super::tracking;
use super::turn::Turn;
use crate::account::Account;
use crate::config::Config;
use crate::directory;
use crate::registry::{Holder, SharedRegistry};
use crate::rules::{self, Groups, Rule};
use crate::target::{Status, Target};

/// The processes that are looked at in one turn of the loop. One that a rule names takes some 100
/// us, and the loop is to turn again after 10 ms.
const AT_A_TIME: usize = 64;
/// The processes of one user's that are looked at in one scan. More than a session begins in 2 s.
const SHARE: usize = 64;
/// For how long a process is looked at that cannot be tracked: other tasks of its user may end.
const NEW: Span = Span::from_secs(30);
/// The processes of one user's that are looked at again and again, because a rule names some of
/// their threads, which start and are named at any time. A browser has one for each page.
const THREADED: usize = 64;
/// The threads of such a process that are looked at, the oldest ones. A rule names threads that a
/// program begins early; later ones of a process with more are workers.
const THREADS: usize = 512;
/// The most processes that wait for their users to be looked up. The others are found by the next
/// scan. The next scan is seconds later.
const OF_UNKNOWN: usize = 64;

pub(super) struct RuleScan {
    rules: Vec<Rule>,
    every: Span,
    next: Instant,
    due: Vec<TaskId>,
    /// Those that run what rules name.
    seen: HashMap<TaskId, SeenProcess>,
    of_unknown: Vec<(TaskId, u32)>,
}

struct SeenProcess {
    program: RunningProgram,
    since: Instant,
    /// It is not looked at again, as it is.
    is_settled: bool,
    /// A rule names some of its threads.
    is_threaded: bool,
    /// It was said that it cannot be tracked.
    is_refused: bool,
}

impl SeenProcess {
    const fn new(program: RunningProgram, now: Instant) -> Self {
        Self {
            program,
            since: now,
            is_settled: false,
            is_threaded: false,
            is_refused: false,
        }
    }
}

impl RuleScan {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            every: config.rules.scan,
            rules: config.rules.list.clone(),
            next: Instant::ZERO,
            due: Vec::new(),
            seen: HashMap::new(),
            of_unknown: Vec::new(),
        }
    }

    /// Puts `config` in force: what none of its rules names is untracked, unless a client wants it,
    /// too. The rest stays as it was.
    pub(super) fn configure(&mut self, config: &Config, turn: &mut Turn<'_>) {
        *self = Self::new(config);
        self.have_programs_told(turn);
        self.apply_again(turn);
    }

    /// Has the sensor tell who runs the programs that rules name.
    pub(super) fn have_programs_told(&self, turn: &mut Turn<'_>) {
        // A rule without a program may name any process.
        let last = |rule: &Rule| rule.program.as_deref().map_or(String::new(), last_part);
        let names = self.rules.iter().map(last);
        if let Err(error) = turn.sensor.tell_programs(&names.collect()) {
            tracing::warn!("programs that rules name are not found: {error}");
        }
    }

    pub(super) fn scan(&mut self, turn: &mut Turn<'_>) {
        let of_unknown = std::mem::take(&mut self.of_unknown).into_iter();
        let (known, unknown) = of_unknown.partition(|&(_, uid)| directory::has(uid));
        self.of_unknown = unknown;
        for (process, _) in known {
            self.look_at(process, turn);
        }
        for program in turn.sensor.take_begun() {
            let process = program.process;
            self.seen
                .insert(process, SeenProcess::new(program, turn.now));
            self.look_at(process, turn);
        }
        if self.due.is_empty() && turn.now >= self.next && !self.rules.is_empty() {
            self.next = turn.now + self.every;
            self.list(turn);
        }
        for _ in 0..AT_A_TIME {
            let Some(process) = self.due.pop() else {
                break;
            };
            if self.look_at(process, turn) {
                break;
            }
        }
    }

    /// Has those looked at that are new, or have named threads.
    fn list(&mut self, turn: &mut Turn<'_>) {
        let Some(programs) = programs(turn) else {
            return;
        };
        // All of these are among the new ones.
        self.of_unknown.clear();
        let mut former = std::mem::take(&mut self.seen);
        let mut shares: HashMap<u32, usize> = HashMap::new();
        for program in programs {
            let (process, uid) = (program.process, program.uid);
            let seen = former.remove(&process);
            let mut seen = seen
                .filter(|seen| seen.program == program)
                .unwrap_or_else(|| SeenProcess::new(program, turn.now));
            let is_new = !seen.is_settled && turn.now.since(seen.since) < NEW;
            if is_new || seen.is_threaded {
                let share = shares.entry(uid).or_default();
                *share += 1;
                if *share <= SHARE {
                    self.due.push(process);
                } else {
                    seen.since = turn.now;
                }
            }
            self.seen.insert(process, seen);
        }
    }

    /// Whether that took as long as a turn may: a look at all threads.
    fn look_at(&mut self, process: TaskId, turn: &mut Turn<'_>) -> bool {
        let Some(seen) = self.seen.get(&process) else {
            return false;
        };
        let (program, is_threaded) = (seen.program.clone(), seen.is_threaded);
        let rule = self.rule_for(&program);
        let names_threads = rule.as_ref().is_some_and(|rule| !rule.threads.is_empty());
        let is_settled = match rule {
            Some(rule) if !names_threads => self.track_by(&rule, &program, process.tid, turn),
            Some(rule) if is_threaded => {
                for thread in named_threads(&rule, process.tid) {
                    self.track_by(&rule, &program, thread, turn);
                }
                true
            }
            _ => true,
        };
        let threaded = self.seen.values().filter(|seen| seen.is_threaded);
        let own = threaded.filter(|seen| seen.program.uid == program.uid);
        // From the next time on.
        let is_threaded_now = names_threads && (is_threaded || own.count() < THREADED);
        if let Some(seen) = self.seen.get_mut(&process) {
            seen.is_settled = is_settled;
            seen.is_threaded = is_threaded_now;
        }
        is_threaded
    }

    fn rule_for(&self, program: &RunningProgram) -> Option<Rule> {
        let pid = program.process.tid;
        let pays = |rule: &Rule| rule.bandwidth.is_some();
        let groups = || groups_of(pid, self.rules.iter().any(pays));
        let rule = rules::first_for((&program.path, program.uid), groups, &self.rules);
        rule.filter(|_| pid != std::process::id()).cloned()
    }

    /// Whether it was not said before that the process cannot be tracked.
    fn refuse(&mut self, process: TaskId) -> bool {
        let seen = self.seen.get_mut(&process);
        seen.is_some_and(|seen| !std::mem::replace(&mut seen.is_refused, true))
    }

    /// Tracks the process `tid`, or that thread of one alone. Whether that need not be tried again.
    fn track_by(
        &mut self,
        rule: &Rule,
        program: &RunningProgram,
        tid: u32,
        turn: &mut Turn<'_>,
    ) -> bool {
        let Ok(target) = Target::find(tid, None) else {
            if let Some(why) = task::off_limits(tid).filter(|_| self.refuse(program.process)) {
                tracing::warn!(
                    rule = &*rule.name,
                    "not tracked by rule {}: {why}",
                    rule.name
                );
            }
            return false;
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
            return true;
        }
        // Another one may have the number by now. What is read from here on is of what is held.
        let named = self.rule_for(program).filter(|_| target.is_of(program));
        if named.is_none_or(|named| named.name != rule.name) {
            return false;
        }
        let Some(known) = directory::known(target.uid) else {
            if self.of_unknown.len() < OF_UNKNOWN {
                self.of_unknown.push((program.process, target.uid));
            }
            return false;
        };
        let account = payer(rule, &known);
        if !account.can_pay() {
            return false;
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
        let is_settled = is_tracked.is_ok();
        let is_said = !is_settled && !self.refuse(program.process);
        if is_said || !turn.publisher.may_write(uid, turn.now) {
            return is_settled;
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
        is_settled
    }

    /// Has each process that a rule wanted wanted by the rule that names it now. A process that is
    /// tracked because another one started it comes after that one.
    fn apply_again(&mut self, turn: &mut Turn<'_>) {
        let Some(programs) = programs(turn) else {
            return;
        };
        let programs = programs.into_iter().map(|told| (told.process.tid, told));
        let programs: HashMap<u32, RunningProgram> = programs.collect();
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
            let own = programs.get(&pid).and_then(|told| self.rule_for(told));
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

fn groups_of(pid: u32, pays: bool) -> Groups {
    let told = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let paths = told.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    Groups {
        are_roots: pays && has_roots_groups(Path::new("/sys/fs/cgroup"), &told),
        container: Cgroup::of_process(&told).container,
        paths: paths.map(str::to_owned).collect(),
    }
}

fn last_part(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn programs(turn: &mut Turn<'_>) -> Option<Vec<RunningProgram>> {
    let programs = turn.sensor.programs();
    let programs = programs.inspect_err(|error| tracing::warn!("no rule is applied now: {error}"));
    programs.ok()
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
