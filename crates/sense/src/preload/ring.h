/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The records that the preloaded library writes and onbeat reads: a header, then RING_RECORDS
 * records that are written round and round, by all threads of all processes that have the library.
 * onbeat makes the memory; ring.rs reads it, and has the same sizes.
 */
#ifndef ONBEAT_PRELOAD_RING_H
#define ONBEAT_PRELOAD_RING_H

#include <stdatomic.h>
#include <stdint.h>

#define RING_RECORDS 16384u

/* A burst: what a thread did between two calls that blocked. Times are of CLOCK_MONOTONIC. */
struct record {
	/*
	 * One more than how many records were begun before this one; 0 while it is being written.
	 */
	_Atomic uint64_t number;
	uint32_t pid;
	uint32_t tid;
	/* The thread became ready in the call before. */
	uint64_t woke_ns;
	/* The call that blocked was made. */
	uint64_t blocked_ns;
	uint64_t executed_ns;
	/* How often the thread lost the CPU while it wanted to run. */
	uint32_t preempted;
	/* For how long it waited for one when it had become ready. */
	uint32_t waited_us;
	char comm[16];
};

struct ring {
	/* How many records were begun. */
	_Atomic uint64_t begun;
	uint64_t unused[7];
	struct record records[RING_RECORDS];
};

_Static_assert(sizeof(struct record) == 64, "ring.rs reads records of 64 bytes");

#endif
