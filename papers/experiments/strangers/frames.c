/* When a display has drawn so many pixels, in ms: frames PIXELS SECONDS SKIP. The seconds begin
   with the first frame after those that are skipped. It looks 50 times a second; the server tells
   its own time, so nothing is lost. */
#include <X11/Xlib.h>
#include <X11/extensions/Xdamage.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	Display *display = XOpenDisplay(NULL);
	int event, error;
	if (argc < 4 || !display || !XDamageQueryExtension(display, &event, &error))
		return 2;
	long pixels = atol(argv[1]), skip = atol(argv[3]), drawn = 0;
	double seconds = atof(argv[2]), first = 0;
	XDamageCreate(display, DefaultRootWindow(display), XDamageReportRawRectangles);
	/* The first report is of the whole display: no frame, and not the program's beginning. */
	XSync(display, True);
	for (time_t began = time(NULL); time(NULL) < began + 20; usleep(20000)) {
		while (XPending(display)) {
			XEvent got;
			XNextEvent(display, &got);
			XDamageNotifyEvent *damage = (XDamageNotifyEvent *)&got;
			drawn += (long)damage->area.width * damage->area.height;
			if (got.type != event + XDamageNotify || drawn * 10 < pixels * 9)
				continue;
			drawn = 0;
			if (skip-- > 0)
				continue;
			first = first ? first : damage->timestamp;
			if (damage->timestamp > first + seconds * 1000)
				return 0;
			printf("%lu\n", damage->timestamp);
			fflush(stdout);
		}
	}
	return 1;
}
