/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../../../schedulers/linux24/policy.h"
#include "shim.h"

SHIM(linux24, LINUX24_PARAMS_DEFAULT);
