/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A soft real-time program to schedule: periodic, its jobs as different as the frames of an MPEG
 * stream.
 *
 * The workload of the paper on missed deadline notification (S. A. Banachowski, J. Wu and S. A.
 * Brandt, section 4): a decoder that notifies each deadline it missed, a CPU-bound program, and the
 * programs of Fig. 7, which begin to cheat.
 *
 * srtgen KEY=VALUE...; without a value it says which there are. README.md beside it explains them.
 */
#define _GNU_SOURCE
#include <onbeat/job.h>
#include <onbeat/mdn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

/* What it is told. */
struct settings {
	int64_t period_us; /* of its jobs; the end of a period is the deadline */
	int64_t share; /* of a CPU that its jobs need, in permille; 1000: it computes without a pause */
	int64_t seconds;   /* for how long */
	int64_t seed;      /* of its demands, which nothing else decides */
	int64_t variation; /* in permille of a decoder's; 0: all jobs are alike */
	int64_t jitter;    /* in permille of the period: how irregular the releases are */
	int64_t mdn;       /* 1: it notifies each deadline that it missed */
	int64_t cry; /* notifications in a second of its computing, whether it is late or not */
	int64_t change_s;      /* from then on it is another program, with: */
	int64_t share_then;    /* ... this share */
	int64_t cry_then;      /* ... and so many notifications */
	int64_t backlog;       /* 1: what was late makes the next job late; 0: see next_release() */
	int64_t rounds_per_ms; /* how fast it computes; 0: it measures that itself */
	int64_t measure;       /* prints how fast it computes, and does nothing else */
	int64_t marks;         /* 1: it says where its jobs begin and end, and its period */
	int64_t print;         /* prints the demands of so many jobs (ns), and does nothing else */
	const char *demands;   /* a file of demands in ns, one a line, in place of drawn ones */
	const char *log;       /* where it writes a line for each job */
};

static struct settings told = {
	.period_us = 40000,
	.share = 500,
	.seconds = 30,
	.seed = 1,
	.variation = 1000,
};

static const struct {
	const char *name;
	int64_t *value;
} numbers[] = {
	{ "period_us", &told.period_us },
	{ "share", &told.share },
	{ "seconds", &told.seconds },
	{ "seed", &told.seed },
	{ "variation", &told.variation },
	{ "jitter", &told.jitter },
	{ "mdn", &told.mdn },
	{ "cry", &told.cry },
	{ "change_s", &told.change_s },
	{ "share_then", &told.share_then },
	{ "cry_then", &told.cry_then },
	{ "backlog", &told.backlog },
	{ "rounds_per_ms", &told.rounds_per_ms },
	{ "marks", &told.marks },
	{ "measure", &told.measure },
	{ "print", &told.print },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct job {
	int64_t release_ns, started_ns, finished_ns, demand_ns, used_ns, notified;
	int missed;
};

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec until = { ns / NS_PER_S, ns % NS_PER_S };

	/*
	 * A sleep until a time that is over is one of microseconds, and so a wakeup, which who is
	 * late does not make.
	 */
	if (ns <= now_ns(CLOCK_MONOTONIC))
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

/* splitmix64 (S. Vigna): the same numbers on every machine. */
static uint64_t random_number(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/*
 * About normal, with mean 0 and this deviation: the sum of twelve that are even. No draw is beyond
 * six deviations.
 */
static int64_t normal(uint64_t *state, int64_t deviation)
{
	int64_t sum = 0;

	for (int n = 0; n < 12; n++)
		sum += random_number(state) % 1001;
	return (sum - 6000) * deviation / 1000;
}

/* What the frames of a group of pictures (IBBPBBPBBPBB) demand, in permille of their mean. */
static const int64_t group[] = { 1300, 906, 906, 1150, 906, 906, 1150, 907, 906, 1150, 907, 906 };

enum { OWN_DEVIATION = 80, SCENE_DEVIATION = 60, SHORTEST_SCENE = 24, LONGEST_SCENE = 72 };

/*
 * A film: scenes that are harder or easier than the mean; each hard one is followed by one as long
 * and as easy.
 */
struct film {
	uint64_t random;
	int64_t frame, scene, left, length;
	int is_second;
};

/* The demand of the next frame, in permille of the mean. */
static int64_t next_frame(struct film *film)
{
	int64_t kind = group[film->frame++ % COUNT(group)] - 1000, own, demand;

	if (!film->left) {
		if (film->is_second) {
			film->scene = -film->scene;
		} else {
			film->scene = normal(&film->random, SCENE_DEVIATION);
			film->length = SHORTEST_SCENE + random_number(&film->random) %
								(LONGEST_SCENE - SHORTEST_SCENE);
		}
		film->is_second = !film->is_second;
		film->left = film->length;
	}
	film->left--;
	own = normal(&film->random, OWN_DEVIATION);
	demand = (1000 + kind * told.variation / 1000) *
		 (1000 + film->scene * told.variation / 1000) / 1000 *
		 (1000 + own * told.variation / 1000) / 1000;
	return demand > 100 ? demand : 100;
}

/* Demands that were recorded; they begin again at their end. */
static int64_t recorded_ns[100000];
static int recorded;

/* Lines that are no numbers are headings. */
static int read_demands(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[256];

	if (!file) {
		perror(path);
		return 0;
	}
	while (recorded < (int)COUNT(recorded_ns) && fgets(line, sizeof(line), file)) {
		long long demand_ns = strtoll(line, NULL, 10);

		if (demand_ns > 0)
			recorded_ns[recorded++] = demand_ns;
	}
	fclose(file);
	if (!recorded)
		fprintf(stderr, "srtgen: no demand in %s\n", path);
	return recorded > 0;
}

static int64_t next_demand_ns(struct film *film, int64_t share)
{
	if (recorded && share < 1000)
		return recorded_ns[film->frame++ % recorded];
	int64_t frame = next_frame(film), whole_ns = told.period_us * NS_PER_US;

	return share < 1000 ? whole_ns * share / 1000 * frame / 1000 : whole_ns;
}

/*
 * The unit of its work: equally many instructions each time. In a virtual machine with several CPUs
 * that take turns, PAUSE lets the others go on.
 */
static void one_round(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
	for (int turns = 500; turns > 0; turns--)
		__asm__ volatile("" : "+r"(turns));
}

/* The best of many tries: one that was interrupted is too slow. */
static int64_t measured_rounds_per_ms(void)
{
	enum { TRIES = 50, ROUNDS = 1000 };
	int64_t least_ns = INT64_MAX;

	for (int n = 0; n < TRIES; n++) {
		int64_t began_ns = now_ns(CLOCK_THREAD_CPUTIME_ID), took_ns;

		for (int round = 0; round < ROUNDS; round++)
			one_round();
		took_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
		if (took_ns > 0 && took_ns < least_ns)
			least_ns = took_ns;
	}
	return INT64_C(1000) * NS_PER_MS / least_ns + 1;
}

/* Computes for so long, and notifies so often in each second of it. Returns how often it did. */
static int64_t compute(int64_t demand_ns, int64_t cry)
{
	int64_t rounds = demand_ns * told.rounds_per_ms / NS_PER_MS, notified = 0;
	int64_t rounds_per_s = told.rounds_per_ms * 1000, owed = 0;

	while (rounds-- > 0) {
		one_round();
		for (owed += cry; owed >= rounds_per_s; owed -= rounds_per_s) {
			onbeat_mdn();
			notified++;
		}
	}
	return notified;
}

/*
 * When the job after a late one is released. "restart": at once, and the beat goes on from there,
 * as of who shows frame after frame without a clock. "backlog": when it was due, so it starts late,
 * too.
 */
static int64_t next_release(const struct job *job, int64_t period_ns, uint64_t *random)
{
	int64_t most_ns = period_ns * told.jitter / 1000;
	int64_t apart_ns = (int64_t)(random_number(random) % (2 * most_ns + 1)) - most_ns;
	int64_t due_ns = job->release_ns + period_ns + apart_ns;

	return job->finished_ns <= due_ns || told.backlog ? due_ns : job->finished_ns;
}

static void do_job(struct job *job, struct film *film, int has_changed)
{
	int64_t share = has_changed ? told.share_then : told.share;
	int64_t used_ns;

	job->demand_ns = next_demand_ns(film, share);
	if (share < 1000)
		sleep_until(job->release_ns);
	job->started_ns = now_ns(CLOCK_MONOTONIC);
	if (told.marks)
		onbeat_job_begin();
	used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	job->notified = compute(job->demand_ns, has_changed ? told.cry_then : told.cry);
	job->used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns;
	job->finished_ns = now_ns(CLOCK_MONOTONIC);
	if (told.marks)
		onbeat_job_end();
	job->missed =
		share < 1000 && job->finished_ns > job->release_ns + told.period_us * NS_PER_US;
	if (job->missed && told.mdn) {
		onbeat_mdn();
		job->notified++;
	}
}

static int write_log(const struct job *jobs, int64_t count)
{
	FILE *log = told.log ? fopen(told.log, "w") : stdout;

	if (!log) {
		perror(told.log);
		return 1;
	}
	fprintf(log, "job,release_ns,started_ns,finished_ns,demand_ns,used_ns,missed,notified\n");
	for (int64_t n = 0; n < count; n++) {
		const struct job *job = &jobs[n];

		fprintf(log, "%lld,%lld,%lld,%lld,%lld,%lld,%d,%lld\n", (long long)n,
			(long long)job->release_ns, (long long)job->started_ns,
			(long long)job->finished_ns, (long long)job->demand_ns,
			(long long)job->used_ns, job->missed, (long long)job->notified);
	}
	if (fclose(log)) {
		perror("srtgen: the log");
		return 1;
	}
	return 0;
}

static int usage(const char *wrong)
{
	fprintf(stderr, "srtgen: not understood: %s\nusage: srtgen KEY=VALUE..., with the keys",
		wrong);
	for (size_t n = 0; n < COUNT(numbers); n++)
		fprintf(stderr, " %s", numbers[n].name);
	fprintf(stderr, " demands log\n");
	return 2;
}

/* The value, if the argument is for this key. */
static const char *value_of(const char *argument, const char *key)
{
	size_t length = strlen(key);

	return !strncmp(argument, key, length) && argument[length] == '=' ? argument + length + 1
									  : NULL;
}

static int take(const char *argument)
{
	const char *value;
	char *end;

	value = value_of(argument, "log");
	if (value) {
		told.log = value;
		return 1;
	}
	value = value_of(argument, "demands");
	if (value) {
		told.demands = value;
		return 1;
	}
	for (size_t n = 0; n < COUNT(numbers); n++) {
		value = value_of(argument, numbers[n].name);
		if (!value)
			continue;
		*numbers[n].value = strtoll(value, &end, 10);
		return end != value && !*end && *numbers[n].value >= 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct film film = { 0 };
	struct job *jobs;
	int64_t began_ns, period_ns, count = 0, most, release_ns;
	uint64_t random;

	for (int n = 1; n < argc; n++)
		if (!take(argv[n]))
			return usage(argv[n]);
	if (told.period_us < 100 || told.period_us > 10000000 || told.seconds > 86400)
		return usage("period_us from 100 to 10000000, seconds up to 86400");
	if (told.jitter > 900)
		return usage("jitter up to 900");
	if (told.demands && !read_demands(told.demands))
		return 1;
	film.random = told.seed;
	random = ~told.seed;
	for (int64_t n = 0; n < told.print; n++)
		printf("%lld\n", (long long)next_demand_ns(&film, told.share));
	if (told.print)
		return 0;
	if (!told.rounds_per_ms)
		told.rounds_per_ms = measured_rounds_per_ms();
	if (told.measure)
		return printf("%lld\n", (long long)told.rounds_per_ms) < 0;

	period_ns = told.period_us * NS_PER_US;
	/* With jitter, jobs may be closer together than a period: up to ten times as many. */
	most = told.seconds * NS_PER_S / period_ns * (told.jitter ? 10 : 1) + 1;
	jobs = calloc(most, sizeof(*jobs));
	if (!jobs) {
		perror("srtgen: calloc");
		return 1;
	}
	if (told.marks) {
		/* The share that onbeat aims at for programs that say nothing. */
		onbeat_realtime_start(period_ns, 990);
	}
	began_ns = now_ns(CLOCK_MONOTONIC);
	release_ns = began_ns + period_ns;
	while (count < most && release_ns < began_ns + told.seconds * NS_PER_S) {
		struct job *job = &jobs[count++];
		int64_t since_s = (release_ns - began_ns) / NS_PER_S;

		job->release_ns = release_ns;
		do_job(job, &film, told.change_s && since_s >= told.change_s);
		release_ns = next_release(job, period_ns, &random);
	}
	return write_log(jobs, count);
}
