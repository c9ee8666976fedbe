package plan_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	ourPrefix = "garden.example.com"
	ourID     = "our-id"
	ourOwner  = "Shop.example.com/default/shop/uid-1"
)

func TestOwnershipByLabelAndAnnotation(t *testing.T) {
	for name, test := range map[string]struct {
		label, annotation string
		want              plan.Ownership
		claim             string
	}{
		"no marks":                         {"", "", plan.Unowned, ""},
		"annotation without label":         {"", ourOwner, plan.Unlabelled, ""},
		"former annotation, no label":      {"", "Shop.example.com/default/shop/uid-0", plan.Unowned, ""},
		"another annotation, no label":     {"", "Shop.example.com/north/corner/uid-9", plan.Foreign, "belongs to Shop.example.com north/corner"},
		"nonsense annotation, no label":    {"", "nonsense", plan.Unowned, ""},
		"ours":                             {ourID, ourOwner, plan.Ours, ""},
		"the label decides":                {ourID, "Other.example.com/a/b/c", plan.Ours, ""},
		"another UID":                      {"other", "Shop.example.com/default/shop/uid-0", plan.Predecessor, "belongs to a former Shop.example.com default/shop"},
		"another name":                     {"other", "Shop.example.com/default/shop2/uid-0", plan.Foreign, "belongs to Shop.example.com default/shop2"},
		"another namespace":                {"other", "Shop.example.com/default2/shop/uid-0", plan.Foreign, "belongs to Shop.example.com default2/shop"},
		"another kind":                     {"other", "Stop.example.com/default/shop/uid-0", plan.Foreign, "belongs to Stop.example.com default/shop"},
		"another label with our own owner": {"other", ourOwner, plan.Ours, ""},
		"no annotation":                    {"other", "", plan.Foreign, "belongs to another component"},
		"no namespace":                     {"other", "Shop//corner/uid", plan.Foreign, "belongs to Shop corner"},
		"no name":                          {"other", "Shop///uid", plan.Foreign, "belongs to Shop///uid"},
		"no UID":                           {"other", "Shop.example.com/default/shop/", plan.Foreign, "belongs to Shop.example.com default/shop"},
		"no slash":                         {"other", "shop", plan.Foreign, "belongs to shop"},
		"several lines":                    {"other", "a\nb", plan.Foreign, "belongs to a b"},
		"long":                             {"other", strings.Repeat("ä/", 200), plan.Foreign, "belongs to " + strings.Repeat("ä/", 32) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{}
			if test.label != "" {
				object.Labels = map[string]string{ourPrefix + "/owner-id": test.label}
			}
			if test.annotation != "" {
				object.Annotations = map[string]string{ourPrefix + "/owner-id": test.annotation}
			}
			got, claim := plan.MarksOf(object, ourPrefix).Ownership(ourID, ourOwner, false)
			if got != test.want || claim != test.claim {
				t.Errorf("got %v, %q, want %v, %q", got, claim, test.want, test.claim)
			}
		})
	}
	for label, want := range map[string]plan.Ownership{"": plan.Unlabelled, "other": plan.Foreign} {
		if got, _ := (plan.Marks{Label: label}).Ownership(ourID, ourOwner, true); got != want {
			t.Errorf("written by us with the label %q, the ownership is %v, want %v", label, got, want)
		}
	}
	if got, _ := (plan.Marks{Label: "other"}).Ownership("", "", false); got != plan.Foreign {
		t.Errorf("without an owner of our own, the ownership is %v, want %v", got, plan.Foreign)
	}
}

// Owners in two clusters are different ones, whatever their names. What was written before owners had a cluster is ours
// only with our UID.
func TestOwnershipOfOwnersWithClusters(t *testing.T) {
	const owner = "Shop.example.com/default/shop/cluster-1/uid-1"
	for name, test := range map[string]struct {
		label, annotation string
		want              plan.Ownership
		former            bool
		claim             string
	}{
		"ours":                        {ourID, owner, plan.Ours, false, ""},
		"ours, without a cluster":     {"other", "Shop.example.com/default/shop/uid-1", plan.Ours, true, ""},
		"without a label":             {"", "Shop.example.com/default/shop/uid-1", plan.Foreign, false, "belongs to Shop.example.com default/shop"},
		"another UID, no cluster":     {"other", "Shop.example.com/default/shop/uid-0", plan.Foreign, false, "belongs to Shop.example.com default/shop"},
		"another name, no cluster":    {"other", "Shop.example.com/default/shop2/uid-1", plan.Foreign, false, "belongs to Shop.example.com default/shop2"},
		"a longer UID, no cluster":    {"other", "Shop.example.com/default/shop/uid-10", plan.Foreign, false, "belongs to Shop.example.com default/shop"},
		"a former one":                {"other", "Shop.example.com/default/shop/cluster-1/uid-0", plan.Predecessor, false, "belongs to a former Shop.example.com default/shop of the cluster cluster-1"},
		"another cluster":             {"other", "Shop.example.com/default/shop/cluster-2/uid-9", plan.Foreign, false, "belongs to Shop.example.com default/shop of the cluster cluster-2"},
		"our UID in another cluster":  {"other", "Shop.example.com/default/shop/cluster-2/uid-1", plan.Foreign, false, "belongs to Shop.example.com default/shop of the cluster cluster-2"},
		"another cluster, no label":   {"", "Shop.example.com/default/shop/cluster-2/uid-9", plan.Foreign, false, "belongs to Shop.example.com default/shop of the cluster cluster-2"},
		"another cluster, no UID":     {"other", "Shop.example.com/default/shop/cluster-2/", plan.Foreign, false, "belongs to Shop.example.com default/shop of the cluster cluster-2"},
		"no name in another cluster":  {"other", "Shop.example.com/default//cluster-2/uid", plan.Foreign, false, "belongs to Shop.example.com/default//cluster-2/uid"},
		"in a form that is not known": {"other", "a/b/c/d/e/f", plan.Foreign, false, "belongs to a/b/c/d/e/f"},
	} {
		t.Run(name, func(t *testing.T) {
			marks := plan.Marks{Label: test.label, Owner: test.annotation}
			got, claim := marks.Ownership(ourID, owner, false)
			if got != test.want || claim != test.claim || marks.Former(owner) != test.former {
				t.Errorf("the ownership is %v, the claim %q, former %t, want %v, %q, %t", got, claim,
					marks.Former(owner), test.want, test.claim, test.former)
			}
		})
	}
	// For an owner without a cluster, one with a cluster is another one.
	marks := plan.Marks{Label: "other", Owner: owner}
	if got, _ := marks.Ownership(ourID, ourOwner, false); got != plan.Foreign || marks.Former(ourOwner) {
		t.Errorf("without a cluster of our own, the ownership is %v and former %t, want %v and false", got,
			marks.Former(ourOwner), plan.Foreign)
	}
}

// Each manager is known by what it writes on its objects. Its mark keeps the object from being adopted as unowned, with
// and without the label of a predecessor.
func TestMarksOfOthers(t *testing.T) {
	controlled := []metav1.OwnerReference{{Kind: "Team", Name: "a", UID: "1"}, {Kind: "ReplicaSet", Name: "web", UID: "2", Controller: new(true)}}
	labelled := func(pairs ...string) (m metav1.ObjectMeta) {
		m.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m.Labels[pairs[i]] = pairs[i+1]
		}
		return m
	}
	annotated := func(pairs ...string) metav1.ObjectMeta {
		m := labelled(pairs...)
		m.Labels, m.Annotations = nil, m.Labels
		return m
	}
	written := func(managers ...string) (m metav1.ObjectMeta) {
		for _, manager := range managers {
			name, subresource, _ := strings.Cut(manager, "/")
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: name, Subresource: subresource})
		}
		return m
	}
	for name, test := range map[string]struct {
		object metav1.ObjectMeta
		want   plan.Ownership
		claim  string
	}{
		"controller":                  {metav1.ObjectMeta{OwnerReferences: controlled}, plan.Foreign, "is controlled by ReplicaSet web"},
		"owner that does not control": {metav1.ObjectMeta{OwnerReferences: controlled[:1]}, plan.Unowned, ""},
		"Helm":                        {annotated("meta.helm.sh/release-name", "web", "meta.helm.sh/release-namespace", "shop"), plan.Foreign, "belongs to the Helm release shop/web"},
		"the label of charts":         {labelled("app.kubernetes.io/managed-by", "Helm"), plan.Unowned, ""},
		"Argo CD, annotation":         {annotated("argocd.argoproj.io/tracking-id", "web:apps/Deployment:shop/web"), plan.Foreign, "belongs to the Argo CD application web"},
		"Argo CD, label":              {labelled("argocd.argoproj.io/instance", "web"), plan.Foreign, "belongs to the Argo CD application web"},
		"Flux Kustomization":          {labelled("kustomize.toolkit.fluxcd.io/name", "web", "kustomize.toolkit.fluxcd.io/namespace", "flux"), plan.Foreign, "belongs to the Flux Kustomization flux/web"},
		"Flux HelmRelease":            {labelled("helm.toolkit.fluxcd.io/name", "web", "helm.toolkit.fluxcd.io/namespace", "flux"), plan.Foreign, "belongs to the Flux HelmRelease flux/web"},
		"kapp":                        {labelled("kapp.k14s.io/app", "1700000000"), plan.Foreign, "belongs to the kapp application 1700000000"},
		"component of another prefix": {annotated("other.example.com/owner-id", "Shop/north/corner/uid"), plan.Foreign, "belongs to Shop north/corner"},
		"two components":              {annotated("b.example.com/owner-id", "B/n/b/uid", "a.example.com/owner-id", "A/n/a/uid"), plan.Foreign, "belongs to A n/a"},
		"our owner with another label, and Helm": {metav1.ObjectMeta{
			Labels: map[string]string{ourPrefix + "/owner-id": "other"},
			Annotations: map[string]string{
				ourPrefix + "/owner-id": ourOwner, "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop",
			},
		}, plan.Foreign, "belongs to the Helm release shop/web"},
		"ourselves, by another prefix": {annotated("other.example.com/owner-id", ourOwner), plan.Unowned, ""},
		"owner in another form":        {annotated("other.example.com/owner-id", "north/corner"), plan.Unowned, ""},
		"field managers":               {written("kubectl", "manager/status", "kubectl", "apply"), plan.Unowned, "was written by apply, kubectl"},
		"many field managers":          {written("d", "c", "b", "a"), plan.Unowned, "was written by a, b, c and 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{ObjectMeta: test.object}
			marks := plan.MarksOf(object, ourPrefix)
			got, claim := marks.Ownership(ourID, ourOwner, false)
			if got != test.want || claim != test.claim {
				t.Errorf("got %v, %q, want %v, %q", got, claim, test.want, test.claim)
			}
			again := plan.MarksOf(object, ourPrefix)
			if !marks.Equal(&again) {
				t.Errorf("the same marks are not equal, want equal ones: %+v and %+v", marks, again)
			}
			if blank := (plan.Marks{}); test.claim != "" && marks.Equal(&blank) {
				t.Errorf("the marks %+v equal none, want that they do not", marks)
			}
			if object.Labels == nil {
				object.Labels = map[string]string{}
			}
			if object.Annotations == nil {
				object.Annotations = map[string]string{}
			}
			object.Labels[ourPrefix+"/owner-id"], object.Annotations[ourPrefix+"/owner-id"] = "other", "Shop.example.com/default/shop/uid-0"
			want := plan.Predecessor
			if test.want == plan.Foreign {
				want = plan.Foreign
			}
			if got, _ := plan.MarksOf(object, ourPrefix).Ownership(ourID, ourOwner, false); got != want {
				t.Errorf("with the label of a predecessor, got %v, want %v", got, want)
			}
			object.Labels[ourPrefix+"/owner-id"] = ourID
			if got, _ := plan.MarksOf(object, ourPrefix).Ownership(ourID, ourOwner, false); got != plan.Ours {
				t.Errorf("with our label, the ownership is %v, want %v", got, plan.Ours)
			}
		})
	}
}

func TestMayTakeOver(t *testing.T) {
	for _, test := range []struct {
		ownership plan.Ownership
		recorded  types.UID
		want      string
	}{
		{plan.Ours, "", "default Never IfUnowned Always Odd"},
		{plan.Unowned, "", "IfUnowned Always"},
		{plan.Predecessor, "", "IfUnowned Always"},
		{plan.Foreign, "", "Always"},
		{plan.Unlabelled, "u1", "default Never IfUnowned Always Odd"},
		{plan.Unlabelled, "u0", "IfUnowned Always"},
		{plan.Unlabelled, "", "IfUnowned Always"},
		{plan.Unowned, "u1", "IfUnowned Always"},
		{plan.Predecessor, "u1", "IfUnowned Always"},
		{plan.Unowned, "u0", "IfUnowned Always"},
		{plan.Foreign, "u1", ""},
		{plan.Foreign, "u0", ""},
	} {
		var allowed []string
		for _, policy := range []apis.AdoptionPolicy{"", apis.AdoptNever, apis.AdoptIfUnowned, apis.AdoptAlways, "Odd"} {
			if plan.MayTakeOver(policy, test.ownership, test.recorded, "u1") {
				if policy == "" {
					policy = "default"
				}
				allowed = append(allowed, string(policy))
			}
		}
		if got := strings.Join(allowed, " "); got != test.want {
			t.Errorf("%v, recorded %q: got %q, want %q", test.ownership, test.recorded, got, test.want)
		}
	}
}

// What was adopted is orphaned by default, until it is created anew.
func TestDeletePolicyOfWhatIsAdopted(t *testing.T) {
	for said, want := range map[apis.DeletePolicy][2]apis.DeletePolicy{
		"":                        {apis.DeleteOrphan, ""},
		apis.DeleteDelete:         {"", ""},
		apis.DeleteOrphan:         {apis.DeleteOrphan, apis.DeleteOrphan},
		apis.DeleteOrphanOnApply:  {apis.DeleteOrphanOnApply, apis.DeleteOrphanOnApply},
		apis.DeleteOrphanOnDelete: {apis.DeleteOrphanOnDelete, apis.DeleteOrphanOnDelete},
	} {
		c := newComponent(t, with(configMap("c"), policy(said)))
		c.cluster.put(configMap("c").Key, plan.Unowned)
		for i, then := range []func(){
			func() {},
			func() { c.cluster.objects[configMap("c").Key].ownership = plan.Unlabelled },
			func() { c.stored[0].UID = "" }, // the answer to the adoption was lost
		} {
			then()
			c.rollOutAll(t)
			if r := c.stored[0]; !r.Adopted || r.DeletePolicy != want[0] {
				t.Errorf("%q, step %d: adopted is %v, delete policy %q, want %q", said, i, r.Adopted, r.DeletePolicy, want[0])
			}
		}
		delete(c.cluster.objects, configMap("c").Key)
		c.rollOutAll(t)
		if r := c.stored[0]; r.Adopted || r.DeletePolicy != want[1] {
			t.Errorf("%q, created anew: adopted is %v, delete policy %q, want %q", said, r.Adopted, r.DeletePolicy, want[1])
		}
	}
}

// What was adopted is recreated as its update policy says. It is then no longer adopted.
func TestRecreationEndsAdoption(t *testing.T) {
	c := newComponent(t, with(configMap("c"), policy(apis.UpdateRecreate), policy(apis.DeletePolicy(""))))
	c.cluster.put(configMap("c").Key, plan.Unowned)
	c.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"adopt c"})
	c.desired[0].Digest = "2"
	c.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"adopt c", "recreate c", "create c"})
	if r := c.stored[0]; r.Adopted || r.DeletePolicy != "" {
		t.Errorf("the record is %+v, want it not adopted and without a delete policy", r)
	}
}

// A refused object is not recorded as adopted, even if an adoption was planned before.
func TestRefusalEndsAPlannedAdoption(t *testing.T) {
	d := with(configMap("c"), policy(apis.DeletePolicy("")))
	s := live(d)
	s.Ownership, s.Digest = plan.Unowned, ""
	p := plan.Make(single(d, nil, s))
	if !p.Inventory[0].Adopted || p.Inventory[0].UID != "" {
		t.Fatalf("the record is %+v, want it adopted and without a UID", p.Inventory[0])
	}
	s.Ownership, s.Claim = plan.Foreign, "is controlled by ReplicaSet web"
	p = plan.Make(single(d, &p.Inventory[0], s))
	if r := p.Inventory[0]; r.Adopted || r.DeletePolicy != "" {
		t.Errorf("the record is %+v, want it not adopted and without a delete policy", r)
	}
	same(t, "obstacles", obstacles(p), []string{"not ours c: it is controlled by ReplicaSet web; adoption-policy: always adopts it"})
}

// What a controller wrote once more after it was deleted is taken over, and counts as created.
func TestRemnantIsTakenOver(t *testing.T) {
	const written = "was written by clusterrole-aggregation-controller"
	role := object1("rbac.authorization.k8s.io", "ClusterRole", "admin")
	role.Namespace, role.AdoptionPolicy, role.DeletePolicy = "", apis.AdoptNever, ""
	for name, test := range map[string]struct {
		claim    string
		recorded types.UID
		kind     string
		want     []string
	}{
		"again":             {written, "u0", "ClusterRole", []string{"relabel admin"}},
		"before":            {written, "", "ClusterRole", []string{"relabel admin"}},
		"empty":             {"", "u0", "ClusterRole", []string{"relabel admin"}},
		"empty, never ours": {"", "", "ClusterRole", nil},
		"by somebody, too":  {written + ", kubectl", "u0", "ClusterRole", nil},
		"of another kind":   {written, "u0", "Role", nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := role
			d.Kind = test.kind
			r, s := asIs(d), live(d)
			r.UID, r.DeletePolicy = test.recorded, ""
			s.Ownership, s.Claim, s.Digest = plan.Unowned, test.claim, ""
			p := plan.Make(single(d, &r, s))
			same(t, "operations", actions(p), test.want)
			if r := p.Inventory[0]; r.Adopted || r.DeletePolicy != "" {
				t.Errorf("the record is %+v, want it not adopted and without a delete policy", r)
			}
		})
	}
}
