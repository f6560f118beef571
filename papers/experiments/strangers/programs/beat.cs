using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

// A control loop that leaves garbage, beside timers on the runtime's pool.
class Beat
{
    static byte[][] garbage = new byte[100][];

    static void Main()
    {
        double seconds = double.Parse(Environment.GetEnvironmentVariable("SECONDS_TO_RUN"));
        var timers = new List<Timer>();
        for (int i = 0; i < 10; i++)
            timers.Add(new Timer(k => garbage[(int)k] = new byte[100000], i, 0, 50));
        var times = new List<double>();
        var watch = Stopwatch.StartNew();
        double due = 0, sum = 0;
        while (watch.Elapsed.TotalSeconds < seconds)
        {
            due += 10;
            Thread.Sleep(Math.Max(0, (int)(due - watch.Elapsed.TotalMilliseconds)));
            times.Add(watch.Elapsed.TotalMilliseconds);
            for (int i = 0; i < 200000; i++) sum += Math.Sqrt(i);
            garbage[times.Count % 90 + 10] = new byte[10000];
        }
        foreach (double t in times) Console.WriteLine(t);
        GC.KeepAlive(timers);
    }
}
