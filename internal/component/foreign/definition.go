package foreign

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definition is a CustomResourceDefinition as it was read. It is changed by patches, since the typed view may lack
// fields.
type definition struct {
	apiextensionsv1.CustomResourceDefinition
	// written is the answer to the patch that left it so; nil if it was read.
	written *unstructured.Unstructured
}

// read returns an object of the version v1, or nil if there is none.
func (g *Guard) read(ctx context.Context, kind schema.GroupKind, name string) (*unstructured.Unstructured, error) {
	object := named(kind, name)
	err := g.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, explain(err, fmt.Sprintf("%s %s could not be read", kind.Kind, name))
	}
	return object, nil
}

func named(kind schema.GroupKind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind.WithVersion("v1"))
	object.SetName(name)
	return object
}

// readDefinition returns nil if there is none.
func (g *Guard) readDefinition(ctx context.Context, name string) (*definition, error) {
	object, err := g.read(ctx, kinds.CustomResourceDefinition, name)
	if err != nil {
		return nil, err
	}
	if object == nil {
		g.forget(name)
		return nil, nil
	}
	d, err := typed(object)
	if err == nil {
		g.remember(d)
	}
	return d, err
}

// ignoresForeign reports whether a definition or a namespace says that foreign instances do not matter.
func (g *Guard) ignoresForeign(object metav1.Object) bool {
	return IgnoresForeign(object.GetAnnotations(), g.prefix()+"/"+generator.AnnotationForeignInstances)
}

func typed(object *unstructured.Unstructured) (*definition, error) {
	d := &definition{}
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructured(object.Object, &d.CustomResourceDefinition); err != nil {
		return nil, fmt.Errorf("could not understand CustomResourceDefinition %s: %w", object.GetName(), err)
	}
	return d, nil
}

func (d *definition) kind() string { return d.Spec.Names.Kind }

// version is the version that instances are read and tried in: the stored version if it is served, because it needs no
// conversion by a webhook, which may be gone. It is nil if none is served.
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

// rootSchema is the schema of a version, which is empty if the version has none.
func rootSchema(version *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return &apiextensionsv1.JSONSchemaProps{}
	}
	return version.Schema.OpenAPIV3Schema
}

// established reports whether the type has ever been served. This is never taken back, and an API server that serves
// the type has seen this state of the definition or a later one.
func (d *definition) established() bool {
	return apihelpers.IsCRDConditionTrue(&d.CustomResourceDefinition, apiextensionsv1.Established)
}

// dormant reports whether no instance can be created as long as the definition stays as it is.
func (d *definition) dormant() bool { return !d.established() || d.version() == nil }

const (
	// creationDelay is for how long an API server delays the creation of an instance of a new type.
	creationDelay = 2 * time.Second
	// newFor is for how long after its establishment an API server may still work on such creations, which begin in
	// the first two seconds.
	newFor = 2*creationDelay + time.Second
)

// delay is for how long the API server itself may delay a creation that began before the fence. Both times that it
// compares were set by the API server.
func (d *definition) delay(manager string) time.Duration {
	var established, changed time.Time
	if c := apihelpers.FindCRDCondition(&d.CustomResourceDefinition, apiextensionsv1.Established); c != nil {
		established = c.LastTransitionTime.Time
	}
	for _, entry := range d.ManagedFields {
		if entry.Manager == manager && entry.Time != nil && entry.Time.After(changed) {
			changed = entry.Time.Time
		}
	}
	if changed.Sub(established) > newFor {
		return 0
	}
	return creationDelay
}

// The states of a fence as the annotation records them. The annotation contains the UID too, since annotations get
// copied.
const (
	stateFenced = "fenced"
	// stateProven is recorded with the generation of the definition and, behind a slash, when the margin is over,
	// unless there is none.
	stateProven = "proven"
	// stateUnproven is recorded with the obstacle, after the fence was lifted.
	stateUnproven = "unproven"
)

// recordedState returns the state that the annotation of an object records, and the detail that is recorded with it.
func recordedState(object metav1.Object, annotation string) (state, detail string) {
	return stateIn(object.GetAnnotations()[annotation], object.GetUID())
}

// stateIn returns what a record of the object with that UID says.
func stateIn(record string, uid types.UID) (state, detail string) {
	parts := strings.SplitN(record, "/", 3)
	if len(parts) != 3 || parts[1] != string(uid) {
		return "", ""
	}
	return parts[0], parts[2]
}

// proofOf reports whether the fence of a definition is proven, and when the margin is over: zero if there is none. A
// time that no margin can have is not counted: the fence is proven anew.
func (g *Guard) proofOf(ctx context.Context, d *definition) (marginOver time.Time, proven bool) {
	for _, record := range []string{d.Annotations[g.annotation()], g.Memory.proofOf(d.UID)} {
		state, detail := stateIn(record, d.UID)
		generation, over, timed := strings.Cut(detail, "/")
		if state != stateProven || generation != strconv.FormatInt(d.Generation, 10) {
			continue
		}
		if !timed {
			return time.Time{}, true
		}
		at, err := time.Parse(time.RFC3339Nano, over)
		if err == nil && at.Before(present(ctx).Add(g.longestMargin())) {
			return at, true
		}
	}
	return time.Time{}, false
}

// proof is the annotation that records a proof.
func (d *definition) proof(marginOver time.Time) string {
	if marginOver.IsZero() {
		return d.record(stateProven, d.Generation)
	}
	return d.record(stateProven, fmt.Sprintf("%d/%s", d.Generation, marginOver.UTC().Format(time.RFC3339Nano)))
}

// record is the annotation that records a state.
func (d *definition) record(state string, detail any) string {
	return fmt.Sprintf("%s/%s/%v", state, d.UID, detail)
}
