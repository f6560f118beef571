/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Prints samples of the notification latency, as `LIMIT_NS DELAY_NS` lines: what the experiment
 * notification-latency draws the paper's Fig. 3 to 6 from.
 */
#include "sample.h"

static int kind_of(const char *name)
{
	static const char *const names[] = { "deadline", "wcet", "wcet-by-timer" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(name, names[i]) == 0)
			return i;
	}
	return -1;
}

int main(int count, char **arguments)
{
	int64_t end_ns;
	int kind, error;

	if (count < 5 || (kind = kind_of(arguments[1])) < 0 || atof(arguments[3]) <= 0) {
		fprintf(stderr,
			"usage: %s deadline|wcet|wcet-by-timer other|fifo|deadline SECONDS LIMIT_US...\n"
			"Goes through the limits again and again until the time is over.\n",
			arguments[0]);
		return 2;
	}
	/*
	 * First, for a thread under SCHED_DEADLINE starts none that is: the portable form's router.
	 */
	if (choose_source((enum kind)kind)) {
		fprintf(stderr, "%s cannot be had here: perf_event_paranoid may forbid it\n", arguments[1]);
		return 1;
	}
	sample_ns(DEADLINE, ONBEAT_US(100));
	error = set_policy(arguments[2]);
	if (error) {
		fprintf(stderr, "policy %s: %s\n", arguments[2], strerror(-error));
		return 1;
	}
	end_ns = now_ns() + (int64_t)(atof(arguments[3]) * 1e9);
	for (volatile int i = 4; now_ns() < end_ns; i = i + 1 < count ? i + 1 : 4) {
		int64_t limit_ns = ONBEAT_US(atoll(arguments[i]));
		int64_t delay_ns = sample_ns((enum kind)kind, limit_ns);

		printf("%lld %lld\n", (long long)limit_ns, (long long)delay_ns);
		pause_after(limit_ns);
	}
	return 0;
}
