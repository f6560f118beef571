/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Thousands of threads with constraints come and go: no timer, descriptor or memory is kept. */
#include <onbeat/within.h>

#include <dirent.h>

#include "check.h"

static void *have_blocks(void *unused)
{
	onbeat_try_within_rel (ONBEAT_S(100)) {
		onbeat_try_within_wcet (ONBEAT_S(100)) {
		}
		onbeat_handle
		onbeat_end;
	}
	onbeat_handle
	onbeat_end;
	return unused;
}

/* The lines of a file, or the files of a folder. */
static int count(const char *path)
{
	DIR *folder = opendir(path);
	FILE *file = folder ? NULL : fopen(path, "r");
	int count = 0, byte;

	while (folder && readdir(folder))
		count++;
	while (file && (byte = fgetc(file)) != EOF)
		count += byte == '\n';
	if (folder)
		closedir(folder);
	if (file)
		fclose(file);
	return count;
}

int main(void)
{
	int descriptors = 0, timers = 0;

	for (int i = 0; i < 2010; i++) {
		if (i == 10) {
			descriptors = count("/proc/self/fd");
			timers = count("/proc/self/timers");
		}
		in_a_thread(have_blocks);
	}
	check(count("/proc/self/fd") == descriptors && count("/proc/self/timers") == timers);
	return 0;
}
