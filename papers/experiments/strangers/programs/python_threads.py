"""A bench that sends 35 cyclic messages, a thread each: periods of 10 to 200 ms. Told: messages up to 5 ms late, and how late the hundredth is."""
import os
import socket
import threading
import time

SECONDS = float(os.environ["SECONDS_TO_RUN"])
PERIODS = [0.010] * 5 + [0.020] * 10 + [0.050] * 10 + [0.100] * 6 + [0.200] * 4
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))
late_ms = []
began = time.perf_counter() + 0.3


def cyclic(period):
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect(sink.getsockname())
    for k in range(int(SECONDS / period)):
        due = began + k * period
        time.sleep(max(0.0, due - time.perf_counter()))
        now = time.perf_counter()
        if now > began + SECONDS:
            break
        end = time.thread_time() + 0.0001
        while time.thread_time() < end:
            sum(i * i for i in range(60))
        out.send(b"x" * 64)
        late_ms.append((now - due) * 1000)


def drain():
    while True:
        sink.recv(2048)


threading.Thread(target=drain, daemon=True).start()
threads = [threading.Thread(target=cyclic, args=[p], daemon=True) for p in PERIODS]
for t in threads:
    t.start()
for t in threads:
    t.join(SECONDS + 2)
late_ms.sort()
# From the time that the message before was due.
print(f"count {sum(late <= 5 for late in late_ms)}\np99_ms {10 + late_ms[len(late_ms) * 99 // 100]:.1f}", flush=True)
os._exit(0)
