/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The benchmark mode (requirement 12): how long blocks take, instead of whether they take too long.
 *
 * A program compiled with -DONBEAT_BENCHMARK arms nothing; each block's duration goes into a
 * histogram that belongs to its place in the source. When the program ends, a table and a JSON file
 * are written (ONBEAT_BENCHMARK_OUT names them; onbeat-benchmark.txt and .json otherwise), from
 * which the constraints can be chosen.
 *
 * The histogram has 32 steps in every power of two, so a percentile is right within 3.2%.
 */
#include "within.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_BITS 5
#define STEPS (1 << STEP_BITS)
#define BUCKETS ((64 - STEP_BITS) * STEPS)

/* Of a place in the source. */
struct onbeat_samples {
	struct onbeat_samples *next;
	char *file; /* a copy: a plugin's own goes when the plugin is closed */
	int line;
	uint64_t count;
	uint64_t sum_ns;
	uint64_t min_ns;
	uint64_t max_ns;
	uint32_t buckets[BUCKETS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct onbeat_samples *places;

static unsigned bucket_of(uint64_t ns)
{
	unsigned power;

	if (ns < STEPS)
		return (unsigned)ns;
	power = 63 - (unsigned)__builtin_clzll(ns) - STEP_BITS;
	return (power + 1) * STEPS + (unsigned)(ns >> power) - STEPS;
}

static uint64_t top_of(unsigned bucket)
{
	unsigned power;

	if (bucket < STEPS)
		return bucket;
	power = bucket / STEPS - 1;
	return ((uint64_t)(bucket % STEPS + STEPS + 1) << power) - 1;
}

static uint64_t percentile(const struct onbeat_samples *samples, double p)
{
	uint64_t rank = (uint64_t)(p / 100 * (double)samples->count + 0.5);
	uint64_t seen = 0;

	for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
		seen += samples->buckets[bucket];
		if (seen >= rank && seen)
			return top_of(bucket) < samples->max_ns ? top_of(bucket) : samples->max_ns;
	}
	return samples->max_ns;
}

static void write_at_exit(void)
{
	const char *base = getenv("ONBEAT_BENCHMARK_OUT");
	char table[4096];
	char json[4096];
	int error;

	if (!base || !*base)
		base = "onbeat-benchmark";
	snprintf(table, sizeof(table), "%s.txt", base);
	snprintf(json, sizeof(json), "%s.json", base);
	error = onbeat_benchmark_write(table, json);
	if (error)
		fprintf(stderr, "onbeat: cannot write %s and %s: %s\n", table, json,
			strerror(-error));
}

/* The site's place may have been measured before, in another copy of its code. */
static struct onbeat_samples *samples_of(const struct onbeat_site *site)
{
	struct onbeat_samples *samples = places;

	while (samples && (samples->line != site->line || strcmp(samples->file, site->file) != 0))
		samples = samples->next;
	if (samples)
		return samples;
	samples = calloc(1, sizeof(*samples));
	if (samples)
		samples->file = strdup(site->file);
	if (!samples || !samples->file) {
		free(samples);
		return NULL;
	}
	if (!places)
		atexit(write_at_exit);
	samples->line = site->line;
	samples->min_ns = UINT64_MAX;
	samples->next = places;
	places = samples;
	return samples;
}

void onbeat_measured_(struct onbeat_site *site, int64_t duration_ns)
{
	uint64_t ns = duration_ns > 0 ? (uint64_t)duration_ns : 0;
	struct onbeat_samples *samples;

	pthread_mutex_lock(&lock);
	if (!site->samples)
		site->samples = samples_of(site);
	samples = site->samples;
	if (samples) {
		samples->count++;
		samples->sum_ns += ns;
		samples->min_ns = ns < samples->min_ns ? ns : samples->min_ns;
		samples->max_ns = ns > samples->max_ns ? ns : samples->max_ns;
		samples->buckets[bucket_of(ns)]++;
	}
	pthread_mutex_unlock(&lock);
}

void onbeat_block_measure_(struct onbeat_block *block)
{
	block->began_ns = onbeat_now_();
}

static void write_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		if ((unsigned char)*text >= ' ')
			fputc(*text, out);
	}
	fputc('"', out);
}

static void write_samples(FILE *table, FILE *json, const struct onbeat_samples *s,
			  const char *separator)
{
	double mean_ns = (double)s->sum_ns / (double)s->count;
	uint64_t p50 = percentile(s, 50), p95 = percentile(s, 95), p99 = percentile(s, 99);

	fprintf(table, "%-32s %5d %10llu %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f\n", s->file,
		s->line, (unsigned long long)s->count, (double)s->min_ns / 1e3, mean_ns / 1e3,
		(double)p50 / 1e3, (double)p95 / 1e3, (double)p99 / 1e3, (double)s->max_ns / 1e3);
	fprintf(json, "%s\n  {\"file\": ", separator);
	write_string(json, s->file);
	fprintf(json,
		", \"line\": %d, \"count\": %llu, \"min_ns\": %llu, \"mean_ns\": %.0f, \"p50_ns\": "
		"%llu, "
		"\"p95_ns\": %llu, \"p99_ns\": %llu, \"max_ns\": %llu}",
		s->line, (unsigned long long)s->count, (unsigned long long)s->min_ns, mean_ns,
		(unsigned long long)p50, (unsigned long long)p95, (unsigned long long)p99,
		(unsigned long long)s->max_ns);
}

int onbeat_benchmark_write(const char *table_path, const char *json_path)
{
	const char *separator = "";
	FILE *table = fopen(table_path, "w");
	FILE *json;
	int error = 0;

	if (!table)
		return -errno;
	json = fopen(json_path, "w");
	if (!json) {
		error = -errno;
		fclose(table);
		return error;
	}
	fprintf(table, "%-32s %5s %10s %10s %10s %10s %10s %10s %10s\n", "file", "line", "blocks",
		"min us", "mean us", "p50 us", "p95 us", "p99 us", "max us");
	fprintf(json, "[");
	pthread_mutex_lock(&lock);
	for (const struct onbeat_samples *s = places; s; s = s->next) {
		write_samples(table, json, s, separator);
		separator = ",";
	}
	pthread_mutex_unlock(&lock);
	fprintf(json, "\n]\n");
	if (fclose(table))
		error = -errno;
	if (fclose(json))
		error = -errno;
	return error;
}
