/* As browsers are built: a compositor process with a clock of 60 Hz, two renderers with pools of
   four threads of which it is left to chance which works, and a process with a collector. 70% of a
   CPU. */
#include "beat.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RENDERERS = 2, POOL = 4, TILES = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int tiles, busy, fds[RENDERERS];
static _Atomic uint32_t newest[RENDERERS];

static void *raster(void *arg)
{
	prctl(PR_SET_NAME, "CompositorTileW");
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!tiles)
			pthread_cond_wait(&begun, &lock);
		tiles--;
		busy++;
		pthread_mutex_unlock(&lock);
		work(1);
		pthread_mutex_lock(&lock);
		if (!--busy && !tiles)
			pthread_cond_signal(&done);
	}
	return arg;
}

static void renderer(int fd)
{
	uint32_t frame;
	pthread_t t;
	prctl(PR_SET_NAME, "CrRendererMain");
	for (int i = 0; i < POOL; i++)
		pthread_create(&t, NULL, raster, NULL);
	while (recv(fd, &frame, sizeof frame, 0) == sizeof frame) {
		work(0.5 + (frame % 12 == 0) * 1.5);
		pthread_mutex_lock(&lock);
		tiles = TILES;
		pthread_cond_broadcast(&begun);
		while (tiles || busy)
			pthread_cond_wait(&done, &lock);
		pthread_mutex_unlock(&lock);
		work(0.5);
		send(fd, &frame, sizeof frame, 0);
	}
	_exit(0);
}

static void *io(void *arg)
{
	int r = (int)(intptr_t)arg;
	uint32_t frame;
	prctl(PR_SET_NAME, "Chrome_ChildIOT");
	while (recv(fds[r], &frame, sizeof frame, 0) == sizeof frame)
		atomic_store(&newest[r], frame);
	return NULL;
}

static void compositor(void)
{
	double began = ms() + 200, last = began;
	long shown = 0;
	pthread_t t;
	prctl(PR_SET_NAME, "VizCompositorTh");
	for (int r = 0; r < RENDERERS; r++)
		pthread_create(&t, NULL, io, (void *)(intptr_t)r);
	for (uint32_t k = 1; k <= seconds_to_run() * 60; k++) {
		sleep_until(began + k * 1e3 / 60);
		tell(ms() - last);
		last = ms();
		for (int r = 0; r < RENDERERS; r++) {
			shown += k > 1 && atomic_load(&newest[r]) == k - 1;
			send(fds[r], &k, sizeof k, MSG_DONTWAIT);
		}
		work(1.5);
	}
	print_figures(shown);
	_exit(0);
}

static void collect(void)
{
	prctl(PR_SET_NAME, "ThreadPoolForeg");
	for (;; work(20))
		usleep(480000);
}

int main(void)
{
	pid_t children[RENDERERS + 1], viz;
	for (int r = 0; r < RENDERERS; r++) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
			return 1;
		if (!(children[r] = fork()))
			renderer(pair[1]);
		fds[r] = pair[0];
	}
	if (!(children[RENDERERS] = fork()))
		collect();
	if (!(viz = fork()))
		compositor();
	waitpid(viz, NULL, 0);
	for (int i = 0; i <= RENDERERS; i++)
		kill(children[i], SIGKILL);
	return 0;
}
