package server

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
)

// tokenREST issues tokens of service accounts.
type tokenREST struct {
	store       *genericregistry.Store
	credentials Credentials
}

var (
	_ rest.NamedCreater             = tokenREST{}
	_ rest.GroupVersionKindProvider = tokenREST{}
)

// New implements [rest.Storage].
func (tokenREST) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Destroy implements [rest.Storage].
func (tokenREST) Destroy() {}

// GroupVersionKind implements [rest.GroupVersionKindProvider].
func (tokenREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
}

// Create implements [rest.NamedCreater].
func (r tokenREST) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions,
) (runtime.Object, error) {
	asked, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a TokenRequest: %T", obj))
	}
	if _, err := r.store.Get(ctx, name, &metav1.GetOptions{}); err != nil {
		return nil, err
	}
	if err := validate(ctx, asked.DeepCopy()); err != nil {
		return nil, err
	}
	seconds := ptr.Deref(asked.Spec.ExpirationSeconds, int64(time.Hour/time.Second))
	now := timeOf(ctx)
	until := now.Add(time.Duration(seconds) * time.Second)
	token, err := r.credentials.Token(request.NamespaceValue(ctx), name, until)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	asked.Name, asked.Namespace, asked.CreationTimestamp = name, request.NamespaceValue(ctx), now
	asked.Spec.ExpirationSeconds = &seconds
	asked.Status = authenticationv1.TokenRequestStatus{
		Token: token, ExpirationTimestamp: metav1.NewTime(until),
	}
	return asked, nil
}
