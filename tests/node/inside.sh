#!/bin/bash
# Run by run.sh: pods of a real containerd, the service and the plugin, and what becomes of them.
#
# usage: inside.sh PARENT    # the group below which all containers are
set -eu
parent=$1
cd /root
declare -A pids
logs=/tmp/logs
mkdir -p "$logs"

start() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >>"$logs/$name" 2>&1 &
    pids[$name]=$!
}
# shellcheck disable=SC2317 # the trap calls it
end() {
    kill -KILL "${pids[@]}" 2>/dev/null || true
    pkill_shims
}
# Its own containers' shims alone: containerd leaves them behind, and no other one has this root.
pkill_shims() {
    local process
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/root" 2>/dev/null)" = / ] || continue
        [ "$(readlink "$process/exe" 2>/dev/null)" = /usr/bin/containerd-shim-runc-v2 ] || continue
        [ "$(stat -Lc %d:%i "$process/root/root/beat.c" 2>/dev/null)" = "$(stat -Lc %d:%i /root/beat.c)" ] || continue
        kill -KILL "${process#/proc/}"
    done
}
trap end EXIT
fail() {
    tail -n 40 "$logs"/* | cut -c 1-400 >&2
    echo "$*" >&2
    exit 1
}
eventually() {
    local try
    for try in $(seq 600); do
        "$@" && return 0
        sleep 0.1
    done
    fail "tried $try times: $*"
}
cri() { python3 cri.py "$@" || fail "the CRI refuses: $*"; }
rules() { find /run/onbeat/rules.d -name 'container-*.toml' 2>/dev/null | wc -l; }
has_rules() { [ "$(rules)" = "$1" ]; }
rule_of() { cat "/run/onbeat/rules.d/container-$1.toml"; }
pid_of() { ctr -n k8s.io tasks list | awk -v id="$1" '$1 == id { print $2 }'; }
is_reserved() { chrt -p "$1" 2>/dev/null | grep SCHED_DEADLINE >/dev/null; }
is_ordinary() { ! is_reserved "$1"; }
said() { grep -c -- "$1" "$logs/node" || true; }
has_said() { [ "$(said "$1")" -ge "$2" ]; }

# The image, from nothing but a static program.
mkdir -p image layer
cp beat layer/beat
tar -C layer -cf image/layer.tar .
digest=$(sha256sum image/layer.tar | cut -d ' ' -f 1)
printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["/beat"],"Cmd":["pause"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(dpkg --print-architecture)" "$digest" >image/config.json
printf '[{"Config":"config.json","RepoTags":["docker.io/onbeat/test:1"],"Layers":["layer.tar"]}]' >image/manifest.json
tar -C image -cf image.tar .

mkdir -p /etc/containerd /etc/onbeat /run/onbeat
cat >/etc/containerd/config.toml <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/onbeat/test:1"
  disable_apparmor = true
  # A machine that is a container itself may not lower the score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
END
printf 'always = true\nscan = "100ms"\n' >/etc/onbeat/onbeat.toml

# The programs as in the DaemonSet, with its capabilities. The plugin comes before the runtime, and waits for it.
start_node() { start node setpriv --bounding-set=-all onbeat-node; }
start_node
start service setpriv --bounding-set=-all,+sys_nice,+bpf,+perfmon onbeat daemon --no-bus --state-dir /run/onbeat \
    --metrics /run/onbeat.prom
start containerd containerd
eventually has_said 'connected to containerd' 1
is_there() { ctr version >/dev/null 2>&1; }
eventually is_there
ctr -n k8s.io images import --snapshotter native image.tar >/dev/null || fail 'the image cannot be imported'

echo '== with the annotation and without, beside hogs'
hogs=$(cri pod hogs "$parent/hogs")
for name in one two three; do cri container "$hogs" "$name" "$parent/hogs" 2 hog >/dev/null; done
film=$(cri pod film "$parent/film" onbeat.dev/keep=true onbeat.dev/period=20ms onbeat.dev/cap.container.small=5%)
kept=$(cri container "$film" app "$parent/film" 256 beat)
[ "$(rules)" = 1 ] || fail 'there is no rule when the container has started'
rule_of "$kept"
rule_of "$kept" | grep -x 'bandwidth = "25.000%"' || fail 'the request is not the cap'
other=$(cri pod other "$parent/other")
unkept=$(cri container "$other" app "$parent/other" 256 beat)
[ "$(rules)" = 1 ] || fail 'a pod without the annotation has a rule'
eventually is_reserved "$(pid_of "$kept")"
is_ordinary "$(pid_of "$unkept")" || fail 'a pod without the annotation is kept'

echo '== mistakes, and a container that requests nothing: they start all the same'
wrong=$(cri pod wrong "$parent/wrong" onbeat.dev/keep=true "onbeat.dev/cap=much"$'\n\e[31m')
cri container "$wrong" app "$parent/wrong" 256 beat >/dev/null
has_said "default/wrong/app is not served, and starts as usual: the annotation onbeat.dev/cap is 'much\[31m': write" 1 ||
    fail 'a mistake is not told'
none=$(cri pod none "$parent/none" onbeat.dev/keep=true)
cri container "$none" app "$parent/none" 2 beat >/dev/null
has_said 'default/none/app is not served, and starts as usual: the container requests no CPU time' 1 ||
    fail 'a missing request is not told'
small=$(cri container "$film" small "$parent/film" 256 beat)
rule_of "$small" | grep -x 'bandwidth = "5.000%"' || fail 'an annotation for one container does not count'
cri shares "$kept" 128
eventually grep -qx 'bandwidth = "12.500%"' "/run/onbeat/rules.d/container-$kept.toml"
has_rules 2 || fail "there are $(rules) rules for 2 containers"

echo '== a container that ends'
cri stop "$small"
eventually has_rules 1
is_reserved "$(pid_of "$kept")" || fail 'the other container of the pod is no longer served'

echo '== containerd restarts'
process=$(pid_of "$kept")
kill -TERM "${pids[containerd]}"
wait "${pids[containerd]}" || true
has_rules 1 || fail 'a rule is gone with containerd'
is_reserved "$process" || fail 'the reservation is gone with containerd'
start containerd containerd
eventually has_said 'containers run, 1 of them are served' 1
eventually is_there
has_rules 1 || fail 'the rule is gone after the restart'

echo '== the plugin is killed, and a pod deleted meanwhile'
kill -KILL "${pids[node]}"
wait "${pids[node]}" || true
late=$(cri pod late "$parent/late" onbeat.dev/keep=true)
lately=$(cri container "$late" app "$parent/late" 256 beat)
cri remove "$film"
has_rules 1 || fail 'somebody else removes rules'
! is_reserved "$process" || fail 'a thread is reserved whose container is gone'
start_node
eventually has_said 'removed 1 rules' 1
eventually has_rules 1
rule_of "$lately" >/dev/null || fail 'a container that started meanwhile has no rule'
eventually is_reserved "$(pid_of "$lately")"

echo '== the plugin ends: nothing is kept any more'
kill -TERM "${pids[node]}"
wait "${pids[node]}" || fail 'the plugin ends with a failure'
has_rules 0 || fail 'rules stay behind'
eventually is_ordinary "$(pid_of "$lately")"

echo '== the pod is deleted'
start_node
eventually has_rules 1
eventually is_reserved "$(pid_of "$lately")"
for pod in "$late" "$other" "$wrong" "$none" "$hogs"; do cri remove "$pod"; done
eventually has_rules 0
is_empty() { grep -q '^onbeat_build_info' /run/onbeat.prom && ! grep -q '^onbeat_thread_info' /run/onbeat.prom; }
eventually is_empty
kill -TERM "${pids[node]}" "${pids[service]}"
wait "${pids[node]}" "${pids[service]}" || fail 'not all end well'
[ -z "$(find /run/onbeat -type f)" ] || fail "left behind: $(find /run/onbeat -type f)"
kill -TERM "${pids[containerd]}"
wait "${pids[containerd]}" || true
echo 'nothing is left behind'
