package command_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
)

// A command that does not exist is an error of one line, at each depth. Only without a name the help is printed.
func TestUnknownCommand(t *testing.T) {
	for args, want := range map[string]string{
		"aply":                                 `"espalier" has no command "aply": --help lists those that it has`,
		"componet list":                        `"espalier" has no command "componet": did you mean component?`,
		"component aply shop ./m":              `"espalier component" has no command "aply": did you mean apply?`,
		"component -n shops aply shop ./m":     `"espalier component" has no command "aply": did you mean apply?`,
		"component aply shop ./m --timeout 4s": `"espalier component" has no command "aply": did you mean apply?`,
		"component --typo":                     "unknown flag: --typo",
		"cluster strat":                        `"espalier cluster" has no command "strat": did you mean start?`,
		"completion bogus":                     `"espalier completion" has no command "bogus": --help lists`,
		"help component aply":                  `"espalier component" has no command "aply": did you mean apply?`,
		"help bogus":                           `"espalier" has no command "bogus": --help lists`,
		"help component apply":                 "",
		"component":                            "",
		"completion":                           "",
		"":                                     "",
	} {
		var out bytes.Buffer
		c := command.New(&out, &out)
		c.SetArgs(strings.Fields(args))
		err := c.ExecuteContext(t.Context())
		switch {
		case want == "" && (err != nil || !strings.Contains(out.String(), "Usage:")):
			t.Errorf("espalier %s: the error is %v, want none, and the help:\n%s", args, err, out.String())
		case want != "" && (command.ExitCode(err) != 1 || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") || out.Len() > 0):
			t.Errorf("espalier %s: the error is %v, want the exit code 1 and %q alone:\n%s", args, err, want, out.String())
		}
	}
}

// docs/README.md has a line for each command that does something.
func TestIndexHasEachCommand(t *testing.T) {
	index, err := os.ReadFile("../../../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			check(sub)
		}
		line := "\n- `" + strings.TrimSuffix(c.CommandPath(), " bash") + "` "
		switch c.Name() {
		case "help", "fish", "powershell", "zsh": // One line is for all shells.
		default:
			if !c.HasSubCommands() && !strings.Contains(string(index), line) {
				t.Errorf("docs/README.md has no line that begins with %q", line[1:])
			}
		}
	}
	check(command.New(&bytes.Buffer{}, &bytes.Buffer{}))
}
