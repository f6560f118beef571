/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The command line of the player. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "player.h"

#define EXIT_USAGE 2

static const char help[] =
	"Plays a film, and drops frames when the machine is too slow for it.\n"
	"\n"
	"usage: player [--drop RULE] [--output WHERE] [--statistics FILE] FILM\n"
	"\n"
	"  -d, --drop RULE        none, heuristic (decides in advance, by the present A/V delay)\n"
	"                         or deadline (decodes until the frame's time is over); default: deadline\n"
	"  -o, --output WHERE     x11 or none (decodes and keeps the time, shows nothing); default: x11\n"
	"  -s, --statistics FILE  writes what became of each frame, as JSON; - is standard output\n"
	"  -h, --help             this text\n"
	"\n"
	"In the window, q ends. The sound is decoded and keeps the time, but is not heard.\n"
	"Exit status: 0 if it played (to the end, or until it was ended), 1 if it could not, 2 if the\n"
	"command line was wrong.\n";

static const struct option options[] = {
	{ "drop", required_argument, NULL, 'd' },
	{ "output", required_argument, NULL, 'o' },
	{ "statistics", required_argument, NULL, 's' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const char *const rules[] = {
	[RULE_NONE] = "none",
	[RULE_HEURISTIC] = "heuristic",
	[RULE_DEADLINE] = "deadline",
};

struct command {
	const char *film;
	const char *statistics;
	enum rule rule;
	bool window;
};

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

__attribute__((noreturn)) static void usage(const char *what, const char *word)
{
	fprintf(stderr, "player: %s%s; see player --help\n", what, word);
	exit(EXIT_USAGE);
}

static struct command parse(int count, char **words)
{
	struct command command = { .rule = RULE_DEADLINE, .window = true };
	int option;

	while ((option = getopt_long(count, words, "d:o:s:h", options, NULL)) != -1) {
		switch (option) {
		case 'd':
			command.rule = RULE_NONE;
			while (command.rule < RULES && strcmp(optarg, rules[command.rule]) != 0)
				command.rule++;
			if (command.rule == RULES)
				usage("no such rule: ", optarg);
			break;
		case 'o':
			command.window = strcmp(optarg, "x11") == 0;
			if (!command.window && strcmp(optarg, "none") != 0)
				usage("no such output: ", optarg);
			break;
		case 's':
			command.statistics = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind != count - 1)
		usage("one film is needed", "");
	command.film = words[optind];
	return command;
}

/* Tells how it went, and writes the statistics where they were asked for. False if that failed. */
static bool report(const struct play *play, FILE *file, const char *name)
{
	bool written = true;

	if (file)
		written = record_write(play->record, rules[play->rule], play->underruns, file);
	if (!written)
		fprintf(stderr, "player: cannot write %s\n", name);
	if (play->screen || !file)
		printf("%" PRId64 " frames: %" PRId64 " shown, %" PRId64 " dropped\n",
		       play->record->count, record_count(play->record, FATE_SHOWN),
		       record_dropped(play->record));
	return written;
}

int main(int count, char **words)
{
	struct command command = parse(count, words);
	struct record record = { 0 };
	struct play film = { .rule = command.rule, .ended = &ended, .record = &record };
	FILE *statistics = NULL;
	int result = EXIT_FAILURE;

	signal(SIGINT, end);
	signal(SIGTERM, end);
	av_log_set_level(AV_LOG_FATAL);
	if (command.statistics) {
		statistics = strcmp(command.statistics, "-") ? fopen(command.statistics, "w") :
							       stdout;
		if (!statistics) {
			perror(command.statistics);
			return EXIT_FAILURE;
		}
	}
	film.source = source_open(command.film);
	if (film.source && command.window)
		film.screen = screen_open(command.film);
	if (film.source && (film.screen || !command.window) && play(&film) == 0 &&
	    report(&film, statistics, command.statistics))
		result = EXIT_SUCCESS;
	screen_close(film.screen);
	source_close(film.source);
	free(record.frames);
	if (statistics && statistics != stdout)
		fclose(statistics);
	return result;
}
