/*
 * The programs that the live tests trace, in one: reads commands of one byte from standard input
 * and answers each with a byte, so that a test knows what it has done, and blocks between them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <onbeat/job.h>
#include <onbeat/mdn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCHES = 10,
	BATCH = 50,
	HELD = 3,
	JOBS = 1009,
	FLOOD = 200003,
	PERIOD_NS = 40000000,
	PERMILLE = 950,
	WORK_NS = 200000,
	SLEEPS = 23,
	SLEEP_NS = 2000003,
	READS = 23,
	BLOCK = 4096
};

static void *pass(void *unused)
{
	return unused;
}

static void *hold(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *become_cat(void *unused)
{
	execlp("cat", "cat", (char *)0);
	_exit(1);
	return unused;
}

struct side {
	int from;
	int to;
};

static void *play(void *argument)
{
	struct side *side = argument;
	char ball;

	while (read(side->from, &ball, 1) == 1 && write(side->to, &ball, 1) == 1)
		;
	return 0;
}

static void start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, 0, run, argument))
		_exit(1);
}

static void come_and_go(void)
{
	for (int batch = 0; batch < BATCHES; batch++) {
		pthread_t threads[BATCH];

		for (int i = 0; i < BATCH; i++)
			if (pthread_create(&threads[i], 0, pass, 0))
				_exit(1);
		for (int i = 0; i < BATCH; i++)
			pthread_join(threads[i], 0);
	}
}

static void ping_pong(void)
{
	static struct side sides[2];
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		_exit(1);
	sides[0] = (struct side){ back[0], there[1] };
	sides[1] = (struct side){ there[0], back[1] };
	start(play, &sides[0]);
	start(play, &sides[1]);
	if (write(back[1], "o", 1) != 1)
		_exit(1);
}

static void bear_child(void)
{
	struct timespec moment = { 0, 1000000 };
	pid_t child = fork();

	if (child < 0)
		_exit(1);
	if (!child) {
		nanosleep(&moment, 0);
		_exit(0);
	}
	waitpid(child, 0, 0);
}

/* So much that the way to the CPU and from it does not count beside it. */
static void compute(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < WORK_NS);
}

/* Sleeps until one time after the other, the first of them this time from now. */
static void sleep_until(long from_now_s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += from_now_s;
	for (int i = 0; i < SLEEPS; i++) {
		until.tv_nsec += SLEEP_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0))
			_exit(1);
		compute();
	}
}

/* Waits for a timer with an interval. */
static void sleep_on_timer(void)
{
	struct itimerspec interval = { { 0, SLEEP_NS }, { 0, SLEEP_NS } };
	int timer = timerfd_create(CLOCK_REALTIME, 0);
	unsigned long expired;

	if (timer < 0 || timerfd_settime(timer, 0, &interval, 0))
		_exit(1);
	for (int i = 0; i < SLEEPS; i++)
		if (read(timer, &expired, sizeof(expired)) != sizeof(expired))
			_exit(1);
	close(timer);
}

static void mark_jobs(void)
{
	onbeat_realtime_start(PERIOD_NS, PERMILLE);
	for (int job = 0; job < JOBS; job++) {
		onbeat_job_begin();
		onbeat_job_end();
	}
	onbeat_realtime_exit();
}

static void cry_wolf(void)
{
	for (int i = 0; i < FLOOD; i++)
		onbeat_mdn();
}

static void change_names(void)
{
	char name[16];

	for (int i = 0; i < FLOOD; i++) {
		snprintf(name, sizeof(name), "%d", i);
		prctl(PR_SET_NAME, name);
	}
}

/* Waits for the disk, past the page cache. */
static void read_file(const char *path)
{
	int file = open(path, O_RDONLY | O_DIRECT);
	void *block;

	if (file < 0 || posix_memalign(&block, BLOCK, BLOCK))
		_exit(1);
	for (int i = 0; i < READS; i++)
		if (pread(file, block, BLOCK, 0) <= 0)
			_exit(1);
	free(block);
	close(file);
}

int main(int argc, char **argv)
{
	char command = 'r';

	/* It does not outlive a test that is killed, and disturb the next ones. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A page fault that waits for a disk would be a burst more. */
	mlockall(MCL_CURRENT);
	do {
		switch (command) {
		case 'n':
			prctl(PR_SET_NAME, "renamed");
			break;
		case 'N':
			change_names();
			become_cat(0);
			break;
		case 'x':
			become_cat(0);
			break;
		case 'X':
			start(become_cat, 0);
			hold(0);
			break;
		case 't':
			come_and_go();
			break;
		case 'h':
			for (int i = 0; i < HELD; i++)
				start(hold, 0);
			break;
		case 'p':
			ping_pong();
			break;
		case 'f':
			bear_child();
			break;
		case 'j':
			mark_jobs();
			break;
		case 'c':
			compute();
			break;
		case 'a':
			sleep_until(0);
			break;
		case 'o':
			sleep_until(-1);
			break;
		case 'i':
			sleep_on_timer();
			break;
		case 'w':
			cry_wolf();
			break;
		case 'd':
			read_file(argv[argc - 1]);
			break;
		case 's':
			for (;;)
				;
		case 'y':
			for (;;)
				sched_yield();
		}
		if (write(1, &command, 1) != 1)
			return 1;
	} while (read(0, &command, 1) == 1);
	return 0;
}
