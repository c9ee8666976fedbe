package generator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReferenceSource says where references are loaded from.
type ReferenceSource struct {
	// Client is for the cluster of the resource. It is what each [Reference] gets, and it reads what the references of
	// this package refer to, unless Read does. Required.
	Client client.Client
	// Read returns the content of the ConfigMap or Secret that has the type, the namespace and the name of object.
	// Default: Client reads it each time.
	Read func(ctx context.Context, object client.Object) (*Referenced, error)
}

// Load loads the references in the spec of a resource, see [Reference], and returns their identities by their paths,
// such as "refs:spec.values[2].secretRef". A reconciler does that for each request. In a test of a generator, call it
// before the generator.
//
// A reference that fails does not keep the others from being loaded. The error joins all errors, each with its path in
// the spec. It is a [RetriableError] if an object or a key does not exist. The methods of a reference that could not be
// loaded return its error.
func (s ReferenceSource) Load(ctx context.Context, resource client.Object) (map[string]string, error) {
	plan := referencePlanOf(resource)
	if len(plan.types) == 0 {
		return nil, nil
	}
	spec, err := reflect.ValueOf(resource).Elem().FieldByIndexErr(plan.spec)
	if err != nil {
		// It is in an embedded struct that is nil.
		return nil, nil
	}
	if s.Read == nil {
		s.Read = s.read
	}
	identities := map[string]string{}
	var errs []error
	walk := referenceWalk{plan: plan}
	walk.fail = func(path func() string, err error) { errs = append(errs, fmt.Errorf("%s: %w", path(), err)) }
	walk.visit = func(path func() string, reference any, fallback string) {
		var identity string
		var err error
		if object, ok := reference.(objectReference); ok {
			identity, err = s.loadObject(ctx, resource, object, fallback)
		} else {
			identity, err = s.loadOther(ctx, resource, reference.(Reference))
		}
		switch {
		case err != nil:
			walk.fail(path, err)
		case identity != "":
			identities["refs:"+path()] = identity
		}
	}
	walk.walk(spec, "")
	return identities, errors.Join(errs...)
}

// loadOther loads a reference that this package does not know.
func (s ReferenceSource) loadOther(
	ctx context.Context, resource client.Object, reference Reference,
) (identity string, err error) {
	if err := guarded("Load", func() { err = reference.Load(ctx, s.Client, resource) }); err != nil {
		return "", err
	}
	if err != nil {
		return "", err
	}
	err = guarded("Identity", func() { identity = reference.Identity() })
	return identity, err
}

// objectReference is a reference to a ConfigMap or Secret.
type objectReference interface {
	// kinds are those of the objects that references of this type refer to.
	kinds() []string
	target() target
	set(l *loaded)
}

// target is what an objectReference refers to.
type target struct {
	kind, name, key string
	// whole is true if all content is meant, else one value.
	whole bool
	// fallback are the keys to try without a key, separated by commas. Default: the tag of the field.
	fallback string
	// details are what the identity has besides the content.
	details string
}

func (r *ConfigMapReference) kinds() []string { return []string{kindConfigMap} }
func (r *ConfigMapReference) set(l *loaded)   { r.loaded = l }
func (r *ConfigMapReference) target() target {
	return target{kind: kindConfigMap, name: r.Name, whole: true}
}

func (r *ConfigMapKeyReference) kinds() []string { return []string{kindConfigMap} }
func (r *ConfigMapKeyReference) set(l *loaded)   { r.loaded = l }
func (r *ConfigMapKeyReference) target() target {
	return target{kind: kindConfigMap, name: r.Name, key: r.Key}
}

func (r *SecretReference) kinds() []string { return []string{kindSecret} }
func (r *SecretReference) set(l *loaded)   { r.loaded = l }
func (r *SecretReference) target() target {
	return target{kind: kindSecret, name: r.Name, whole: true}
}

func (r *SecretKeyReference) kinds() []string { return []string{kindSecret} }
func (r *SecretKeyReference) set(l *loaded)   { r.loaded = l }
func (r *SecretKeyReference) target() target {
	return target{kind: kindSecret, name: r.Name, key: r.Key}
}

// missingReferenceDelay is when something that is missing is looked for again, if no event comes before.
var missingReferenceDelay = 10 * time.Second

// loadObject loads a reference to a ConfigMap or Secret, unless it has no name.
func (s ReferenceSource) loadObject(
	ctx context.Context, resource client.Object, reference objectReference, fallback string,
) (string, error) {
	to := reference.target()
	if to.name == "" {
		return "", nil
	}
	if to.fallback != "" {
		fallback = to.fallback
	}
	l := &loaded{}
	if !to.whole {
		l.keys = keysOf(to.key, fallback)
	}
	content, err := s.open(ctx, resource, to)
	if err == nil && !to.whole {
		if _, _, err = content.find(l.keys); err != nil {
			err = NewRetriableError(err, &missingReferenceDelay)
		}
	}
	l.get = func() (*Referenced, error) { return content, err }
	reference.set(l)
	if err != nil {
		return "", err
	}
	return to.details + content.identityOf(l.keys), nil
}

// open returns the content of an object.
func (s ReferenceSource) open(ctx context.Context, resource client.Object, to target) (*Referenced, error) {
	if to.kind != kindConfigMap && to.kind != kindSecret {
		return nil, fmt.Errorf("kind: is neither ConfigMap nor Secret: %s", quote(to.kind))
	}
	if err := validateReference(to.kind, to.name, to.key); err != nil {
		return nil, err
	}
	if resource.GetNamespace() == "" {
		return nil, fmt.Errorf("the resource is in no namespace in which the %s %q could be", to.kind, to.name)
	}
	var object client.Object = &corev1.ConfigMap{}
	if to.kind == kindSecret {
		object = &corev1.Secret{}
	}
	object.SetNamespace(resource.GetNamespace())
	object.SetName(to.name)
	content, err := s.Read(ctx, object)
	switch {
	case apierrs.IsNotFound(err):
		return nil, NewRetriableError(fmt.Errorf("the %s %q does not exist", to.kind, to.name), &missingReferenceDelay)
	case err != nil:
		return nil, fmt.Errorf("unable to read the %s %q: %w", to.kind, to.name, err)
	case content == nil:
		return nil, errNotLoaded
	}
	return content, nil
}

func (s ReferenceSource) read(ctx context.Context, object client.Object) (*Referenced, error) {
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, err
	}
	return NewReferenced(object)
}

// identityOf returns the identity of the value that the first of keys has, or of all content if there are no keys.
func (c *Referenced) identityOf(keys []string) string {
	if key, _, err := c.find(keys); err == nil && c.kind == kindConfigMap {
		return c.identities[key]
	}
	return c.identity
}
