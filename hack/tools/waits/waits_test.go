package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// header is the beginning of each source, in one line, so that the numbers of lines are easy to count.
const header = `package a_test; import ("testing"; "testing/synctest"; "time"; "example.com/testing/simulation")` + "\n"

func TestRealWaits(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		// want has lines of the form "line call function".
		want []string
	}{
		"each function that waits": {
			source: `func TestA(t *testing.T) {
				time.Sleep(1)
				<-time.After(1)
				time.AfterFunc(1, f)
				time.NewTimer(1)
				time.NewTicker(1)
				for range time.Tick(1) {}
				time.Now()
			}`,
			want: []string{
				"3 Sleep TestA", "4 After TestA", "5 AfterFunc TestA",
				"6 NewTimer TestA", "7 NewTicker TestA", "8 Tick TestA",
			},
		},
		"one that is not called":       {`var pause = time.Sleep`, []string{"2 Sleep pause"}},
		"in a variable of the package": {`var a, b = 1, func() { time.Sleep(1) }`, []string{"2 Sleep b"}},
		"in a method":                  {`func (f *fixture[T]) do() { time.Sleep(1) }`, []string{"2 Sleep fixture.do"}},
		"another time":                 {`func TestA(t *testing.T, time clock) { time.Sleep(1) }`, nil},
		"limit of a wait": {
			source: `func TestA(t *testing.T) {
				select {
				case <-done:
				case <-time.After(1):
				}
			}`,
			want: []string{"5 After TestA"},
		},

		"rule 1: bubble": {
			source: `func TestA(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					go func() { time.Sleep(1) }()
				})
				time.Sleep(1)
			}`,
			want: []string{"6 Sleep TestA"},
		},
		"rule 1: simulation": {
			source: `func TestA(t *testing.T) {
				simulation.RunSeeds(t,
					simulation.Options{Operator: func() { time.Sleep(1) }},
					func(w *simulation.World) { time.Sleep(1) })
				simulation.Check(t, func() { time.Sleep(1) })
			}`,
			want: []string{"6 Sleep TestA"},
		},
		"rule 1: argument of a call that makes the argument": {
			source: `func TestA(t *testing.T) { simulation.Run(t, reconciles(func() { time.Sleep(1) }), story) }`,
		},
		"rule 1: the call that makes the argument": {
			source: `func TestA(t *testing.T) { simulation.Run(t, options(), nil) }
			func options() simulation.Options { time.Sleep(1); return simulation.Options{} }`,
			want: []string{"3 Sleep options"},
		},

		"rule 2: function": {
			source: `func run(name string, test func()) { synctest.Test(nil, func(t *testing.T) { test() }) }
			func TestA(t *testing.T) { run("a", func() { time.Sleep(1) }) }`,
		},
		"rule 2: the function itself": {
			source: `func run(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) }
			func TestA(t *testing.T) { run(t, func(*testing.T) { time.Sleep(1) }) }`,
		},
		"rule 2: by way of another": {
			source: `func runWith(t *testing.T, test func()) { run(t, test) }
			func run(t *testing.T, test func()) { synctest.Test(t, func(t *testing.T) { test() }) }
			func TestA(t *testing.T) { runWith(t, func() { time.Sleep(1) }) }`,
		},
		"rule 2: method": {
			source: `type fixture struct{ *testing.T }
			func (f *fixture) run(test func()) { synctest.Test(f.T, func(t *testing.T) { test() }) }
			func TestA(t *testing.T) { f := &fixture{t}; f.run(func() { time.Sleep(1) }) }`,
		},
		"rule 2: method of the same name of another type": {
			source: `type fixture struct{}
			func (f *fixture) Run(t *testing.T, test func()) { synctest.Test(t, func(t *testing.T) { test() }) }
			func TestA(t *testing.T) { t.Run("a", func(t *testing.T) { time.Sleep(1) }) }`,
			want: []string{"4 Sleep TestA"},
		},
		"rule 2: generic, with many functions": {
			source: `func run[T any](t *testing.T, tests ...func(T)) {
				synctest.Test(t, func(t *testing.T) { for _, test := range tests { test() } })
			}
			func TestA(t *testing.T) { run[int](t, nil, func(int) { time.Sleep(1) }) }`,
		},
		"rule 2: in real time too": {
			source: `func run(t *testing.T, virtual bool, test func(*testing.T)) {
				if !virtual { test(t); return }
				synctest.Test(t, test)
			}
			func TestA(t *testing.T) { run(t, false, func(*testing.T) { time.Sleep(1) }) }`,
			want: []string{"6 Sleep TestA"},
		},
		"rule 2: another parameter": {
			source: `func run(before, test func()) { before(); synctest.Test(nil, func(*testing.T) { test() }) }
			func TestA(t *testing.T) { run(func() { time.Sleep(1) }, func() {}) }`,
			want: []string{"3 Sleep TestA"},
		},
		"rule 2: a variable has the name of the function": {
			source: `func run(t *testing.T, test func()) { synctest.Test(t, func(t *testing.T) { test() }) }
			func TestA(t *testing.T) { for _, run := range all { run(t, func() { time.Sleep(1) }) } }`,
			want: []string{"3 Sleep TestA"},
		},

		"rule 3: function": {
			source: `func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { one() }) }
			func one() { two(); time.Sleep(1) }
			func two() { time.Sleep(1); if again { two() } }`,
		},
		"rule 3: function that is called in real time too": {
			source: `func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { one() }) }
			func TestB(t *testing.T) { two() }
			func one() { two(); time.Sleep(1) }
			func two() { time.Sleep(1) }`,
			want: []string{"5 Sleep two"},
		},
		"rule 3: function that nobody calls": {`func f() { time.Sleep(1); f() }`, []string{"2 Sleep f"}},
		"rule 3: method": {
			source: `func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { newFixture(t).wait() }) }
			func (f *fixture) wait() { time.Sleep(1) }`,
		},
		"rule 3: method that may be called in real time": {
			source: `func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { newFixture(t).wait() }) }
			func TestB(t *testing.T) { another(t).wait() }
			func (f *fixture) wait() { time.Sleep(1) }`,
			want: []string{"4 Sleep fixture.wait"},
		},
		"rule 3: function in a local variable": {
			source: `func TestA(t *testing.T) {
				slow := func() { time.Sleep(1) }
				synctest.Test(t, func(t *testing.T) { slow() })
				other := func() { time.Sleep(1) }
				other()
			}`,
			want: []string{"5 Sleep TestA"},
		},
		"rule 3: function that is assigned": {
			source: `func TestA(t *testing.T) {
				options := simulation.Options{}
				options.Restart = func() { time.Sleep(1) }
				options.Hooks["a"] = func() { time.Sleep(1) }
				simulation.Run(t, options, nil)
			}
			func set(o *simulation.Options) { o.Restart = func() { time.Sleep(1) }; simulation.Run(t, o, nil) }`,
			want: []string{"8 Sleep set"},
		},
		"rule 3: function in a variable of the package": {
			source: `var stories = map[string]func(*testing.T){"a": func(*testing.T) { time.Sleep(1) }, "b": other}
			func other(*testing.T) { time.Sleep(1) }
			func TestA(t *testing.T) { synctest.Test(t, stories["a"]) }`,
		},
		"rule 3: functions in a range": {
			source: `func TestA(t *testing.T) {
				for name, test := range map[string]func(*testing.T){"a": func(*testing.T) { time.Sleep(1) }} {
					t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
				}
				for name, test := range map[string]func(*testing.T){"a": func(*testing.T) { time.Sleep(1) }} {
					t.Run(name, test)
				}
			}`,
			want: []string{"6 Sleep TestA"},
		},
		"rule 3: functions in fields of a table, of which one is called in real time": {
			source: `func TestA(t *testing.T) {
				for name, test := range map[string]struct{ before, do func() }{
					"a": {before: func() { time.Sleep(1) }, do: func() { time.Sleep(1) }},
					"b": {func() { time.Sleep(1) }, func() { time.Sleep(1) }},
				} {
					test.before()
					synctest.Test(t, func(t *testing.T) { test.do() })
				}
			}`,
			want: []string{"4 Sleep TestA", "4 Sleep TestA", "5 Sleep TestA", "5 Sleep TestA"},
		},
		"rule 3: functions in fields of a table": {
			source: `func TestA(t *testing.T) {
				for _, test := range []struct{ before, do func() }{{func() { time.Sleep(1) }, func() { time.Sleep(1) }}} {
					synctest.Test(t, func(t *testing.T) { test.before(); test.do() })
				}
			}`,
		},
		"rule 3: functions in lists in fields": {
			source: `func TestA(t *testing.T) {
				for _, test := range []*struct{ do []func() }{{[]func(){func() { time.Sleep(1) }}}} {
					synctest.Test(t, func(t *testing.T) { test.do[0]() })
				}
			}`,
		},
		"rule 3: a field of what is not known": {
			source: `type step struct{ do func() }
			func TestA(t *testing.T) {
				s := step{do: func() { time.Sleep(1) }}
				synctest.Test(t, func(t *testing.T) { s.do() })
				simulation.Last(s).do()
			}`,
			want: []string{"4 Sleep TestA"},
		},
		"rule 3: what the function returns": {
			source: `func TestA(t *testing.T) {
				slow := func() func() { time.Sleep(1); return nil }
				made := slow()
				synctest.Test(t, func(t *testing.T) { made() })
			}`,
			want: []string{"3 Sleep TestA"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			packages, err := load(folder(t, map[string]string{"a_test.go": header + test.source}))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range packages[0].realWaits() {
				got = append(got, fmt.Sprintf("%d %s %s", w.line, w.call, w.function))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Packages are told apart, and only test files are looked at. Other files may have what a test calls.
func TestPackages(t *testing.T) {
	const imports = `; import ("testing/synctest"; "time"; simulated "example.com/testing/simulation")` + "\n"
	const exported = "func Wait() { time.Sleep(1) }\nfunc TestE() { synctest.Test(nil, Wait) }"
	root := folder(t, map[string]string{
		"a.go":               "package a" + imports + "func run(f func()) { synctest.Test(nil, f); time.Sleep(1) }",
		"a_test.go":          "package a" + imports + "func TestA() { run(func() { time.Sleep(1) }) }",
		"external_test.go":   "package a_test" + imports + "func TestB() { run(func() { time.Sleep(1) }) }",
		"renamed/a_test.go":  "package a\nimport clock \"time\"\nfunc TestC() { clock.Sleep(1) }",
		"renamed/b_test.go":  "package a" + imports + "func TestD() { simulated.Run(nil, func() { time.Sleep(1) }) }",
		"export/a_test.go":   "package a" + imports + exported,
		"external/a_test.go": "package a_test" + imports + exported,
		"testing/simulation/a_test.go": "package simulation" + imports +
			"func TestE() { RunFaults(func() { time.Sleep(1) }); attempt(func() { time.Sleep(1) }) }\n" +
			"func TestF() { Check(func() { time.Sleep(1) }) }",
		"testing/simulation/run.go": "package simulation\nfunc RunFaults(func()) {}\nfunc attempt(func()) {}",
		"none/a.go":                 "package a" + imports + "func wait() { time.Sleep(1) }",
		"testdata/a_test.go":        "broken",
		".git/a_test.go":            "broken",
		allowedFile:                 "",
	})
	checks(t, root, []string{
		wrong("export/a_test.go:2", "Wait"),
		wrong("external_test.go:2", "TestB"),
		wrong("renamed/a_test.go:3", "TestC"),
		wrong("testing/simulation/a_test.go:3", "TestF"),
	})
}

func TestAllowed(t *testing.T) {
	root := folder(t, map[string]string{
		"a/a_test.go": `package a; import "time"
			func TestA() { time.Sleep(1); time.Sleep(1) }
			func (f *fixture) wait() { time.Sleep(1) }
			func TestB() { time.Sleep(1) }
			func TestC() {}`,
		allowedFile: "# path: function: reason\n\n" +
			"a/a_test.go: TestA: it is about: real time\n" +
			"a/a_test.go: fixture.wait:\n" +
			"a/a_test.go: TestA: again\n" +
			"a/a_test.go: TestC: it waits no more\n" +
			"b/b_test.go: TestA: the file is gone\n" +
			"a/a_test.go TestB\n",
	})
	checks(t, root, []string{
		wrong("a/a_test.go:3", "fixture.wait"),
		wrong("a/a_test.go:4", "TestB"),
		allowedFile + `:4: "a/a_test.go: fixture.wait:" is not of the form FILE: NAME: reason`,
		allowedFile + ":5: TestA in a/a_test.go is there twice",
		allowedFile + ":6: TestC in a/a_test.go does not wait in real time: remove the line",
		allowedFile + ":7: TestA in b/b_test.go does not wait in real time: remove the line",
		allowedFile + `:8: "a/a_test.go TestB" is not of the form FILE: NAME: reason`,
	})
}

func TestErrors(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a file that is no Go source": {"a_test.go": "broken", allowedFile: ""},
		"a folder without a list":     {"a_test.go": "package a"},
	} {
		if _, err := checkFolder(folder(t, files)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a folder that is not there was accepted")
	}
}

// folder returns a folder that has files.
func folder(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, source := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// wrong is what is said about a time.Sleep.
func wrong(where, function string) string {
	return where + ": time.Sleep in " + function + " waits for a time: " +
		"wait for a fact (controlplanetest.Eventually), or in a bubble of testing/synctest; " +
		"hack/tools/waits/allowed.txt is for what has to be in real time"
}

func checks(t *testing.T, root string, want []string) {
	t.Helper()
	got, err := checkFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
