package execute

import (
	"maps"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (m Mark) key(name string) string { return m.Prefix + "/" + name }

// of tells whose an object is.
func (m Mark) of(object client.Object) plan.Ownership {
	id, labelled := object.GetLabels()[m.key(component.LabelOwnerID)]
	switch {
	case !labelled || id == "":
		return plan.Unowned
	case id == m.ID:
		return plan.Ours
	}
	if owner := withoutUID(m.owner(object)); owner != "" && owner == withoutUID(m.Owner) {
		return plan.Predecessor
	}
	return plan.Foreign
}

// owner is the owner of an object in clear text.
func (m Mark) owner(object client.Object) string {
	return object.GetAnnotations()[m.key(component.AnnotationOwnerID)]
}

// withoutUID returns the clear text of an owner without its UID, or nothing if it is none.
func withoutUID(owner string) string {
	if strings.Count(owner, "/") != 3 {
		return ""
	}
	return owner[:strings.LastIndexByte(owner, '/')]
}

// admit returns an error if the operation may not write or delete the object, because of whose it is. What the plan did not take
// for somebody else's has to be ours still. To recreate an object is a way to adopt it.
func (e *Executor) admit(op plan.Operation, object client.Object) error {
	ownership := e.Mark.of(object)
	adopts := op.Action == plan.ActionAdopt || op.Action == plan.ActionRecreate
	if ownership == plan.Ours || adopts && mayAdopt(e.adoptionPolicy(op.Key), ownership) {
		return nil
	}
	return &OwnerError{Key: op.Key, Ownership: ownership, Owner: withoutUID(e.Mark.owner(object))}
}

func mayAdopt(policy apis.AdoptionPolicy, ownership plan.Ownership) bool {
	switch policy {
	case apis.AdoptAlways:
		return true
	case apis.AdoptIfUnowned, "":
		return ownership != plan.Foreign
	}
	return false
}

// adoptionPolicy is that of an object that is desired. No other is adopted.
func (e *Executor) adoptionPolicy(key plan.Key) apis.AdoptionPolicy {
	if object := e.Objects[key]; object != nil {
		return object.Desired.AdoptionPolicy
	}
	return apis.AdoptNever
}

// body returns what is to be written of an object: its manifest, with our marks. What it shares with the manifest must not be
// changed; its metadata, labels and annotations it does not share.
func (e *Executor) body(object *manifest.Object, content map[string]any) *unstructured.Unstructured {
	body := maps.Clone(content)
	metadata := cloned(body["metadata"])
	for _, name := range managedfields.ServerMetadata {
		delete(metadata, name)
	}
	labels, annotations := cloned(metadata["labels"]), cloned(metadata["annotations"])
	labels[e.Mark.key(component.LabelOwnerID)] = e.Mark.ID
	annotations[e.Mark.key(component.AnnotationOwnerID)] = e.Mark.Owner
	annotations[e.Mark.key(component.AnnotationDigest)] = object.Desired.Digest
	metadata["labels"], metadata["annotations"] = labels, annotations
	body["metadata"] = metadata
	return &unstructured.Unstructured{Object: body}
}

// cloned returns a copy of v, which shares what it holds, or an empty map if v is none.
func cloned(v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok || m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// definesTypes tells whether objects of the kind bring types, with which the instances go.
func definesTypes(key plan.Key) bool {
	switch key.Group {
	case "apiextensions.k8s.io":
		return key.Kind == "CustomResourceDefinition"
	case "apiregistration.k8s.io":
		return key.Kind == "APIService"
	}
	return false
}
