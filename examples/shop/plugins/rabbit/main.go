// Command rabbit is a plugin for the capability queue/rabbit, as a sidecar. It gives the answers of rabbit.py, for
// machines whose Python has no grpcio.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/plugins"
)

// broker is where RabbitMQ is.
const broker = "rabbit.messaging.svc.cluster.local"

var queueName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

var (
	shared   = flag.String("shared", "", "the namespace of the broker, to put the definitions there")
	dropsAll = flag.Bool("drops-all", false, "take the place of another plugin for rabbit")
)

func main() {
	flag.Parse()
	plugins.Serve(plugins.Plugin{Category: "queue", Types: []plugins.Type{{Name: "rabbit", Dependents: dependents}}})
}

// dependents returns the Service that a shop finds the broker by, and the definitions of what the broker is to have.
func dependents(_ context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
	fmt.Printf("asked for %s/%s\n", r.Owner.Namespace, r.Owner.Name)
	var spec struct {
		Queue struct{ Names []string }
	}
	if err := r.Owner.Decode(&spec); err != nil {
		return nil, plugins.Invalid(err.Error())
	}
	var problems []string
	host, queues := r.Owner.Namespace+"."+r.Owner.Name, []map[string]any{}
	for _, name := range spec.Queue.Names {
		if !queueName.MatchString(name) {
			problems = append(problems, fmt.Sprintf("queue.names has '%s', which is no name of a queue", name))
		}
		queues = append(queues, map[string]any{"name": name, "vhost": host, "durable": true})
	}
	if len(problems) > 0 {
		return nil, plugins.Invalid(problems...)
	}
	text, err := json.Marshal(map[string]any{"vhosts": []map[string]string{{"name": host}}, "queues": queues})
	if err != nil {
		return nil, err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: r.Owner.Name + "-queue"}}
	service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, broker
	definitions := &corev1.ConfigMap{Data: map[string]string{"definitions.json": string(text)}}
	definitions.Namespace, definitions.Name = *shared, service.Name
	all := []*plugins.Dependent{plugins.Owns("broker", service), plugins.Owns("definitions", definitions)}
	if *dropsAll {
		all = append(all, plugins.DropsAll())
	}
	return all, nil
}
