/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../../../schedulers/common/policy.h"

/* The rules of group reservations, as functions that can be linked to. */
#define static
#define inline
#include "../../../schedulers/reserve/policy.h"

const struct reserve_params reserve_default_params = RESERVE_PARAMS_DEFAULT;
const u64 reserve_sizes[2] = { sizeof(struct reserve_params), sizeof(struct reserve_group) };
