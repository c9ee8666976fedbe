package registry_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"
)

// TestRefused compares what strategies make of requests with what an API server made of them.
func TestRefused(t *testing.T) {
	t.Parallel()
	wants := registrytest.Outcomes(t)
	for _, request := range registrytest.Requests(t, registrytest.Namespace) {
		t.Run(request.Title(), func(t *testing.T) {
			t.Parallel()
			want, ok := wants[request.Title()]
			if !ok {
				t.Fatal("no outcome is recorded, want one; run the tests with -update")
			}
			if want.Object != "" {
				want.Object = withoutAdmission(t, want.Object)
			}
			if got := onStrategy(t, request); got.String() != want.String() {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func onStrategy(t *testing.T, request registrytest.Request) registrytest.Outcome {
	obj := registrytest.Decode(t, request.Object)
	_, s := builtIn(t, obj)
	obj.SetUID(sampleUID)
	s.PrepareForCreate(obj)
	errs := s.Validate(obj)
	if request.Change == nil || len(errs) > 0 {
		return registrytest.Outcome{Errors: refusals(errs)}
	}
	obj.SetResourceVersion("1")
	if request.Status != nil {
		old := obj
		obj = merged(t, obj, fmt.Appendf(nil, `{"status":%s}`, request.Status))
		s.PrepareForUpdate(obj, old, "status")
		if errs := s.ValidateUpdate(obj, old, "status"); len(errs) > 0 {
			t.Fatalf("the errors are %v, want none", errs.ToAggregate())
		}
	}
	old := obj
	obj = merged(t, obj, request.Change)
	s.PrepareForUpdate(obj, old, "")
	if errs := s.ValidateUpdate(obj, old, ""); len(errs) > 0 {
		return registrytest.Outcome{Errors: refusals(errs)}
	}
	text := registrytest.Masked(t, obj, registrytest.Namespace)
	return registrytest.Outcome{Object: withoutAdmission(t, text)}
}

// merged returns an object as a merge patch makes it.
func merged(t *testing.T, obj client.Object, patch []byte) client.Object {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return registrytest.Decode(t, registrytest.Merge(t, text, patch))
}

// refusals lists errors by type and field.
func refusals(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, registrytest.ErrorOf(string(err.Type), err.Field))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestRefusedOnServer makes the requests to an API server.
func TestRefusedOnServer(t *testing.T) {
	t.Parallel()
	got := registrytest.Send(t, serverClient(t), plane.Namespace(t))
	if record(t, registrytest.OutcomesFile, got) {
		return
	}
	compare(t, registrytest.Outcomes(t), got)
}
