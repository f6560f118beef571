// A time.Ticker of the given duration, such as 15ms, in a locked thread named "ticker".
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

func main() {
	period, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	done := make(chan bool)
	go func() {
		runtime.LockOSThread()
		comm := fmt.Sprintf("/proc/self/task/%d/comm", syscall.Gettid())
		os.WriteFile(comm, []byte("ticker"), 0)
		for range time.NewTicker(period).C {
			for n := 0; n < 300000; n++ {
				runtime.KeepAlive(n)
			}
		}
	}()
	<-done
}
