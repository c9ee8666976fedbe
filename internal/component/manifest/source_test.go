package manifest_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/secretdata"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// marked returns objects whose content takes some work to become a manifest.
func marked() []client.Object {
	return []client.Object{
		annotated(object("v1 ConfigMap", "a", m{"data": m{"a": "b"}, "status": m{"a": "b"}, "n": 1}), "owner-id", "x", "apply-order", "1"),
		object("v1 Namespace", "b/n", m{"metadata": m{"name": "n", "namespace": "b", "uid": "1"}}),
		object("v1 Secret", "c", m{"stringData": m{"a": "b"}, "data": m{"a": "", "c": ""}}),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Data: map[string][]byte{"a": []byte("b")}},
		object("v1 List", "l", m{"items": []any{object("v1 ConfigMap", "e").Object, object("v1 Secret", "f", m{"stringData": m{"a": "b"}}).Object}}),
	}
}

// A manifest that is made from what was generated again is the one that was digested.
func TestManifestsMadeAgainAreTheSame(t *testing.T) {
	cache := &manifest.Cache{}
	want := views(t, prepareWith(t, options(), nil, marked()...))
	for range 3 {
		got := prepareWith(t, options(), cache, marked()...)
		if diff := cmp.Diff(want, views(t, got)); diff != "" {
			t.Errorf("unexpected (-want, +got):\n%s", diff)
		}
		for n, prints := range map[int]map[string]secretdata.Fingerprint{
			0: nil, 2: {"a": secretdata.Of("a", []byte("b")), "c": secretdata.Of("c", nil)}, 5: {"a": secretdata.Of("a", []byte("b"))},
		} {
			if diff := cmp.Diff(prints, got[n].Data); diff != "" {
				t.Errorf("the data of object %d (-want, +got):\n%s", n, diff)
			}
		}
	}
}

// What was generated, and not yet been made a manifest of, may be changed by a generator that does not stick to the rules.
func TestAChangeAfterPreparingIsAnError(t *testing.T) {
	cache, objects := &manifest.Cache{}, marked()
	prepareWith(t, options(), cache, objects...)
	prepared := prepareWith(t, options(), cache, objects...)
	objects[2].SetLabels(map[string]string{"a": "b"})
	if _, err := prepared[2].Manifest(); !errors.Is(err, manifest.ErrChanged) {
		t.Errorf("the error is %v, want %v", err, manifest.ErrChanged)
	}
	made(t, prepared[3])
	if got := made(t, prepareWith(t, options(), cache, objects...)[2]).GetLabels()["a"]; got != "b" {
		t.Errorf(`the label is %q in the next request, want "b"`, got)
	}
}

// A manifest is made when it is written, and not kept: all of them would take much memory.
func TestManifestsAreNotKept(t *testing.T) {
	cache := &manifest.Cache{}
	prepareWith(t, options(), cache, &converted{*object("v1 ConfigMap", "a")})
	prepared := prepareWith(t, options(), cache, &converted{*object("v1 ConfigMap", "a")})
	n := conversionsOf(func() {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if u, err := prepared[0].Manifest(); err != nil || u.GetNamespace() != "home" {
					t.Errorf("the manifest is %v and the error %v, want one in the namespace home and none", u, err)
				}
			})
		}
		group.Wait()
	})
	if n != 8 {
		t.Errorf("there are %d conversions, want 8", n)
	}
}

// A look-up that fails, or another scope, comes between requests.
func TestScopesThatChange(t *testing.T) {
	cache := &manifest.Cache{}
	widget := func() client.Object { return object("example.com/v1 Widget", "w", m{"status": "x"}) }
	for _, scope := range []string{"Namespaced", "Cluster", "Namespaced", "", "Cluster"} {
		objects := []client.Object{widget()}
		if scope != "" {
			objects = append(objects, crd("example.com", "Widget", scope))
		}
		want, wantErr := manifest.Prepare(objects, options(), nil)
		got, err := manifest.Prepare(objects, options(), cache)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: the error is %v, want %v", scope, err, wantErr)
		}
		if diff := cmp.Diff(views(t, want), views(t, got)); diff != "" {
			t.Errorf("%s: unexpected (-want, +got):\n%s", scope, diff)
		}
	}
}

func TestTheZeroObjectHasNoManifest(t *testing.T) {
	var o manifest.Object
	if u, err := o.Manifest(); u != nil || err != nil {
		t.Errorf("the manifest is %v and the error %v, want neither", u, err)
	}
	prepared, err := manifest.Prepare([]client.Object{object("v1 ConfigMap", "x/a")}, manifest.Options{Namespaced: namespaced}, &manifest.Cache{})
	if err != nil || prepared[0].Desired.Namespace != "x" {
		t.Errorf("without options, the objects are %v and the error %v, want the namespace x and none", prepared, err)
	}
}
