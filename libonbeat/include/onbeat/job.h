/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program's messages about its jobs: where one begins and ends, and what it wants.
 *
 * Each is a mark: prctl(ONBEAT_MARK, kind, period_ns, permille), an option that no kernel knows.
 * The call fails with EINVAL, and nothing else happens; onbeat hears it. docs/marks.md has it for
 * other languages. A program that marks its jobs needs no period detection.
 */
#ifndef ONBEAT_JOB_H
#define ONBEAT_JOB_H

#include <onbeat/mark.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This thread begins a job (AQuoSA's qmgr_begin_cycle). */
ONBEAT_MARKS void onbeat_job_begin(void)
{
	onbeat_mark_(onbeat_begin_, 0, 0);
}

/* This thread has ended the job it began (AQuoSA's qmgr_end_cycle). */
ONBEAT_MARKS void onbeat_job_end(void)
{
	onbeat_mark_(onbeat_end_, 0, 0);
}

/*
 * This thread is soft real-time from now on: one job every `period_ns`, and `permille` of a
 * thousand jobs are to meet their deadline (GRACE-OS, start with period and rho). Messages before a
 * listener comes are lost, so it may be called again, for instance with each job.
 */
ONBEAT_MARKS void onbeat_realtime_start(int64_t period_ns, int permille)
{
	onbeat_mark_(onbeat_start_, period_ns, permille);
}

/*
 * This thread has finished a job (GRACE-OS, finish_job): the same as onbeat_job_end. One of them a
 * job: what ends a job again is not counted.
 */
ONBEAT_MARKS void onbeat_realtime_finish_job(void)
{
	onbeat_mark_(onbeat_end_, 0, 0);
}

/* This thread is soft real-time no longer (GRACE-OS, exit). */
ONBEAT_MARKS void onbeat_realtime_exit(void)
{
	onbeat_mark_(onbeat_exit_, 0, 0);
}

#ifdef __cplusplus
}
#endif

#endif
