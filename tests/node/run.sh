#!/usr/bin/env bash
# Has Debian 13's containerd run pods with and without annotations, beside the onbeat service and onbeat-node. Each is
# started, stopped and killed there (inside.sh), and afterwards nothing may be left.
#
# The containers' threads have the numbers that the kernel's tracer knows: nothing is in a namespace of processes. All
# their groups are below one that is made here and removed.
#
# usage (as root): tests/node/run.sh FOLDER    # with the binaries onbeat and onbeat-node
set -euo pipefail
here=$(dirname "$(realpath "$0")")

if [ "${1-}" != --inside ]; then
    if [ "$(id -u)" -ne 0 ]; then
        echo "containers are started as root"
        exit 77
    fi
    tarball=$("$here/../packages/root.sh" trixie)
    root=$(mktemp -d)
    group=onbeat-node-$$
    # shellcheck disable=SC2317 # the trap calls it
    end() {
        for _ in $(seq 100); do
            find /sys/fs/cgroup -path "*/$group/*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u |
                while read -r process; do kill -KILL "$process" 2>/dev/null || true; done
            find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null || true
            [ -n "$(find /sys/fs/cgroup -type d -name "$group" 2>/dev/null)" ] || break
            sleep 0.1
        done
        rm -rf --one-file-system "$root"
    }
    trap end EXIT
    chmod 755 "$root"
    tar -C "$root" -xf "$tarball"
    cp "$1/onbeat" "$1/onbeat-node" "$root/usr/bin"
    cp "$here"/inside.sh "$here"/cri.py "$here"/beat.c "$root/root"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    cp -r "$here/../../packaging/kubernetes" "$root/root"
    (cd "$here/../.." && cp packaging/systemd/onbeat.service docs/metrics.md docs/dashboards/kubernetes.json \
        "$root/root/kubernetes")
    chart=$here/../../packaging/kubernetes/chart
    if command -v helm >/dev/null; then
        helm lint --quiet --strict "$chart"
        helm template onbeat "$chart" --namespace onbeat >"$root/root/kubernetes/rendered.yaml"
        helm template onbeat "$chart" --namespace onbeat --set prometheusRule=true >"$root/root/kubernetes/rendered-rules.yaml"
    else
        echo "no helm here (go install helm.sh/helm/v3/cmd/helm@latest): the chart's values are filled in without it"
    fi
    # The interface of containers is in a package for Go whose dependencies nothing here needs.
    chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends containerd runc python3-grpcio python3-grpc-tools libelf1t64 \
        prometheus python3-yaml &&
        cd /root && apt-get download -qq golang-github-kubernetes-cri-api-dev && dpkg-deb -x golang-*.deb api &&
        sed /gogo/d api/usr/share/gocode/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto >api.proto &&
        python3 -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. api.proto &&
        gcc -O1 -static -o beat beat.c' >"$root/tmp/log" 2>&1 || {
        cat "$root/tmp/log"
        echo "containerd cannot be installed"
        exit 1
    }
    chroot "$root" sh -c 'cd /root/kubernetes && promtool check rules chart/rules.yaml &&
        promtool test rules rules-test.yaml'
    chroot "$root" python3 - /root/kubernetes <"$here/manifests.py"
    status=0
    unshare --mount --net "$0" --inside "$root" "$group" || status=$?
    exit "$status"
fi

root=$2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount --rbind /dev "$root/dev"
cd "$root"
mkdir "$root/run/old"
pivot_root . run/old
umount -l /run/old
rmdir /run/old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root bash /root/inside.sh "/$3"
