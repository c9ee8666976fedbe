package reconcilers_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// limitConfigMaps sets the quota of a namespace, as the quota controller would, which does not run.
func limitConfigMaps(t *testing.T, c client.Client, quota *corev1.ResourceQuota, limit string) {
	t.Helper()
	const count = "count/configmaps"
	quota.Spec.Hard = corev1.ResourceList{count: resource.MustParse(limit)}
	if quota.UID == "" {
		if err := c.Create(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
	} else if err := c.Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	quota.Status.Hard = quota.Spec.Hard
	quota.Status.Used = corev1.ResourceList{count: resource.MustParse("0")}
	if err := c.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
}

// A child that a quota forbids is created once the quota is raised, although no event of the resource or of its
// children says so.
func TestForbiddenChildIsCreatedWhenTheQuotaIsRaised(t *testing.T) {
	controlplanetest.Real(t, "admission has to refuse what a ResourceQuota does not allow")
	t.Parallel()
	c := live(t)
	op, _ := startOperator(t, treeOf(statusChild()))
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "quota"}}
	limitConfigMaps(t, c, quota, "0")

	began := time.Now()
	w := op.createWidget(t, c)
	eventually(t, "not refused", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if ready := w.Status.GetCondition(resources.WidgetReady); !apis.ConditionIsFalse(ready) {
			return fmt.Errorf("Ready is %v", ready)
		}
		return nil
	})
	refused := w.ResourceVersion
	creation := controlplane.Request{Verb: "create", Path: "/api/v1/namespaces/" + op.namespace + "/configmaps"}
	eventually(t, "not tried again and again", func(context.Context) error {
		if n, took := op.requests.Counts()[creation], time.Since(began); n < 8 || took < 3*time.Second {
			return fmt.Errorf("there are %d attempts in %s, want 8 in three seconds or more", n, took)
		}
		return nil
	})
	n, took := op.requests.Counts()[creation], time.Since(began)
	// Delays begin with 5 ms and double, and the events of the resource make some attempts more.
	if most := 5 + int(math.Log2(float64(took/(5*time.Millisecond)))); n > most {
		t.Errorf("there are %d attempts in %s, want at most %d:\n%s", n, took, most, op.requests)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || w.ResourceVersion != refused {
		t.Errorf("the version is %s (%v), want %s while the child is refused: %v", w.ResourceVersion, err, refused,
			w.Status)
	}

	limitConfigMaps(t, c, quota, "9")
	eventually(t, "not tried again", func(ctx context.Context) error { return isReady(ctx, c, w) })
}
