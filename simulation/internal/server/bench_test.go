package server_test

import (
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/simulation/internal/server"
	"github.com/espalier-dev/espalier/simulation/internal/storage"
)

// startAndStop runs a server of which nobody asks anything, in a bubble.
func startAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.Start(t.Context(), server.Options{Storage: storage.New(storage.Options{}).Decorator()})
		if err != nil {
			t.Fatal(err)
		}
		s.Stop()
		time.Sleep(2 * time.Minute)
	})
}

// TestManyServersLeaveNothingBehind starts 100 servers, one after the other.
func TestManyServersLeaveNothingBehind(t *testing.T) {
	startAndStop(t)
	goroutines, memory, cpu := runtime.NumGoroutine(), heap(), processorTime(t)
	const n = 100
	for range n {
		startAndStop(t)
	}
	cpu = processorTime(t) - cpu
	if got := runtime.NumGoroutine(); got > goroutines {
		t.Errorf("there are %d goroutines after %d servers, and %d before", got, n, goroutines)
	}
	kept := int64(heap()-memory) / n
	t.Logf("a server takes %v of processor time and keeps %d bytes", cpu/n, kept)
	if kept > 64<<10 {
		t.Errorf("a server keeps %d bytes after its end", kept)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func processorTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
