package helm

import (
	"encoding/json"

	"helm.sh/helm/v4/pkg/chart/v2"
)

// Fingerprint returns all that renderings share, as text.
func Fingerprint(g *Generator) string {
	var all []any
	var add func(c *v2.Chart)
	add = func(c *v2.Chart) {
		all = append(all, c, c.ChartFullPath())
		for _, dependency := range c.Dependencies() {
			add(dependency)
		}
	}
	add(g.chart)
	for _, crd := range g.chart.CRDObjects() {
		all = append(all, g.definitions[crd.File])
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}
