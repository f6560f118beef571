/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A real-time video encoder: 640 by 480 at 25 Hz to MPEG-2, I frames alternating with P frames.
 *
 * encoder FRAMES LOG [marks]: takes a picture every 40 ms and writes for each job, in nanoseconds,
 * its release, its end and the CPU time it took, and what kind of frame it was. With "marks" it
 * tells onbeat its period and where its jobs begin and end. The pictures are drawn before, since no
 * camera is there: textures that move, more of it noise in one second than in the next.
 */
#define _GNU_SOURCE
#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>
#include <onbeat/job.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 640, HEIGHT = 480, RATE = 25, PICTURES = 100, PERIOD_NS = 1000000000 / RATE };

static void fail(const char *what)
{
	fprintf(stderr, "encoder: %s\n", what);
	exit(1);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static AVFrame *draw(int n)
{
	unsigned busy = 60 + (n < PICTURES / 2 ? n : PICTURES - n);
	AVFrame *picture = av_frame_alloc();

	if (!picture)
		fail("no memory");
	picture->format = AV_PIX_FMT_YUV420P;
	picture->width = WIDTH;
	picture->height = HEIGHT;
	if (av_frame_get_buffer(picture, 0) < 0)
		fail("no memory");
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++) {
			unsigned u = x + 3 * n, v = y + n,
				 noise = (u * 2654435761u) ^ (v * 2246822519u);

			noise = (noise ^ noise >> 15) * 3266489917u >> 24;
			picture->data[0][y * picture->linesize[0] + x] =
				(noise * busy + ((u ^ v) & 0xff) * (200 - busy)) / 200;
		}
	for (int plane = 1; plane < 3; plane++)
		for (int y = 0; y < HEIGHT / 2; y++)
			memset(picture->data[plane] + y * picture->linesize[plane],
			       100 + 20 * plane + n % 16, WIDTH / 2);
	return picture;
}

static AVCodecContext *open_encoder(void)
{
	const AVCodec *codec = avcodec_find_encoder(AV_CODEC_ID_MPEG2VIDEO);
	AVCodecContext *encoder = codec ? avcodec_alloc_context3(codec) : NULL;

	if (!encoder)
		fail("libavcodec has no MPEG-2 encoder");
	encoder->width = WIDTH;
	encoder->height = HEIGHT;
	encoder->time_base = (AVRational){ 1, RATE };
	encoder->framerate = (AVRational){ RATE, 1 };
	encoder->pix_fmt = AV_PIX_FMT_YUV420P;
	encoder->gop_size = 2;
	encoder->max_b_frames = 0;
	encoder->flags |= AV_CODEC_FLAG_QSCALE;
	encoder->global_quality = 8 * FF_QP2LAMBDA;
	encoder->thread_count = 1;
	/* A search for motion that makes P frames three times as dear as I frames. */
	encoder->mb_decision = FF_MB_DECISION_RD;
	encoder->me_cmp = encoder->me_sub_cmp = FF_CMP_SATD;
	encoder->dia_size = 4;
	/* A change of scene would make an I frame out of turn. */
	av_opt_set_int(encoder->priv_data, "sc_threshold", 1000000000, 0);
	if (avcodec_open2(encoder, codec, NULL) < 0)
		fail("libavcodec does not open its encoder");
	return encoder;
}

/* Encodes one picture, and forgets the result; true if it became an I frame. */
static int encode(AVCodecContext *encoder, AVFrame *picture, AVPacket *packet)
{
	int is_key = 0;

	if (avcodec_send_frame(encoder, picture) < 0)
		fail("a picture was refused");
	while (avcodec_receive_packet(encoder, packet) == 0) {
		is_key |= packet->flags & AV_PKT_FLAG_KEY;
		av_packet_unref(packet);
	}
	return is_key;
}

struct job {
	int64_t release_ns, ended_ns, executed_ns;
	int is_key;
};

static void write_log(const char *path, const struct job *jobs, long count)
{
	FILE *log = fopen(path, "w");

	if (!log)
		fail("cannot write the log");
	for (long n = 0; n < count; n++)
		fprintf(log, "%lld %lld %lld %c\n", (long long)jobs[n].release_ns,
			(long long)jobs[n].ended_ns, (long long)jobs[n].executed_ns,
			jobs[n].is_key ? 'I' : 'P');
	if (fclose(log))
		fail("cannot write the log");
}

int main(int argc, char **argv)
{
	static AVFrame *pictures[PICTURES];
	AVCodecContext *encoder = open_encoder();
	AVPacket *packet = av_packet_alloc();
	long frames = argc > 2 ? atol(argv[1]) : 0;
	struct job *jobs = calloc(frames > 0 ? frames : 1, sizeof(*jobs));
	int marks = argc > 3;
	int64_t release_ns;

	if (frames <= 0 || !jobs || !packet)
		fail("usage: encoder FRAMES LOG [marks]");
	for (int n = 0; n < PICTURES; n++)
		pictures[n] = draw(n);
	if (marks) {
		/* The share that onbeat aims at for programs that say nothing. */
		onbeat_realtime_start(PERIOD_NS, 990);
	}
	release_ns = now_ns(CLOCK_MONOTONIC);
	for (long n = 0; n < frames; n++) {
		struct timespec release;
		int64_t before_ns;

		release_ns += PERIOD_NS;
		release.tv_sec = release_ns / 1000000000;
		release.tv_nsec = release_ns % 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &release, NULL);
		if (marks)
			onbeat_job_begin();
		before_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
		pictures[n % PICTURES]->pts = n;
		jobs[n].is_key = encode(encoder, pictures[n % PICTURES], packet);
		jobs[n].release_ns = release_ns;
		jobs[n].executed_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
		jobs[n].ended_ns = now_ns(CLOCK_MONOTONIC);
		if (marks)
			onbeat_job_end();
	}
	write_log(argv[2], jobs, frames);
	return 0;
}
