package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Installation is what an operator needs in the cluster.
type Installation struct {
	// User is the name of the user that the operator is.
	User string
	// Definitions are those of its types.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Roles are granted to the user.
	Roles []*rbacv1.ClusterRole
	// Config has more definitions and roles, as manifests: one in each file whose name ends in .yaml. Optional.
	Config fs.FS
	// Objects are created, too.
	Objects []client.Object
	// Brings are objects without a namespace that the operator creates. None may exist. Close deletes those that are
	// left with OwnerLabel: their operator could not.
	Brings     []client.Object
	OwnerLabel string
}

// Install creates what the operator needs. It returns when the API server serves the types and grants the last rule of
// each role. It is an error if one of the objects exists.
func (s *Scenario) Install(ctx context.Context, of Installation) error {
	// The operator would leave what exists alone, and its resource would never become ready.
	err := s.eachFound(ctx, of.Brings, func(found client.Object) error {
		return AlreadyThere(fmt.Errorf("%T %s already exists", found, found.GetName()))
	})
	if err != nil {
		return err
	}
	if len(of.Brings) > 0 {
		s.CleanUp = s.removesOrphans(of)
	}
	if err := of.read(); err != nil {
		return fmt.Errorf("unable to read the manifests of the operator: %w", err)
	}
	var actions []Action
	var ready []Condition
	for _, definition := range of.Definitions {
		actions = append(actions, s.Creates(definition))
		ready = append(ready, s.serves(definition))
	}
	actions = append(actions, s.Creates(of.Objects...))
	for _, role := range of.Roles {
		actions = append(actions, s.Grants(role, of.User))
		rule := role.Rules[len(role.Rules)-1]
		ready = append(ready, s.May(of.User, rule.Verbs[0], rule.APIGroups[0], rule.Resources[0], Everywhere))
	}
	var errs []error
	for _, do := range actions {
		errs = append(errs, do(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("unable to install the operator: %w", err)
	}
	return Eventually(ctx, Patience, All(ready...))
}

// read adds what Config has to Definitions and Roles.
func (i *Installation) read() error {
	if i.Config == nil {
		return nil
	}
	return fs.WalkDir(i.Config, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		manifest, err := fs.ReadFile(i.Config, path)
		if err == nil {
			err = i.decode(manifest)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

func (i *Installation) decode(manifest []byte) error {
	var object metav1.TypeMeta
	if err := yaml.Unmarshal(manifest, &object); err != nil {
		return err
	}
	switch object.Kind {
	case "CustomResourceDefinition":
		definition := &apiextensionsv1.CustomResourceDefinition{}
		i.Definitions = append(i.Definitions, definition)
		return yaml.UnmarshalStrict(manifest, definition)
	case "ClusterRole":
		role := &rbacv1.ClusterRole{}
		i.Roles = append(i.Roles, role)
		return yaml.UnmarshalStrict(manifest, role)
	default:
		return fmt.Errorf("a %q is neither a definition nor a role of the cluster", object.Kind)
	}
}

// removesOrphans deletes what an operator brought that could not delete it.
func (s *Scenario) removesOrphans(of Installation) Condition {
	return func(ctx context.Context) error {
		return s.eachFound(ctx, of.Brings, func(found client.Object) error {
			if found.GetLabels()[of.OwnerLabel] == "" {
				return nil
			}
			return s.Remove(ctx, found)
		})
	}
}

// eachFound calls do with each of the objects that exists, as it is in the cluster.
func (f *Fixture) eachFound(ctx context.Context, objects []client.Object, do func(client.Object) error) error {
	var errs []error
	for _, obj := range objects {
		found := blank(obj)
		err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), found)
		if err == nil {
			err = do(found)
		}
		if !IsGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// serves holds when the API server lists the objects of a type.
func (f *Fixture) serves(definition *apiextensionsv1.CustomResourceDefinition) Condition {
	return func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{
			Group: definition.Spec.Group, Version: definition.Spec.Versions[0].Name,
			Kind: definition.Spec.Names.ListKind,
		})
		return f.Client.List(ctx, list)
	}
}
