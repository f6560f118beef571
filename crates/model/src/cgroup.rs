//! Which unit, container and pod a task belongs to, by the path of its control group.
//!
//! The names are those that systemd and the engines give their groups: Docker, Podman, containerd,
//! CRI-O and LXC, and Kubernetes with either of its cgroup drivers. A user who may make groups can
//! give one such a name: it tells where a task is, never what it may do.

use serde::Serialize;

/// A figure that the path does not tell is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Cgroup {
    /// The innermost unit of systemd that is a service or a scope.
    pub unit: Option<String>,
    /// The innermost container: the 64 hexadecimal digits of its id, or the name of one of LXC's.
    pub container: Option<String>,
    /// The pod: the uid of one of Kubernetes', or the id of one of Podman's.
    pub pod: Option<String>,
    /// The namespace of containerd, where its own paths have it. No path has that of Kubernetes.
    pub namespace: Option<String>,
}

impl Cgroup {
    /// The group in the text of `/proc/PID/cgroup`: by the unified hierarchy, or systemd's own, or
    /// the first one in which the task is in a group.
    #[must_use]
    pub fn of_process(text: &str) -> Self {
        let paths = || {
            text.lines().filter_map(|line| {
                let (_, rest) = line.split_once(':')?;
                rest.split_once(':').filter(|(_, path)| *path != "/")
            })
        };
        let of = |wanted: &str| paths().find(|(controllers, _)| *controllers == wanted);
        let found = of("").or_else(|| of("name=systemd"));
        let found = found.or_else(|| paths().next());
        found.map_or_else(Self::default, |(_, path)| Self::of_path(path))
    }

    #[must_use]
    pub fn of_path(path: &str) -> Self {
        // The kernel says so if the group was removed.
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        let mut found = Self::default();
        let mut before = "";
        for part in path.split('/').filter(|part| !part.is_empty()) {
            found.hear(before, part);
            before = part;
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if let [namespace, id, ..] = parts[..]
            && !ENGINES.contains(&namespace)
            && !namespace.contains('.')
            && is_id(id)
        {
            found.namespace = Some(namespace.to_owned());
        }
        found
    }

    fn hear(&mut self, before: &str, part: &str) {
        let unit = [".service", ".scope"]
            .iter()
            .any(|end| part.strip_suffix(end).is_some_and(|name| !name.is_empty()));
        if unit {
            self.unit = Some(part.to_owned());
        }
        if let Some(pod) = pod(before, part) {
            self.pod = Some(pod);
        }
        if let Some(container) = container(before, part) {
            self.container = Some(container);
        }
    }
}

/// Engines that put containers right below a group of their own name, which is no namespace.
const ENGINES: [&str; 3] = ["docker", "podman", "libpod_parent"];

const PREFIXES: [&str; 5] = ["docker-", "libpod-", "cri-containerd-", "crio-", "nerdctl-"];

/// Docker, containerd, CRI-O and Podman all number containers so.
fn is_id(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn container(before: &str, part: &str) -> Option<String> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let bare = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    // containerd's own systemd driver: SLICE:PREFIX:ID.
    let last = name.rsplit(':').next().unwrap_or(name);
    let id = bare.unwrap_or(last);
    if is_id(id) {
        return Some(id.to_owned());
    }
    let lxc = part.strip_prefix("lxc.payload.");
    let below = matches!(before, "lxc" | "lxc.payload").then_some(part);
    let name = lxc.or(below).filter(|name| !name.is_empty());
    name.map(str::to_owned)
}

fn pod(before: &str, part: &str) -> Option<String> {
    if let Some(slice) = part.strip_suffix(".slice") {
        // Podman's: machine-libpod_pod_ID, user-libpod_pod_ID.
        if let Some((_, id)) = slice.split_once("libpod_pod_") {
            return is_id(id).then(|| id.to_owned());
        }
        // Kubernetes': kubepods-burstable-podUID, where dashes of the uid are underscores.
        let (_, of_class) = slice.split_once("kubepods-")?;
        let uid = of_class.rsplit('-').next()?.strip_prefix("pod")?;
        return uid_of(&uid.replace('_', "-"));
    }
    // Without systemd: kubepods/burstable/podUID.
    matches!(before, "kubepods" | "burstable" | "besteffort")
        .then(|| part.strip_prefix("pod").and_then(uid_of))
        .flatten()
}

/// A uid: hexadecimal digits, with dashes but for pods of a node's own files.
fn uid_of(text: &str) -> Option<String> {
    let digits = text.bytes().filter(|byte| *byte != b'-').count();
    let is_uid = text
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    (digits == 32 && is_uid).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4f9d2b1c0e8a7f6d5c4b3a29181716151413121110f0e0d0c0b0a09080706050";
    const UID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

    /// Paths, and the unit, container, pod and namespace of each.
    const PATHS: &str = "\
# Plain units.
/ - - - -
/init.scope init.scope - - -
/system.slice/nginx.service nginx.service - - -
/system.slice/system-getty.slice/getty@tty1.service getty@tty1.service - - -
/user.slice/user-1000.slice/user@1000.service/app.slice/app-mpv-42.scope app-mpv-42.scope - - -
/user.slice/user-1000.slice/user@1000.service/session.slice/pipewire.service pipewire.service - - -
/system.slice/film.service/worker film.service - - -
/system.slice/gone.service (deleted) gone.service - - -
/user.slice/user-1000.slice - - - -
# Docker, by systemd and by cgroupfs.
/system.slice/docker-ID.scope docker-ID.scope ID - -
/docker/ID - ID - -
/docker/ID/system.slice/cron.service cron.service ID - -
# Podman, as root, as a user, in a pod, and its monitor, which is no container.
/machine.slice/libpod-ID.scope/container libpod-ID.scope ID - -
/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope libpod-ID.scope ID - -
/machine.slice/machine-libpod_pod_ID.slice/libpod-ID.scope libpod-ID.scope ID ID -
/machine.slice/libpod-conmon-ID.scope libpod-conmon-ID.scope - - -
/libpod_parent/libpod-ID - ID - -
/system.slice/film.service/libpod-payload-ID film.service - - -
# Kubernetes by systemd: containerd, CRI-O, Docker; guaranteed, nested, of a node's file.
/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_ID.slice/cri-containerd-ID.scope cri-containerd-ID.scope ID UID -
/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podU_ID.slice/crio-ID.scope crio-ID.scope ID UID -
/kubepods.slice/kubepods-podU_ID.slice/docker-ID.scope docker-ID.scope ID UID -
/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podU_ID.slice/cri-containerd-ID.scope cri-containerd-ID.scope ID UID -
/kubepods.slice/kubepods-pod0123456789abcdef0123456789abcdef.slice/crio-conmon-ID.scope crio-conmon-ID.scope - 0123456789abcdef0123456789abcdef -
# Kubernetes by cgroupfs.
/kubepods/burstable/podUID/ID - ID UID -
/kubepods/podUID/ID - ID UID -
/kubepods/besteffort/podUID/crio-ID - ID UID -
# containerd and its tools by themselves.
/default/ID - ID - default
/k8s.io/ID - ID - -
/system.slice/nerdctl-ID.scope nerdctl-ID.scope ID - -
/system.slice/kubepods-burstable-podU_ID.slice:cri-containerd:ID - ID - -
# LXC and LXD; the monitor is no container.
/lxc.payload.film/system.slice/mpv.service mpv.service film - -
/lxc/film - film - -
/lxc.payload/film - film - -
/lxc.monitor.film - - - -
# A container in a container: the innermost.
/docker/ID/lxc.payload.film - film - -
# Paths that look like one and are none.
/system.slice/docker-1234.scope docker-1234.scope - - -
/kubepods/burstable/podium/x - - - -
/system.slice/docker.service docker.service - - -
/.service - - - -";

    /// Unit, container, pod and namespace of a path; `ID` and `UID` in it stand for one, `U_ID` for
    /// one with underscores.
    fn of(path: &str) -> [String; 4] {
        let path = path.replace("U_ID", &UID.replace('-', "_"));
        let path = path.replace("UID", UID).replace("ID", ID);
        let found = Cgroup::of_path(&path);
        [found.unit, found.container, found.pod, found.namespace].map(|one| {
            one.unwrap_or_default()
                .replace(UID, "UID")
                .replace(ID, "ID")
        })
    }

    #[test]
    fn each_engine_and_driver_is_known_by_its_paths() {
        let rows = PATHS.lines().filter(|line| !line.starts_with('#'));
        for row in rows {
            let words: Vec<&str> = row.rsplitn(5, ' ').collect();
            let [namespace, pod, container, unit, path] = words[..] else {
                panic!("{row}");
            };
            let expected = [unit, container, pod, namespace].map(|word| word.trim_matches('-'));
            assert_eq!(of(path), expected, "{path}");
        }
    }

    #[test]
    fn the_unified_hierarchy_counts_unless_the_task_is_in_none_of_its_groups() {
        let unit = |text: &str| Cgroup::of_process(text).unit.unwrap_or_default();
        assert_eq!(unit("0::/system.slice/a.service\n"), "a.service");
        let hybrid = "9:cpu:/x.service\n1:name=systemd:/system.slice/b.service\n0::/\n";
        assert_eq!(unit(hybrid), "b.service");
        assert_eq!(
            unit("1:name=systemd:/b.service\n0::/a.service\n"),
            "a.service"
        );
        // A path may have a colon.
        assert_eq!(unit("0::/a:b.service"), "a:b.service");
        let without_systemd = "3:pids:/\n2:cpu:/c.service\n1:name=systemd:/\n0::/\n";
        assert_eq!(unit(without_systemd), "c.service");
        assert_eq!(unit("3:cpu:/\n0::/\n"), "");
        assert_eq!(unit(""), "");
    }
}
