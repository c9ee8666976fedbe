package component_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// policy refuses patches of definitions as an admission policy does, as long as it is in force.
type policy struct {
	http.RoundTripper
	inForce *atomic.Bool
}

func (p policy) RoundTrip(request *http.Request) (*http.Response, error) {
	refuses := request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/customresourcedefinitions/")
	if !p.inForce.Load() || !refuses {
		return p.RoundTripper.RoundTrip(request)
	}
	refusal := apierrs.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "x",
		errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too old"))
	refusal.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(refusal.ErrStatus)
	return &http.Response{
		StatusCode: http.StatusForbidden, Request: request, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, err
}

// TestAnnotationRetriesDeletion: a type whose fence a policy refuses is left alone for a minute. Who has removed the
// policy annotates the resource, and the deletion goes on at once.
func TestAnnotationRetriesDeletion(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	c, namespace := live(t), plane.Namespace(t)
	var inForce atomic.Bool
	config := rest.CopyConfig(plane.Config(t))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return policy{next, &inForce} })
	op := startComponents(t, config, namespace, assemblyOptions{})
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	definition.Spec.Group = "retried.example.com"
	definition.Name = "widgets." + definition.Spec.Group
	assembly := resources.NewAssembly(namespace, "all", definition)
	assemble(t, c, assembly)("it is not deployed")

	inForce.Store(true)
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the deletion is not blocked", func(ctx context.Context) error {
		return conditionSays(ctx, c, assembly, component.ReasonDeletionBlocked, "refused by the ValidatingAdmissionPolicy 'p'")
	})
	blocked := time.Now()
	inForce.Store(false)
	controlplanetest.Quiet(t, op.requests)
	annotated := assembly.DeepCopy()
	annotated.SetAnnotations(map[string]string{"retry": "now"})
	if err := c.Patch(t.Context(), annotated, client.MergeFrom(assembly)); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deleted", isGone(c, assembly))
	if took := time.Since(blocked); took > 59*time.Second {
		t.Errorf("the deletion goes on %v after it was blocked, want at once and not after a minute", took)
	}
}
