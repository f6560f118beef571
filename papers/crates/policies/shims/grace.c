/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../../../schedulers/common/policy.h"

/* The rules of GRACE-OS, as functions that can be linked to. */
#define static
#define inline
#include "../../../schedulers/grace/policy.h"

u64 grace_size_of_task(void)
{
	return sizeof(struct grace_task);
}
