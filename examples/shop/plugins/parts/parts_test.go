package parts_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/plugins/parts"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// A shop, as an author of the operator would test it: a plugin in the process takes the place of all others.
var shop = rtesting.NewFixture(&v1.Shop{
	ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "books", UID: "books-uid", Generation: 1},
	Spec:       v1.ShopSpec{Image: "shop:1"},
})

func withQueue(s *v1.Shop) { s.Spec.Queue = &v1.Queue{Type: "memory", Names: []string{"orders"}} }

func withOtherQueue(s *v1.Shop) { s.Spec.Queue = &v1.Queue{Type: "rabbit"} }

// is makes a condition of the shop say so.
func is(condition string, status metav1.ConditionStatus, reason, message string) func(*v1.Shop) {
	return func(s *v1.Shop) {
		reconcilers.SetCondition(context.Background(), s, metav1.Condition{
			Type: condition, Status: status, Reason: reason, Message: message,
		})
	}
}

// recorded has the object in the records of the shop.
func recorded(s *v1.Shop) {
	s.Status.ForEach = []apis.ForEachStatus{{
		Name: "queue", Keys: []string{"queue:ConfigMap"}, Source: "queue in the operator", SourceGeneration: 1,
	}}
}

// queues is a plugin for queue/memory: a ConfigMap with the name of the shop.
var queues = plugins.Plugin{Category: "queue", Types: []plugins.Type{{
	Name: "memory",
	Dependents: func(_ context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
		return []*plugins.Dependent{plugins.Owns("queue", &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: r.Owner.Name + "-queue"}, Data: map[string]string{"asked": r.Type},
		})}, nil
	},
}}}

func TestQueue(t *testing.T) {
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	host := &plugins.Host{InProcess: []plugins.Plugin{queues}}
	rtesting.NodeTests[*v1.Shop]{
		"no queue": {
			Resource:       shop.Object(),
			ExpectResource: shop.With(is(v1.QueueReady, metav1.ConditionTrue, "NotDesired", "")).Object(),
		},
		"no plugin": {
			Resource: shop.With(withOtherQueue).Object(),
			ExpectResource: shop.With(withOtherQueue,
				is(v1.QueueReady, metav1.ConditionFalse, "NoPlugin", "no plugin provides queue/rabbit")).Object(),
		},
		"a queue: it is recorded first": {
			Resource: shop.With(withQueue).Object(),
			ExpectResource: shop.With(withQueue, recorded, is(v1.QueueReady, metav1.ConditionUnknown, "Initializing",
				"queue:ConfigMap: Initializing")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Second},
		},
		"a queue that is recorded": {
			Resource: shop.With(withQueue, recorded).Object(),
			ExpectCreates: []client.Object{rtesting.WithOptions(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "market", Name: "books-queue",
					Labels: map[string]string{
						"espalier.dev/item": "queue-ConfigMap-5ee1dfbf41ce", "espalier.dev/node": "queue",
					},
					OwnerReferences: []metav1.OwnerReference{{
						APIVersion: "shop.example.com/v1", Kind: "Shop", Name: "books",
						Controller: new(true), BlockOwnerDeletion: new(true),
					}},
				},
				Data: map[string]string{"asked": "memory"},
			}, rtesting.WriteOptions{FieldOwner: "shop-controller"})},
			ExpectEvents: []rtesting.Event{rtesting.NewEvent(shop.Object(), scheme, "Normal", "Created",
				`Created ConfigMap "books-queue"`)},
			ExpectResource: shop.With(withQueue, recorded, is(v1.QueueReady, metav1.ConditionTrue, "Ready", "")).Object(),
		},
	}.RunNode(t, scheme, func() reconcilers.SubReconciler[*v1.Shop] { return parts.Queue(host) })
}
