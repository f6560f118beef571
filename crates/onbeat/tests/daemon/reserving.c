/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that reserves by libonbeat what its standard input says, one line at a time, and says
 * in one line each how that went: "done", or the error's name and the reason.
 *
 *   attach TID       process PID      change RUNTIME_NS DEADLINE_NS PERIOD_NS
 *   detach TID       leave PID        threads COUNT (each reserves for itself, thrice)
 *   fork (a child reserves for itself, says its number, and waits)
 *   ask (another thread asks for itself; "forked" once a child was made while it waits)
 *   answered (how that went; it gives back what it got)
 *   share            burn COUNT (so many threads compute)     rest (until then)
 *   balance (threads, what they used, what is left)
 *   audio BUDGET_NS (for 480 frames at 48 kHz; "done" or "priority")   end (of the reservation)
 *   compute (another thread reserves very little, says its number, and computes until the end)
 */
#include <onbeat/reserve.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static struct onbeat_reservation *reservation;

static void say(int error)
{
	if (error)
		printf("%s %s\n", strerrorname_np(-error), onbeat_reservation_reason());
	else
		puts("done");
}

/* Other programs of the machine may have what is free for a while. */
static int attach_in_the_end(struct onbeat_reservation *own)
{
	int error = onbeat_reservation_attach(own, 0);

	for (int i = 0; error == -EBUSY && i < 3000; i++) {
		usleep(10000);
		error = onbeat_reservation_attach(own, 0);
	}
	return error;
}

static void *reserve_for_itself(void *failed)
{
	struct onbeat_reservation *own;

	if (onbeat_reservation_create(&own, MS / 5, 10 * MS, 10 * MS))
		return failed;
	for (int i = 0; i < 3; i++) {
		if (attach_in_the_end(own) || onbeat_reservation_detach(own, 0)) {
			fprintf(stderr, "%s\n", onbeat_reservation_reason());
			return failed;
		}
	}
	onbeat_reservation_destroy(own);
	return NULL;
}

static void reserve_in_threads(int count)
{
	static pthread_t threads[16];
	void *failed = NULL, *returned;

	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, reserve_for_itself, &threads);
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], &returned);
		failed = returned ? returned : failed;
	}
	puts(failed ? "failed" : "done");
}

static void have_a_child(void)
{
	int error;

	if (fork())
		return;
	/* It outlives its parent, and the test by two minutes at most. */
	if (onbeat_reservation_create(&reservation, MS, 10 * MS, 10 * MS))
		_exit(1);
	error = attach_in_the_end(reservation);
	if (error)
		say(error);
	else
		printf("%d\n", getpid());
	alarm(120);
	for (;;)
		pause();
}

static void *compute(void *nothing)
{
	struct onbeat_reservation *own;
	int error;

	if (onbeat_reservation_create(&own, 5 * MS, 1000 * MS, 1000 * MS))
		abort();
	error = attach_in_the_end(own);
	if (error) {
		say(error);
		return nothing;
	}
	printf("%ld\n", syscall(SYS_gettid));
	for (volatile unsigned int n = 0;; n++)
		;
}

static atomic_bool rests;
static pthread_t burners[16];
static int burning;

static void *burn(void *nothing)
{
	while (!rests)
		;
	return nothing;
}

static void rest(void)
{
	rests = true;
	while (burning)
		pthread_join(burners[--burning], NULL);
}

static void say_balance(void)
{
	struct onbeat_reservation_state state;
	int64_t remaining_ns;
	int error = onbeat_reservation_query(reservation, &state);

	if (!error)
		error = onbeat_reservation_remaining(reservation, &remaining_ns);
	if (error)
		say(error);
	else
		printf("%d %" PRId64 " %" PRId64 "\n", state.threads, state.consumed_ns,
		       remaining_ns);
}

static pthread_t asker;
static _Atomic pid_t asker_tid;
static int asker_error;
static char asker_reason[512];

static void *ask(void *nothing)
{
	struct onbeat_reservation *own;

	if (onbeat_reservation_create(&own, MS / 5, 10 * MS, 10 * MS))
		abort();
	asker_tid = (pid_t)syscall(SYS_gettid);
	asker_error = onbeat_reservation_attach(own, 0);
	snprintf(asker_reason, sizeof(asker_reason), "%s", onbeat_reservation_reason());
	onbeat_reservation_destroy(own);
	return nothing;
}

/* Whether the thread waits in ppoll: nothing that it calls does but sd-bus. */
static int waits(pid_t tid)
{
	char path[64];
	long call = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%ld", &call) != 1)
		call = -1;
	fclose(file);
	return call == SYS_ppoll;
}

static void fork_while_another_asks(void)
{
	pid_t child;

	pthread_create(&asker, NULL, ask, NULL);
	while (!asker_tid || !waits(asker_tid))
		usleep(1000);
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	puts("forked");
}

static void say_what_was_answered(void)
{
	pthread_join(asker, NULL);
	if (asker_error)
		printf("%s %s\n", strerrorname_np(-asker_error), asker_reason);
	else
		puts("done");
}

int main(void)
{
	char line[100], what[20];
	long long first, second, third;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (onbeat_reservation_create(&reservation, MS, 10 * MS, 10 * MS))
		return 1;
	puts("here");
	while (fgets(line, sizeof(line), stdin)) {
		first = second = third = 0;
		if (sscanf(line, "%19s %lld %lld %lld", what, &first, &second, &third) < 1)
			continue;
		if (strcmp(what, "attach") == 0)
			say(onbeat_reservation_attach(reservation, (pid_t)first));
		else if (strcmp(what, "detach") == 0)
			say(onbeat_reservation_detach(reservation, (pid_t)first));
		else if (strcmp(what, "process") == 0)
			say(onbeat_reservation_attach_process(reservation, (pid_t)first));
		else if (strcmp(what, "leave") == 0)
			say(onbeat_reservation_detach_process(reservation, (pid_t)first));
		else if (strcmp(what, "change") == 0)
			say(onbeat_reservation_change(reservation, first, second, third));
		else if (strcmp(what, "threads") == 0)
			reserve_in_threads((int)first);
		else if (strcmp(what, "fork") == 0)
			have_a_child();
		else if (strcmp(what, "ask") == 0)
			fork_while_another_asks();
		else if (strcmp(what, "answered") == 0)
			say_what_was_answered();
		else if (strcmp(what, "end") == 0) {
			onbeat_reservation_destroy(reservation);
			reservation = NULL;
			puts("done");
		} else if (strcmp(what, "audio") == 0) {
			int means = onbeat_keep_audio_thread(&reservation, 480, 48000, first);

			if (means == 1)
				puts("priority");
			else
				say(means);
		} else if (strcmp(what, "share") == 0)
			say(onbeat_reservation_share(reservation));
		else if (strcmp(what, "burn") == 0) {
			while (first-- > 0)
				pthread_create(&burners[burning++], NULL, burn, NULL);
			puts("done");
		} else if (strcmp(what, "rest") == 0) {
			rest();
			puts("done");
		} else if (strcmp(what, "balance") == 0)
			say_balance();
		else if (strcmp(what, "compute") == 0)
			pthread_create(&asker, NULL, compute, NULL);
		else
			puts("nobody knows how to do that");
	}
	onbeat_reservation_destroy(reservation);
	return 0;
}
