/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program's messages about its jobs: where one begins and ends, and what it wants.
 *
 * Each call is a static probe (USDT) and nothing else: instructions that do nothing without a
 * listener, no set-up, no descriptor. A program that marks its jobs needs no period detection.
 */
#ifndef ONBEAT_JOB_H
#define ONBEAT_JOB_H

#include <stdint.h>
#include <onbeat/probe.h>

#pragma push_macro("_SDT_NOP")
#undef _SDT_NOP
#define _SDT_NOP ONBEAT_PROBE_NOP
#pragma push_macro("STAP_SDT_ARG_CONSTRAINT")
#undef STAP_SDT_ARG_CONSTRAINT
#define STAP_SDT_ARG_CONSTRAINT ONBEAT_PROBE_ARGUMENTS

#ifdef __cplusplus
extern "C" {
#endif

/* This thread begins a job (AQuoSA's qmgr_begin_cycle). */
ONBEAT_PROBE void onbeat_job_begin(void)
{
	DTRACE_PROBE(onbeat, job_begin);
}

/* This thread has ended the job it began (AQuoSA's qmgr_end_cycle). */
ONBEAT_PROBE void onbeat_job_end(void)
{
	DTRACE_PROBE(onbeat, job_end);
}

/*
 * This thread is soft real-time from now on: one job every `period_ns`, and `permille` of a
 * thousand jobs are to meet their deadline (GRACE-OS, start with period and rho). Messages before a
 * listener comes are lost, so it may be called again, for instance with each job.
 */
ONBEAT_PROBE void onbeat_realtime_start(int64_t period_ns, int permille)
{
	DTRACE_PROBE2(onbeat, realtime_start, period_ns, permille);
}

/* This thread has finished a job (GRACE-OS, finish_job). */
ONBEAT_PROBE void onbeat_realtime_finish_job(void)
{
	DTRACE_PROBE(onbeat, realtime_finish_job);
}

/* This thread is soft real-time no longer (GRACE-OS, exit). */
ONBEAT_PROBE void onbeat_realtime_exit(void)
{
	DTRACE_PROBE(onbeat, realtime_exit);
}

#ifdef __cplusplus
}
#endif

#pragma pop_macro("STAP_SDT_ARG_CONSTRAINT")
#pragma pop_macro("_SDT_NOP")

#endif
