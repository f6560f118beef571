/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of <onbeat/job.h> and <onbeat/mdn.h> as functions of the library, for languages that
 * cannot include a header.
 */
#define ONBEAT_MARKS

#include <onbeat/job.h>
#include <onbeat/mdn.h>
