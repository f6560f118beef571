/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How late a violation is notified and what a block costs, beside what they ought to be. Each row
 * is measured in a process of its own, with pauses, so that real-time throttling is not what is
 * measured. --quick measures a tenth, to see that it works.
 */
#include "sample.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LOAD 5
#define MEMORY_BYTES (64 << 20)
#define MOST 2000
#define BATCH 1000

struct figures {
	int64_t p50_ns, p99_ns, max_ns;
};

/* A goal of 0 is none. */
struct row {
	const char *what, *policy;
	int loaded;
	enum { NOTIFICATION, ALONE, NESTED } measures;
	enum kind kind;
	int samples;
	int64_t goal_p50_ns, goal_p99_ns;
};

static const struct row rows[] = {
	{ "deadline notification", "other", 0, NOTIFICATION, DEADLINE, 2000, 20000, 60000 },
	{ "deadline notification", "fifo", 0, NOTIFICATION, DEADLINE, 2000, 20000, 60000 },
	{ "deadline notification", "deadline", 0, NOTIFICATION, DEADLINE, 2000, 0, 0 },
	{ "deadline notification", "other", 1, NOTIFICATION, DEADLINE, 500, 0, 0 },
	{ "deadline notification", "fifo", 1, NOTIFICATION, DEADLINE, 2000, 0, 0 },
	{ "deadline notification", "deadline", 1, NOTIFICATION, DEADLINE, 2000, 0, 100000 },
	{ "execution-time notification", "other", 0, NOTIFICATION, WCET, 2000, 50000, 300000 },
	{ "execution-time notification", "fifo", 0, NOTIFICATION, WCET, 2000, 0, 0 },
	{ "execution-time notification", "deadline", 1, NOTIFICATION, WCET, 2000, 0, 0 },
	{ "the same, by the CPU-time timer", "other", 0, NOTIFICATION, WCET_BY_TIMER, 500, 0, 0 },
	{ "enter and leave a block", "other", 0, ALONE, DEADLINE, 200, 1500, 0 },
	{ "enter and leave, nested, not earliest", "other", 0, NESTED, DEADLINE, 200, 300, 0 },
};

static int64_t samples_ns[MOST];

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The mean of BATCH blocks that end at once. */
static int64_t block_ns(void)
{
	int64_t begin_ns = now_ns();

	for (volatile int i = 0; i < BATCH; i++) {
		onbeat_try_within_rel (ONBEAT_S(1000)) {
		}
		onbeat_handle
		onbeat_end;
	}
	return (now_ns() - begin_ns) / BATCH;
}

static void measure(const struct row *row, int samples)
{
	for (volatile int i = 0; i < samples; i++) {
		if (row->measures == NOTIFICATION) {
			samples_ns[i] = sample_ns(row->kind, ONBEAT_US(500));
			pause_after(ONBEAT_US(500));
		} else if (row->measures == ALONE) {
			samples_ns[i] = block_ns();
		} else {
			onbeat_try_within_rel (ONBEAT_S(100)) {
				samples_ns[i] = block_ns();
			}
			onbeat_handle
			onbeat_end;
		}
	}
}

/* In a child: measures, and writes the figures to `out`, or a message; then it is done. */
static void in_a_child(const struct row *row, int samples, int out)
{
	struct figures figures;
	int error = set_policy(row->policy);

	if (error) {
		fprintf(stderr, "policy %s: %s; left out\n", row->policy, strerror(-error));
		_exit(1);
	}
	if (row->measures == NOTIFICATION && choose_source(row->kind)) {
		fprintf(stderr, "perf's task clock cannot be had (kernel.perf_event_paranoid); left out\n");
		_exit(1);
	}
	measure(row, samples);
	qsort(samples_ns, (size_t)samples, sizeof(samples_ns[0]), ascending);
	figures.p50_ns = samples_ns[samples / 2];
	figures.p99_ns = samples_ns[samples * 99 / 100];
	figures.max_ns = samples_ns[samples - 1];
	_exit(write(out, &figures, sizeof(figures)) == sizeof(figures) ? 0 : 1);
}

static int figures_of(const struct row *row, int samples, struct figures *figures)
{
	int pipes[2];
	ssize_t length;
	pid_t child;

	if (pipe(pipes))
		return -1;
	fflush(NULL);
	child = fork();
	if (child == 0)
		in_a_child(row, samples, pipes[1]);
	close(pipes[1]);
	length = child < 0 ? -1 : read(pipes[0], figures, sizeof(*figures));
	close(pipes[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return length == (ssize_t)sizeof(*figures) ? 0 : -1;
}

/* The paper's Table 1, its third row: four that compute and one that writes memory. */
static void start_load(pid_t load[LOAD])
{
	for (int i = 0; i < LOAD; i++) {
		load[i] = fork();
		if (load[i] != 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (i == LOAD - 1) {
			volatile char *memory = malloc(MEMORY_BYTES);

			for (size_t at = 0; memory; at = (at + 64) % MEMORY_BYTES)
				memory[at]++;
		}
		for (;;)
			;
	}
}

static void end_load(const pid_t load[LOAD])
{
	for (int i = 0; i < LOAD; i++) {
		if (load[i] > 0) {
			kill(load[i], SIGKILL);
			waitpid(load[i], NULL, 0);
		}
	}
}

static const char *goal(char text[32], int64_t goal_ns, int64_t is_ns)
{
	if (goal_ns == 0)
		return "";
	snprintf(text, 32, "< %.1f%s", (double)goal_ns / 1e3, is_ns < goal_ns ? "" : " MISSED");
	return text;
}

static void report(const struct row *row, const struct figures *f)
{
	char p50[32], p99[32];

	printf("| %-37s | %-8s | %-4s | %9.3f | %-12s | %9.3f | %-14s | %9.3f |\n", row->what, row->policy,
	       row->loaded ? "5" : "none", (double)f->p50_ns / 1e3, goal(p50, row->goal_p50_ns, f->p50_ns),
	       (double)f->p99_ns / 1e3, goal(p99, row->goal_p99_ns, f->p99_ns), (double)f->max_ns / 1e3);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	const int divisor = count > 1 ? 10 : 1;

	if (count > 2 || (count == 2 && strcmp(arguments[1], "--quick") != 0)) {
		fprintf(stderr, "usage: %s [--quick]\n", arguments[0]);
		return 2;
	}
	printf("microseconds:\n\n| %-37s | %-8s | %-4s | %9s | %-12s | %9s | %-14s | %9s |\n", "what", "policy",
	       "load", "p50", "goal", "p99", "goal", "max");
	puts("|---|---|---|--:|---|--:|---|--:|");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct figures figures;
		pid_t load[LOAD];
		int error;

		if (rows[i].loaded)
			start_load(load);
		error = figures_of(&rows[i], rows[i].samples / divisor, &figures);
		if (rows[i].loaded)
			end_load(load);
		if (!error)
			report(&rows[i], &figures);
	}
	return 0;
}
