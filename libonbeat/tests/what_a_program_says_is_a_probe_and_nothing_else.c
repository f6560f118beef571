/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mdn() and the job marks are static probes that the kernel's tools find by name, with their
 * arguments.
 */
#define ONBEAT_SHORT_NAMES
#include <onbeat/job.h>
#include <onbeat/mdn.h>

#include <string.h>

#include "check.h"

int main(void)
{
	static const char *const names[] = { "mdn", "job_begin", "job_end", "realtime_start",
					     "realtime_finish_job", "realtime_exit" };
	static char notes[65536];
	FILE *readelf = popen("readelf --notes --wide /proc/$PPID/exe", "r");
	size_t length;

	onbeat_job_begin();
	mdn();
	onbeat_mdn();
	onbeat_job_end();
	onbeat_realtime_start(INT64_C(40000000), 950);
	onbeat_realtime_finish_job();
	onbeat_realtime_exit();
	check(readelf);
	length = fread(notes, 1, sizeof(notes) - 1, readelf);
	notes[length] = 0;
	check(pclose(readelf) == 0);
	check(strstr(notes, "Provider: onbeat"));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char wanted[64];

		snprintf(wanted, sizeof(wanted), "Name: %s\n", names[i]);
		check(strstr(notes, wanted));
	}
	return 0;
}
