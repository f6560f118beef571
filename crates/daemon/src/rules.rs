//! Which programs are tracked without a request: by program, unit or
//! cgroup.
//!
//! Pure: what is known of a process arrives as data.

use std::cell::LazyCell;
use std::sync::Arc;

use onbeat_control::Treatment;
use onbeat_model::{Bandwidth, Span};

/// The digits of a container's id that name it. Docker and Podman show twelve.
pub(crate) const DIGITS: usize = 12;

#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The first one that holds for a process counts.
    pub list: Vec<Rule>,
    /// The time between two looks at new processes.
    pub scan: Span,
    /// Whether the rules for well-known programs that are installed with onbeat are among them.
    pub shipped: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            scan: Span::from_secs(2),
            shipped: true,
        }
    }
}

/// One rule. All that it names must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    pub name: Arc<str>,
    /// The path of the program, or its last part.
    pub program: Option<String>,
    pub unit: Option<String>,
    /// The cgroup that it is in, or below of.
    pub cgroup: Option<String>,
    /// The container that it is in: the id, or at least 12 digits from its beginning; the name of
    /// one of LXC's.
    pub container: Option<String>,
    /// The user that it runs as: his number. A name without a user matches none.
    pub user: Option<String>,
    /// Whether processes of root, which has no quota, are left out.
    pub but_root: bool,
    /// The names of the threads that are meant; a `*` at the end stands for any rest. Empty: all
    /// threads.
    pub threads: Vec<String>,
    /// Whether the processes that it starts are meant, too.
    pub children: bool,
    pub treatment: Treatment,
    /// The most that all reservations by the rule may take together. They are then charged to the
    /// rule, and to no user.
    pub bandwidth: Option<Bandwidth>,
    /// Whether threads that gave themselves SCHED_FIFO or SCHED_RR get reservations, too.
    pub adopt: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    pub paths: Vec<String>,
    pub container: Option<String>,
    /// Root made all of them. A user makes some of any name below one that is his.
    pub are_roots: bool,
}

impl Rule {
    /// Whether the rule holds for a process of this user with this program, as far as that is not
    /// [for its groups to say](Self::holds_in).
    pub fn holds_for(&self, program: &str, uid: u32) -> bool {
        let user = self.user.as_deref();
        self.program.as_deref().is_none_or(|own| runs(program, own))
            && user.is_none_or(|wanted| wanted.parse() == Ok(uid))
            && !(self.but_root && uid == 0)
    }

    pub fn holds_in(&self, groups: &Groups) -> bool {
        let unit = self.unit.as_deref().is_none_or(|wanted| {
            let mut parts = groups.paths.iter().flat_map(|path| path.split('/'));
            parts.any(|part| is_unit(part, wanted))
        });
        let cgroup = self.cgroup.as_deref().is_none_or(|wanted| {
            let wanted = wanted.trim_end_matches('/');
            groups.paths.iter().any(|path| {
                path.strip_prefix(wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        });
        let container = self
            .container
            .as_deref()
            .is_none_or(|wanted| groups.are_in(wanted));
        unit && cgroup && container && (self.bandwidth.is_none() || groups.are_roots)
    }

    /// Whether it depends on a process's cgroups.
    const fn names_groups(&self) -> bool {
        self.unit.is_some() || self.cgroup.is_some() || self.container.is_some()
    }

    /// Whether the rule means the thread of this name, in a process for which it holds.
    pub fn means_thread(&self, comm: &str) -> bool {
        let is_named = |name: &String| match name.strip_suffix('*') {
            Some(start) => comm.starts_with(start),
            None => comm == name,
        };
        self.threads.is_empty() || self.threads.iter().any(is_named)
    }
}

/// Whether `name` is the unit `wanted`, or, if that is a template, one of its instances.
fn is_unit(name: &str, wanted: &str) -> bool {
    name == wanted
        || wanted.split_once("@.").is_some_and(|(template, kind)| {
            name.strip_prefix(template)
                .and_then(|rest| {
                    rest.strip_prefix('@')?
                        .strip_suffix(kind)?
                        .strip_suffix('.')
                })
                .is_some_and(|instance| !instance.is_empty())
        })
}

/// The first of `rules` that holds for a process with this program, of this user. Its groups are
/// read only if it depends on them: whoever may make some can have a reader wait, before Linux 6.8.
pub fn first_for<'a>(
    (program, uid): (&str, u32),
    groups: impl FnOnce() -> Groups,
    rules: &'a [Rule],
) -> Option<&'a Rule> {
    let groups = LazyCell::new(groups);
    rules.iter().find(|rule| {
        rule.holds_for(program, uid) && (!rule.names_groups() || rule.holds_in(&groups))
    })
}

impl Groups {
    fn are_in(&self, wanted: &str) -> bool {
        self.container.as_deref().is_some_and(|container| {
            container == wanted || (wanted.len() >= DIGITS && container.starts_with(wanted))
        })
    }
}

/// Whether the program at this path is the `wanted` one: a path, or the last part of one.
fn runs(path: &str, wanted: &str) -> bool {
    path == wanted || path.rsplit('/').next() == Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        Rule {
            name: "test".into(),
            ..Rule::default()
        }
    }

    const PROGRAM: &str = "/usr/bin/mplayer";

    fn groups() -> Groups {
        Groups {
            paths: vec![
                "/".to_owned(),
                "/user.slice/app.slice/film.service/x".to_owned(),
            ],
            container: Some("0123456789abcdef".repeat(4)),
            are_roots: false,
        }
    }

    #[test]
    fn no_user_makes_a_group_that_gets_him_a_rules_bandwidth() {
        let mut wanted = Rule {
            container: Some("0123456789ab".to_owned()),
            ..rule()
        };
        assert!(wanted.holds_in(&groups()));
        wanted.bandwidth = Some(Bandwidth::from_cpus(1.5));
        assert!(!wanted.holds_in(&groups()));
        let pods = Groups {
            are_roots: true,
            ..groups()
        };
        assert!(wanted.holds_in(&pods));
    }

    #[test]
    fn the_groups_of_a_process_are_read_only_if_a_rule_depends_on_them() {
        let of = |program: &str, cgroup: Option<&str>| Rule {
            program: Some(program.to_owned()),
            cgroup: cgroup.map(str::to_owned),
            ..rule()
        };
        let rules = [of("vlc", Some("/user.slice")), of("mplayer", None)];
        let unread = || panic!("they are read");
        let first = first_for((PROGRAM, 1000), unread, &rules);
        assert_eq!(first, Some(&rules[1]));
        let first = first_for(("/usr/bin/vlc", 1000), groups, &rules);
        assert_eq!(first, Some(&rules[0]));
    }

    #[test]
    fn a_container_is_named_by_its_id_or_twelve_digits_of_it() {
        let of = |container: Option<&str>| Groups {
            container: container.map(str::to_owned),
            ..groups()
        };
        let id = groups().container;
        for (wanted, is_it) in [
            ("0123456789ab", true),
            ("0123456789a", false),
            ("0123456789ac", false),
            ("film", false),
        ] {
            let rule = Rule {
                container: Some(wanted.to_owned()),
                ..rule()
            };
            assert_eq!(rule.holds_in(&of(id.as_deref())), is_it, "{wanted}");
            assert_eq!(rule.holds_in(&of(Some("film"))), wanted == "film");
            assert!(!rule.holds_in(&of(None)));
        }
    }

    #[test]
    fn a_program_is_named_by_its_path_or_the_last_part_of_it_and_its_user_must_fit() {
        for (named, user, holds, holds_for_end) in [
            (PROGRAM, None, true, false),
            ("mplayer", None, true, true),
            ("mplayer", Some("1000"), true, true),
            ("mplayer", Some("bob"), false, false),
            ("/opt/mplayer", None, false, false),
            ("/bin/mplayer", None, false, false),
        ] {
            let rule = Rule {
                program: Some(named.to_owned()),
                user: user.map(str::to_owned),
                ..rule()
            };
            assert_eq!(rule.holds_for(PROGRAM, 1000), holds, "{named}");
            // The end of a longer path.
            assert_eq!(rule.holds_for("bin/mplayer", 1000), holds_for_end);
        }
    }

    #[test]
    fn a_cgroup_holds_for_all_below_it_and_a_unit_wherever_it_is() {
        for (cgroup, holds) in [
            ("/user.slice", true),
            ("/user.slice/app.slice/film.service/x/", true),
            ("/user", false),
        ] {
            let rule = Rule {
                cgroup: Some(cgroup.to_owned()),
                ..rule()
            };
            assert_eq!(rule.holds_in(&groups()), holds, "{cgroup}");
        }
        for (unit, name, is_it) in [
            ("film.service", "film.service", true),
            ("film", "film.service", false),
            ("getty@.service", "getty@tty1.service", true),
            ("getty@.service", "getty@.service", true),
            ("getty@.service", "getty@tty1.socket", false),
            ("getty@.service", "other@tty1.service", false),
        ] {
            assert_eq!(is_unit(name, unit), is_it, "{name}");
        }
    }

    #[test]
    fn a_rule_without_root_leaves_root_alone_and_threads_are_named_whole_or_by_their_beginning() {
        let users = Rule {
            program: Some("mplayer".to_owned()),
            but_root: true,
            threads: vec!["Compositor".to_owned(), "Audio*".to_owned()],
            ..rule()
        };
        assert!(users.holds_for(PROGRAM, 1000));
        assert!(!users.holds_for(PROGRAM, 0));
        for (name, is_meant) in [
            ("Compositor", true),
            ("CompositorTileW", false),
            ("AudioCallbackDr", true),
            ("Audi", false),
        ] {
            assert_eq!(users.means_thread(name), is_meant, "{name}");
        }
        assert!(rule().means_thread("anything"));
    }
}
