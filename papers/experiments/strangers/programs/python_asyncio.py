"""A gateway: one task each 10 ms, fifty that wake each 100 ms."""
import asyncio
import os
import time

SECONDS = float(os.environ["SECONDS_TO_RUN"])
times = []


async def beat():
    due = began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        due += 0.01
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        times.append(time.monotonic() * 1000)
        sum(i * i for i in range(10000))


async def other():
    while True:
        await asyncio.sleep(0.1)
        sum(i * i for i in range(1000))


async def main():
    others = [asyncio.create_task(other()) for _ in range(50)]
    await beat()
    for task in others:
        task.cancel()


asyncio.run(main())
print(*times)
