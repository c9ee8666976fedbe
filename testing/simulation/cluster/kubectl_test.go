package cluster_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// TestWhatKubectlAsks asks what kubectl does beside reading and writing objects.
func TestWhatKubectlAsks(t *testing.T) {
	t.Parallel()
	env := &cluster.Environment{Workloads: true}
	admin := kubernetes.NewForConfigOrDie(start(t, env))
	user, err := env.AddUser(cluster.User{Name: "jane", Groups: []string{"readers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	jane := kubernetes.NewForConfigOrDie(user.Config())

	server, err := admin.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if v, err := version.ParseGeneric(server.GitVersion); err != nil || fmt.Sprint(v.Minor()) != server.Minor {
		t.Errorf("the version is %v, %v", server, err)
	}

	who, err := jane.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if info := who.Status.UserInfo; info.Username != "jane" || !slices.Contains(info.Groups, "readers") {
		t.Errorf("jane is %v", info)
	}

	for name, clients := range map[string]*kubernetes.Clientset{"*": admin, "selfsubjectaccessreviews": jane} {
		rules, err := clients.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(rules.Status.ResourceRules, func(r authorizationv1.ResourceRule) bool {
			return slices.Contains(r.Resources, name)
		}) || rules.Status.Incomplete {
			t.Errorf("who may do something with %s has the rules %v", name, rules.Status)
		}
	}

	pod := &corev1.Pod{ObjectMeta: objectMeta("a"), Spec: deployment("a").Spec.Template.Spec}
	if _, err := admin.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = admin.CoreV1().Pods("default").GetLogs("a", &corev1.PodLogOptions{}).Stream(t.Context())
	wantError(t, err, "no containers run in this cluster, so pods a has no logs")
	_, err = jane.CoreV1().Pods("default").GetLogs("a", &corev1.PodLogOptions{}).Stream(t.Context())
	wantError(t, err, `User "jane" cannot get resource "pods/log"`)
}

// TestTables asks for tables, as kubectl get does.
func TestTables(t *testing.T) {
	t.Parallel()
	clients := kubernetes.NewForConfigOrDie(start(t, &cluster.Environment{}))
	deployments := clients.AppsV1().Deployments("default")
	if _, err := deployments.Create(t.Context(), deployment("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/apis/apps/v1/namespaces/default/deployments/a": "Name Ready Up-to-date Available Age: a 0/1 0 0",
		"/apis/apps/v1/deployments":                      "Name Ready Up-to-date Available Age: a 0/1 0 0",
		"/api/v1/namespaces/default":                     "Name Status Age: default Active",
		"/api/v1/namespaces/default/configmaps":          "Name Data Age:",
	} {
		text, err := clients.CoreV1().RESTClient().Get().AbsPath(path).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		table := metav1.Table{}
		if err := json.Unmarshal(text, &table); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range table.ColumnDefinitions {
			got = append(got, c.Name)
		}
		line := strings.Join(got, " ") + ":"
		for _, row := range table.Rows {
			for _, cell := range row.Cells[:len(row.Cells)-1] {
				line += fmt.Sprint(" ", cell)
			}
		}
		if line != want {
			t.Errorf("%s: the table is %q, want %q", path, line, want)
		}
	}
}
