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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	if errs := validateTokenOf(asked, name, request.NamespaceValue(ctx)); len(errs) > 0 {
		return nil, apierrors.NewInvalid(tokenRequest, name, errs)
	}
	account, err := r.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if uid := account.(client.Object).GetUID(); asked.UID != "" && asked.UID != uid {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: tokenRequest.Group, Resource: tokenRequest.Kind},
			name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)",
				asked.UID, uid))
	}
	if errs := validateTokenRequest(&asked.Spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(tokenRequest, "", errs)
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

var tokenRequest = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind()

// validateTokenOf requires that a request is for the service account in its URL.
func validateTokenOf(asked *authenticationv1.TokenRequest, name, namespace string) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("metadata")
	if asked.Name != "" && asked.Name != name {
		errs = append(errs,
			field.Invalid(at.Child("name"), asked.Name, "must match the service account name if specified"))
	}
	if asked.Namespace != "" && asked.Namespace != namespace {
		errs = append(errs, field.Invalid(at.Child("namespace"), asked.Namespace,
			"must match the service account namespace if specified"))
	}
	return errs
}

// validateTokenRequest requires a time of ten minutes at least. What a token is bound to
// is not looked at.
func validateTokenRequest(spec *authenticationv1.TokenRequestSpec) field.ErrorList {
	at, seconds := field.NewPath("spec", "expirationSeconds"), spec.ExpirationSeconds
	if seconds != nil && (*seconds < 10*60 || *seconds > 1<<32) {
		return field.ErrorList{field.Invalid(at, *seconds, "must be between 10 minutes and 2^32 seconds")}
	}
	return nil
}
