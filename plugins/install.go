package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Installation says which definitions of kinds a host installs that plugins bring. A definition is created, and updated
// when a plugin brings another one. One that the operator has not installed is left alone, and none is deleted, since
// the objects would go with it. The operator needs the rights for that:
//
//	+kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;create;update
type Installation struct {
	// Client reads and writes the definitions. Required.
	Client client.Client
	// Operator is the name of the operator, which no other one in the cluster has. It is the value of the label
	// plugins.espalier.dev/operator of the definitions. Required.
	Operator string
	// Groups are the API groups whose kinds plugins may define. At least one is required.
	Groups []string
}

func (i *Installation) check() error {
	if i.Client == nil || i.Operator == "" || len(i.Groups) == 0 {
		return errors.New("the field Install of a Host must have a Client, an Operator and Groups")
	}
	return nil
}

// definitionKind is the kind of the definitions. They are written as unstructured objects, so that the scheme of the
// client need not know it.
var definitionKind = schema.GroupVersionKind{
	Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition",
}

// definitionDigest is the key of the annotation with the digest of what a plugin has brought.
const definitionDigest = "plugins.espalier.dev/digest"

// install installs definitions. A nil Installation allows none.
func (i *Installation) install(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		if i == nil || !slices.Contains(i.Groups, definition.Spec.Group) {
			return fmt.Errorf("it brings the definition %s, and the operator does not allow that", definition.Name)
		}
	}
	for _, definition := range definitions {
		if err := i.installOne(ctx, definition); err != nil {
			return fmt.Errorf("unable to install the definition %s: %w", definition.Name, err)
		}
	}
	return nil
}

func (i *Installation) installOne(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	wanted, err := i.object(definition)
	if err != nil {
		return err
	}
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(definitionKind)
	err = i.Client.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	switch {
	case apierrs.IsNotFound(err):
		return i.Client.Create(ctx, wanted)
	case err != nil:
		return err
	case there.GetLabels()[operatorLabel] != i.Operator,
		there.GetAnnotations()[definitionDigest] == wanted.GetAnnotations()[definitionDigest]:
		return nil
	}
	wanted.SetResourceVersion(there.GetResourceVersion())
	return i.Client.Update(ctx, wanted)
}

// object returns the definition as it is written: its spec, and what says whose it is.
func (i *Installation) object(
	definition *apiextensionsv1.CustomResourceDefinition,
) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(&apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{
			APIVersion: definitionKind.GroupVersion().String(), Kind: definitionKind.Kind,
		},
		ObjectMeta: metav1.ObjectMeta{Name: definition.Name}, Spec: definition.Spec,
	})
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return nil, err
	}
	delete(object.Object, "status")
	sum := sha256.Sum256(text)
	object.SetLabels(map[string]string{operatorLabel: i.Operator})
	object.SetAnnotations(map[string]string{definitionDigest: hex.EncodeToString(sum[:])})
	return object, nil
}
