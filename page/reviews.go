package page

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// For how long an answer of the API server counts, and how many are kept of each kind.
const (
	viewerFor    = time.Minute
	noViewerFor  = 10 * time.Second
	allowedFor   = time.Minute
	deniedFor    = 10 * time.Second
	maxAnswers   = 10_000
	maxTokenSize = 16 << 10
)

// Reviews returns an [Access] that asks the API server: who a bearer token belongs to by a TokenReview, and what this
// viewer may get and update by SubjectAccessReviews. Answers count for a minute, refusals for ten seconds. The operator
// needs the rights of [ReviewRules]. The client is that of the manager.
func Reviews(c client.Client) Access {
	return &reviews{
		client: c, viewers: cache.NewLRUExpireCache(maxAnswers), rights: cache.NewLRUExpireCache(maxAnswers),
	}
}

// ReviewRules returns what a role has to allow for [Reviews].
func ReviewRules() []rbacv1.PolicyRule {
	rule := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}}
	}
	return []rbacv1.PolicyRule{
		rule(authenticationv1.GroupName, "tokenreviews"), rule(authorizationv1.GroupName, "subjectaccessreviews"),
	}
}

type reviews struct {
	client client.Client
	// viewers has a reviewed viewer for the hash of a token, or nil for a token of nobody.
	viewers *cache.LRUExpireCache
	// rights has whether a right exists.
	rights *cache.LRUExpireCache
}

// reviewed is a viewer that the API server has told.
type reviewed struct {
	*reviews
	user authenticationv1.UserInfo
	// token is the hash of the token. Two tokens of one user may have different rights.
	token [sha256.Size]byte
}

// right is the key of an answer.
type right struct {
	token           [sha256.Size]byte
	verb            string
	kind            schema.GroupVersionKind
	namespace, name string
}

func (r *reviews) Viewer(request *http.Request) (Viewer, error) {
	token := tokenOf(request)
	if token == "" || len(token) > maxTokenSize {
		return nil, ErrUnauthenticated
	}
	key := sha256.Sum256([]byte(token))
	if known, ok := r.viewers.Get(key); ok {
		viewer, _ := known.(*reviewed)
		return viewerOrError(viewer)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := r.client.Create(request.Context(), review); err != nil {
		return nil, fmt.Errorf("unable to review a token: %w", err)
	}
	if !review.Status.Authenticated {
		r.viewers.Add(key, nil, noViewerFor)
		return nil, ErrUnauthenticated
	}
	viewer := &reviewed{reviews: r, user: review.Status.User, token: key}
	r.viewers.Add(key, viewer, viewerFor)
	return viewer, nil
}

func viewerOrError(viewer *reviewed) (Viewer, error) {
	if viewer == nil {
		return nil, ErrUnauthenticated
	}
	return viewer, nil
}

func (v *reviewed) Name() string { return v.user.Username }

func (v *reviewed) May(
	ctx context.Context, verb string, kind schema.GroupVersionKind, namespace, name string,
) (bool, error) {
	key := right{token: v.token, verb: verb, kind: kind, namespace: namespace, name: name}
	if known, ok := v.rights.Get(key); ok {
		return known.(bool), nil
	}
	mapping, err := v.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("unable to find the resource of %s: %w", kind.Kind, err)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: v.user.Username, UID: v.user.UID, Groups: v.user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: mapping.Resource.Group, Version: mapping.Resource.Version,
			Resource: mapping.Resource.Resource, Namespace: namespace, Name: name,
		},
	}}
	for extra, values := range v.user.Extra {
		review.Spec.Extra[extra] = authorizationv1.ExtraValue(values)
	}
	if err := v.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("unable to review a right: %w", err)
	}
	lasts := deniedFor
	if review.Status.Allowed {
		lasts = allowedFor
	}
	v.rights.Add(key, review.Status.Allowed, lasts)
	return review.Status.Allowed, nil
}

type tokenKey struct{}

// tokenOf returns the bearer token of a request, or nothing.
func tokenOf(r *http.Request) string {
	if token := bearerToken(r); token != "" {
		return token
	}
	token, _ := r.Context().Value(tokenKey{}).(string)
	return token
}

func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// FilterProvider makes the filter of a metrics server, as FilterProvider of its options does.
type FilterProvider = func(c *rest.Config, httpClient *http.Client) (metricsserver.Filter, error)

// KeepToken returns a provider of filters that let [Reviews] know the token of a request, which the filter of
// controller-runtime removes.
func KeepToken(provider FilterProvider) FilterProvider {
	return func(c *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
		filter, err := provider(c, httpClient)
		if err != nil {
			return nil, err
		}
		return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
			filtered, err := filter(log, handler)
			if err != nil {
				return nil, err
			}
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				filtered.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, bearerToken(r))))
			}), nil
		}, nil
	}
}
