import java.util.ArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Simulates a world 50 times a second, and leaves 2 MB of garbage each time, of which some lives for a second. */
class Beat {
    static double[][] world = new double[50][];
    static int tick;

    public static void main(String[] args) throws Exception {
        double seconds = Double.parseDouble(System.getenv("SECONDS_TO_RUN"));
        var times = new ArrayList<Double>();
        var executor = Executors.newScheduledThreadPool(2);
        executor.scheduleAtFixedRate(() -> {
            for (int i = 0; i < 8; i++) {
                double[] next = new double[32 << 10];
                for (int k = 1; k < next.length; k++) next[k] = Math.sqrt(next[k - 1] + k);
                world[(tick * 8 + i) % world.length] = next;
            }
            tick++;
            times.add(System.nanoTime() / 1e6);
        }, 0, 20, TimeUnit.MILLISECONDS);
        Thread.sleep((long) (seconds * 1000));
        executor.shutdownNow();
        executor.awaitTermination(1, TimeUnit.SECONDS);
        for (double t : times) System.out.println(t);
    }
}
