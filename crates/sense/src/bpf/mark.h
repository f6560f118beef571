/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mark as a program makes it: prctl(MARK, kind, period_ns, permille). No kernel knows the option,
 * so it answers EINVAL and does nothing. The numbers are those of <onbeat/job.h>.
 */
#ifndef ONBEAT_MARK_H
#define ONBEAT_MARK_H

#define MARK 0x4f4e4254 /* "ONBT" */

enum mark_kind {
	MARK_JOB_BEGAN = 1,
	MARK_JOB_ENDED = 2,
	MARK_MISSED_DEADLINE = 3,
	MARK_REALTIME_STARTED = 4, /* with a period and a share of jobs */
	MARK_REALTIME_EXITED = 5,
};

/* Added to the kind: it is the mark of the thread that started this process. A shell has no own. */
#define MARK_OF_PARENT 0x100

#endif
