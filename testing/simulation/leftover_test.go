package simulation

import (
	"context"
	"os"
	"os/signal"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestLeftover has operators whose goroutines outlive them.
func TestLeftover(t *testing.T) {
	for name, operator := range map[string]func(context.Context, ctrl.Manager) error{
		"waits": func(context.Context, ctrl.Manager) error {
			go outlives(make(chan struct{}))
			return nil
		},
		"of a reconciler": reconciles(func(context.Context, client.Client, *corev1.ConfigMap) error {
			go outlives(make(chan struct{}))
			return nil
		}).Operator,
		"ticks": func(context.Context, ctrl.Manager) error {
			go func() {
				for range time.Tick(time.Second) {
					select {
					case <-make(chan struct{}):
					default:
					}
				}
			}()
			return nil
		},
		"signals": func(context.Context, ctrl.Manager) error {
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, os.Interrupt)
			go outlives(signals)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			attempt(t, Options{Operator: operator}, func(w *World) {
				w.Create(newApp("one"))
				w.Rest()
			}).mustFail(t, "the operator has ended, and the goroutines below have not", "created by")
		})
	}
}

//go:noinline
func outlives[T any](nobody chan T) { <-nobody }
