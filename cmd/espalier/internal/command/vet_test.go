package command_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
)

func TestVetRunsTheAnalyzers(t *testing.T) {
	for name, tc := range map[string]struct {
		args      []string
		out, fail string
	}{
		"findings":        {[]string{"../../vet/testdata/finalizer"}, `the finalizer "cleanup"`, "findings: 9"},
		"JSON":            {[]string{"-json", "../../vet/testdata/finalizer"}, `"message": "the finalizer \"cleanup\"`, ""},
		"another one":     {[]string{"-desired", "../../vet/testdata/finalizer"}, "", ""},
		"no package":      {[]string{"./nothing"}, "directory not found", "nothing was looked at, since the packages have errors: 1"},
		"an unknown flag": {[]string{"-nothing", "."}, "", "flag provided but not defined: -nothing"},
		"help":            {[]string{"--help"}, "espalier vet ./...", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &bytes.Buffer{}
			c := command.New(out, out)
			c.SetArgs(append([]string{"vet"}, tc.args...))
			err := c.ExecuteContext(t.Context())
			failed := ""
			if err != nil {
				failed = err.Error()
			}
			if failed != tc.fail {
				t.Errorf("want the error %q, got %q", tc.fail, failed)
			}
			if got := out.String(); !strings.Contains(got, tc.out) || tc.out == "" && got != "" {
				t.Errorf("want the output %q, got:\n%s", tc.out, got)
			}
		})
	}
}
