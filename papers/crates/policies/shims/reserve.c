/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../../../schedulers/reserve/policy.h"

/*
 * The rules of group reservations as a table of functions: what crates/policies/src/reserve.rs
 * calls.
 */
extern const struct operations {
	u64 sizes[3];
	struct reserve_params default_params;
	void (*set)(struct reserve_group *, u64, u64, u64, u64);
	void (*clear)(struct reserve_group *);
	u64 (*wake)(struct reserve_group *, u64);
	void (*block)(struct reserve_group *);
	u64 (*available)(const struct reserve_group *);
	u64 (*take)(const struct reserve_params *, struct reserve_group *);
	u64 (*give_back)(struct reserve_group *, u64, u64, u64);
	bool (*timer)(struct reserve_group *, u64);
	void (*rest_wake)(const struct reserve_params *, struct reserve_rest *, u64);
	void (*rest_stand)(struct reserve_rest *, u64);
	void (*rest_charge)(struct reserve_rest *, u64, u64);
} onbeat_reserve;

const struct operations onbeat_reserve = {
	.sizes = { sizeof(struct reserve_params), sizeof(struct reserve_group),
		   sizeof(struct reserve_rest) },
	.default_params = RESERVE_PARAMS_DEFAULT,
	.set = reserve_set,
	.clear = reserve_clear,
	.wake = reserve_wake,
	.block = reserve_block,
	.available = reserve_available,
	.take = reserve_take,
	.give_back = reserve_return,
	.timer = reserve_timer,
	.rest_wake = reserve_rest_wake,
	.rest_stand = reserve_rest_stand,
	.rest_charge = reserve_rest_charge,
};
