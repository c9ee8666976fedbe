package fake

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// unbuilt is a client that could not be built. All calls fail.
type unbuilt struct {
	client.WithWatch
	empty client.WithWatch
}

// Unwrap returns a client of a store without objects.
func (u unbuilt) Unwrap() client.WithWatch { return u.empty }

// newUnbuilt returns a client whose calls return err. It is over an empty store.
func newUnbuilt(empty *store.Store, err error) client.WithWatch {
	c := empty.Client(store.ClientOptions{})
	return unbuilt{empty: c, WithWatch: interceptor.NewClient(c, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
		List:   func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err },
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return err },
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			return err
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return err },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return err
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return err
		},
		Watch: func(
			context.Context, client.WithWatch, client.ObjectList, ...client.ListOption,
		) (watch.Interface, error) {
			return nil, err
		},
		SubResourceGet: func(
			context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceGetOption,
		) error {
			return err
		},
		SubResourceCreate: func(
			context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption,
		) error {
			return err
		},
		SubResourceUpdate: func(
			context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption,
		) error {
			return err
		},
		SubResourcePatch: func(
			context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption,
		) error {
			return err
		},
		SubResourceApply: func(
			context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption,
		) error {
			return err
		},
	})}
}
