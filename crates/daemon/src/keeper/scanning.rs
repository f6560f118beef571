//! What goes on on the machine without anybody's telling: programs that a rule names start, and
//! others are at work who change the scheduling of tasks, too.
//!
//! New processes are looked at for a while, for a program is started by another one that becomes
//! it. Old ones are not looked at again.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::sync::Arc;

use onbeat_model::{Actuator, Cgroup, Follow, Instant, Sensor, Span, TaskId};

use super::lines::Lines;
use super::tracking::follow;
use super::{Keeper, Loop};
use crate::book::Holder;
use crate::config::Config;
use crate::directory;
use crate::person::{Person, user_named};
use crate::rules::{Facts, Rule};
use crate::target::{Status, Target};

/// For how long a process is looked at.
const YOUNG: Span = Span::from_secs(30);
/// How often processes are looked for, if there is no rule.
const SELDOM: Span = Span::from_secs(10);
/// So many processes are looked at in one turn of the loop: of each, up to four files are read,
/// some 40 us, and the loop is to turn again after 10 ms. How many there are, users decide.
const AT_A_TIME: usize = 256;
/// So many processes of one user's are looked at again and again, because a rule names some of
/// their threads, which start and are named at any time: a browser has one for each page.
const THREADED: usize = 64;
/// So many threads of such a process are looked at, the oldest ones.
const THREADS: usize = 512;
/// So many lines are written in a minute about processes of one user's that rules name.
const LINES: u32 = 64;

/// What is looked for, and what was seen.
#[derive(Debug)]
pub(super) struct Scan {
    rules: Vec<Rule>,
    every: Span,
    next: Instant,
    /// Processes that are yet to be looked at.
    due: Vec<u32>,
    /// Processes of which a rule names some threads, and whose they are.
    threaded: HashMap<u32, u32>,
    /// Since when each process is known.
    seen: HashMap<u32, Instant>,
    /// Those of them of which it was said that they cannot be tracked.
    refused: BTreeSet<u32>,
    /// How much was said of whose.
    lines: Lines,
}

impl Scan {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            every: if config.rules.list.is_empty() {
                SELDOM
            } else {
                config.rules.scan
            },
            rules: config.rules.list.iter().map(by_number).collect(),
            next: Instant::ZERO,
            due: Vec::new(),
            threaded: HashMap::new(),
            seen: HashMap::new(),
            refused: BTreeSet::new(),
            lines: Lines::new(LINES),
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
}

impl Keeper {
    /// Looks at processes that are new, if it is time to.
    pub(super) fn look_around<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        if self.scan.due.is_empty() {
            if the.now < self.scan.next {
                return;
            }
            self.scan.next = the.now + self.scan.every;
            self.list_young(the.now);
        }
        let next = self.scan.due.last();
        let is_threaded = next.is_some_and(|pid| self.scan.threaded.contains_key(pid));
        let at_a_time = if is_threaded { 1 } else { AT_A_TIME };
        let rest = self.scan.due.len().saturating_sub(at_a_time);
        for pid in self.scan.due.split_off(rest) {
            let Some(status) = Status::read(pid) else {
                continue;
            };
            self.others.notice(pid, &status);
            match self.rule_for(pid, &status) {
                Some(rule) if rule.threads.is_empty() => self.track_by(&rule, pid, the),
                Some(rule) if self.scan.threaded.contains_key(&pid) => {
                    for thread in named_threads(&rule, pid) {
                        self.track_by(&rule, thread, the);
                    }
                }
                Some(_) => self.scan.look_again(pid, &status),
                None => {}
            }
        }
        self.teller.others = self.others.names();
    }

    fn list_young(&mut self, now: Instant) {
        let pids = processes();
        self.scan.seen.retain(|pid, _| pids.contains(pid));
        self.scan.refused.retain(|pid| pids.contains(pid));
        self.scan.threaded.retain(|pid, _| pids.contains(pid));
        self.others.forget_all_but(&pids);
        let seen = &mut self.scan.seen;
        let threaded = &self.scan.threaded;
        let is_young = |pid: &u32| {
            let since = seen.entry(*pid).or_insert(now);
            now.since(*since) < YOUNG && !threaded.contains_key(pid)
        };
        self.scan.due = pids.into_iter().filter(is_young).collect();
        self.scan.due.extend(threaded.keys());
    }

    /// How many lines were not written about whose processes.
    pub(super) fn tell_unwritten_of_rules(&mut self, now: Instant) {
        for (uid, count) in self.scan.lines.left_out(now) {
            tracing::info!(
                uid,
                "{count} more lines about processes of user {uid} that rules name are not written: more than {LINES} in a \
                 minute"
            );
        }
    }

    fn rule_for(&self, pid: u32, status: &Status) -> Option<Rule> {
        if self.scan.rules.is_empty() || pid == std::process::id() {
            return None;
        }
        let facts = facts(pid, status)?;
        let rule = self.scan.rules.iter().find(|rule| rule.holds_for(&facts));
        rule.cloned()
    }

    /// Tracks the process `tid`, or that thread of one alone.
    fn track_by<S: Sensor, A: Actuator>(
        &mut self,
        rule: &Rule,
        tid: u32,
        the: &mut Loop<'_, S, A>,
    ) {
        let Ok(target) = Target::find(tid, None) else {
            return;
        };
        let holder = Holder::Rule(Arc::clone(&rule.name));
        let (root, pid) = (target.task.id, target.task.pid);
        let known = self
            .book
            .borrow()
            .roots
            .get(&root)
            .map(|root| root.holders().any(|own| *own == holder));
        if known == Some(true) {
            return;
        }
        // It is looked up until the next time.
        let Some(known) = directory::known(target.uid) else {
            return;
        };
        let person = payer(rule, &known);
        if !person.is_exempt && !known.has_account() {
            return;
        }
        let uid = person.uid;
        let is_tracked = self.track_for(holder, &person, &target, followed(rule), the);
        if is_tracked.is_ok()
            && let Some(root) = self.book.borrow_mut().roots.get_mut(&root)
        {
            root.treatment = rule.treatment;
            root.adopts = rule.adopt;
        }
        // One that cannot be tracked is tried again as long as it is new, and said of once.
        let is_said = is_tracked.is_err() && !self.scan.refused.insert(pid);
        if is_said || (uid != 0 && !self.scan.lines.admits(uid, the.now)) {
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

    /// The rules are others: what none of them names any more is let go, unless a client wants it,
    /// too. The rest goes on as it was. What is kept because another process started it comes after
    /// that one.
    pub(super) fn apply_rules_again<S: Sensor, A: Actuator>(&mut self, the: &mut Loop<'_, S, A>) {
        let book = self.book.borrow();
        let by_rule = book.roots.values().filter_map(|root| {
            let mut names = root.holders().filter_map(Holder::rule);
            let name = names.next().cloned()?;
            Some((root.origin, root.task, (root.pid, root.whole), name))
        });
        let mut by_rule: Vec<_> = by_rule.collect();
        drop(book);
        by_rule.sort_unstable();
        let mut unnamed = BTreeSet::new();
        for (origin, id, (pid, is_whole), former) in by_rule {
            let status = Status::read(pid);
            let own = status.and_then(|status| self.rule_for(pid, &status));
            let own = own.filter(|rule| means(rule, id, is_whole));
            let origin = origin.filter(|origin| !unnamed.contains(origin));
            let rule = own.or_else(|| self.rule_of_origin(origin?, &former));
            if rule.is_none() {
                unnamed.insert(id);
            }
            let mut book = self.book.borrow_mut();
            let Some(root) = book.roots.get_mut(&id) else {
                continue;
            };
            let heard = root.wants_children();
            root.wishes.retain(|wish, _| wish.holder.rule().is_none());
            if let Some(rule) = rule {
                let owner = root.owner.and_then(directory::known);
                let payer =
                    owner.map_or_else(|| Arc::clone(&root.person), |one| payer(&rule, &one));
                root.treatment = rule.treatment;
                root.adopts = rule.adopt;
                let follow = followed(&rule);
                root.want(Holder::Rule(rule.name), &payer, follow);
            }
            let unwanted = root.wishes.is_empty();
            let unheard = root.wants_children() && !heard;
            drop(book);
            if unheard && let Err(error) = the.sensor.track(pid, Follow::Children) {
                tracing::warn!(pid, "what process {pid} starts cannot be tracked: {error}");
            }
            if unwanted {
                self.let_go(id, the);
            }
        }
        self.settle_payers(the);
    }

    /// The rule that means what `origin` started, too: the one that names it now, or, if it has
    /// ended, the one of the `former` name.
    fn rule_of_origin(&self, origin: TaskId, former: &str) -> Option<Rule> {
        let book = self.book.borrow();
        let name = match book.roots.get(&origin) {
            Some(root) => root.holders().find_map(Holder::rule)?,
            None => former,
        };
        let mut rules = self.scan.rules.iter();
        rules
            .find(|rule| rule.children && *rule.name == *name)
            .cloned()
    }
}

/// What is followed beside what `rule` names.
fn followed(rule: &Rule) -> Follow {
    if rule.threads.is_empty() {
        follow(rule.children)
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
/// path alone is under his quotas.
fn payer(rule: &Rule, owner: &Arc<Person>) -> Arc<Person> {
    if rule.user.is_some() {
        Arc::new(Person::named_by_a_rule(owner.uid))
    } else {
        Arc::clone(owner)
    }
}

/// The rule, with its user's number in place of the name. Who asks the database of users may wait
/// long for it, and the loop must not: so that is done when the configuration is read.
fn by_number(rule: &Rule) -> Rule {
    let number = rule.user.as_deref().and_then(user_named);
    let number = number.map(|uid| uid.to_string());
    Rule {
        user: number.or_else(|| rule.user.clone()),
        ..rule.clone()
    }
}

/// The processes that there are.
pub(super) fn processes() -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// What a rule may name of a process; none of one that runs with the rights of two users.
fn facts(pid: u32, status: &Status) -> Option<Facts> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let program = program.map(|path| {
        let path = path.to_string_lossy().into_owned();
        path.trim_end_matches(" (deleted)").to_owned()
    });
    let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let uid = status.uid?;
    Some(Facts {
        program,
        comm: status.name.to_text(),
        container: Cgroup::of_process(&cgroups).container,
        cgroups: cgroups
            .lines()
            .filter_map(|line| line.splitn(3, ':').nth(2).map(str::to_owned))
            .collect(),
        uid,
    })
}
