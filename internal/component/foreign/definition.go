package foreign

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definition is a CustomResourceDefinition as it was read. What is written to it are patches, since the typed view may lack
// fields.
type definition struct {
	apiextensionsv1.CustomResourceDefinition
}

// readDefinition returns nil if there is none.
func (g *Guard) readDefinition(ctx context.Context, name string) (*definition, error) {
	object := emptyDefinition(name)
	if err := g.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, explain(err, fmt.Sprintf("CustomResourceDefinition %s could not be read", name))
	}
	return viewOf(object)
}

func emptyDefinition(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(definitionKind.Kind))
	object.SetName(name)
	return object
}

func viewOf(object *unstructured.Unstructured) (*definition, error) {
	d := &definition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d.CustomResourceDefinition); err != nil {
		return nil, fmt.Errorf("could not understand CustomResourceDefinition %s: %w", object.GetName(), err)
	}
	return d, nil
}

func (d *definition) kind() string { return d.Spec.Names.Kind }

func (d *definition) terminating() bool { return d.DeletionTimestamp != nil }

// version is the one to read and try instances with: the stored one where it is served, because it needs no conversion by a
// webhook, which may be gone. It is nil if none is served.
func (d *definition) version() *apiextensionsv1.CustomResourceDefinitionVersion {
	var served *apiextensionsv1.CustomResourceDefinitionVersion
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if v.Served && (served == nil || v.Storage) {
			served = v
		}
	}
	return served
}

// established tells whether the type has ever been served. This is never taken back, and an API server that serves it has seen
// this state of the definition or a later one.
func (d *definition) established() bool {
	for _, c := range d.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

const (
	// youth is for how long after its establishment an API server may still be busy with creations that it holds up: it
	// does so with those of the first two seconds.
	youth = 2*heldUp + time.Second
	// heldUp is for how long.
	heldUp = 2 * time.Second
)

// delay is how long a creation that the API server knew before the fence may take by the API server's own doing. Both times are the
// API server's.
func (d *definition) delay(manager string) time.Duration {
	var established, changed time.Time
	for _, c := range d.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			established = c.LastTransitionTime.Time
		}
	}
	for _, entry := range d.ManagedFields {
		if entry.Manager == manager && entry.Time != nil && entry.Time.After(changed) {
			changed = entry.Time.Time
		}
	}
	if changed.Sub(established) > youth {
		return 0
	}
	return heldUp
}

// dormant: nobody can create instances for as long as the definition stays as it is.
func (d *definition) dormant() bool { return !d.established() || d.version() == nil }

// The notes on a definition are bound to its UID, since annotations get copied.
const (
	fencedNote   = "fenced"
	provenNote   = "proven"
	unprovenNote = "unproven"
)

// note returns what is noted about the fence: of a fence that is proven the generation, of one that could not be proven the
// obstacle.
func (d *definition) note(annotation string) (what, value string) {
	return noteOf(d, annotation)
}

func noteOf(object metav1.Object, annotation string) (what, value string) {
	parts := strings.SplitN(object.GetAnnotations()[annotation], "/", 3)
	if len(parts) != 3 || parts[1] != string(object.GetUID()) {
		return "", ""
	}
	return parts[0], parts[2]
}

func (d *definition) proven(annotation string) bool {
	what, generation := d.note(annotation)
	return what == provenNote && generation == strconv.FormatInt(d.Generation, 10)
}

func (d *definition) unproven(annotation string) (obstacle string) {
	if what, obstacle := d.note(annotation); what == unprovenNote {
		return obstacle
	}
	return ""
}

func (d *definition) noteFenced() string {
	return fencedNote + "/" + string(d.UID) + "/"
}

func (d *definition) noteProven() string {
	return provenNote + "/" + string(d.UID) + "/" + strconv.FormatInt(d.Generation, 10)
}

func (d *definition) noteUnproven(obstacle string) string {
	return unprovenNote + "/" + string(d.UID) + "/" + obstacle
}
