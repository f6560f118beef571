/* A Windows program: a multimedia timer of 10 ms sets an event, a thread works 1 ms each time and
   takes a critical section. */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>

static double now(void)
{
	LARGE_INTEGER count, each_second;
	QueryPerformanceCounter(&count);
	QueryPerformanceFrequency(&each_second);
	return 1e3 * count.QuadPart / each_second.QuadPart;
}

int main(void)
{
	static double times[1 << 16];
	int n = 0;
	double began = now(), seconds = atof(getenv("SECONDS_TO_RUN"));
	CRITICAL_SECTION section;
	HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);
	InitializeCriticalSection(&section);
	timeBeginPeriod(1);
	timeSetEvent(10, 1, (LPTIMECALLBACK)event, 0, TIME_PERIODIC | TIME_CALLBACK_EVENT_SET);
	while (now() < began + seconds * 1000 && n < 1 << 16) {
		WaitForSingleObject(event, INFINITE);
		EnterCriticalSection(&section);
		double woke = times[n++] = now();
		while (now() < woke + 1)
			YieldProcessor();
		LeaveCriticalSection(&section);
	}
	for (int i = 0; i < n; i++)
		printf("%.3f\n", times[i]);
	return 0;
}
