// Command callpath counts the functions of a module that are called for one request, and their files. It inserts a call
// that records the function at the start of each function, builds the module, runs a program of scenarios, and prints a
// line for each scenario:
//
//	functions  different functions that were called
//	files      different files that these functions are in
//	moves      calls of a function that is in another file than the one called before
//	returns    moves to a file that was visited before
//
// The module is not changed: the added files lie in a temporary folder. Calls are counted while a scenario is measured,
// see scenarios.go.tmpl. The numbers are a report: none of them is an error.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// defaultWithout are the folders whose functions are not counted.
var defaultWithout = []string{"internal/digest", "internal/testenv", "testing", "examples", "hack"}

func main() {
	module := flag.String("module", ".", "the `folder` of the module")
	without := flag.String("without", strings.Join(defaultWithout, ","),
		"`folders` of the module whose functions are not counted, separated by commas")
	verbose := flag.Bool("v", false, "list the files of each scenario in the order of their first call")
	calls := flag.Bool("calls", false, "list all calls of each scenario")
	flag.Parse()
	trace, err := run(context.Background(), *module, scenarios, strings.Split(*without, ","))
	if err == nil {
		err = report(os.Stdout, trace, *verbose, *calls)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "callpath:", err)
		os.Exit(1)
	}
}

// scenario is what the program prints for one scenario.
type scenario struct {
	Name string
	// Calls are the functions in the order of their calls.
	Calls []call
}

type call struct{ File, Function string }

// readTrace reads a scenario a line.
func readTrace(r io.Reader) ([]scenario, error) {
	var trace []scenario
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var s scenario
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("the program printed %q: %w", lines.Text(), err)
		}
		trace = append(trace, s)
	}
	return trace, lines.Err()
}

// figures are the numbers for one scenario.
type figures struct {
	functions, moves, returns int
	// files are in the order of their first call.
	files []string
}

func (s scenario) figures() figures {
	var f figures
	functions, files, last := map[call]bool{}, map[string]bool{}, ""
	for _, c := range s.Calls {
		functions[c] = true
		if c.File != last {
			f.moves++
			if files[c.File] {
				f.returns++
			} else {
				files[c.File] = true
				f.files = append(f.files, c.File)
			}
		}
		last = c.File
	}
	f.functions = len(functions)
	return f
}

func report(w io.Writer, trace []scenario, verbose, calls bool) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "functions\tfiles\tmoves\treturns\t  scenario")
	for _, s := range trace {
		f := s.figures()
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t  %s\n", f.functions, len(f.files), f.moves, f.returns, s.Name)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range trace {
		if verbose {
			fmt.Fprintf(w, "\n%s:\n\t%s\n", s.Name, strings.Join(s.figures().files, "\n\t"))
		}
		if calls {
			fmt.Fprintf(w, "\n%s:\n", s.Name)
			for _, c := range s.Calls {
				fmt.Fprintf(w, "\t%s: %s\n", c.File, c.Function)
			}
		}
	}
	return nil
}
