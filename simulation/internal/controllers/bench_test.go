package controllers_test

import (
	"io"
	"log"
	"testing"

	"github.com/espalier-dev/espalier/simulation/internal/controllers"
	"github.com/espalier-dev/espalier/simulation/internal/server"
	"github.com/espalier-dev/espalier/simulation/internal/storage"
)

// BenchmarkStart starts and stops the controllers at a server.
func BenchmarkStart(b *testing.B) {
	log.SetOutput(io.Discard)
	kept := storage.New(storage.Options{})
	defer kept.Close()
	s, err := server.Start(b.Context(), server.Options{Storage: kept.Decorator()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	b.ReportAllocs()
	for b.Loop() {
		running, err := controllers.Start(b.Context(), config(server.RoundTripper(s.Handler())), controllers.Options{})
		if err != nil {
			b.Fatal(err)
		}
		running.Stop()
	}
}
