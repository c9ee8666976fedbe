// Command placeholder is a plugin for Espalier: it says which objects fulfil the capability
// placeholder-category/placeholder for a resource.
package main

import "github.com/espalier-dev/espalier/plugins"

func main() { plugins.Serve(plugin) }
