package stuck_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var planted = flag.String("planted", "", "serve the page of an operator with the troubles of all stories on this "+
	"loopback address, such as 127.0.0.1:8085, until interrupted, for somebody who does not know them")

// TestPlanted is no test, but for a person to read the page. The names of namespaces and resources tell nothing. What
// was planted where is printed in the end.
//
//	go test ./test/stuck -run TestPlanted -planted=127.0.0.1:8085 -timeout=0 -v
func TestPlanted(t *testing.T) {
	if *planted == "" {
		t.Skip("it runs with the flag -planted")
	}
	listener, err := net.Listen("tcp", *planted)
	if err != nil {
		t.Fatal(err)
	}
	shared := startShared(t)
	told := stories()
	told["nothing"] = story{plant: func(s *scene) { s.widget() }}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(told)), func(name string) bool { return told[name].alone })
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i, name := range names {
		at := fmt.Sprintf("team-%d", i+1)
		create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: at}})
		s := newScene(t, at, fmt.Sprintf("shop-%d", i+1))
		s.operator = shared
		told[name].plant(s)
	}
	server := &http.Server{Handler: shared.page, ReadHeaderTimeout: 10 * time.Second}
	interrupted, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The error is that the server is closed.
	context.AfterFunc(interrupted, func() { _ = server.Close() })
	fmt.Printf("http://%s/\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	for i, name := range names {
		fmt.Printf("team-%d/shop-%[1]d: %s\n", i+1, name)
	}
}
