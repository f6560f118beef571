#!/usr/bin/env python3
"""Checks timelines against Perfetto's published schema, and, if it can be had, with its trace processor.

python3 -m venv venv && venv/bin/pip install perfetto
venv/bin/python crates/timeline/check.py FILE...

The package holds the schema; it fetches the trace processor from elsewhere, which may not be reachable.
"""

import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
from perfetto.trace_processor import TraceProcessor

BEGIN, END = schema.TrackEvent.TYPE_SLICE_BEGIN, schema.TrackEvent.TYPE_SLICE_END


def unknown_fields(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            for inner in value if field.is_repeated else [value]:
                count += unknown_fields(inner)
    return count


def check_switches(name, bundles):
    running = {}
    events = sorted(((event.timestamp, bundle.cpu, event) for bundle in bundles for event in bundle.event), key=lambda e: e[:2])
    for at, cpu, event in events:
        if event.HasField("sched_switch"):
            switch = event.sched_switch
            assert switch.prev_pid == running.get(cpu, 0), f"{name}: at {at} another thread was on the CPU {cpu}"
            running[cpu] = switch.next_pid
    assert not any(running.values()), f"{name}: a thread never leaves its CPU"


def check(name):
    with open(name, "rb") as file:
        trace = schema.Trace.FromString(file.read())
    assert trace.packet, f"{name}: it is empty"
    assert unknown_fields(trace) == 0, f"{name}: fields that the schema has not"
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    for track in tracks.values():
        assert not track.HasField("parent_uuid") or track.parent_uuid in tracks, f"{name}: {track}"
    events = sorted((p for p in trace.packet if p.HasField("track_event")), key=lambda packet: packet.timestamp)
    depth = dict.fromkeys(tracks, 0)
    for packet in events:
        event = packet.track_event
        assert event.track_uuid in tracks, f"{name}: {packet}"
        depth[event.track_uuid] += {BEGIN: 1, END: -1}.get(event.type, 0)
        assert 0 <= depth[event.track_uuid] <= 1, f"{name}: slices overlap at {packet.timestamp}"
    assert not any(depth.values()), f"{name}: a slice has no end"
    check_switches(name, [p.ftrace_events for p in trace.packet if p.HasField("ftrace_events")])
    print(f"{name}: {len(events)} events on {len(tracks)} tracks, as the schema has them")
    return sum(packet.track_event.type == BEGIN for packet in events)


for name in sys.argv[1:]:
    slices = check(name)
    try:
        processor = TraceProcessor(trace=name)
    except Exception as error:
        print(f"{name}: not opened, the trace processor cannot be had: {error}")
        continue
    (row,) = processor.query("select count(*) as count from slice")
    assert row.count == slices, f"{name}: {slices} slices, of which the trace processor finds {row.count}"
    print(f"{name}: the trace processor opens it and finds {row.count} slices")
    processor.close()
