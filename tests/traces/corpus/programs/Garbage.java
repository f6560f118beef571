import java.util.Random;

/** Allocates random amounts after random times, so that the collectors' threads have no rhythm. */
class Garbage {
    public static void main(String[] args) throws InterruptedException {
        Random random = new Random();
        byte[][] kept = new byte[64][];
        while (true) {
            for (int n = random.nextInt(200); n > 0; n--) {
                kept[random.nextInt(kept.length)] = new byte[random.nextInt(200_000)];
            }
            Thread.sleep((long) (-8 * Math.log(1 - random.nextDouble())));
        }
    }
}
