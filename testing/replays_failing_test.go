package testing_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
)

// counts is the metadata of a row that changes the resource in each request, and asks for a delay.
func counts(delay time.Duration) map[string]any {
	return map[string]any{"node": node[*corev1.ConfigMap]{
		reconcile: func(ctx context.Context, cm *corev1.ConfigMap) (reconcilers.Result, error) {
			cm = cm.DeepCopy()
			cm.Data["k"] += "w"
			return reconcilers.Result{RequeueAfter: delay}, reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, cm)
		},
	}}
}

// counted is the resource after one request.
var counted = []client.Object{settings.With(func(c *corev1.ConfigMap) { c.Data["k"] += "w" })}

// noRest is what is printed of a row whose requests go on.
var noRest = []string{
	"without a fault, the row never comes to rest", "story: ", `rtesting.NoReplays("why it never comes to rest")`,
}

func init() {
	for name, failing := range map[string]scenario{
		"a change in each request": {
			run:      faithful(cmCase{Metadata: counts(0), ExpectUpdates: counted}),
			want:     append(noRest, "20 times: get ConfigMap settings · update ConfigMap settings · again", "a change"),
			unwanted: []string{"not replayed"},
		},
		"an error in each later request": {
			run: faithful(cmCase{Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				return reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, configMap("one"))
			}), ExpectCreates: []client.Object{configMap("one")}}),
			want: append(noRest, `request 20 ends with an error: ConfigMapResourceReconciler: configmaps "one" already exists`),
		},
	} {
		scenarios[name] = failing
	}
}
