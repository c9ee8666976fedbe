// Package objects has functions that return objects of common kinds as they should be, for the short form:
//
//	espalier.Owns("Settings", objects.ConfigMap(name, settings))
//
// The objects are in the namespace of the resource. The parameter name returns the name of the object. A function of
// the author that returns an error has the node return it.
package objects

import (
	"context"
	"crypto/rand"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func metaOf(resource client.Object, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: resource.GetNamespace(), Name: name}
}

// ServiceAccount returns a function for a service account.
func ServiceAccount[T client.Object](
	name func(resource T) string,
) func(ctx context.Context, resource T) (*corev1.ServiceAccount, error) {
	return func(_ context.Context, resource T) (*corev1.ServiceAccount, error) {
		return &corev1.ServiceAccount{ObjectMeta: metaOf(resource, name(resource))}, nil
	}
}

// Role returns a function for a role with these rules. The controller itself needs the rights that it grants.
func Role[T client.Object](
	name func(resource T) string, rules func(ctx context.Context, resource T) ([]rbacv1.PolicyRule, error),
) func(ctx context.Context, resource T) (*rbacv1.Role, error) {
	return func(ctx context.Context, resource T) (*rbacv1.Role, error) {
		granted, err := rules(ctx, resource)
		if err != nil {
			return nil, err
		}
		return &rbacv1.Role{ObjectMeta: metaOf(resource, name(resource)), Rules: granted}, nil
	}
}

// RoleBinding returns a function for a binding that grants the role of a name to the service accounts of these names.
// The role of a binding cannot be changed afterwards.
func RoleBinding[T client.Object](
	name, role func(resource T) string, serviceAccounts func(resource T) []string,
) func(ctx context.Context, resource T) (*rbacv1.RoleBinding, error) {
	return func(_ context.Context, resource T) (*rbacv1.RoleBinding, error) {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metaOf(resource, name(resource)),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role(resource)},
		}
		for _, account := range serviceAccounts(resource) {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: resource.GetNamespace(), Name: account,
			})
		}
		return binding, nil
	}
}

// Secret returns a function for a secret with this data.
func Secret[T client.Object](
	name func(resource T) string, data func(ctx context.Context, resource T) (map[string][]byte, error),
) func(ctx context.Context, resource T) (*corev1.Secret, error) {
	return func(ctx context.Context, resource T) (*corev1.Secret, error) {
		content, err := data(ctx, resource)
		if err != nil {
			return nil, err
		}
		return &corev1.Secret{ObjectMeta: metaOf(resource, name(resource)), Data: content}, nil
	}
}

// GeneratedSecret returns a function for a secret with a random value of 130 bits for each key, as text of 26 letters
// and digits. Each call returns other values. So the node needs CreateOnly, which also refuses another name, as it
// would lose them:
//
//	espalier.Owns("Login", objects.GeneratedSecret(name, "password")).CreateOnly()
//
// A secret that somebody deletes is made again, with other values. The values are nowhere else.
func GeneratedSecret[T client.Object](
	name func(resource T) string, keys ...string,
) func(ctx context.Context, resource T) (*corev1.Secret, error) {
	return Secret(name, func(context.Context, T) (map[string][]byte, error) {
		data := make(map[string][]byte, len(keys))
		for _, key := range keys {
			data[key] = []byte(rand.Text())
		}
		return data, nil
	})
}

// ConfigMap returns a function for a config map with this data.
func ConfigMap[T client.Object](
	name func(resource T) string, data func(ctx context.Context, resource T) (map[string]string, error),
) func(ctx context.Context, resource T) (*corev1.ConfigMap, error) {
	return func(ctx context.Context, resource T) (*corev1.ConfigMap, error) {
		content, err := data(ctx, resource)
		if err != nil {
			return nil, err
		}
		return &corev1.ConfigMap{ObjectMeta: metaOf(resource, name(resource)), Data: content}, nil
	}
}
