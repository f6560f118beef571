/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../../../schedulers/best/policy.h"
#include "shim.h"

SHIM(best, BEST_PARAMS_DEFAULT);
