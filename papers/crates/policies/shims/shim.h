/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rules of a policy as a table of functions, `onbeat_NAME`: what crates/policies/src/shim.rs
 * calls.
 */
#ifndef ONBEAT_SHIM_H
#define ONBEAT_SHIM_H

#define SHIM(NAME, DEFAULT)                                                       \
	typedef struct NAME##_params params;                                      \
	typedef struct NAME##_machine machine;                                    \
	typedef struct NAME##_task task;                                          \
                                                                                  \
	extern const struct NAME##_operations {                                   \
		u64 sizes[3];                                                     \
		params default_params;                                            \
		void (*join)(const params *, machine *, task *, s32, u64);        \
		void (*fork)(const params *, machine *, task *, task *);          \
		void (*exit)(const params *, machine *, task *, task *);          \
		void (*leave)(const params *, machine *, task *);                 \
		void (*renice)(const params *, machine *, task *, s32);           \
		void (*wakeup)(const params *, machine *, task *, u64);           \
		void (*block)(const params *, machine *, task *, u64);            \
		void (*pick)(const params *, machine *, task *, u64);             \
		void (*charge)(const params *, machine *, task *, u64, u64);      \
		bool (*tick)(const params *, machine *, task *, u64);             \
		void (*put_back)(const params *, machine *, task *, u64, u64);    \
		u64 (*key)(const params *, const machine *, const task *, u64);   \
		u64 (*slice)(const params *, const machine *, const task *, u64); \
		bool (*mdn)(const params *, machine *, task *, u64);              \
	} onbeat_##NAME;                                                          \
                                                                                  \
	const struct NAME##_operations onbeat_##NAME = {                          \
		.sizes = { sizeof(params), sizeof(machine), sizeof(task) },       \
		.default_params = DEFAULT,                                        \
		.join = NAME##_join,                                              \
		.fork = NAME##_fork,                                              \
		.exit = NAME##_exit,                                              \
		.leave = NAME##_leave,                                            \
		.renice = NAME##_renice,                                          \
		.wakeup = NAME##_wakeup,                                          \
		.block = NAME##_block,                                            \
		.pick = NAME##_pick,                                              \
		.charge = NAME##_charge,                                          \
		.tick = NAME##_tick,                                              \
		.put_back = NAME##_put_back,                                      \
		.key = NAME##_key,                                                \
		.slice = NAME##_slice,                                            \
		.mdn = NAME##_mdn,                                                \
	}

#endif
