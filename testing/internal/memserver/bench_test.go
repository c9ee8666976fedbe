package memserver_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/testing/internal/memserver"
)

// BenchmarkServer measures one call of the fake client over this server, with the whole client-go scheme, beside the
// same call of the fake client over its own tracker.
func BenchmarkServer(b *testing.B) {
	clients := map[string]func() client.Client{
		"memserver": func() client.Client {
			c, _ := memserver.New(clientgoscheme.Scheme).Build(fake.NewClientBuilder())
			return c
		},
		"default": func() client.Client { return fake.NewClientBuilder().Build() },
	}
	for _, name := range []string{"memserver", "default"} {
		b.Run(name, func(b *testing.B) { benchmarkCalls(b, clients[name]) })
	}
}

func benchmarkCalls(b *testing.B, newClient func() client.Client) {
	ctx := context.Background()
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			newClient()
		}
	})
	b.Run("create", func(b *testing.B) {
		c := newClient()
		for i := 0; b.Loop(); i++ {
			if err := c.Create(ctx, settings(fmt.Sprintf("cm-%d", i))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		c, obj := withOne(b, newClient())
		for b.Loop() {
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		c, obj := withOne(b, newClient())
		for i := 0; b.Loop(); i++ {
			obj.Data["count"] = fmt.Sprint(i)
			if err := c.Update(ctx, obj); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("merge-patch", func(b *testing.B) {
		c, obj := withOne(b, newClient())
		for i := 0; b.Loop(); i++ {
			before := obj.DeepCopy()
			obj.Data["count"] = fmt.Sprint(i)
			if err := c.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("apply", func(b *testing.B) {
		c := newClient()
		for i := 0; b.Loop(); i++ {
			config := corev1apply.ConfigMap("settings", "default").WithData(map[string]string{"count": fmt.Sprint(i)})
			if err := c.Apply(ctx, config, client.FieldOwner("bench")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func settings(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "bench"}},
		Data:       map[string]string{"count": "0"},
	}
}

func withOne(b *testing.B, c client.Client) (client.Client, *corev1.ConfigMap) {
	obj := settings("settings")
	if err := c.Create(context.Background(), obj); err != nil {
		b.Fatal(err)
	}
	return c, obj
}
