package main

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// broker is where RabbitMQ is.
const broker = "rabbit.messaging.svc.cluster.local"

var queueName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// fields are a message of the contract, or an object, as JSON.
type fields = map[string]any

// queue says what the queues of an owner consist of.
type queue struct {
	// shared is the namespace that the definitions are put into. Empty: that of the owner.
	shared string
	// dropsAll says that the dependents of another plugin may go.
	dropsAll bool
}

// request is the part of a DependentsRequest that the plugin reads, and spec that of the spec of an owner.
type (
	request struct {
		Owner owner `json:"owner"`
	}
	owner struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Spec      []byte `json:"spec"`
	}
	spec struct {
		Queue struct {
			Names []string `json:"names"`
		} `json:"queue"`
	}
)

// answer implements answers.
func (q queue) answer(method string, text []byte) (any, error) {
	if method == "Describe" {
		return fields{"category": "queue", "types": []fields{{"name": "rabbit"}}}, nil
	}
	var asked request
	if err := json.Unmarshal(text, &asked); err != nil {
		return nil, err
	}
	return q.dependents(asked.Owner)
}

func (q queue) dependents(o owner) (any, error) {
	fmt.Printf("asked for %s/%s\n", o.Namespace, o.Name)
	var asked spec
	if len(o.Spec) > 0 {
		if err := json.Unmarshal(o.Spec, &asked); err != nil {
			return nil, err
		}
	}
	var problems []string
	for _, name := range asked.Queue.Names {
		if !queueName.MatchString(name) {
			problems = append(problems, fmt.Sprintf("queue.names has '%s', which is no name of a queue", name))
		}
	}
	if len(problems) > 0 {
		return fields{"invalid": fields{"messages": problems}}, nil
	}
	definitions, err := q.definitions(o, asked.Queue.Names)
	if err != nil {
		return nil, err
	}
	var items []fields
	for _, item := range []struct {
		name   string
		object fields
	}{{"broker", service(o)}, {"definitions", definitions}} {
		text, err := json.Marshal(item.object)
		if err != nil {
			return nil, err
		}
		items = append(items, fields{
			"name": item.name, "apiVersion": item.object["apiVersion"], "kind": item.object["kind"], "object": text,
		})
	}
	return fields{"dependents": fields{"items": items, "dropsAll": q.dropsAll}}, nil
}

// service returns the Service that a shop finds the broker by.
func service(o owner) fields {
	return fields{
		"apiVersion": "v1", "kind": "Service", "metadata": fields{"name": o.Name + "-queue"},
		"spec": fields{"type": "ExternalName", "externalName": broker},
	}
}

// definitions returns the ConfigMap with what the broker is to have.
func (q queue) definitions(o owner, names []string) (fields, error) {
	host := o.Namespace + "." + o.Name
	queues := []fields{}
	for _, name := range names {
		queues = append(queues, fields{"name": name, "vhost": host, "durable": true})
	}
	text, err := json.Marshal(fields{"vhosts": []fields{{"name": host}}, "queues": queues})
	if err != nil {
		return nil, err
	}
	metadata := fields{"name": o.Name + "-queue"}
	if q.shared != "" {
		metadata["namespace"] = q.shared
	}
	return fields{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": fields{"definitions.json": string(text)},
	}, nil
}
