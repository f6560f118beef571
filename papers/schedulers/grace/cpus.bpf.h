/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The threads with plans, and what each CPU runs at which speed.
 */
#ifndef ONBEAT_GRACE_CPUS_BPF_H
#define ONBEAT_GRACE_CPUS_BPF_H

#include "../common/scheduler.bpf.h"
#include "policy.h"
#include "plan.h"

/* The slot of a task without a plan. */
#define NO_PLAN GRACE_PLANS
/* How long a thread runs at most before its CPU is looked at again. */
#define SLICE_NS GRACE_TURN_NS
struct {
	/*
	 * The request to the governor, in per cent of the speed that is meant: schedutil adds a
	 * quarter to it; and, on a kernel that does not know at which speed a CPU was busy, another
	 * one.
	 */
	u64 target_percent;
} params = { .target_percent = 80 },
  /*
   * The least that the loader accepts: of nothing the governor makes the lowest speed for every
   * job.
   */
	least = { .target_percent = 1 };

struct planned {
	struct bpf_spin_lock lock;
	u32 is_set;
	struct bpf_timer timer;
	/* A job is under way. */
	u32 job;
	/* How often the slot was given to a thread, or taken from one. */
	u32 generation;
	struct grace_task task;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GRACE_PLANS);
	__type(key, u32);
	__type(value, struct planned);
} plans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GRACE_PLANS);
	__type(key, u32);
	__type(value, u32);
} threads SEC(".maps");

static u64 planned_count;

/* The thread has no plan any more. False if it had none. */
static __always_inline bool forget(u32 tid)
{
	if (bpf_map_delete_elem(&threads, &tid))
		return false;
	policy_add(&planned_count, -1ULL);
	return true;
}

struct member {
	u32 slot;
	/* The generation of the slot when it was this thread's. */
	u32 generation;
	bool woke_to_idle;
	/* It has stopped to be changed: see may_go_on_for. */
	bool changes;
	/* It says where its jobs end; else they do where it sleeps. */
	bool says;
	/* It has said so since it last woke. */
	bool ended;
	/* The job that it is at was not seen from its begin on. */
	bool partial;
	/* In the kernel's account, what the rules know; and when they came to know it. */
	u64 charged_ns;
	u64 charged_at_ns;
	/* The work that its CPU would have done up to then; 0: not known. */
	u64 worked_ns;
	/* Ends of jobs that the rules do not know of yet, and the account at the last of them. */
	u64 finished;
	u64 finished_ns;
	/* Its last message about itself. */
	u64 period_ns;
	u64 permille;
	u64 sent;
	u64 window;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct member);
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, GRACE_MESSAGES);
	__type(value, struct grace_message);
} messages SEC(".maps");

/*
 * Whether the thread may send `amount` more messages in this window. A thread that sends without
 * end takes none from others.
 */
static __always_inline bool may_send(struct member *member, u64 amount, u64 now)
{
	u64 window = now >> GRACE_WINDOW_SHIFT;

	if (member->window != window)
		member->sent = 0;
	member->window = window;
	if (member->sent + amount > GRACE_IN_WINDOW)
		return false;
	member->sent += amount;
	return true;
}

/* Messages that do not fit are lost: a profile has one job less then. */
static __always_inline void send(u32 what, u32 tid, u64 amount, u64 number)
{
	struct grace_message one = { .what = what, .tid = tid, .amount = amount, .number = number };

	bpf_map_push_elem(&messages, &one, BPF_ANY);
}

struct post {
	struct bpf_timer timer;
	u64 urgency;
	/* When the CPU is looked at again; 0: only at the tick. */
	u64 ends_at;
	/* As was asked for last. */
	u64 speed;
	struct grace_turns rest;
	u64 owed_ns;
};

/* The queues: one for each plan, by its slot, and one for the rest. */
#define REST_QUEUE GRACE_PLANS
#define QUEUES (REST_QUEUE + 1)

#include "pace.bpf.h"

static __always_inline struct member *member_of(struct task_struct *task)
{
	return bpf_task_storage_get(&members, task, 0, 0);
}

static __always_inline struct planned *plan_at(u32 slot)
{
	return bpf_map_lookup_elem(&plans, &slot);
}

static __always_inline struct planned *plan_of(const struct member *member)
{
	struct planned *planned = plan_at(member->slot);

	return planned && planned->generation == member->generation ? planned : NULL;
}

/*
 * The place of the rest in line. All jobs without a budget together have one turn for one of each
 * thread of the rest that waits: else a thread that asks for a plan and ends no job would have half
 * of what is left, beside any number of others.
 */
static __always_inline u64 rest_key_of(const struct post *post)
{
	return post->owed_ns < GRACE_TURN_NS ? grace_turns_key(&post->rest) : GRACE_BEST_EFFORT;
}

static __always_inline void owe_to_rest(struct post *post, u64 ran_ns)
{
	s32 waiting = scx_bpf_dsq_nr_queued(REST_QUEUE);

	post->owed_ns = waiting > 0 ? post->owed_ns + ran_ns * waiting : 0;
}

/* The target with which the governor comes to the speed. */
static __always_inline u32 target_for(u64 speed)
{
	return policy_min(speed >= FULL ? FULL : speed * params.target_percent / 100, FULL);
}

/*
 * Also if it was asked for already, until the CPU has it. schedutil looks only when it is asked,
 * and forgets requests within its rate limit: it would keep to the highest speed after a real-time
 * thread that ran for less, and to that of the load before this scheduler.
 */
static __always_inline void ask(s32 cpu, struct post *post, const struct pace *pace, u64 speed)
{
	if (speed == post->speed && speed == pace->speed)
		return;
	scx_bpf_cpuperf_set(cpu, target_for(speed));
	if (speed == post->speed)
		return;
	post->speed = speed;
	COUNT(speed_changes);
}

/* Where the account of the thread stands. */
static __always_inline void note(struct member *member, const struct pace *pace, u64 account_ns,
				 u64 now)
{
	member->charged_ns = account_ns;
	member->charged_at_ns = now;
	member->worked_ns = pace->speed ? worked_by(pace, now) : 0;
}

/*
 * The mean speed of the thread's CPU since its account was last looked at; as it was asked for if
 * that is not known.
 */
static __always_inline u64 speed_since(const struct member *member, const struct pace *pace,
				       u64 asked, u64 now)
{
	u64 span_ns = policy_minus(now, member->charged_at_ns), worked_ns;

	if (!pace->speed || !member->worked_ns || !span_ns)
		return policy_max(asked, 1);
	worked_ns = policy_minus(worked_by(pace, now), member->worked_ns);
	return policy_max(policy_min((worked_ns * FULL + span_ns / 2) / span_ns, FULL), 1);
}

/* The CPU is looked at again after the slice. The tick does it should the timer come late. */
static __always_inline void plan_end(struct post *post, struct task_struct *task, u64 slice_ns,
				     u64 now)
{
	set_slice(task, slice_ns);
	post->ends_at = now + slice_ns;
	bpf_timer_start(&post->timer, slice_ns, BPF_F_TIMER_CPU_PIN);
}

/*
 * The thread begins, or goes on, to run here, for `most_ns` at most: at the speed that its job has
 * come to, until that grows.
 */
static void start(s32 cpu, struct task_struct *task, struct member *member, u64 most_ns, u64 now)
{
	u64 speed, until, key, slice_ns = SLICE_NS;
	struct planned *planned = plan_of(member);
	struct post *post = post_at(cpu);
	struct pace pace;

	if (!post)
		return;
	COUNT(runs);
	pace = pace_of(cpu);
	note(member, &pace, task->se.sum_exec_runtime, now);
	if (!planned) {
		/* As the last job left it, if there was one here; but not for ever. */
		ask(cpu, post, &pace, planned_count && post->speed ? post->speed : FULL);
		post->urgency = rest_key_of(post);
		if (planned_count) {
			plan_end(post, task, policy_min(grace_turn_left(&post->rest), most_ns),
				 now);
		} else {
			/* Among themselves they have whole slices. */
			post->ends_at = 0;
			set_slice(task, policy_min(SLICE_NS, most_ns));
		}
		return;
	}
	bpf_spin_lock(&planned->lock);
	speed = grace_speed(&planned->task);
	until = grace_until(&planned->task);
	key = grace_key(&planned->task);
	if (key & GRACE_BEST_EFFORT)
		slice_ns = grace_turn_left(&planned->task.turns);
	bpf_spin_unlock(&planned->lock);
	if (speed)
		ask(cpu, post, &pace, speed);
	post->urgency = key;
	if (until < GRACE_NEVER / FULL) {
		/*
		 * Work takes the longer the lower the speed is; while the CPU is not yet as it was
		 * asked to be, the higher of both tells when to look.
		 */
		until = until * FULL / policy_max(policy_max(post->speed, pace.speed), 1) + 1;
		slice_ns = policy_min(slice_ns, until);
	}
	plan_end(post, task, policy_min(slice_ns, most_ns), now);
}

/*
 * A stretch of a job, the first `early_ns` of which came before the budget. True if the rest used
 * that up.
 */
static __always_inline bool charge(struct grace_task *task, u64 ran_ns, u64 early_ns, u64 speed,
				   u64 now)
{
	early_ns = policy_min(early_ns, ran_ns);
	grace_did(task, grace_work(early_ns, speed, FULL));
	return grace_charge(task, grace_work(ran_ns - early_ns, speed, FULL), now);
}

/*
 * Accounts for what the thread has run here since it was started, or since the last time; up to
 * where it said that a job ended, to that one.
 */
static void settle(s32 cpu, struct task_struct *task, struct member *member, u64 now)
{
	u64 ran_ns = task->se.sum_exec_runtime - member->charged_ns;
	u64 finished = member->finished, of_job_ns = 0, done = 0, from_ns = member->charged_at_ns;
	struct planned *planned = plan_of(member);
	struct post *post = post_at(cpu);
	struct pace pace = pace_of(cpu);
	bool used_up = false, has_none;
	u64 early_ns, speed;

	if (finished)
		of_job_ns =
			policy_min(policy_minus(member->finished_ns, member->charged_ns), ran_ns);
	member->finished = 0;
	speed = speed_since(member, &pace, post ? post->speed : FULL, now);
	note(member, &pace, member->charged_ns + ran_ns, now);
	if (!post)
		return;
	if (!planned) {
		grace_takes_turn(&post->rest, ran_ns, now);
		post->owed_ns = policy_minus(post->owed_ns, ran_ns);
		return;
	}
	bpf_spin_lock(&planned->lock);
	early_ns = grace_before_budget(&planned->task, ran_ns, from_ns, now);
	if (finished) {
		used_up = charge(&planned->task, of_job_ns, early_ns, speed, now);
		done = grace_jobs_end(&planned->task, finished);
	}
	if (charge(&planned->task, ran_ns - of_job_ns, policy_minus(early_ns, of_job_ns), speed,
		   now))
		used_up = true;
	has_none = !used_up && !planned->task.left;
	if (has_none)
		grace_takes_turn(&planned->task.turns, ran_ns, now);
	bpf_spin_unlock(&planned->lock);
	if (has_none)
		owe_to_rest(post, ran_ns);
	if (used_up)
		COUNT(exhaustions);
	if (done && !member->partial && may_send(member, 1, now))
		send(GRACE_FINISHES, task->pid, done, finished);
	if (finished)
		member->partial = false;
}

#endif
