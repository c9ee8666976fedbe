package plan_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const groupAdmission = "admissionregistration.k8s.io"

// refused is a case of a refusal: what is desired, what the API server answers, and an object that is dropped.
type refused struct {
	desired plan.Desired
	// manifest and live are the contents of both objects, as YAML.
	manifest, live string
	answer         metav1.Status
	dropped        plan.Desired
	// unwritten is a mutating webhook configuration that is to be written.
	unwritten string
	record    func(r *apis.InventoryRecord)
}

func (r *refused) releases(t *testing.T) bool {
	t.Helper()
	contentOf := func(text string) map[string]any {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			t.Fatal(err)
		}
		return content
	}
	key := r.dropped.Key
	record := apis.InventoryRecord{
		Group: key.Group, Version: "v1", Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
		UID: "uid", Phase: apis.PhaseScheduledForDeletion,
	}
	if r.record != nil {
		r.record(&record)
	}
	live := &unstructured.Unstructured{Object: contentOf(r.live)}
	live.SetUID("uid")
	var unwritten []map[string]any
	if r.unwritten != "" {
		unwritten = append(unwritten, contentOf(r.unwritten))
	}
	refusal := plan.Refusal{Key: r.desired.Key, Status: r.answer}
	return refusal.Releases(&record, live, contentOf(r.manifest), unwritten)
}

func says(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) metav1.Status {
	return metav1.Status{
		Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes},
	}
}

func admits(kind, name string) plan.Desired {
	d := object1(groupAdmission, kind, name)
	d.Namespace = ""
	return d
}

var (
	validating = admits("ValidatingWebhookConfiguration", "guard")
	mutating   = admits("MutatingWebhookConfiguration", "guard")
	service    = object1("", "Service", "old")
	ingress    = object1("networking.k8s.io", "Ingress", "old")

	hooks     = "webhooks: [{name: other.example.com}, {name: guard.example.com}]"
	dead      = says(500, "InternalError", `Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://127.0.0.1:1/": connection refused`)
	denied    = says(403, "Forbidden", `admission webhook "guard.example.com" denied the request: no`)
	byPolicy  = says(422, "Invalid", `configmaps "new" is forbidden: ValidatingAdmissionPolicy 'guard' with binding 'bound' denied request: no`)
	byMutator = says(403, "Forbidden", `policy 'guard' with binding 'bound' denied request: no such field`)
	portTaken = says(422, "Invalid", `Service "new" is invalid: ...`, metav1.StatusCause{
		Type: "FieldValueInvalid", Field: "spec.ports[1].nodePort", Message: "Invalid value: 31777: provided port is already allocated",
	})
	addressTaken = says(422, "Invalid", `Service "new" is invalid: ...`, metav1.StatusCause{
		Type: "FieldValueInvalid", Field: "spec.clusterIPs", Message: `Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: provided IP is already allocated`,
	})
	hostTaken = says(400, "BadRequest", `admission webhook "validate.nginx.ingress.kubernetes.io" denied the request: host "shop.example.com" and path "/" is already defined in ingress app/old`)

	ports = "spec: {ports: [{port: 80}, {port: 81, nodePort: 31777}]}"
	hosts = "spec: {rules: [{host: shop.example.com}]}"
)

func TestRefusalReleasesWhatItIsAbout(t *testing.T) {
	scaled := object1("autoscaling", "HorizontalPodAutoscaler", "old")
	priority := object1("scheduling.k8s.io", "PriorityClass", "old")
	priority.Namespace = ""
	target := "spec: {scaleTargetRef: {kind: Deployment, name: web}}"
	route := object1("gateway.networking.k8s.io", "HTTPRoute", "new")
	for name, test := range map[string]refused{
		"a dead webhook":                         {answer: dead, dropped: validating, live: hooks},
		"a webhook that denies":                  {answer: denied, dropped: validating, live: hooks},
		"a mutating webhook":                     {answer: dead, dropped: mutating, live: hooks},
		"a mutating webhook, and another stays":  {answer: dead, dropped: mutating, live: hooks, unwritten: "webhooks: [{name: other.example.com}]"},
		"a validating webhook, with a successor": {answer: dead, dropped: validating, live: hooks, unwritten: hooks},
		"a policy":                               {answer: byPolicy, dropped: admits("ValidatingAdmissionPolicy", "guard")},
		"a binding":                              {answer: byPolicy, dropped: admits("ValidatingAdmissionPolicyBinding", "bound")},
		"a mutating policy":                      {answer: byMutator, dropped: admits("MutatingAdmissionPolicy", "guard")},
		"a mutating policy's binding":            {answer: byMutator, dropped: admits("MutatingAdmissionPolicyBinding", "bound")},
		"a node port":                            {answer: portTaken, desired: service, manifest: ports, dropped: service, live: ports},
		"a node port, in a text":                 {answer: says(400, "BadRequest", "the node port 31777 is taken."), desired: service, manifest: ports, dropped: service, live: ports},
		"an address": {
			answer: addressTaken, desired: service, manifest: "spec: {clusterIP: 10.96.0.10}",
			dropped: service, live: "spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10]}",
		},
		"an address of a load balancer": {
			answer:  says(403, "Forbidden", `admission webhook "lb.example.com" denied the request: 192.0.2.7 is in use`),
			desired: service, manifest: "spec: {loadBalancerIP: 192.0.2.7}", dropped: service, live: "spec: {loadBalancerIP: 192.0.2.7}",
		},
		"a host": {answer: hostTaken, desired: ingress, manifest: hosts, dropped: ingress, live: hosts},
		"a host of another kind": {
			answer: hostTaken, desired: route, manifest: "spec: {hostnames: [shop.example.com]}", dropped: ingress, live: hosts,
		},
		"what is scaled": {
			answer:  says(403, "Forbidden", `admission webhook "vscaledobject.kb.io" denied the request: the workload 'web' of type 'apps/v1.Deployment' is already managed by the hpa 'old'`),
			desired: object1("keda.sh", "ScaledObject", "new"), manifest: "spec: {scaleTargetRef: {name: web}}", dropped: scaled, live: target,
		},
		"the default of all": {
			answer:  says(403, "Forbidden", `priorityclasses.scheduling.k8s.io "new" is forbidden: PriorityClass old is already marked as default. Only one default can exist`),
			desired: priority, manifest: "globalDefault: true", dropped: priority, live: "globalDefault: true",
		},
	} {
		if !test.releases(t) {
			t.Errorf("%s: it is kept, want it released", name)
		}
	}
}

func TestRefusalReleasesNothingElse(t *testing.T) {
	is := func(change func(*apis.InventoryRecord)) func(*apis.InventoryRecord) { return change }
	claim := object1("", "PersistentVolumeClaim", "old")
	quoted := says(403, "Forbidden", `admission webhook "their.example.com" denied the request: failed calling webhook "guard.example.com": no`)
	quotedPolicy := says(403, "Forbidden", `admission webhook "their.example.com" denied the request: ValidatingAdmissionPolicy 'guard' with binding 'bound' denied request`)
	outOfRange := says(422, "Invalid", `Service "new" is invalid: ...`, metav1.StatusCause{
		Field: "spec.ports[0].nodePort", Message: "Invalid value: 31777: provided port is not in the valid range",
	})
	otherField := says(422, "Invalid", `Service "new" is invalid: ...`, metav1.StatusCause{
		Field: "spec.ports[1].port", Message: "Invalid value: 31777: it is already taken",
	})
	for name, test := range map[string]refused{
		"a configuration without the webhook":      {answer: dead, dropped: validating, live: "webhooks: [{name: guard.example.com.au}]"},
		"an answer that names no webhook":          {answer: says(403, "Forbidden", "no right"), dropped: validating, live: hooks},
		"a webhook that another one quotes":        {answer: quoted, dropped: validating, live: hooks},
		"a policy that a webhook quotes":           {answer: quotedPolicy, dropped: admits("ValidatingAdmissionPolicy", "guard")},
		"a mutating webhook that has to be first":  {answer: dead, dropped: mutating, live: hooks, unwritten: hooks},
		"another policy":                           {answer: byPolicy, dropped: admits("ValidatingAdmissionPolicy", "bound")},
		"a binding of the other kind":              {answer: byPolicy, dropped: admits("MutatingAdmissionPolicyBinding", "bound")},
		"another node port":                        {answer: portTaken, desired: service, manifest: ports, dropped: service, live: "spec: {ports: [{nodePort: 31778}]}"},
		"a node port that is not asked for":        {answer: portTaken, desired: service, manifest: "spec: {ports: [{port: 31777}]}", dropped: service, live: ports},
		"a node port that is not taken":            {answer: outOfRange, desired: service, manifest: ports, dropped: service, live: ports},
		"another field":                            {answer: otherField, desired: service, manifest: ports, dropped: service, live: ports},
		"a part of a number":                       {answer: says(400, "BadRequest", "the node port 317771 is taken"), desired: service, manifest: ports, dropped: service, live: ports},
		"a webhook that did not answer":            {answer: says(500, "InternalError", "31777: address already in use"), desired: service, manifest: ports, dropped: service, live: ports},
		"no address":                               {answer: says(422, "Invalid", "None is already taken"), desired: service, manifest: "spec: {clusterIP: None}", dropped: service, live: "spec: {clusterIP: None}"},
		"a host that somebody else's has":          {answer: hostTaken, desired: ingress, manifest: hosts, dropped: object1("networking.k8s.io", "Ingress", "older"), live: hosts},
		"a host of that name in another namespace": {answer: hostTaken, desired: ingress, manifest: hosts, dropped: with(ingress, func(d *plan.Desired) { d.Namespace = "other" }), live: hosts},
		"a host of a kind that may hold data":      {answer: hostTaken, desired: foo("new"), manifest: "spec: {host: shop.example.com}", dropped: foo("old"), live: "spec: {host: shop.example.com}"},
		"data":                                     {answer: hostTaken, desired: claim, manifest: hosts, dropped: claim, live: hosts},
		"a type":                                   {answer: dead, dropped: validating, live: hooks, record: is(func(r *apis.InventoryRecord) { r.ManagedTypes = []apis.ManagedType{{}} })},
		"what stays":                               {answer: dead, dropped: validating, live: hooks, record: is(func(r *apis.InventoryRecord) { r.DeletePolicy = apis.DeleteOrphan })},
		"what stays when it is dropped":            {answer: dead, dropped: validating, live: hooks, record: is(func(r *apis.InventoryRecord) { r.DeletePolicy = apis.DeleteOrphanOnApply })},
		"what is desired":                          {answer: dead, dropped: validating, live: hooks, record: is(func(r *apis.InventoryRecord) { r.Digest, r.Phase = "1", apis.PhaseReady })},
		"another object of that name":              {answer: dead, dropped: validating, live: hooks, record: is(func(r *apis.InventoryRecord) { r.UID = "another" })},
		"what has no UID on record":                {answer: dead, dropped: validating, live: hooks, record: is(func(r *apis.InventoryRecord) { r.UID = "" })},
	} {
		if test.releases(t) {
			t.Errorf("%s: it is released, want it kept", name)
		}
	}
}

// What a refusal has released goes at once, in the version that was read only, whatever the waves say. What was not
// released stays.
func TestReleasedObjectGoesAtOnce(t *testing.T) {
	for _, when := range []apis.PrunePolicy{apis.PruneBefore, apis.PruneWith, apis.PruneAfter} {
		c := newComponent(t, foo("first"), with(validating, policy(when), order(2, 2)), with(service, order(2, 0)), with(configMap("kept"), order(2, 0)))
		c.rollOutAll(t)
		c.desired = []plan.Desired{with(foo("first"), digest("2")), with(configMap("kept"), order(2, 0), digest("2"))}
		c.cluster.broken[c.desired[0].Key] = true
		if c.pass(); c.cluster.objects[validating.Key] == nil {
			t.Fatalf("%s: the webhook is pruned, want it kept until a refusal names it", when)
		}
		in := c.input()
		in.Failed[c.desired[0].Key] = "refused"
		in.Released = map[plan.Key]string{validating.Key: "7", configMap("kept").Key: "8"}
		p := plan.Make(in)
		same(t, string(when)+": operations", actions(p), []string{"delete guard"})
		if o := p.Next.Operations[0]; o.ResourceVersion != "7" || !o.Exact {
			t.Errorf("%s: version %q is deleted, exact: %t, want version 7 alone", when, o.ResourceVersion, o.Exact)
		}
		if violation := violationOf(in, p); violation != "" {
			t.Errorf("%s: the plan breaks an invariant: %s", when, violation)
		}
		in.Failed[validating.Key] = "it has changed"
		same(t, string(when)+": operations after a failure", actions(plan.Make(in)), nil)
	}
}

// What is to stay is not released, and neither is what may be a desired object under another name.
func TestReleaseDoesNotDeleteWhatStays(t *testing.T) {
	moved := with(ingress, func(d *plan.Desired) { d.Group = "extensions" })
	for name, test := range map[string]struct{ old, desired plan.Desired }{
		"an orphan": {with(ingress, policy(apis.DeleteOrphan)), with(configMap("new"), order(1, 0))},
		"an alias":  {ingress, moved},
	} {
		c := newComponent(t, test.old, configMap("first"))
		c.rollOutAll(t)
		c.desired = []plan.Desired{with(configMap("first"), digest("2")), test.desired}
		c.cluster.broken[configMap("first").Key], c.cluster.broken[test.desired.Key] = true, true
		in := c.input()
		in.Failed[configMap("first").Key], in.Failed[test.desired.Key] = "refused", "refused"
		in.Released = map[plan.Key]string{test.old.Key: "7"}
		if operations := actions(plan.Make(in)); len(operations) > 0 {
			t.Errorf("%s: the operations are %q, want none", name, operations)
		}
	}
}
