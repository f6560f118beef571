/* Clients of JACK in a chain, a process each: jack CLIENTS [SINK]. The last tells when it was
   done. */
#include "beat.h"
#include <jack/jack.h>
#include <sys/wait.h>
#include <unistd.h>

static jack_port_t *in, *out;

static int process(jack_nframes_t n, void *arg)
{
	float *from = jack_port_get_buffer(in, n), *to = jack_port_get_buffer(out, n);
	(void)arg;
	for (jack_nframes_t i = 0; i < n; i++)
		to[i] = from[i] * 0.99f + 0.001f;
	work(0.25);
	tell(ms());
	return 0;
}

static int client(int me, int last, const char *sink)
{
	char name[32], to[32];
	jack_client_t *c = NULL;
	snprintf(name, sizeof name, "stage%d", me);
	for (int i = 0; i < 100 && !c; i++) {
		c = jack_client_open(name, JackNoStartServer, NULL);
		if (!c)
			usleep(50000);
	}
	if (!c)
		return 1;
	in = jack_port_register(c, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
	out = jack_port_register(c, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
	jack_set_process_callback(c, process, NULL);
	if (jack_activate(c))
		return 1;
	snprintf(name, sizeof name, "stage%d:out", me);
	snprintf(to, sizeof to, "stage%d:in", me + 1);
	for (int i = 0; i < 100 && (!last || sink) && jack_connect(c, name, last ? sink : to); i++)
		usleep(50000);
	usleep((useconds_t)(seconds_to_run() * 1e6));
	jack_deactivate(c);
	if (last)
		print_told();
	_exit(0);
}

int main(int argc, char **argv)
{
	int clients = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < clients; i++)
		if (!fork())
			_exit(client(i, i == clients - 1, argv[2]));
	while (wait(NULL) > 0)
		;
	return 0;
}
