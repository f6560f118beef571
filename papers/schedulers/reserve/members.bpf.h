/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The groups, and their members.
 */
#ifndef ONBEAT_RESERVE_MEMBERS_BPF_H
#define ONBEAT_RESERVE_MEMBERS_BPF_H

#include "../common/scheduler.bpf.h"
#include "policy.h"
#include "group.h"

/* The slot of a task without a reservation. */
#define NO_GROUP RESERVE_GROUPS
/* How deep a task's control group may lie for those above it to be found. */
#define MAX_LEVELS 16

/* Whether a control group ever had a reservation: only then are those of tasks looked up. */
static bool cgroups_used;

struct group {
	struct bpf_spin_lock lock;
	struct bpf_timer timer;
	/* How many times the slot was given to a process or control group. */
	u32 generation;
	struct reserve_group server;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RESERVE_GROUPS);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

/* A number is another's soon after its holder has ended: when that was started tells them apart. */
struct holder {
	u32 slot;
	u64 since_ns;
};

/* The members of each slot: processes by their number, control groups by their id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RESERVE_GROUPS);
	__type(key, u32);
	__type(value, struct holder);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RESERVE_GROUPS);
	__type(key, u64);
	__type(value, u32);
} cgroups SEC(".maps");

struct member {
	/* The group that it counts for, or NO_GROUP. */
	u32 slot;
	/* Its children belong to the group, too: it does as a process, not by its control group. */
	u32 passes_on;
	/*
	 * The group of the process that started its process, and how often that slot had been given
	 * by then.
	 */
	u32 born_in;
	u32 born_generation;
	bool ready;
	/* It woke onto an idle CPU, which comes to look for it. */
	bool woke_to_idle;
	/* It has stopped to be changed: see may_go_on_for. */
	bool changes;
	/* The time that it has run since it was last put behind the others of its group. */
	u64 turn_ns;
	struct reserve_rest rest;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct member);
} members SEC(".maps");

static __always_inline struct member *member_of(struct task_struct *task)
{
	return bpf_task_storage_get(&members, task, 0, 0);
}

static __always_inline struct group *group_at(u32 slot)
{
	return bpf_map_lookup_elem(&groups, &slot);
}

/* The slot that the task's control group has, or one above it. */
static u32 slot_of_cgroup(struct task_struct *task)
{
	struct cgroup *own = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	int level, lowest = BPF_CORE_READ(own, level);
	struct cgroup *above;
	u32 *slot;
	u64 id;

	/* From its own upwards: the narrowest one counts. */
	bpf_for(level, 0, MAX_LEVELS)
	{
		if (level > lowest)
			break;
		bpf_core_read(&above, sizeof(above), &own->ancestors[lowest - level]);
		id = BPF_CORE_READ(above, kn, id);
		slot = bpf_map_lookup_elem(&cgroups, &id);
		if (slot)
			return *slot;
	}
	return NO_GROUP;
}

/*
 * The slot is theirs from now on, if it is `new`; else it is theirs already, and the number may be
 * another task's by now.
 */
static int join(struct reserve_call *call, bool is_new)
{
	struct holder holder = { .slot = call->slot }, *found;
	u32 number = call->whom, slot = call->slot;
	struct task_struct *task;
	u64 id = call->whom;
	bool is_process;

	if (call->kind == RESERVE_CGROUP) {
		cgroups_used = true;
		return bpf_map_update_elem(&cgroups, &id, &slot, BPF_ANY);
	}
	task = bpf_task_from_pid(number);
	if (!task)
		return -3; /* ESRCH */
	holder.since_ns = task->start_boottime;
	is_process = task->pid == task->tgid;
	bpf_task_release(task);
	/* No task would ever be found by it. */
	if (!is_process)
		return -3; /* ESRCH */
	if (is_new)
		return bpf_map_update_elem(&processes, &number, &holder, BPF_ANY);
	found = bpf_map_lookup_elem(&processes, &number);
	if (found && found->slot == slot && found->since_ns == holder.since_ns)
		return 0;
	return -3; /* ESRCH */
}

static void leave(struct reserve_call *call)
{
	u32 number = call->whom;
	u64 id = call->whom;

	if (call->kind == RESERVE_CGROUP)
		bpf_map_delete_elem(&cgroups, &id);
	else
		bpf_map_delete_elem(&processes, &number);
}

/* The slot of the group that the task belongs to: the narrowest one. */
static u32 slot_of(struct task_struct *task, struct member *member)
{
	u32 process = task->tgid;
	struct holder *holder;
	struct group *group;

	member->passes_on = true;
	holder = bpf_map_lookup_elem(&processes, &process);
	/* A thread that executes another program has its first thread's start from then on. */
	if (holder && holder->since_ns == task->group_leader->start_boottime)
		return holder->slot;
	group = group_at(member->born_in);
	if (group && group->generation == member->born_generation && group->server.runtime_ns)
		return member->born_in;
	member->passes_on = false;
	return cgroups_used ? slot_of_cgroup(task) : NO_GROUP;
}

static __always_inline void wait_until(struct group *group, u64 at)
{
	if (at)
		bpf_timer_start(&group->timer, at, BPF_F_TIMER_ABS);
}

/* The task counts for this group from now on. */
static void count(struct member *member, u32 slot, u64 now)
{
	struct group *group;
	u64 waits;

	group = group_at(member->slot);
	if (group && member->ready) {
		bpf_spin_lock(&group->lock);
		reserve_block(&group->server);
		bpf_spin_unlock(&group->lock);
	}
	member->slot = slot;
	group = group_at(slot);
	if (group && member->ready) {
		bpf_spin_lock(&group->lock);
		waits = reserve_wake(&group->server, now);
		bpf_spin_unlock(&group->lock);
		wait_until(group, waits);
	}
}

static __always_inline void recount(struct task_struct *task, struct member *member, u64 now)
{
	u32 slot = slot_of(task, member);

	if (slot != member->slot)
		count(member, slot, now);
}

#endif
