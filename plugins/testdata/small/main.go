// Command small is a plugin that does little. A benchmark builds it, and measures how much memory it takes.
package main

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/plugins"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	plugins.Serve(plugins.Plugin{Category: "database", Types: []plugins.Type{{Name: "postgres", Dependents: five}}})
}

func five(_ context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
	var all []*plugins.Dependent
	for i := range 5 {
		name := fmt.Sprint("part-", i)
		all = append(all, plugins.Owns(name, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: r.Owner.Name + "-" + name}, Data: map[string]string{"part": name},
		}))
	}
	return all, nil
}
