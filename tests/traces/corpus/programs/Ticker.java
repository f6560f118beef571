import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** A job at a fixed rate of so many µs, on an executor's only thread. */
class Ticker {
    static volatile double sum;

    public static void main(String[] args) {
        Runnable job = () -> {
            for (int n = 0; n < 200_000; n++) {
                sum += Math.sqrt(n);
            }
        };
        Executors.newScheduledThreadPool(1)
                .scheduleAtFixedRate(job, 0, Long.parseLong(args[0]), TimeUnit.MICROSECONDS);
    }
}
