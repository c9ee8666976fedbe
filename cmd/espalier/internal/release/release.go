// Package release keeps components that have no operator: the command itself runs the engine of package component, as
// an operator would, until the component is ready or gone.
//
// A release is a resource as any other to the engine. It is stored in a Secret of its namespace: its spec says what was
// applied, its status has the inventory and the condition, and the finalizer of the Secret keeps it until all objects
// are gone. client.go maps the kind to its Secret, lease.go keeps two commands from running for one release, run.go
// runs the engine, kept.go says which objects a run leaves alone, find.go finds releases and the components of
// operators, and look.go looks at the objects of a release between two commands.
package release

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
)

// Names in clusters. They must not change.
const (
	// Prefix is the prefix of the marks on objects of releases.
	Prefix = "release.espalier.dev"
	// Finalizer keeps the Secret of a release until its objects are gone.
	Finalizer = Prefix + "/component"
	// FieldManager is the name that objects are written under by default.
	FieldManager = "espalier"

	nameLabel    = Prefix + "/name"
	secretType   = corev1.SecretType(Prefix + "/v1")
	secretPrefix = "espalier-release-"
	keySpec      = "spec"
	keyStatus    = "status"
)

// Kind is the kind of a [Release]. No API server serves it.
var Kind = schema.GroupVersionKind{Group: Prefix, Version: "v1", Kind: "Release"}

// Release is a component that the command keeps.
type Release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec                 `json:"spec"`
	Status apis.ComponentStatus `json:"status,omitempty"`
}

// Spec is what was applied last.
type Spec struct {
	// Revision counts the times that something else was applied than before, from 1.
	Revision int64 `json:"revision"`
	// Digest identifies what was applied: the content of the sources, and the values.
	Digest string `json:"digest"`
	// Sources are where it was read, as they were given.
	Sources []string `json:"sources,omitempty"`
	// FieldManager is the name that objects are written under.
	FieldManager string `json:"fieldManager"`
}

// DeepCopyObject implements [runtime.Object].
func (r *Release) DeepCopyObject() runtime.Object {
	copied := &Release{TypeMeta: r.TypeMeta, Spec: r.Spec}
	r.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	r.Status.DeepCopyInto(&copied.Status)
	copied.Spec.Sources = append([]string(nil), r.Spec.Sources...)
	return copied
}

// New returns a release that is not stored yet.
func New(namespace, name string) *Release {
	r := &Release{}
	r.Namespace, r.Name = namespace, name
	r.complete()
	return r
}

// complete sets what follows from the name and the spec. The UID is always that of the name, so that a release whose
// Secret was lost is still the owner of its objects.
func (r *Release) complete() {
	r.SetGroupVersionKind(Kind)
	r.UID = types.UID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(Prefix+"/"+r.Namespace+"/"+r.Name)).String())
	r.Generation = r.Spec.Revision
}

// Owner is the owner of the objects of the release, as their annotation and their label have it.
func (r *Release) Owner() (text, id string) {
	name := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
	text = engine.OwnerText(Kind.GroupKind(), name, "", r.UID)
	return text, engine.OwnerID(text)
}

// maxName leaves room for the value of a label.
const maxName = validation.LabelValueMaxLength

// CheckName returns an error if a text cannot be the name of a release.
func CheckName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a component: %s", name, problems[0])
	}
	if len(name) > maxName {
		return fmt.Errorf("%q cannot be the name of a component: it has more than %d characters", name, maxName)
	}
	return nil
}

func secretName(name string) string { return secretPrefix + name }

// toSecret returns a new Secret of the release.
func (r *Release) toSecret() (*corev1.Secret, error) {
	secret := &corev1.Secret{Type: secretType, Data: map[string][]byte{}}
	secret.Namespace, secret.Name = r.Namespace, secretName(r.Name)
	secret.Labels = map[string]string{nameLabel: r.Name}
	secret.Finalizers = r.Finalizers
	var err, statusErr error
	secret.Data[keySpec], err = json.Marshal(r.Spec)
	secret.Data[keyStatus], statusErr = json.Marshal(r.Status)
	return secret, errors.Join(err, statusErr)
}

// fromSecret reads a release as it is stored.
func (r *Release) fromSecret(secret *corev1.Secret) error {
	name := strings.TrimPrefix(secret.Name, secretPrefix)
	if secret.Type != secretType {
		const why = "the Secret %s/%s is not of a component: it has the type %s and not %s"
		return fmt.Errorf(why, secret.Namespace, secret.Name, cmp.Or(secret.Type, corev1.SecretTypeOpaque), secretType)
	}
	*r = Release{}
	secret.ObjectMeta.DeepCopyInto(&r.ObjectMeta)
	r.Name = name
	for key, into := range map[string]any{keySpec: &r.Spec, keyStatus: &r.Status} {
		if err := json.Unmarshal(secret.Data[key], into); err != nil {
			const why = "the Secret %s/%s is damaged: its %s cannot be read: %w"
			return fmt.Errorf(why, secret.Namespace, secret.Name, key, err)
		}
	}
	r.complete()
	return nil
}
