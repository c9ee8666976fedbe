// Command postgres is a plugin for the capability database/postgres.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/espalier-dev/espalier/plugins"
)

// versions are those of PostgreSQL that this release of the plugin knows, the newest first. The linker sets those of
// another release.
var versions = "16.2,15.6"

func main() {
	plugin, err := newPlugin(os.Getenv(keyEnvironment))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "process %d serves PostgreSQL %s\n", os.Getpid(), versions)
	plugins.Serve(plugin)
}

// newPlugin returns the plugin. Passwords are made of the key.
func newPlugin(key string) (plugins.Plugin, error) {
	if key == "" {
		return plugins.Plugin{}, fmt.Errorf("passwords are made of a key: give one by the variable %s", keyEnvironment)
	}
	known := strings.Split(versions, ",")
	return plugins.Plugin{Category: "database", Types: []plugins.Type{
		{Name: "postgres", Versions: known, Dependents: server{key: []byte(key), newest: known[0]}.dependents},
	}}, nil
}
