/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* dlclose while a notification may be on its way: the library stays mapped. */
#include <dlfcn.h>

#include "check.h"

int main(void)
{
	for (int i = 0; i < 20; i++) {
		void *library = dlopen(ONBEAT_LIBRARY, RTLD_NOW);
		int (*max_depth)(void);
		int64_t (*remaining)(void);

		if (!library)
			fprintf(stderr, "%s\n", dlerror());
		check(library);
		*(void **)&max_depth = dlsym(library, "onbeat_max_depth");
		*(void **)&remaining = dlsym(library, "onbeat_remaining");
		check(max_depth && remaining);
		check(max_depth() > 0);
		dlclose(library);
		/* Still there: a late signal could call its code. */
		check(remaining() == INT64_MAX);
	}
	return 0;
}
