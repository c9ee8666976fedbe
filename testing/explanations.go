package testing

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/explain"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// explanations returns what may be the cause of a failure: mistakes in a row that its differences do not show.
func (r *caseRun) explanations() []string {
	var texts []string
	if r.request != nil {
		if text, _ := r.expect.explain().MissingRequest(r.request.NamespacedName); text != "" {
			texts = append(texts, text)
		}
	}
	calls, failed := r.expect.made().Client.Offered()
	if r.lacksError && len(r.expect.WithReactors) > 0 && !failed {
		text := "no reactor made a call fail; the calls were: " + strings.Join(calls, ", ")
		texts = append(texts, strings.TrimSuffix(text, ": "))
	}
	for _, c := range r.all() {
		of := append(c.explain().Failure(), c.notInScheme()...)
		slices.Sort(of)
		for _, text := range slices.Compact(of) {
			texts = append(texts, text+c.suffix())
		}
	}
	return texts
}

// explain explains what the config was given and what was called.
func (c *ExpectConfig) explain() explain.Config {
	made := c.made()
	return explain.Config{
		Scheme: c.Scheme, Given: c.GivenObjects, APIGiven: c.APIGivenObjects,
		Client: made.Client, APIReader: made.Reader,
	}
}

// notInScheme says which expected objects are of a type that is not in the scheme.
func (c *ExpectConfig) notInScheme() []string {
	var texts []string
	for _, list := range []struct {
		field   string
		objects []client.Object
	}{
		{"ExpectCreates", c.ExpectCreates}, {"ExpectUpdates", c.ExpectUpdates},
		{"ExpectStatusUpdates", c.ExpectStatusUpdates},
	} {
		for i, obj := range list.objects {
			obj := objects.Copy(obj)
			_, isInventory := obj.(*Inventory)
			if _, _, err := c.Scheme.ObjectKinds(obj); runtime.IsNotRegisteredError(err) && !isInventory {
				texts = append(texts, fmt.Sprintf("%s[%d]: %s", list.field, i, objects.NotInScheme(obj)))
			}
		}
	}
	return texts
}
