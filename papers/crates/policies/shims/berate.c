/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../../../schedulers/berate/policy.h"
#include "shim.h"

SHIM(berate, BERATE_PARAMS_DEFAULT);
