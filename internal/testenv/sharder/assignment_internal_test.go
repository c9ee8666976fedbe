package sharder

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	secrets    = metav1.GroupResource{Resource: "secrets"}
	configMaps = metav1.GroupResource{Resource: "configmaps"}
	ringOfMaps = Ring{Name: "maps", Spec: RingSpec{Resources: []RingResource{
		{GroupResource: configMaps, ControlledResources: []metav1.GroupResource{secrets}},
	}}}
	// three are the Leases of shards that are ready, uncertain, and dead.
	three = func() []coordinationv1.Lease {
		ready, uncertain, dead := *leaseOf("shard-0"), *leaseOf("shard-2"), *leaseOf("")
		ready.Name, uncertain.Name, dead.Name = "shard-0", "shard-2", "shard-1"
		early := metav1.NewMicroTime(noon.Add(-time.Hour))
		uncertain.Spec.RenewTime = &early
		return []coordinationv1.Lease{ready, dead, uncertain}
	}()
)

// configMap returns a ConfigMap that belongs to shard-2 if its name is "a", and to shard-0 if it is "c".
func configMap(name string, labels map[string]string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: labels,
	}}
	obj.APIVersion, obj.Kind = "v1", "ConfigMap"
	return obj
}

// secretOf returns a Secret that a ConfigMap controls.
func secretOf(owner string, labels map[string]string) *metav1.PartialObjectMetadata {
	obj := configMap("", labels)
	obj.Kind, obj.GenerateName = "Secret", "child-"
	obj.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner, Controller: new(true),
	}}
	return obj
}

func of(shard string) map[string]string { return map[string]string{ShardLabel("maps"): shard} }

func TestAdmit(t *testing.T) {
	generated := configMap("", nil)
	generated.GenerateName = "a-"
	alone, unnamed, kindless := secretOf("a", nil), secretOf("", nil), configMap("a", nil)
	alone.OwnerReferences[0].Controller = nil
	kindless.TypeMeta = metav1.TypeMeta{}
	// The controller is cluster-scoped, and its key would be /ConfigMap//a.
	elsewhere := secretOf("a", nil)
	elsewhere.Namespace = "team-2"
	for name, test := range map[string]struct {
		resource metav1.GroupResource
		obj      *metav1.PartialObjectMetadata
		leases   []coordinationv1.Lease
		want     string
		refused  string
	}{
		"a main object, to an uncertain shard":      {configMaps, configMap("a", nil), three, "shard-2", ""},
		"a main object, not to a dead shard":        {configMaps, configMap("c", nil), three, "shard-0", ""},
		"assigned already":                          {configMaps, configMap("a", of("shard-1")), three, "", ""},
		"a controlled object, as its controller":    {secrets, secretOf("c", nil), three, "shard-0", ""},
		"a controlled object, by its own namespace": {secrets, elsewhere, three, keyed("/ConfigMap/team-2/a"), ""},
		"without a controller":                      {secrets, alone, three, "", ""},
		"without shards":                            {configMaps, configMap("a", nil), three[1:2], "", ""},
		"generateName of a main object":             {configMaps, generated, three, "", "generateName is not supported"},
		"a resource of no ring": {
			metav1.GroupResource{Resource: "pods"}, generated, three, "", "no resource pods"},
		"a reference to a controller without a name": {secrets, unnamed, three, "", "lacks apiVersion, kind or name"},
		"no kind": {configMaps, kindless, three, "", "no apiVersion and no kind"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewAssignment(ringOfMaps, test.leases, noon).Admit(test.resource, test.obj)
			if got != test.want {
				t.Errorf("the object is labelled with %q, want %q", got, test.want)
			}
			if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("the error is %v, want %q", err, test.refused)
			}
		})
	}
}

// keyed returns the shard of a key among those that are available.
func keyed(key string) string { return newHashes("shard-0", "shard-2").shard(key) }

func TestSync(t *testing.T) {
	drained := of("shard-2")
	drained[DrainLabel("maps")] = "true"
	for name, test := range map[string]struct {
		as     role
		obj    *metav1.PartialObjectMetadata
		leases []coordinationv1.Lease
		want   move
	}{
		"where it belongs":                               {mainRole, configMap("a", of("shard-2")), three, stay},
		"where it belongs, and asked for before":         {mainRole, configMap("a", drained), three, stay},
		"unassigned":                                     {mainRole, configMap("a", nil), three, reassign},
		"with a shard that is ready":                     {mainRole, configMap("a", of("shard-0")), three, drain},
		"with a shard that is uncertain":                 {mainRole, configMap("c", of("shard-2")), three, drain},
		"with a shard that is dead":                      {mainRole, configMap("a", of("shard-1")), three, reassign},
		"with a shard without a Lease":                   {mainRole, configMap("a", of("shard-3")), three, reassign},
		"a controlled object with a shard that is ready": {controlledRole, secretOf("a", of("shard-0")), three, reassign},
		"a controlled object without a controller":       {controlledRole, configMap("a", of("shard-0")), three, stay},
		"without shards":                                 {mainRole, configMap("a", of("shard-1")), three[1:2], stay},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewAssignment(ringOfMaps, test.leases, noon).sync(test.obj, test.as)
			if err != nil || got != test.want {
				t.Errorf("the move is %q with error %v, want %q", got, err, test.want)
			}
		})
	}
}
