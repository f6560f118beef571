/* A robot's data path, a process for each stage: a camera of 30 Hz, rectify (7 ms), detect (9 ms),
   control (2 ms), over UDP and Unix sockets, and an IMU of 200 Hz that control hears, too. Only
   camera and IMU have clocks. */
#include "beat.h"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct message {
	int kind;
	double released;
	char fill[1000];
};

static double began, until;

static void timer(int out, const char *name, int kind, double hz, double time)
{
	struct message m = { .kind = kind };
	prctl(PR_SET_NAME, name);
	for (int k = 0; m.released < until; k++) {
		m.released = began + k * 1e3 / hz;
		sleep_until(m.released);
		work(time);
		send(out, &m, sizeof m, MSG_DONTWAIT);
	}
	_exit(0);
}

static void filter(int in, int out, const char *name, double time)
{
	struct message m;
	struct pollfd p = { in, POLLIN, 0 };
	prctl(PR_SET_NAME, name);
	while (ms() < until + 300) {
		if (poll(&p, 1, 200) <= 0 || recv(in, &m, sizeof m, 0) != sizeof m)
			continue;
		work(time);
		send(out, &m, sizeof m, MSG_DONTWAIT);
	}
	_exit(0);
}

int main(void)
{
	int detect[2], control[2], imu[2], in_time = 0;
	int udp_in = socket(AF_INET, SOCK_DGRAM, 0), udp_out = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	if (bind(udp_in, (void *)&a, n) || getsockname(udp_in, (void *)&a, &n) ||
	    connect(udp_out, (void *)&a, n) || socketpair(AF_UNIX, SOCK_DGRAM, 0, detect) ||
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, control) || socketpair(AF_UNIX, SOCK_DGRAM, 0, imu))
		return 1;
	began = ms() + 100;
	until = began + seconds_to_run() * 1e3;
	if (!fork())
		timer(udp_out, "camera", 0, 30, 0.5);
	if (!fork())
		timer(imu[0], "imu", 1, 200, 0.1);
	if (!fork())
		filter(udp_in, detect[0], "rectify", 7);
	if (!fork())
		filter(detect[1], control[0], "detect", 9);
	prctl(PR_SET_NAME, "control");
	struct pollfd p[2] = { { control[1], POLLIN, 0 }, { imu[1], POLLIN, 0 } };
	struct message m;
	while (ms() < until + 100) {
		if (poll(p, 2, 100) <= 0)
			continue;
		for (int i = 0; i < 2; i++) {
			if (!(p[i].revents & POLLIN) || recv(p[i].fd, &m, sizeof m, 0) != sizeof m)
				continue;
			work(m.kind ? 0.1 : 2);
			double took = ms() - m.released;
			in_time += took <= (m.kind ? 5 : 1000.0 / 30);
			if (!m.kind)
				tell(took);
		}
	}
	print_figures(in_time);
	return 0;
}
