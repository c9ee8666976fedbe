package command_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
)

// hostile is a text in JSON that would turn a terminal red, set its title, and show what follows backwards.
const hostile = `"\u001b[31mred \u001b]0;title\u0007\u202eder"`

// Texts of others reach the terminal without what acts on it. What is for programs stays as it is.
func TestTextsOfOthers(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/dump") {
			fmt.Fprintf(w, `{"roots": [{"kind": "Shop", "list": [{"name": "corner", "state": "Error", "conditions": [
				{"type": "Ready", "status": "False", "reason": "Retry", "message": %s}
			]}]}]}`, hostile)
		}
	}))
	t.Cleanup(page.Close)
	run := func(args ...string) string {
		var out bytes.Buffer
		c := command.New(&out, io.Discard)
		c.SetArgs(append([]string{
			"tree", "shop/corner", "-n", "shops", "--operator", page.URL, "--server", page.URL, "--kubeconfig", os.DevNull,
		}, args...))
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := run(), "Ready=False Retry [31mred ]0;titleder\n"; !strings.Contains(got, want) {
		t.Errorf("tree prints %q, want %q", got, want)
	}
	if got, want := run("-o", "json"), `\u001b[31mred \u001b]0;title\u0007`+"\u202eder"; !strings.Contains(got, want) {
		t.Errorf("tree -o json prints %q, want %q", got, want)
	}
}

// So do errors.
func TestErrorsOfOthers(t *testing.T) {
	out := &terminal{}
	c := hanging(t, out, "component", "apply", "shop", "\x1b[31mred\u202e.yaml")
	err := c.Run()
	if want := "espalier: stat [31mred.yaml: no such file or directory\n"; exitCode(err) != 1 || out.String() != want {
		t.Errorf("the command ends with %v and prints %q, want %q", err, out, want)
	}
}
