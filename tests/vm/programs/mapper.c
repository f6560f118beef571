/* Processes that take long to end: each has many mappings, which the kernel gives back at its end.
 *
 * usage: mapper PROCESSES MAPPINGS
 *        One process after the other makes so many mappings of a page each, and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

/* Neighbours differ in their rights, so that the kernel keeps each page as a mapping of its own. */
static int map_and_end(long mappings)
{
	char *pages = mmap(NULL, mappings * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return 1;
	for (long page = 0; page < mappings; page++)
		pages[page * PAGE] = 1;
	for (long page = 0; page < mappings; page += 2)
		if (mprotect(pages + page * PAGE, PAGE, PROT_READ))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: mapper PROCESSES MAPPINGS\n");
		return 2;
	}
	for (long processes = atol(argv[1]); processes > 0; processes--) {
		int status;
		pid_t child = fork();

		if (child == 0)
			_exit(map_and_end(atol(argv[2])));
		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
			fprintf(stderr, "mapper: a process could not make its mappings\n");
			return 1;
		}
	}
	return 0;
}
