package bundles_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharing is a component that brings a namespace in which others have objects.
type sharing struct {
	client.Client
	requests *controlplane.Requests
	home     string
	shared   *corev1.Namespace
	mine     *corev1.ConfigMap
	assembly *resources.Assembly
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"name": name},
	}
}

// share deploys the component. The namespace has annotations of the shared prefix.
func share(t *testing.T, annotations ...string) *sharing {
	t.Helper()
	s := &sharing{Client: live(t), home: plane.Namespace(t)}
	s.shared = &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: s.home + "-shared", Annotations: map[string]string{}},
	}
	for i := 0; i < len(annotations); i += 2 {
		s.shared.Annotations[generator.SharedPrefix+"/"+annotations[i]] = annotations[i+1]
	}
	s.mine = configMap(s.shared.Name, "mine")
	s.assembly = resources.NewAssembly(s.home, "shop", s.shared, s.mine)
	s.requests = startOperator(t, s.home, resources.AssemblyGenerator(), options{})
	must(t, s.Create(t.Context(), s.assembly))
	eventually(t, "it is not deployed", isReady(s, s.assembly))
	return s
}

// theirs creates a ConfigMap of somebody else in the namespace.
func (s *sharing) theirs(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	object := configMap(s.shared.Name, name)
	must(t, s.Create(t.Context(), object))
	return object
}

// looksAgain waits until the operator has looked at the shared namespace twice more.
func (s *sharing) looksAgain(t *testing.T) {
	t.Helper()
	s.requests.Reset()
	eventually(t, "the operator does not look at the namespace again", func(context.Context) error {
		for request, n := range s.requests.Counts() {
			// The first may belong to a look that had begun before, and the last to one that has not ended.
			if n >= 4 && strings.HasPrefix(request.Path, "/api/v1/namespaces/"+s.shared.Name) {
				return nil
			}
		}
		return fmt.Errorf("its requests are %s", s.requests)
	})
}

// stay fails if one of the objects is deleted.
func (s *sharing) stay(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		must(t, s.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		if at := object.GetDeletionTimestamp(); at != nil {
			t.Fatalf("%s was deleted at %v", object.GetName(), at)
		}
	}
}

// A namespace in which others have objects stays until these are gone. Everything else of the component goes.
func TestSharedNamespaceStays(t *testing.T) {
	t.Parallel()
	s := share(t)
	theirs := s.theirs(t, "theirs")
	derived := configMap(s.shared.Name, "derived")
	derived.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: theirs.Name, UID: theirs.UID,
	}}
	must(t, s.Create(t.Context(), derived))

	must(t, s.Delete(t.Context(), s.assembly))
	text := fmt.Sprintf("blocked: Namespace %s: in use by ConfigMap %[1]s/derived, ConfigMap %[1]s/theirs", s.shared.Name)
	eventually(t, "it is not said what is in the way", says(s, s.assembly, component.ReasonDeletionBlocked, text))
	s.looksAgain(t)
	s.stay(t, s.shared, theirs, derived)
	must(t, gone(s, s.mine)(t.Context()))

	must(t, s.Delete(t.Context(), theirs))
	eventually(t, "it does not go", gone(s, s.assembly, s.shared))
}

// Objects that go with an object of the component are its own, and need no word.
func TestNamespaceGoesWithWhatIsDerived(t *testing.T) {
	t.Parallel()
	s := share(t)
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(s.mine), s.mine))
	derived := configMap(s.shared.Name, "derived")
	derived.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: s.mine.Name, UID: s.mine.UID,
	}}
	must(t, s.Create(t.Context(), derived))
	must(t, s.Delete(t.Context(), s.assembly))
	eventually(t, "it does not go", gone(s, s.assembly, s.shared))
}

// A component may say that the objects of others do not matter, or that the namespace is left behind.
func TestNamespaceByPolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		annotation, value string
		deleted           bool
	}{
		"ignored":  {generator.AnnotationForeignInstances, "ignore", true},
		"orphaned": {generator.AnnotationDeletePolicy, "orphan", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := share(t, test.annotation, test.value)
			theirs := s.theirs(t, "theirs")
			must(t, s.Delete(t.Context(), s.assembly))
			eventually(t, "it does not go", gone(s, s.assembly, s.mine))
			if test.deleted {
				eventually(t, "the namespace does not go", gone(s, s.shared, theirs))
			} else {
				controlplanetest.Rest(t, s.requests)
				s.stay(t, s.shared, theirs)
			}
		})
	}
}

// A namespace that is there already is refused by default. If it is adopted, it is never deleted.
func TestAdoptedNamespaceStays(t *testing.T) {
	t.Parallel()
	c, home := live(t), plane.Namespace(t)
	requests := startOperator(t, home, resources.AssemblyGenerator(), options{})
	for name, annotations := range map[string]map[string]string{
		"by default": {generator.AnnotationAdoptionPolicy: "if-unowned"},
		"in spite of the policies": {
			generator.AnnotationAdoptionPolicy: "if-unowned", generator.AnnotationDeletePolicy: "delete",
			generator.AnnotationForeignInstances: "ignore",
		},
	} {
		t.Run(name, func(t *testing.T) {
			there := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
			there.Name = plane.Namespace(t)
			s := &sharing{Client: c, home: home, shared: there, mine: configMap(there.Name, "mine")}
			s.assembly = resources.NewAssembly(home, there.Name, there, s.mine)
			must(t, s.Create(t.Context(), s.assembly))
			eventually(t, "it is not refused", says(c, s.assembly, component.ReasonProcessing,
				"not ours: Namespace "+there.Name))

			there.Annotations = map[string]string{}
			for key, value := range annotations {
				there.Annotations[generator.SharedPrefix+"/"+key] = value
			}
			eventually(t, "the component cannot be changed", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(s.assembly), s.assembly); err != nil {
					return err
				}
				s.assembly.SetObjects(there, s.mine)
				return c.Update(ctx, s.assembly)
			})
			eventually(t, "it is not deployed", isReady(c, s.assembly))
			must(t, c.Delete(t.Context(), s.assembly))
			eventually(t, "it does not go", gone(c, s.assembly, s.mine))
			controlplanetest.Rest(t, requests)
			s.stay(t, there)
			if len(there.Labels) != 1 {
				t.Errorf("it has the labels %v", there.Labels)
			}
		})
	}
}

// A namespace that is dropped stays as well. The rest of the upgrade goes on.
func TestSharedNamespaceThatIsDropped(t *testing.T) {
	t.Parallel()
	s := share(t)
	theirs := s.theirs(t, "theirs")
	moved := configMap(s.home, "moved")
	s.assembly.SetObjects(moved)
	must(t, s.Update(t.Context(), s.assembly))
	text := fmt.Sprintf("Namespace %s: in use by ConfigMap %[1]s/theirs", s.shared.Name)
	eventually(t, "it is not said what is in the way", says(s, s.assembly, component.ReasonProcessing, text))
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(moved), moved))
	eventually(t, "what is not desired any more does not go", gone(s, s.mine))
	s.looksAgain(t)
	s.stay(t, s.shared, theirs)
	must(t, s.Delete(t.Context(), theirs))
	eventually(t, "it is not ready", isReady(s, s.assembly))
	eventually(t, "the namespace does not go", gone(s, s.shared))
}

// The condition names a few of many objects, and how many more there are.
func TestManyObjectsOfOthers(t *testing.T) {
	t.Parallel()
	s := share(t)
	workqueue.ParallelizeUntil(t.Context(), 16, 1000, func(i int) {
		if err := s.Create(t.Context(), configMap(s.shared.Name, fmt.Sprintf("theirs-%04d", i))); err != nil {
			t.Error(err)
		}
	})
	must(t, s.Delete(t.Context(), s.assembly))
	text := fmt.Sprintf("in use by ConfigMap %s/theirs-0000, ConfigMap %[1]s/theirs-0001, ConfigMap %[1]s/theirs-0002 "+
		"and 997 more", s.shared.Name)
	eventually(t, "they are not counted", says(s, s.assembly, component.ReasonDeletionBlocked, text))
	// The API server ends a request after a minute, which a busy machine needs for so many.
	eventually(t, "theirs are not deleted", func(ctx context.Context) error {
		return s.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(s.shared.Name))
	})
	eventually(t, "it does not go", gone(s, s.assembly))
}
