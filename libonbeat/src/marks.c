/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of <onbeat/job.h> and <onbeat/mdn.h> as functions of the library, for languages that
 * cannot include a header. Their probes are then in the library, not in the caller's code.
 *
 * A C library without <sys/sdt.h>, such as musl, gives a library without them.
 */
#if __has_include(<sys/sdt.h>)
#include <onbeat/probe.h>

#undef ONBEAT_PROBE
#define ONBEAT_PROBE __attribute__((noinline))

#include <onbeat/job.h>
#include <onbeat/mdn.h>
#else
typedef int no_probes;
#endif
