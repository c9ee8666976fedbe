package metrics_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// oneService is a client whose cache has one Service.
type oneService struct {
	client.Client
	service *corev1.Service
}

func (c oneService) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.service.DeepCopyInto(obj.(*corev1.Service))
	return nil
}

// BenchmarkObserved is a request that does nothing, through a list of ten syncs, without and with the metrics.
func BenchmarkObserved(b *testing.B) {
	for _, observed := range []bool{false, true} {
		b.Run("observed="+strconv.FormatBool(observed), func(b *testing.B) {
			c := oneService{
				Client:  fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(),
				service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner", UID: "owner", Generation: 1}},
			}
			config := reconcilers.Config{Client: c, APIReader: c}
			if observed {
				observer, err := metrics.New(metrics.Options{Registerer: prometheus.NewRegistry()})
				if err != nil {
					b.Fatal(err)
				}
				config = config.WithObserver(observer)
			}
			var list reconcilers.Sequence[*corev1.Service]
			for i := range 10 {
				list = append(list, &reconcilers.SyncReconciler[*corev1.Service]{
					Name: "sync-" + strconv.Itoa(i), Sync: func(context.Context, *corev1.Service) error { return nil },
				})
			}
			root := &reconcilers.ResourceReconciler[*corev1.Service]{Reconciler: list, Config: config}
			ctx := logr.NewContext(b.Context(), logr.Discard())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := root.Reconcile(ctx, requestFor("owner")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
