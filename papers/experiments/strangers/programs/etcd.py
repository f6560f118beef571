"""Starts three members of etcd with a prefix, puts 20 keys a second, and tells puts in time, their 99th percentile, and elections."""
import http.client
import json
import os
import subprocess
import sys
import time

SECONDS = int(os.environ["SECONDS_TO_RUN"])
CLIENT, PEER = [23790, 23791, 23792], [23800, 23801, 23802]
cluster = ",".join(f"m{i}=http://127.0.0.1:{port}" for i, port in enumerate(PEER))


def member(i):
    urls = [f"http://127.0.0.1:{port}" for port in (CLIENT[i], PEER[i])]
    return (f"exec etcd --name m{i} --data-dir {os.environ['WORK']}/m{i} --initial-cluster {cluster} --log-level error --unsafe-no-fsync "
            f"--listen-client-urls {urls[0]} --advertise-client-urls {urls[0]} --listen-peer-urls {urls[1]} --initial-advertise-peer-urls {urls[1]}")


script = " & ".join(f"({member(i)})" for i in range(3)) + " & wait"
members = subprocess.Popen([*sys.argv[1:], "sh", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)))


def ask(connection, method, path, body=None):
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def put():
    return ask(connection, "POST", "/v3/kv/put", json.dumps({"key": "Zm9v", "value": "YmFy"}))[0] == 200


limit = time.monotonic() + 20
while True:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", CLIENT[0], timeout=5)
        if put():
            break
    except (OSError, http.client.HTTPException):
        pass
    if time.monotonic() > limit:
        sys.exit("etcd does not start")
    time.sleep(0.1)
took_ms = []
began = time.monotonic()
for k in range(SECONDS * 20):
    due = began + k / 20
    time.sleep(max(0.0, due - time.monotonic()))
    if time.monotonic() > began + SECONDS:
        break
    sent = time.monotonic()
    if put():
        took_ms.append((time.monotonic() - sent) * 1000)
metrics = ask(connection, "GET", "/metrics")[1].decode()
elections = next(line.split()[1] for line in metrics.splitlines() if line.startswith("etcd_server_leader_changes_seen_total"))
took_ms.sort()
print(f"count {sum(t <= 50 for t in took_ms)}\np99_ms {took_ms[len(took_ms) * 99 // 100]:.1f}\nnote elections: {elections}")
members.terminate()
