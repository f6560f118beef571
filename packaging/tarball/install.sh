#!/bin/sh
# Installs what lies in the folder `root` beside this: onbeat and onbeat-node below /usr/local, with their services where the
# system looks for them; --remove takes it away. DESTDIR is another root.
set -eu
cd "$(dirname "$0")/root"
image=${DESTDIR-}
configuration=./etc/onbeat/onbeat.toml

if [ "${1-}" = --remove ]; then
    if [ -z "$image" ] && [ -d /run/systemd/system ]; then
        systemctl disable --now onbeat-node.service onbeat.service
        systemctl stop onbeat-guard.service
    fi
    [ -n "$image" ] || /usr/local/bin/onbeat restore --quiet ||
        echo "see above for what could not be put back; a restart does it" >&2
    if ! cmp -s "$configuration" "$image/$configuration"; then
        echo "$image/$configuration stays: it was changed"
    else
        rm -f "$image/$configuration"
    fi
    find . ! -type d ! -path "$configuration" | while read -r file; do
        rm -f "$image/$file"
    done
    find . -depth -type d -path '*/onbeat*' | while read -r folder; do
        rmdir "$image/$folder" 2>/dev/null || true
    done
    exit 0
fi

find . -type d | while read -r folder; do mkdir -p "$image/$folder"; done
find . ! -type d | while read -r file; do
    if [ "$file" = "$configuration" ] && [ -e "$image/$file" ]; then
        echo "$image/$file stays as it is"
    else
        # A program that runs cannot be written over.
        rm -f "$image/$file"
        cp -P "$file" "$image/$file"
    fi
done
if [ -z "$image" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    echo "the service for ordinary users: systemctl enable --now onbeat"
    echo "rules for annotated pods, on a node of Kubernetes: systemctl enable --now onbeat-node"
fi
