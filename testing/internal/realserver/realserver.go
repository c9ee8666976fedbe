// Package realserver has the API server on which the flags of a test say that rows run.
package realserver

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	where = flag.String("rtesting.real", "",
		"run rows on an API server: envtest starts one, anything else is the path of a kubeconfig")
	differential = flag.Bool("rtesting.differential", false,
		"run rows in memory and on the API server of -rtesting.real, by default envtest, and report what differs")
)

// Envtest is the value of the flag -rtesting.real that starts a control plane.
const Envtest = "envtest"

// Where returns where rows run: nowhere but in memory if it is empty, in a control plane to be started if it is
// [Envtest], and else on the server of a kubeconfig.
func Where() string {
	if *where == "" && *differential {
		return Envtest
	}
	return *where
}

// Differential reports whether rows run in memory too, and the answers are compared.
func Differential() bool { return *differential }

var errNoMain = errors.New(
	"the flag -rtesting.real needs a TestMain that calls Main of the package testing/apiserver")

// server is the API server in use.
var server struct {
	mu     sync.Mutex
	config *rest.Config
	// keep says that rows leave behind what they made.
	keep    bool
	clients map[*runtime.Scheme]client.WithWatch
	// rows counts the rows that ran on the server, and differing those of them that differ from memory.
	rows, differing int
	// differences count the rows that have a difference.
	differences map[string]int
	// inMemory counts the rows that ran in memory alone, by the reason.
	inMemory map[string]int
}

// Use makes a server the one on which rows run. Keep says that it is thrown away afterwards, so that rows need not
// delete what they made.
func Use(config *rest.Config, keep bool) {
	server.mu.Lock()
	defer server.mu.Unlock()
	server.config, server.keep = config, keep
	server.clients = map[*runtime.Scheme]client.WithWatch{}
	server.rows, server.differing = 0, 0
	server.differences, server.inMemory = map[string]int{}, map[string]int{}
}

// Client returns a client of the server, which all rows with the scheme share, and whether rows leave behind what they
// made. It is nil if rows run in memory alone.
func Client(scheme *runtime.Scheme) (c client.WithWatch, keep bool, err error) {
	if Where() == "" {
		return nil, false, nil
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.config == nil {
		return nil, false, errNoMain
	}
	if c, ok := server.clients[scheme]; ok {
		return c, server.keep, nil
	}
	c, err = client.NewWithWatch(server.config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, false, fmt.Errorf("no client of the server of -rtesting.real: %w", err)
	}
	server.clients[scheme] = c
	return c, server.keep, nil
}

// RowRuns notes, for the summary, that a row runs on the server, or in memory alone if there is a reason for that.
func RowRuns(inMemory string) {
	server.mu.Lock()
	defer server.mu.Unlock()
	switch {
	case server.config == nil:
	case inMemory == "":
		server.rows++
	default:
		server.inMemory[inMemory]++
	}
}

// RowDiffers notes, for the summary, what was different in a row that ran in memory and on the server.
func RowDiffers(differences ...string) {
	server.mu.Lock()
	defer server.mu.Unlock()
	server.differing++
	for _, difference := range slices.Compact(slices.Sorted(slices.Values(differences))) {
		server.differences[difference]++
	}
}

// Summary prints how many rows ran on the server, each difference with the number of rows that have it, and each reason
// for which rows ran in memory alone, with their number.
func Summary(out io.Writer) {
	server.mu.Lock()
	defer server.mu.Unlock()
	switch {
	case server.config == nil:
		return
	case Differential():
		fmt.Fprintf(out, "%d rows ran in memory and on the server, and %d of them differ\n",
			server.rows, server.differing)
	default:
		fmt.Fprintf(out, "%d rows ran on the server\n", server.rows)
	}
	for _, difference := range slices.Sorted(maps.Keys(server.differences)) {
		fmt.Fprintf(out, "%4d  %s\n", server.differences[difference], difference)
	}
	for _, reason := range slices.Sorted(maps.Keys(server.inMemory)) {
		fmt.Fprintf(out, "%4d  in memory alone: %s\n", server.inMemory[reason], reason)
	}
}
