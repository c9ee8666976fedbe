package registry_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/registry"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// named returns a definition with names, which are separated by commas: plural, singular, kind, and short names.
func named(group, names string) *apiextensionsv1.CustomResourceDefinition {
	all := strings.Split(names, ",")
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: all[0] + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: all[0], Singular: all[1], Kind: all[2], ListKind: all[2] + "List", ShortNames: all[3:],
			},
		},
	}
}

// verdictOn renders the conditions of a definition.
func verdictOn(definition *apiextensionsv1.CustomResourceDefinition) string {
	var all []string
	for _, c := range definition.Status.Conditions {
		all = append(all, string(c.Type)+" "+string(c.Status)+" "+c.Reason+" "+c.LastTransitionTime.UTC().Format("04:05"))
	}
	return strings.Join(all, ", ")
}

func TestAcceptNames(t *testing.T) {
	t.Parallel()
	const (
		accepted = "NamesAccepted True NoConflicts 00:01, Established True InitialNamesAccepted 00:01"
		refused  = "NamesAccepted False %s 00:01, Established False NotAccepted 00:01"
	)
	for _, test := range []struct{ group, others, names, want string }{
		{"a.com", "tables,table,Table,tb", "chairs,chair,Chair,ch", accepted},
		{"b.com", "tables,table,Table,tb", "tables,table,Table,tb", accepted},
		{"a.com", "tables,table,Table,tb", "tb,t,T", strings.Replace(refused, "%s", "PluralConflict", 1)},
		{"a.com", "tables,table,Table,tb", "ts,table,T", strings.Replace(refused, "%s", "SingularConflict", 1)},
		{"a.com", "tables,table,Table,tb", "ts,t,T,x,tables", strings.Replace(refused, "%s", "ShortNamesConflict", 1)},
		{"a.com", "tables,table,Table,tb", "ts,t,TableList", strings.Replace(refused, "%s", "KindConflict", 1)},
		{"a.com", "tables,table,Table,tb", "ts,t,Table", strings.Replace(refused, "%s", "ListKindConflict", 1)},
	} {
		for _, given := range []bool{true, false} {
			other := named("a.com", test.others)
			if !given {
				registry.AcceptNames(other, nil, metav1.Unix(0, 0))
				other.Spec.Names = named("a.com", "wishes,wish,Wish").Spec.Names
			}
			definition := named(test.group, test.names)
			others := []*apiextensionsv1.CustomResourceDefinition{other}
			registry.AcceptNames(definition, others, metav1.Unix(1, 0))
			if got := verdictOn(definition); got != test.want {
				t.Errorf("%s in %s, given %t:\ngot  %s\nwant %s", test.names, test.group, given, got, test.want)
			}
			isAccepted := test.want == accepted
			if registry.Established(definition) != isAccepted || registry.NamesRefused(definition) == isAccepted {
				t.Errorf("%s in %s: what is reported is not what the conditions say, want it accepted: %t", test.names,
					test.group, isAccepted)
			}
			registry.AcceptNames(definition, nil, metav1.Unix(2, 0))
			if !registry.Established(definition) || registry.NamesRefused(definition) {
				t.Errorf("%s in %s: free names are refused, want them accepted", test.names, test.group)
			}
		}
	}
}

// TestEstablishedStays gives an established definition a name that another has: it stays established, without it.
func TestEstablishedStays(t *testing.T) {
	t.Parallel()
	definition := named("a.com", "chairs,chair,Chair,ch")
	registry.AcceptNames(definition, nil, metav1.Unix(1, 0))
	definition.Spec.Names.ShortNames = []string{"ch", "tb"}
	registry.AcceptNames(definition, []*apiextensionsv1.CustomResourceDefinition{named("a.com", "tables,table,Table,tb")},
		metav1.Unix(2, 0))
	const want = "NamesAccepted False ShortNamesConflict 00:02, Established True InitialNamesAccepted 00:01"
	if got := verdictOn(definition); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := gocmp.Diff([]string{"ch"}, definition.Status.AcceptedNames.ShortNames); diff != "" {
		t.Errorf("other short names are accepted (-want +got):\n%s", diff)
	}
}
