// A service with a ticker of 100 Hz, twenty of 20 Hz that leave garbage, and a goroutine that computes 30 ms in each 100 ms.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

var sink uint64
var garbage [20][]byte

func rounds(n int) {
	x := uint64(n)
	for i := 0; i < n*1000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	atomic.AddUint64(&sink, x)
}

// How many thousand rounds make a millisecond: the best of many short tries.
func speed() int {
	best := time.Hour
	for i := 0; i < 300; i++ {
		t := time.Now()
		rounds(100)
		best = min(best, time.Since(t))
	}
	return int(100 * float64(time.Millisecond) / float64(best))
}

func min(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Getenv("SECONDS_TO_RUN"), 64)
	ms := speed()
	for i := range garbage {
		go func(i int) {
			for range time.Tick(50 * time.Millisecond) {
				rounds(ms * 3 / 10)
				garbage[i] = make([]byte, 64<<10)
			}
		}(i)
	}
	go func() {
		for {
			rounds(ms * 30)
			time.Sleep(70 * time.Millisecond)
		}
	}()
	var times []time.Duration
	began := time.Now()
	for range time.NewTicker(10 * time.Millisecond).C {
		times = append(times, time.Since(began))
		rounds(ms)
		if time.Since(began).Seconds() > seconds {
			break
		}
	}
	for _, t := range times {
		fmt.Println(t.Seconds() * 1000)
	}
}
